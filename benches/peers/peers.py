"""Speed of the peers on local LeRobotDataset v3 datasets: torchcodec, lerobot's two loaders, and FFmpeg itself.

Each subcommand prints one JSON object a line, one for each measurement. A driver may call the `measure_*` functions instead, but
should give each loader measurement its own process: worker processes are forked, and must not inherit open decoders or peak memory.

Linux only: CPU time and memory of worker processes are read from `/proc`.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

if TYPE_CHECKING:
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from lerobot.datasets.streaming_dataset import StreamingLeRobotDataset
    from torch.utils.data import DataLoader
    from torchcodec.decoders import VideoDecoder

SeekMode = Literal["exact", "approximate"]
Mode = Literal["single", "sarm"]
Loader = Literal["map", "streaming"]
Pixels = Literal["float32", "uint8"]
Output = Literal["native", "rgb24", "rgb24_copied"]

# Read where lerobot reads only the dataset's own files; the name of a local dataset is never looked up.
REPO_ID = "local/bench"
SARM_CAMERA_DELTAS_S = [float(second) for second in range(-7, 1)]
SARM_ACTION_CHUNK = 16
PACKAGES = ("lerobot", "torch", "torchcodec", "torchvision", "datasets", "av")
MIB = 1024 * 1024

FFMPEG_OUTPUTS: dict[Output, list[str]] = {
    # Decoded pictures are dropped as they are.
    "native": ["-f", "null", "-"],
    # Each picture is converted, and dropped.
    "rgb24": ["-pix_fmt", "rgb24", "-f", "null", "-"],
    # Each picture is converted, and copied once more into a packet.
    "rgb24_copied": ["-pix_fmt", "rgb24", "-f", "rawvideo", os.devnull],
}


@dataclass(frozen=True)
class RandomAccess:
    """Single random frames out of torchcodec, on one thread."""

    seek_mode: SeekMode
    files: int
    open_s: float
    """Wall seconds to open every file once, the scan of `exact` included; not part of the rates."""
    frames: int
    wall_s: float
    cpu_s: float
    """CPU seconds of the whole process, user and system."""
    frames_per_s: float
    frames_per_cpu_s: float


@dataclass(frozen=True)
class LoaderSetup:
    """What a loader measurement is asked to do; repeated in its result."""

    loader: Loader
    mode: Mode
    workers: int
    batch_size: int
    pixels: Pixels
    buffer_size: int
    """Samples in the streaming loader's shuffle buffer, with their decoded pictures; ignored by `map`."""
    warmup_batches: int
    """Batches thrown away before the window begins."""
    seconds: float
    """Least length of the window, in wall seconds."""
    seed: int


@dataclass(frozen=True)
class LoaderRate:
    """A loader's steady output, between the arrival of one batch and the arrival of a later one."""

    first_batch_s: float
    """Wall seconds from asking for the loader's iterator to its first batch; not part of the rates."""
    batches: int
    samples: int
    frames: int
    """Camera pictures delivered; a picture repeated at an episode's edge counts each time."""
    wall_s: float
    cpu_s: float
    """CPU seconds of this process and its workers, user and system."""
    worker_cpu_s: list[float]
    """The part of `cpu_s` that each worker spent."""
    samples_per_s: float
    frames_per_s: float
    frames_per_cpu_s: float
    peak_rss_mib: float
    """Sum of each process's own peak, in MiB: pages that processes share count once for each of them."""
    pss_mib: float
    """Memory of all processes at the end of the window, in MiB: shared pages count once."""
    torch_threads: int
    """Threads that torch's own operations may use in this process; in a worker it is 1."""
    checked_pictures: int = 0
    """Pictures of the window's last batch, compared with those of the map-style dataset at the same index."""
    wrong_pictures: int = 0
    """Those that differ: with any, the rates count work that is not the work asked for."""


@dataclass(frozen=True)
class LoaderFailure:
    """A loader that could not deliver the window."""

    error: str


@dataclass(frozen=True)
class Sequential:
    """FFmpeg's own speed over one file from its first frame to its last, on one thread; medians over the repeats."""

    output: Output
    frames: int
    repeats: int
    utime_s: float
    """User CPU seconds, as `ffmpeg -benchmark` tells."""
    stime_s: float
    """System CPU seconds, as `ffmpeg -benchmark` tells."""
    rtime_s: float
    """Wall seconds, as `ffmpeg -benchmark` tells."""
    frames_per_utime_s: float
    frames_per_cpu_s: float
    """Frames by user and system seconds together."""


