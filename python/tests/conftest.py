"""What the tests share: the fixtures and their ground truth, as lerobot's own reader saw it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ["pusht_like", "aloha_like", "h264_gop30", "hevc_small", "image_only", "no_camera"]


def fixture(name: str) -> str:
    """The path of a bundled dataset."""
    return str(ROOT / "fixtures" / name / "dataset")


def truth(name: str) -> dict[str, Any]:
    """What lerobot's map-style reader returned for it."""
    loaded: dict[str, Any] = json.loads((ROOT / "fixtures" / name / "truth.json").read_text())
    return loaded


@pytest.fixture(autouse=True)
def no_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """The launcher of the tests is not to decide about ranks."""
    for name in ["RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"]:
        monkeypatch.delenv(name, raising=False)
