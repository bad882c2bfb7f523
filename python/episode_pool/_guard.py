"""Finds out when somebody shares out once more what is shared out already."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

_REMEDY = (
    "the dataset shares its frames out among ranks by itself, and what accelerate shares out once more would be lost; do not give its "
    "DataLoader to `accelerator.prepare`: use it as it is, and move the batches with `.to(accelerator.device)`"
)


def refuse_double_sharding() -> None:
    """An error when accelerate's own division of a dataset among processes asks for samples."""
    for frame in _callers():
        name = type(frame.f_locals.get("self")).__name__
        if name == "IterableDatasetShard":
            shard: Any = frame.f_locals["self"]
            if shard.num_processes > 1:
                raise RuntimeError(f"each of {shard.num_processes} processes would see 1/{shard.num_processes} of its share: {_REMEDY}")
        elif name == "DataLoaderDispatcher":
            state = frame.f_locals["self"].state
            if state.num_processes > 1:
                raise RuntimeError(f"{state.num_processes} processes would get the share of the first alone: {_REMEDY}")


def is_called_by_accelerate() -> bool:
    """Whether accelerate's DataLoader calls, and not the trainer."""
    return next(iter(_callers()), None) is not None


def _callers() -> list[FrameType]:
    frames = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "accelerate.data_loader":
            frames.append(frame)
        frame = frame.f_back
    return frames