def measure_random(dataset: Path, seconds: float, seek_mode: SeekMode, seed: int = 0) -> RandomAccess:
    """Decode frames drawn evenly over all of a dataset's video files, one index at a time, for `seconds` of wall time.

    Every file's decoder is opened and used once before the clock starts, and stays open.
    """
    import torch
    from torchcodec.decoders import VideoDecoder

    torch.set_num_threads(1)
    files = sorted((dataset / "videos").rglob("*.mp4"))
    if not files:
        raise FileNotFoundError(f"no mp4 file under {dataset / 'videos'}")

    before_open = time.perf_counter()
    decoders = [VideoDecoder(file, num_ffmpeg_threads=1, seek_mode=seek_mode) for file in files]
    open_s = time.perf_counter() - before_open
    for decoder in decoders:
        decoder.get_frames_at(indices=[0])

    frames, wall_s, cpu_s = decode_random(decoders, seconds, random.Random(seed))
    return RandomAccess(
        seek_mode=seek_mode,
        files=len(files),
        open_s=open_s,
        frames=frames,
        wall_s=wall_s,
        cpu_s=cpu_s,
        frames_per_s=frames / wall_s,
        frames_per_cpu_s=frames / cpu_s,
    )


def measure_loader(dataset: Path, setup: LoaderSetup) -> LoaderRate | LoaderFailure:
    """Time one of lerobot's loaders over a window of at least `setup.seconds`; whatever it raises becomes a `LoaderFailure`."""
    # lerobot would create the folder and ask the network for it: a mistyped path is no failure of the peer.
    if not (dataset / "meta" / "info.json").is_file():
        raise FileNotFoundError(f"no LeRobotDataset v3 at {dataset}: it has no meta/info.json")
    with tempfile.TemporaryDirectory(prefix="peers-") as cache:
        isolate_hugging_face(Path(cache))
        try:
            return time_loader(dataset, setup)
        # A peer that fails is a result too, whichever way it fails.
        except Exception as failure:
            return LoaderFailure(error=describe(failure))


def measure_sequential(file: Path, output: Output, repeats: int) -> Sequential:
    """Decode a whole file `repeats` times with the `ffmpeg` program, on one thread for each of decoder, filters and encoder."""
    runs = [run_ffmpeg(file, output) for _ in range(repeats)]
    frames = runs[0].frames
    utime_s = statistics.median(run.utime_s for run in runs)
    stime_s = statistics.median(run.stime_s for run in runs)
    return Sequential(
        output=output,
        frames=frames,
        repeats=repeats,
        utime_s=utime_s,
        stime_s=stime_s,
        rtime_s=statistics.median(run.rtime_s for run in runs),
        frames_per_utime_s=frames / utime_s,
        frames_per_cpu_s=frames / (utime_s + stime_s),
    )


def measure_versions() -> dict[str, str]:
    """Versions of Python, the peers, the FFmpeg libraries that torchcodec loaded, and the `ffmpeg` program."""
    from torchcodec import _core

    ffmpeg = subprocess.run(["ffmpeg", "-version"], check=True, capture_output=True, text=True)
    return {
        "python": sys.version.split()[0],
        **{package: metadata.version(package) for package in PACKAGES},
        "ffmpeg_of_torchcodec": str(_core.get_ffmpeg_library_versions()["ffmpeg_version"]),
        "ffmpeg_program": ffmpeg.stdout.split()[2],
    }


# --- random ---------------------------------------------------------------------------------------------------------------------


def decode_random(decoders: Sequence[VideoDecoder], seconds: float, draw: random.Random) -> tuple[int, float, float]:
    """Decode single frames for `seconds`; returns the frames, and the wall and CPU seconds they took.

    A file is drawn by its number of frames, so every frame is as likely as any other.
    """
    lengths = [len(decoder) for decoder in decoders]
    frames = 0
    wall_start, cpu_start = time.perf_counter(), time.process_time()
    while (wall_s := time.perf_counter() - wall_start) < seconds:
        (file,) = draw.choices(range(len(decoders)), weights=lengths)
        decoders[file].get_frames_at(indices=[draw.randrange(lengths[file])])
        frames += 1
    return frames, wall_s, time.process_time() - cpu_start


