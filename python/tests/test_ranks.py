"""Several ranks: who this process is, that shares are disjoint, and that nobody shares them out twice."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import fixture
from episode_pool import Loader, StreamingDataset

NO_CAMERA = fixture("no_camera")


def test_the_environment_tells_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "3")
    dataset = StreamingDataset(NO_CAMERA)
    assert (dataset.rank, dataset.world_size) == (1, 3)
    explicit = StreamingDataset(NO_CAMERA, rank=0, world_size=2)
    assert (explicit.rank, explicit.world_size) == (0, 2)


@pytest.mark.filterwarnings("ignore:every epoch")
def test_ranks_end_together_when_asked() -> None:
    for epoch_end in ("drop_tail", "wrap"):
        lengths = set()
        for rank in range(2):
            dataset = StreamingDataset(NO_CAMERA, rank=rank, world_size=2)
            loader = Loader(dataset, 50, num_workers=2, epoch_end=epoch_end)
            batches = list(loader)
            assert len(batches) == len(loader)
            lengths.add(len(batches))
        assert len(lengths) == 1


def test_coverage_is_known_at_the_end_only() -> None:
    loader = Loader(StreamingDataset(NO_CAMERA), 64)
    with pytest.raises(RuntimeError, match="no epoch has been iterated"):
        loader.coverage()
    next(iter(loader))
    assert not loader.coverage()
    list(loader)
    assert loader.coverage()
    assert "each once" in str(loader.coverage())


@pytest.fixture(scope="module")
def told() -> list[dict[str, Any]]:
    """What two processes under Accelerate saw."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = str(Path(__file__).with_name("ranks.py"))
    processes = []
    for rank in range(2):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = os.environ | {name: str(value) for name, value in place.items()} | {"OMP_NUM_THREADS": "1"}
        program = [sys.executable, script, NO_CAMERA]
        process = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
    results = []
    for process in processes:
        stdout, stderr = process.communicate(timeout=240)
        lines = [line for line in stdout.splitlines() if line.startswith("TOLD ")]
        assert lines, stderr
        results.append(json.loads(lines[0].removeprefix("TOLD ")))
    return results


def test_accelerate_tells_the_rank_and_shares_are_disjoint(told: list[dict[str, Any]]) -> None:
    assert sorted((one["rank"], one["world_size"]) for one in told) == [(0, 2), (1, 2)]
    every_frame = list(range(StreamingDataset(NO_CAMERA).num_frames))
    for way in ("dataloader", "loader"):
        assert sorted(index for one in told for index in one[way]) == every_frame
        assert all(one[way] for one in told)


def test_coverage_is_proved_over_all_ranks(told: list[dict[str, Any]]) -> None:
    total = StreamingDataset(NO_CAMERA).num_frames
    for one in told:
        assert one["coverage"] == f"{total:,} of {total:,} frames, each once"
        assert "two processes claim the same share: their ranks are 0 of 2, 0 of 2" in one["twins"]


def test_a_dataset_older_than_the_ranks_is_refused(told: list[dict[str, Any]]) -> None:
    for one in told:
        assert f"was made as rank 0 of 1, and this process is rank {one['rank']} of 2" in one["early"]


def test_accelerate_may_not_share_out_what_is_shared_out(told: list[dict[str, Any]]) -> None:
    for one in told:
        for num_workers in (0, 2):
            for dispatch in (False, True):
                assert "accelerator.prepare" in one[f"prepared {num_workers} {dispatch}"], (num_workers, dispatch)
