"""The number of the epoch, known to all worker processes of a DataLoader."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _tensors

_MAX_WORKERS = 1024
_MAIN = _MAX_WORKERS  # The process that iterates without workers.
_BASE = _MAX_WORKERS + 1  # Where to begin when nobody has begun.
_EPOCH_BITS = 32


class Epochs:
    """Counts epochs in memory that worker processes share, forked or spawned.

    A DataLoader starts its workers anew for every epoch, unless they are persistent, and tells no one which epoch it is. But all workers of
    one start have the same base seed, and another one than those of the next start. Each worker writes down, in a place of its own, the seed
    that it was started with and the epoch that it began, both in one number, so that they are never seen apart:

    - A worker that has been here with this seed goes on to its own next epoch: it is persistent.
    - A worker that finds another with its seed takes that one's epoch: they were started together.
    - Otherwise it is the first of a new start, and the epoch is one more than any that was begun. Two that are the first at the same time
      come to the same number.
    """

    def __init__(self) -> None:
        self._share(np.zeros(_BASE + 1, dtype=np.int64))

    def _share(self, places: Any) -> None:
        if _tensors.HAS_TORCH:
            import torch

            self._memory: Any = torch.as_tensor(places).share_memory_()  # type: ignore[no-untyped-call]
            self._places = self._memory.numpy()
        else:
            self._memory = self._places = places

    def begin(self, worker: int | None, seed: int, first: Callable[[], int]) -> int:
        """The epoch that a worker is to iterate; `first` tells where to begin if nobody has."""
        place = _MAIN if worker is None else worker
        tag = seed % (2**31 - 1) + 1
        begun = self._places[:_BASE].copy()
        epochs = (begun & (2**_EPOCH_BITS - 1)) - 1
        tags = begun >> _EPOCH_BITS
        mates = epochs[:_MAIN][tags[:_MAIN] == tag]
        if place != _MAIN and tags[place] == tag:
            epoch = int(epochs[place]) + 1
        elif place != _MAIN and mates.size > 0:
            epoch = int(mates.max())
        elif (begun > 0).any():
            epoch = int(epochs.max()) + 1
        else:
            epoch = first()
        self.note(worker, seed, epoch)
        return epoch

    def note(self, worker: int | None, seed: int, epoch: int) -> None:
        """Writes down what a worker has begun."""
        place = _MAIN if worker is None else worker
        tag = seed % (2**31 - 1) + 1
        self._places[place] = (tag << _EPOCH_BITS) | (epoch + 1)

    def start_at(self, epoch: int) -> None:
        """Makes `epoch` the next one, whatever was begun before."""
        self._places[:_BASE] = 0
        self._places[_BASE] = epoch

    @property
    def base(self) -> int:
        """Where to begin when nobody has begun."""
        return int(self._places[_BASE])

    @property
    def latest(self) -> int | None:
        """The latest epoch that was begun."""
        begun = self._places[:_BASE]
        begun = begun[begun > 0]
        return int((begun & (2**_EPOCH_BITS - 1)).max()) - 1 if begun.size > 0 else None

    def __getstate__(self) -> dict[str, Any]:
        # A tensor in shared memory stays in it on its way to another process, and is copied anywhere else.
        return {"memory": self._memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._share(state["memory"])