# --- loader ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Clock:
    """Wall and CPU seconds at one moment."""

    wall_s: float
    main_cpu_s: float
    worker_cpu_s: dict[int, float]
    """By process id."""

    @staticmethod
    def read() -> Clock:
        """Read the clocks of this process and of its living workers."""
        workers = {pid: process_cpu_s(pid) for pid in worker_pids()}
        return Clock(wall_s=time.perf_counter(), main_cpu_s=time.process_time(), worker_cpu_s=workers)


def isolate_hugging_face(cache: Path) -> None:
    """Keep Hugging Face's libraries off the network and their caches in `cache`; they read this once, when first imported."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["HF_HOME"] = str(cache)


def describe(failure: Exception) -> str:
    """Name a failure in one line: what a worker raised comes as a whole traceback, whose last line tells the cause."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    shown = lines[:1] + lines[1:][-1:]
    return f"{type(failure).__name__}: {' ... '.join(shown)}"


def time_loader(dataset: Path, setup: LoaderSetup) -> LoaderRate:
    """Open the dataset, warm up, and count over the window."""
    import torch

    torch.manual_seed(setup.seed)
    source = open_dataset(dataset, setup)
    cameras = list(source.meta.camera_keys)

    asked = time.perf_counter()
    batches = endless(build_loader(source, setup)) if setup.loader == "map" else steady_streaming(source, setup)
    next(batches)
    first_batch_s = time.perf_counter() - asked
    for _ in range(setup.warmup_batches - 1):
        next(batches)

    counted, samples, frames = 0, 0, 0
    start = Clock.read()
    for batch in batches:
        counted += 1
        samples += len(batch["index"])
        frames += sum(count_pictures(batch[camera].shape) for camera in cameras)
        if time.perf_counter() - start.wall_s >= setup.seconds:
            break
    rate = summarize(start, Clock.read(), counted, samples, frames, first_batch_s)
    checked, wrong = check_pictures(batch, dataset, setup, cameras)
    return dataclasses.replace(rate, checked_pictures=checked, wrong_pictures=wrong)


def summarize(start: Clock, end: Clock, batches: int, samples: int, frames: int, first_batch_s: float) -> LoaderRate:
    """Turn two clocks and what came between them into rates, with the memory of the processes that live now."""
    import torch

    wall_s = end.wall_s - start.wall_s
    worker_cpu_s = [cpu_s - start.worker_cpu_s.get(pid, 0.0) for pid, cpu_s in sorted(end.worker_cpu_s.items())]
    cpu_s = end.main_cpu_s - start.main_cpu_s + sum(worker_cpu_s)
    processes = [os.getpid(), *worker_pids()]
    return LoaderRate(
        first_batch_s=first_batch_s,
        batches=batches,
        samples=samples,
        frames=frames,
        wall_s=wall_s,
        cpu_s=cpu_s,
        worker_cpu_s=worker_cpu_s,
        samples_per_s=samples / wall_s,
        frames_per_s=frames / wall_s,
        frames_per_cpu_s=frames / cpu_s,
        peak_rss_mib=sum(proc_bytes(pid, "status", "VmHWM") for pid in processes) / MIB,
        pss_mib=sum(proc_bytes(pid, "smaps_rollup", "Pss") for pid in processes) / MIB,
        torch_threads=torch.get_num_threads(),
    )


def open_dataset(dataset: Path, setup: LoaderSetup) -> LeRobotDataset | StreamingLeRobotDataset:
    """Open a local dataset with either of lerobot's classes."""
    from lerobot.datasets.dataset_metadata import LeRobotDatasetMetadata
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from lerobot.datasets.streaming_dataset import StreamingLeRobotDataset

    info = LeRobotDatasetMetadata(REPO_ID, dataset)
    deltas = delta_timestamps(setup.mode, list(info.camera_keys), info.fps)
    return_uint8 = setup.pixels == "uint8"
    if setup.loader == "map":
        return LeRobotDataset(REPO_ID, dataset, delta_timestamps=deltas, return_uint8=return_uint8)
    return StreamingLeRobotDataset(
        REPO_ID,
        dataset,
        delta_timestamps=deltas,
        return_uint8=return_uint8,
        buffer_size=setup.buffer_size,
        seed=setup.seed,
    )


