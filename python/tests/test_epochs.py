"""How workers that are told nothing agree on the epoch."""

from __future__ import annotations

import pickle

from episode_pool._epochs import Epochs


def begin(epochs: Epochs, workers: list[int], seed: int, first: int = 0) -> list[int]:
    return [epochs.begin(worker, seed, lambda: first) for worker in workers]


def test_workers_of_one_start_agree_and_the_next_start_goes_on() -> None:
    epochs = Epochs()
    assert begin(epochs, [0, 1, 2], seed=11) == [0, 0, 0]
    assert begin(epochs, [2, 0, 1], seed=12) == [1, 1, 1]
    assert epochs.latest == 1


def test_persistent_workers_go_on_together_in_any_order() -> None:
    epochs = Epochs()
    assert begin(epochs, [0, 1], seed=11) == [0, 0]
    assert begin(epochs, [1, 0], seed=11) == [1, 1]
    assert begin(epochs, [0, 1], seed=11) == [2, 2]


def test_the_first_of_a_start_may_be_two_at_a_time() -> None:
    epochs = Epochs()
    begin(epochs, [0, 1], seed=11)
    # Both have read that the latest epoch is 0, before either writes.
    ahead, behind = pickle.loads(pickle.dumps(epochs)), epochs
    assert begin(ahead, [0], seed=12) == begin(behind, [1], seed=12) == [1]


def test_a_worker_of_an_abandoned_start_does_not_confuse_the_next() -> None:
    epochs = Epochs()
    assert begin(epochs, [0], seed=11) == [0]
    assert begin(epochs, [0, 2], seed=12) == [1, 1]
    # Worker 1 of the first start comes late.
    begin(epochs, [1], seed=11)
    assert begin(epochs, [1], seed=12) == [1]


def test_a_start_after_a_resume_or_set_epoch_begins_where_it_is_told() -> None:
    epochs = Epochs()
    begin(epochs, [0, 1], seed=11)
    epochs.start_at(7)
    assert (epochs.latest, epochs.base) == (None, 7)
    # Persistent workers see it, too.
    assert begin(epochs, [1, 0], seed=11, first=epochs.base) == [7, 7]
    assert begin(epochs, [1, 0], seed=11, first=epochs.base) == [8, 8]


def test_the_main_process_always_goes_on() -> None:
    epochs = Epochs()
    assert [epochs.begin(None, 0, lambda: 3) for _ in range(3)] == [3, 4, 5]
    assert begin(epochs, [0, 1], seed=11) == [6, 6]
