"""Sets our loader beside its peers and beside the limit, in one run, and writes a table.

For every dataset and mode: our `episode-pool stream`, lerobot's map-style dataset under a shuffling DataLoader, lerobot's streaming
dataset, and the limit: the fewest frames that any loader must decode, at FFmpeg's own sequential speed, times the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
MODES = ("single", "sarm")
SARM_WINDOW_S = list(range(-7, 1))
SARM_ACTIONS = 16


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    dataset: str
    mode: str
    what: str
    """What was measured, and with how much help."""
    frames_per_s: float | None
    """Camera frames delivered a second, repeats at an episode's edge included; None if it failed."""
    remark: str = ""


def run_json(command: list[str], **env: str) -> list[dict[str, Any]]:
    """The JSON objects that a command prints, one a line."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **env})
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def info(dataset: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((dataset / "meta/info.json").read_text())
    return loaded


def deltas(dataset: Path, folder: Path) -> Path:
    """A file with the windows of mode `sarm`."""
    features, fps = info(dataset)["features"], info(dataset)["fps"]
    windows = {key: SARM_WINDOW_S for key, feature in features.items() if feature["dtype"] == "video"}
    path = folder / f"{dataset.name}.json"
    path.write_text(json.dumps({**windows, "action": [k / fps for k in range(SARM_ACTIONS)]}))
    return path


def ours(args: argparse.Namespace, dataset: Path, mode: str, threads: int, budget: int, folder: Path) -> Row:
    """A whole epoch of our loader with one worker."""
    command = [str(args.program), "stream", str(dataset), "--json", "--batch-size", "16"]
    command += ["--num-threads", str(threads), "--decode-ahead-bytes", str(budget)]
    if mode == "sarm":
        command += ["--delta-timestamps", str(deltas(dataset, folder))]
    (summary,) = [json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)]
    decode = summary["decode"]
    remark = f"{decode['frames_decoded']} decoded for {decode['frames_used']} used; peak {summary['peak_rss_bytes'] / 1e6:.0f} MB"
    what = f"ours, {threads} threads, {budget / 1e6:.0f} MB ahead"
    return Row(dataset.name, mode, what, summary["frames_per_s_node"], remark)


def peer(args: argparse.Namespace, dataset: Path, mode: str, loader: str, workers: int) -> Row:
    """One of lerobot's loaders."""
    command = [sys.executable, str(HERE / "peers.py"), "loader", "--dataset", str(dataset), "--seconds", str(args.seconds)]
    command += ["--loader", loader, "--mode", mode, "--workers", str(workers), "--pixels", "uint8"]
    what = f"lerobot {loader}, {workers} workers"
    (found,) = run_json(command)
    if "error" in found:
        return Row(dataset.name, mode, what, None, f"fails: {found['error'][:60]}")
    wrong = found["wrong_pictures"]
    remark = f"{wrong} of {found['checked_pictures']} pictures wrong" if wrong else f"peak {found['peak_rss_mib'] * 1.048576:.0f} MB"
    return Row(dataset.name, mode, what, found["frames_per_s"], remark)


def sequential_fps(dataset: Path) -> float:
    """Frames per CPU second of FFmpeg over all files of a dataset, decoded in order on one thread."""
    frames = seconds = 0.0
    for file in sorted(dataset.glob("videos/*/*/*.mp4")):
        command = [sys.executable, str(HERE / "peers.py"), "sequential", "--file", str(file), "--repeats", "1"]
        native = next(found for found in run_json(command) if found["output"] == "native")
        frames += native["frames"]
        seconds += native["utime_s"] + native["stime_s"]
    return frames / seconds


def limits(args: argparse.Namespace, dataset: Path) -> list[Row]:
    """The limit of every mode at every budget."""
    command = [str(args.limit), str(dataset), *map(str, args.budgets)]
    fps = sequential_fps(dataset)
    rows = []
    for found in run_json(command):
        # What is delivered for each frame decoded, repeats at an episode's edge included.
        cameras = sum(feature["dtype"] == "video" for feature in info(dataset)["features"].values())
        delivered = found["samples"] * cameras * (len(SARM_WINDOW_S) if found["mode"] == "sarm" else 1)
        rate = delivered / found["fewest_decodes"] * fps * args.cores
        what = f"limit, {args.cores} cores, {found['decode_ahead_bytes'] / 1e6:.0f} MB ahead"
        remark = f"{found['fewest_decodes']} decodes at least, {fps:.0f} a second and core"
        rows.append(Row(dataset.name, found["mode"], what, rate, remark))
    return rows


def random_access(args: argparse.Namespace, dataset: Path) -> list[str]:
    """Single random frames on one thread: torchcodec's, and ours by the bench `decode`."""
    command = [sys.executable, str(HERE / "peers.py"), "random", "--dataset", str(dataset), "--seconds", str(args.seconds)]
    lines = [f"torchcodec {found['seek_mode']}: {found['frames_per_cpu_s']:.0f} frames per CPU second" for found in run_json(command)]
    (found,) = run_json([str(args.random), str(dataset), str(args.seconds)])
    return [*lines, f"ours: {found['frames_per_cpu_s']:.0f} frames per CPU second"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+", help="roots of LeRobotDatasets v3")
    parser.add_argument("--seconds", type=float, default=20, help="how long each peer is measured")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--budgets", type=int, nargs="+", default=[512 << 20, 2 << 30], help="bytes decoded ahead")
    parser.add_argument("--target", type=Path, default=PROJECT / "target/release", help="where the release build is")
    args = parser.parse_args()
    args.program, args.limit, args.random = (args.target / name for name in ("episode-pool", "limit", "random"))
    with tempfile.TemporaryDirectory() as folder:
        for dataset in args.datasets:
            for line in random_access(args, dataset):
                print(f"random access, {dataset.name}, {line}", flush=True)
            bounds = limits(args, dataset)
            for mode in MODES:
                rows = [row for row in bounds if row.mode == mode]
                rows += [ours(args, dataset, mode, args.cores, budget, Path(folder)) for budget in args.budgets]
                rows += [ours(args, dataset, mode, 1, args.budgets[0], Path(folder))]
                for loader in ("map", "streaming"):
                    rows += [peer(args, dataset, mode, loader, workers) for workers in (0, 1, 2)]
                for row in rows:
                    rate = "" if row.frames_per_s is None else f"{row.frames_per_s:,.0f}"
                    print(f"| {row.dataset} | {row.mode} | {row.what} | {rate} | {row.remark} |", flush=True)


if __name__ == "__main__":
    main()