def delta_timestamps(mode: Mode, cameras: Sequence[str], fps: float) -> dict[str, list[float]] | None:
    """List the windows of a mode, in seconds from the sample's own frame; None stands for the frame alone."""
    if mode == "single":
        return None
    windows = {camera: SARM_CAMERA_DELTAS_S for camera in cameras}
    windows["action"] = [frame / fps for frame in range(SARM_ACTION_CHUNK)]
    return windows


def build_loader(source: LeRobotDataset | StreamingLeRobotDataset, setup: LoaderSetup) -> DataLoader[Any]:
    """Wrap a dataset in torch's own loader, with its default collation; workers outlive an epoch."""
    from torch.utils.data import DataLoader

    return DataLoader(
        source,
        batch_size=setup.batch_size,
        shuffle=setup.loader == "map",
        num_workers=setup.workers,
        persistent_workers=setup.workers > 0,
        drop_last=True,
    )


def endless(loader: DataLoader[Any]) -> Iterator[dict[str, Any]]:
    """Yield the batches of one epoch after another."""
    while True:
        yield from loader


def steady_streaming(source: StreamingLeRobotDataset, setup: LoaderSetup) -> Iterator[dict[str, Any]]:
    """Yield the batches of one epoch, up to where the shuffle buffer may begin to drain.

    From there on samples come from memory, already decoded, and would flatter the loader.
    """
    steady = (source.num_frames - setup.buffer_size * max(setup.workers, 1)) // setup.batch_size
    if steady <= setup.warmup_batches:
        raise ValueError(f"{source.num_frames} frames are too few to fill the shuffle buffer, warm up and measure")
    return itertools.islice(build_loader(source, setup), steady)


def count_pictures(shape: Sequence[int]) -> int:
    """Count the pictures in a camera's tensor: `[B, C, H, W]` holds B, `[B, T, C, H, W]` B * T."""
    batch_size, *windows = shape[:-3]
    return batch_size * (windows[0] if windows else 1)


def check_pictures(batch: dict[str, Any], dataset: Path, setup: LoaderSetup, cameras: Sequence[str]) -> tuple[int, int]:
    """Compare a batch's pictures with the map-style dataset's at the same index; returns how many there are and how many differ."""
    import torch

    reference = open_dataset(dataset, dataclasses.replace(setup, loader="map"))
    expected = [reference[int(index)] for index in batch["index"]]
    checked, wrong = 0, 0
    for camera in cameras:
        # Whatever stands before the picture's three dimensions becomes one.
        pictures = batch[camera].flatten(0, -4)
        differs = pictures != torch.stack([sample[camera] for sample in expected]).flatten(0, -4)
        checked += len(pictures)
        wrong += int(differs.flatten(1).any(dim=1).sum())
    return checked, wrong


def worker_pids() -> list[int]:
    """List the process ids of the living workers."""
    return [worker.pid for worker in multiprocessing.active_children() if worker.pid is not None]


def process_cpu_s(pid: int) -> float:
    """Read the user and system CPU seconds of a process, all its threads together."""
    # The command name, second, is in parentheses and may hold spaces: fields are counted from its end, and the next is the third.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    utime_ticks, stime_ticks = fields[14 - 3], fields[15 - 3]
    return (int(utime_ticks) + int(stime_ticks)) / os.sysconf("SC_CLK_TCK")


def proc_bytes(pid: int, file: str, key: str) -> int:
    """Read a `key: number kB` line of a file in `/proc/<pid>`, in bytes."""
    for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    raise ValueError(f"/proc/{pid}/{file} has no line {key}")


# --- sequential -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FfmpegRun:
    """What one run of `ffmpeg -benchmark` told; times in seconds."""

    frames: int
    utime_s: float
    stime_s: float
    rtime_s: float


