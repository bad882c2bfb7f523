"""The proof that an epoch emitted every frame, once."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from ._episode_pool import Pool


@dataclass(frozen=True)
class CoverageReport:
    """Whether what was emitted, over all ranks, is what was selected, each frame once."""

    exactly_once: bool
    text: str
    """The same as a sentence, with the numbers."""

    def __bool__(self) -> bool:
        return self.exactly_once

    def __str__(self) -> str:
        return self.text


def over_all_ranks(pool: Pool, emitted: list[str]) -> CoverageReport:
    """Gathers what each rank emitted, where torch.distributed runs; every rank has to call it."""
    gathered = [(pool.rank, pool.world_size, emitted)]
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        parts: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(parts, gathered[0])
        gathered = parts
    places = [(rank, world_size) for rank, world_size, _ in gathered]
    if len(set(places)) < len(places):
        raise RuntimeError(
            f"two processes claim the same share: their ranks are {', '.join(f'{r} of {w}' for r, w in places)}; give each its own `rank`, "
            "and all the same `world_size`"
        )
    if gathered[0][1] != len(gathered):
        world_size = gathered[0][1]
        raise RuntimeError(
            f"the dataset is shared out among {world_size} ranks, and {len(gathered)} of them were asked; torch.distributed has to run "
            "with as many processes"
        )
    exactly_once, text = pool.check_coverage([digest for _, _, digests in gathered for digest in digests])
    return CoverageReport(exactly_once, text)
