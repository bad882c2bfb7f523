"""Under a DataLoader: every frame once, in every kind of worker, and another order each epoch."""

from __future__ import annotations

import collections
import pickle
from collections.abc import Iterable
from typing import Any

import pytest
import torch
from conftest import fixture
from episode_pool import Loader, StreamingDataset
from torch.utils.data import DataLoader

NO_CAMERA = fixture("no_camera")


def frames(batches: Iterable[dict[str, Any]]) -> list[int]:
    return [index for batch in batches for index in batch["index"].tolist()]


def dataloader(dataset: StreamingDataset, num_workers: int, **options: Any) -> DataLoader[dict[str, Any]]:
    return DataLoader(dataset, batch_size=options.pop("batch_size", 16), num_workers=num_workers, **options)


def assert_same(ours: Iterable[dict[str, Any]], theirs: Iterable[dict[str, Any]]) -> int:
    count = 0
    # One after the other: while one reads, no process is forked.
    for one, other in zip(list(ours), list(theirs), strict=True):
        assert one.keys() == other.keys()
        for key, value in one.items():
            if isinstance(value, torch.Tensor):
                assert value.dtype == other[key].dtype and torch.equal(value, other[key]), key
            else:
                assert value == other[key], key
        count += 1
    return count


CONTEXTS = [("fork", False), ("fork", True), ("spawn", False), ("spawn", True), ("forkserver", False)]


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("num_workers", [0, 1, 2, 3])
def test_exactly_once_over_ranks_and_workers(num_workers: int, world_size: int) -> None:
    counts: collections.Counter[int] = collections.Counter()
    for rank in range(world_size):
        dataset = StreamingDataset(NO_CAMERA, rank=rank, world_size=world_size)
        counts.update(frames(dataloader(dataset, num_workers)))
    assert counts == dict.fromkeys(range(dataset.num_frames), 1)


@pytest.mark.parametrize(("context", "persistent"), CONTEXTS)
def test_epochs_advance_in_every_kind_of_worker(context: str, persistent: bool) -> None:
    dataset = StreamingDataset(NO_CAMERA, episode_pool_size=8)
    loader = dataloader(dataset, 2, multiprocessing_context=context, persistent_workers=persistent)
    reference = Loader(dataset, 16, num_workers=2)
    orders = []
    for epoch in range(3):
        orders.append(frames(loader))
        assert orders[-1] == frames(reference), f"epoch {epoch}"
        assert dataset.epoch == epoch
        assert sorted(orders[-1]) == list(range(dataset.num_frames))
    assert orders[0] != orders[1] != orders[2] != orders[0]


def test_an_epoch_left_early_is_followed_by_the_next() -> None:
    dataset = StreamingDataset(NO_CAMERA)
    loader = dataloader(dataset, 3)
    for _ in loader:
        break
    assert frames(loader) == frames(_epoch(Loader(dataset, 16, num_workers=3), 1))


def test_workers_that_start_with_the_same_seed_go_on_too() -> None:
    dataset = StreamingDataset(NO_CAMERA)
    orders = []
    for num_workers in (2, 2, 3, 1):
        torch.manual_seed(5)
        orders.append(frames(dataloader(dataset, num_workers)))
        assert sorted(orders[-1]) == list(range(dataset.num_frames))
    assert orders[0] != orders[1]
    assert dataset.epoch == 3


@pytest.mark.parametrize("persistent", [False, True])
def test_set_epoch_chooses_for_all_workers(persistent: bool) -> None:
    dataset = StreamingDataset(NO_CAMERA)
    loader = dataloader(dataset, 2, persistent_workers=persistent)
    first, second = frames(loader), frames(loader)
    dataset.set_epoch(0)
    assert frames(loader) == first
    assert frames(loader) == second


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("num_workers", [0, 1, 2, 3])
@pytest.mark.parametrize("name", ["pusht_like", "no_camera"])
def test_the_loader_gives_the_batches_of_the_dataloader(name: str, num_workers: int, drop_last: bool) -> None:
    deltas = {"observation.state": [-0.1, 0.0] if name == "pusht_like" else [-0.02, 0.0]}
    dataset = StreamingDataset(fixture(name), delta_timestamps=deltas)
    ours = Loader(dataset, 16, num_workers=num_workers, drop_last=drop_last)
    theirs = dataloader(dataset, num_workers, drop_last=drop_last)
    assert assert_same(ours, theirs) == len(ours)
    assert assert_same(ours, theirs) == len(ours)


def test_the_order_depends_on_seed_and_shuffle() -> None:
    orders = [[int(s["index"]) for s in StreamingDataset(NO_CAMERA, seed=seed)] for seed in (1, 2)]
    assert orders[0] != orders[1]
    plain = [int(sample["index"]) for sample in StreamingDataset(NO_CAMERA, shuffle=False)]
    assert plain == list(range(len(plain)))


def test_chosen_episodes_keep_their_numbers() -> None:
    dataset = StreamingDataset(NO_CAMERA, episodes=[4, 1])
    assert {int(sample["episode_index"]) for sample in dataset} == {1, 4}
    assert dataset.num_episodes == 2


def test_a_pickled_dataset_is_the_same_and_counts_for_itself() -> None:
    dataset = StreamingDataset(NO_CAMERA, seed=9, delta_timestamps={"action": [0.0, 0.02]})
    next(iter(dataset))
    copy = pickle.loads(pickle.dumps(dataset))
    assert (copy.epoch, copy.num_frames) == (0, dataset.num_frames)
    assert [int(s["index"]) for s in copy] == [int(s["index"]) for s in dataset]
    next(iter(copy))
    assert (copy.epoch, dataset.epoch) == (2, 1)


def test_more_workers_than_episodes_are_idle_and_no_error() -> None:
    dataset = StreamingDataset(NO_CAMERA, episodes=[3, 5])
    assert len(frames(dataloader(dataset, 3))) == dataset.num_frames


def _epoch(loader: Loader, epoch: int) -> Iterable[dict[str, Any]]:
    loader.set_epoch(epoch)
    return loader