def run_ffmpeg(file: Path, output: Output) -> FfmpegRun:
    """Decode a file once."""
    command = ["ffmpeg", "-hide_banner", "-nostdin", "-y", "-benchmark", "-progress", "pipe:1", "-filter_threads", "1"]
    # An option counts for the file named next: the first `-threads` is the decoder's, the second the encoder's.
    command += ["-threads", "1", "-i", str(file)]
    command += ["-map", "0:v:0", "-fps_mode", "passthrough", "-threads", "1", *FFMPEG_OUTPUTS[output]]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    frames = re.findall(r"^frame=\s*(\d+)", done.stdout, re.MULTILINE)
    times = re.search(r"bench: utime=([\d.]+)s stime=([\d.]+)s rtime=([\d.]+)s", done.stderr)
    if not frames or times is None:
        raise RuntimeError(f"ffmpeg told no figures: {done.stderr[-500:]}")
    utime_s, stime_s, rtime_s = (float(value) for value in times.groups())
    return FfmpegRun(frames=int(frames[-1]), utime_s=utime_s, stime_s=stime_s, rtime_s=rtime_s)


# --- command line ---------------------------------------------------------------------------------------------------------------


def emit(bench: str, *parts: Any) -> None:
    """Print one measurement: its name, then the fields of `parts`, dataclasses or dicts."""
    record: dict[str, Any] = {"bench": bench}
    for part in parts:
        record |= part if isinstance(part, dict) else dataclasses.asdict(part)
    print(json.dumps(record), flush=True)


def run_random(args: argparse.Namespace) -> None:
    """`random`: a line for each seek mode."""
    for seek_mode in args.seek_mode or get_args(SeekMode):
        emit("random", {"dataset": args.dataset.name}, measure_random(args.dataset, args.seconds, seek_mode, args.seed))


def run_loader(args: argparse.Namespace) -> None:
    """`loader`: one line."""
    setup = LoaderSetup(**{field.name: getattr(args, field.name) for field in dataclasses.fields(LoaderSetup)})
    emit("loader", {"dataset": args.dataset.name}, setup, measure_loader(args.dataset, setup))


def run_sequential(args: argparse.Namespace) -> None:
    """`sequential`: a line for each output."""
    for output in get_args(Output):
        emit("sequential", {"file": str(args.file)}, measure_sequential(args.file, output, args.repeats))


def run_versions(_args: argparse.Namespace) -> None:
    """`versions`: one line."""
    emit("versions", measure_versions())


def parse_args() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description="Speed of the peers; one JSON object a line.")
    commands = parser.add_subparsers(required=True)

    on_dataset = argparse.ArgumentParser(add_help=False)
    on_dataset.add_argument(
        "--dataset", type=Path, required=True, help="root of a LeRobotDataset v3: the folder that holds meta/"
    )
    on_dataset.add_argument("--seconds", type=float, default=30.0, help="wall seconds to measure for (default: %(default)s)")
    on_dataset.add_argument("--seed", type=int, default=0)

    command = commands.add_parser("random", parents=[on_dataset], help="torchcodec, single random frames, one thread")
    command.add_argument("--seek-mode", choices=get_args(SeekMode), action="append", help="may be repeated (default: both)")
    command.set_defaults(run=run_random)

    command = commands.add_parser("loader", parents=[on_dataset], help="lerobot's loaders, whole batches")
    command.add_argument("--loader", choices=get_args(Loader), required=True)
    command.add_argument("--mode", choices=get_args(Mode), required=True)
    command.add_argument("--workers", type=int, default=0)
    command.add_argument("--batch-size", type=int, default=16)
    command.add_argument("--pixels", choices=get_args(Pixels), default="float32", help="lerobot's own default is float32")
    command.add_argument("--buffer-size", type=int, default=256, help="samples that `streaming` shuffles (default: %(default)s)")
    command.add_argument("--warmup-batches", type=int, default=4, help="at least 1 (default: %(default)s)")
    command.set_defaults(run=run_loader)

    command = commands.add_parser("sequential", help="the ffmpeg program over one file, one thread")
    command.add_argument("--file", type=Path, required=True)
    command.add_argument("--repeats", type=int, default=5)
    command.set_defaults(run=run_sequential)

    command = commands.add_parser("versions", help="what the figures were taken with")
    command.set_defaults(run=run_versions)
    return parser.parse_args()


def main() -> None:
    """Run one subcommand."""
    args = parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
