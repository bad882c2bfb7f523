"""Sets episode_pool's DataLoader and Loader beside lerobot's two datasets, in one run: a table.

    python benches/python/compare.py DATASET... --workers 0 1 2 --seconds 8

Every contestant runs in a process of its own, with the same dataset, windows, batch size, pixels and number of workers. It is told the
seconds from `iter()` to the first batch, the batches a second after it, and the peak memory over the process and all its workers
(proportional set size: what they share counts once).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CONTESTANTS = ("ours, Loader", "ours, DataLoader", "lerobot, map-style", "lerobot, streaming")
SARM_WINDOW_S = list(range(-7, 1))
SARM_ACTIONS = 16


def windows(dataset: Path, mode: str) -> dict[str, list[float]] | None:
    """`single`: a frame of each camera. `sarm`: eight of each, a second apart, and an action chunk."""
    if mode == "single":
        return None
    info = json.loads((dataset / "meta/info.json").read_text())
    cameras = [key for key, feature in info["features"].items() if feature["dtype"] in ("video", "image")]
    return {**dict.fromkeys(cameras, SARM_WINDOW_S), "action": [step / info["fps"] for step in range(SARM_ACTIONS)]}


def batches(args: argparse.Namespace) -> Any:
    """The contestant, ready for `iter()`."""
    from torch.utils.data import DataLoader

    path, deltas = args.datasets[0], windows(args.datasets[0], args.mode)
    options: dict[str, Any] = {"batch_size": args.batch_size, "num_workers": args.workers[0]}
    if args.contestant.startswith("ours"):
        from episode_pool import Loader, StreamingDataset

        dataset = StreamingDataset(path, delta_timestamps=deltas, return_uint8=args.uint8)
        return Loader(dataset, **options) if args.contestant.endswith(", Loader") else DataLoader(dataset, **options)
    common = {"root": path, "delta_timestamps": deltas, "return_uint8": args.uint8}
    if args.contestant.endswith("map-style"):
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

        return DataLoader(LeRobotDataset("local/" + path.name, **common), shuffle=True, **options)
    from lerobot.datasets.streaming_dataset import StreamingLeRobotDataset

    return DataLoader(StreamingLeRobotDataset("local/" + path.name, **common), **options)


def one(args: argparse.Namespace) -> None:
    """Measures one contestant, and prints what came of it."""
    loader = batches(args)
    started = time.perf_counter()
    stream, count = iter(loader), 0
    next(stream)
    first = last = time.perf_counter()
    while last - first < args.seconds:
        try:
            next(stream)
        except StopIteration:
            stream = iter(loader)
            continue
        count += 1
        last = time.perf_counter()
    print(json.dumps({"first_batch_s": first - started, "batches_per_s": count / (last - first)}), flush=True)


def tree_pss_bytes(root: int) -> int:
    """The memory of a process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    total, queue = 0, [root]
    while queue:
        process = queue.pop()
        queue += parents.get(process, [])
        try:
            rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))
    return total


def measured(args: argparse.Namespace, dataset: Path, mode: str, contestant: str, workers: int) -> dict[str, Any]:
    """Runs one contestant, and watches its memory meanwhile."""
    command = [sys.executable, __file__, str(dataset), "--contestant", contestant, "--mode", mode, "--workers", str(workers)]
    command += ["--batch-size", str(args.batch_size), "--seconds", str(args.seconds)] + (["--uint8"] if args.uint8 else [])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak = 0
    while process.poll() is None:
        peak = max(peak, tree_pss_bytes(process.pid))
        time.sleep(0.2)
    stdout, stderr = process.communicate()
    found = [json.loads(line) for line in stdout.splitlines() if line.startswith("{")]
    if not found:
        reasons = [line for line in stderr.splitlines() if line and not line.startswith(" ")]
        return {"error": reasons[-1][:90] if reasons else f"exit {process.returncode}"}
    return {**found[0], "peak_bytes": peak}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+", help="roots of LeRobotDatasets v3")
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--modes", nargs="+", default=["single", "sarm"])
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=8, help="how long each is measured")
    parser.add_argument("--uint8", action="store_true", help="pixels as bytes")
    parser.add_argument("--contestant", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contestant:
        one(args)
        return
    print("| dataset | mode | workers | | batches/s | first batch | peak memory |\n|---|---|---|---|---|---|---|", flush=True)
    for dataset in args.datasets:
        for mode in args.modes:
            for workers in args.workers:
                for contestant in CONTESTANTS:
                    found = measured(args, dataset, mode, contestant, workers)
                    cells = (
                        f"fails: {found['error']} | | "
                        if "error" in found
                        else f"{found['batches_per_s']:.1f} | {found['first_batch_s']:.2f} s | {found['peak_bytes'] / 1e6:,.0f} MB "
                    )
                    print(f"| {dataset.name} | {mode} | {workers} | {contestant} | {cells}|", flush=True)


if __name__ == "__main__":
    main()
