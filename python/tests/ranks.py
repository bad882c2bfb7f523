"""One process of several, started by test_ranks.py: reads its share, and tells what it saw."""

from __future__ import annotations

import json
import sys

from accelerate import Accelerator
from episode_pool import Loader, StreamingDataset
from torch.utils.data import DataLoader


def main(path: str) -> None:
    accelerator = Accelerator(cpu=True)
    dataset = StreamingDataset(path)
    loader = Loader(dataset, 16, num_workers=2)
    batches = DataLoader(dataset, batch_size=16, num_workers=2)
    told = {
        "rank": dataset.rank,
        "world_size": dataset.world_size,
        "dataloader": [i for batch in batches for i in batch["index"].tolist()],
        "loader": [i for batch in loader for i in batch["index"].tolist()],
        "coverage": str(loader.coverage()),
    }

    # The same share twice: the coverage of all ranks finds out.
    twin = Loader(StreamingDataset(path, rank=0, world_size=2), 16)
    list(twin)
    told["twins"] = error_of(lambda: twin.coverage())

    # A dataset that was made before there were ranks.
    early = StreamingDataset(path, rank=0, world_size=1)
    early._has_own_place = False
    told["early"] = error_of(lambda: next(iter(early)))

    for num_workers in (0, 2):
        for dispatch in (False, True):
            accelerator.dataloader_config.dispatch_batches = dispatch
            prepared = accelerator.prepare(DataLoader(dataset, batch_size=4, num_workers=num_workers))
            told[f"prepared {num_workers} {dispatch}"] = error_of(lambda prepared=prepared: next(iter(prepared)))
    sys.stdout.write("TOLD " + json.dumps(told) + "\n")


def error_of(attempt: object) -> str:
    try:
        attempt()  # type: ignore[operator]
    except RuntimeError as error:
        return str(error)
    return "no error"


if __name__ == "__main__":
    main(sys.argv[1])
