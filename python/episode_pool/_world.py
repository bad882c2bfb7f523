"""Which rank this is, and of how many; which worker of a DataLoader."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from . import _tensors


def running_world() -> tuple[int, int] | None:
    """Rank and number of ranks, as Accelerate or torch.distributed know them in this process; None where neither is initialised.

    Neither is imported for it: what has not been imported is not initialised.
    """
    accelerate: Any = sys.modules.get("accelerate.state")
    if accelerate is not None and accelerate.PartialState._shared_state:
        state = accelerate.PartialState()
        return int(state.process_index), int(state.num_processes)
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    return None


class Worker(NamedTuple):
    """A worker process of a DataLoader; without one, `number` is None."""

    number: int | None
    num_workers: int
    seed: int


def this_worker() -> Worker:
    """Who iterates in this process."""
    if _tensors.HAS_TORCH:
        from torch.utils.data import get_worker_info

        info = get_worker_info()
        if info is not None:
            # What all workers that a DataLoader starts together have in common, and those of another start have not: also where a trainer
            # sets torch's seed anew, and starts another number of them.
            together = (info.seed - info.id) * 1031 + info.num_workers
            return Worker(info.id, info.num_workers, together)
    return Worker(None, 0, 0)
