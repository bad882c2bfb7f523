"""Going on from a saved state: the exact next batch, by a Loader, a DataLoader, and torchdata's."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from conftest import fixture
from episode_pool import Loader, StreamingDataset
from test_dataloader import dataloader, frames
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

NO_CAMERA = fixture("no_camera")


def batches(loader: Any) -> list[list[int]]:
    return [batch["index"].tolist() for batch in loader]


def take(loader: Any, count: int) -> list[list[int]]:
    stream = iter(loader)
    return [next(stream)["index"].tolist() for _ in range(count)]


@pytest.mark.parametrize("num_workers", [0, 1, 3])
def test_a_loader_goes_on_at_the_next_batch(num_workers: int) -> None:
    whole = Loader(StreamingDataset(NO_CAMERA), 64, num_workers=num_workers)
    epochs = [batches(whole) for _ in range(3)]
    for consumed in range(1, len(whole), 4):
        first = Loader(StreamingDataset(NO_CAMERA), 64, num_workers=num_workers)
        assert take(first, consumed) == epochs[0][:consumed]
        state = json.loads(json.dumps(first.state_dict()))
        assert state["batches_consumed"] == consumed
        for again in (state, {"batches_consumed": consumed, "batch_size": 64}):
            second = Loader(StreamingDataset(NO_CAMERA), 64, num_workers=num_workers)
            second.load_state_dict(again)
            assert second.state_dict() == again
            assert batches(second) == epochs[0][consumed:]
            assert batches(second) == epochs[1]
            assert batches(second) == epochs[2]


def test_resuming_three_times_with_other_workers_covers_the_epoch_once() -> None:
    state, seen = None, []
    for num_workers, until in [(0, 5), (1, 9), (4, 14), (2, None)]:
        loader = Loader(StreamingDataset(NO_CAMERA), 32, num_workers=num_workers)
        if state is not None:
            loader.load_state_dict(state)
        taken = 0 if state is None else state["batches_consumed"]
        got = batches(loader) if until is None else take(loader, until - taken)
        seen += [index for batch in got for index in batch]
        state = loader.state_dict()
    assert sorted(seen) == list(range(StreamingDataset(NO_CAMERA).num_frames))


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_dataloader_goes_on_at_the_next_batch(context: str, persistent: bool, drop_last: bool) -> None:
    options = {"batch_size": 64, "drop_last": drop_last, "multiprocessing_context": context}
    whole = Loader(StreamingDataset(NO_CAMERA), 64, num_workers=3, drop_last=drop_last)
    epochs = [batches(whole) for _ in range(3)]
    # Of epoch 1, and at a worker that is not the first.
    consumed = len(whole) + 4
    dataset = StreamingDataset(NO_CAMERA)
    dataset.load_state_dict({"batches_consumed": consumed, "batch_size": 64}, drop_last=drop_last)
    loader = dataloader(dataset, 3, persistent_workers=persistent, **options)
    assert batches(loader) == epochs[1][4:]
    assert batches(loader) == epochs[2]


@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_a_dataloader_goes_on_from_a_loaders_state(num_workers: int) -> None:
    loader = Loader(StreamingDataset(NO_CAMERA), 32, num_workers=num_workers)
    take(loader, 7)
    loader.close()
    dataset = StreamingDataset(NO_CAMERA)
    dataset.load_state_dict(loader.state_dict())
    rest = batches(dataloader(dataset, num_workers, batch_size=32))
    resumed = Loader(StreamingDataset(NO_CAMERA), 32, num_workers=num_workers)
    resumed.load_state_dict(loader.state_dict())
    assert rest == batches(resumed)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_torchdatas_dataloader_goes_on_from_its_own_state(num_workers: int) -> None:
    def stateful() -> StatefulDataLoader[dict[str, Any]]:
        return StatefulDataLoader(StreamingDataset(NO_CAMERA), batch_size=32, num_workers=num_workers)

    whole = stateful()
    epochs = [batches(whole) for _ in range(2)]
    first = stateful()
    stream = iter(first)
    assert [next(stream)["index"].tolist() for _ in range(5)] == epochs[0][:5]
    state = first.state_dict()
    second = stateful()
    second.load_state_dict(state)
    assert batches(second) == epochs[0][5:]
    assert batches(second) == epochs[1]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_torchdatas_dataloader_saves_and_loads_a_loader(num_workers: int) -> None:
    """`Loader` has the protocol that torchdata and trainers ask for."""
    from torchdata.stateful_dataloader import Stateful

    loader = Loader(StreamingDataset(NO_CAMERA), 32, num_workers=num_workers)
    assert isinstance(loader, Stateful)


def test_a_state_survives_an_epoch_that_was_left() -> None:
    loader = Loader(StreamingDataset(NO_CAMERA), 32)
    take(loader, 3)
    loader.close()
    state = loader.state_dict()
    assert (state["epoch"], state["batches_in_epoch"]) == (0, 3)
    assert loader.state_dict() == state


def test_an_ended_epoch_saves_the_start_of_the_next() -> None:
    loader = Loader(StreamingDataset(NO_CAMERA), 32)
    frames(loader)
    assert (loader.state_dict()["epoch"], loader.state_dict()["batches_in_epoch"]) == (1, 0)


def test_states_that_do_not_fit_are_refused_by_name() -> None:
    loader = Loader(StreamingDataset(NO_CAMERA, seed=1), 32)
    state = Loader(StreamingDataset(NO_CAMERA, seed=2), 32).state_dict() | {"batches_in_epoch": 3, "batches_consumed": 3}
    with pytest.raises(ValueError, match="seed was 2 and is 1"):
        loader.load_state_dict(state)
    with pytest.raises(ValueError, match="`batch_size` is missing"):
        loader.load_state_dict({"batches_consumed": 3})
    with pytest.raises(ValueError, match="batch_size"):
        loader.load_state_dict({"batches_consumed": 3, "batch_size": 16})
    with pytest.raises(ValueError, match="`batches_consumed` is missing"):
        StreamingDataset(NO_CAMERA).load_state_dict({"batch_size": 16})


def test_a_worker_refuses_another_workers_state() -> None:
    stream = iter(StreamingDataset(NO_CAMERA))
    next(stream)
    state = stream.state_dict()
    assert (state["epoch"], state["samples"]) == (0, 1)
    with pytest.raises(ValueError, match="num_workers 5"):
        iter(StreamingDataset(NO_CAMERA)).load_state_dict(state | {"num_workers": 5})


def test_dataloader_workers_share_the_epoch_after_a_resume_into_a_later_one() -> None:
    dataset = StreamingDataset(NO_CAMERA)
    dataset.load_state_dict({"batches_consumed": 1000, "batch_size": 64})
    loader = DataLoader(dataset, batch_size=64, num_workers=2)
    list(loader)
    begun = dataset.epoch
    order = frames(loader)
    assert dataset.epoch == begun + 1
    assert sorted(order) == list(range(dataset.num_frames))
    assert torch.utils.data.get_worker_info() is None
