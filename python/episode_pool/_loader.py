"""Whole batches from threads: no worker processes, no collation in Python."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from . import _coverage, _episode_pool, _normalize, _tensors
from ._coverage import CoverageReport
from ._dataset import StreamingDataset


class Loader:
    """The batches of a StreamingDataset, made by threads: those of `DataLoader(dataset, batch_size, num_workers)`, in the same order.

    A batch is a dict of contiguous arrays that are handed to torch, or numpy, as they were written. Every `iter()` is the next
    epoch, and ends the one before it.

    Args:
        dataset: the dataset; its `image_transforms` are called for every sample, on the thread that iterates.
        batch_size: the samples in a batch.
        num_workers: the consumers that the rank's share is divided among, as in a DataLoader; each has a thread. 0 is one.
        drop_last: whether each worker leaves out a last batch that is not full.
        pin_memory: whether tensors lie in page-locked memory; without CUDA it has no effect.
        prefetch_batches: the batches that each worker makes ahead.
        epoch_end: "exact" emits every frame once, and ranks may differ by some batches; "drop_tail" and "wrap" give every rank equally
            many batches, and leave out or repeat some frames for it.
        normalize: brings features to scale with the dataset's statistics: "mean_std", "min_max" (to -1..1) or "quantiles" (the same, of the
            first and 99th percentile) for all observations and actions, or a dict of these by feature. None by default.
        canonical_consumers: makes the global order of batches the same for every number of ranks and workers that can serve so many.
    """

    def __init__(
        self,
        dataset: StreamingDataset,
        batch_size: int = 1,
        *,
        num_workers: int = 0,
        drop_last: bool = False,
        pin_memory: bool = False,
        prefetch_batches: int = 2,
        epoch_end: str = "exact",
        canonical_consumers: int | None = None,
        normalize: str | Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(dataset, StreamingDataset):
            raise TypeError(f"`dataset` is a {type(dataset).__name__}; expected a StreamingDataset")
        for name, value in [("batch_size", batch_size), ("prefetch_batches", prefetch_batches)]:
            if value < 1:
                raise ValueError(f"`{name}` is {value}; expected at least 1")
        if num_workers < 0:
            raise ValueError(f"`num_workers` is {num_workers}; expected 0 to 1024")
        self.dataset = dataset
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.drop_last = drop_last
        self.pin_memory = pin_memory and _tensors.can_pin()
        options = {
            "batch_size": batch_size,
            "drop_last": drop_last,
            "prefetch_batches": prefetch_batches,
            "epoch_end": epoch_end,
            "canonical_consumers": canonical_consumers,
        }
        scales = {} if normalize is None else _normalize.scales(dataset, normalize)
        self._loader = _episode_pool.Loader(dataset._pool, num_workers, options, scales)
        for warning in self._loader.warnings():
            warnings.warn(warning, stacklevel=2)
        self._next_epoch = 0
        self._state: tuple[str, bool] | None = None
        self._stream: BatchStream | None = None

    def __len__(self) -> int:
        """The number of batches of a whole epoch, of this rank."""
        return self._loader.num_batches()

    def __iter__(self) -> BatchStream:
        self.dataset._check_place()
        if self._stream is not None:
            self._stream.close()
        if self._state is None:
            batches = self._loader.epoch(self._next_epoch)
        else:
            batches = self._loader.resume(*self._state)
            for warning in batches.warnings:
                warnings.warn(warning, stacklevel=2)
        self._state = None
        self._next_epoch = batches.epoch + 1
        self._stream = BatchStream(self.dataset, batches, self.pin_memory)
        return self._stream

    @property
    def epoch(self) -> int:
        """The epoch that was begun last; before the first, the one to come."""
        return self._next_epoch if self._stream is None else self._stream.epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes `epoch` the next one to be iterated. There is no need to: epochs count themselves."""
        if epoch < 0:
            raise ValueError(f"`epoch` is {epoch}; expected 0 or more")
        self._end()
        self._next_epoch = epoch

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands after the batches taken so far: small, ready for JSON, and the same on every rank that has taken as many."""
        if self._stream is not None:
            text = self._stream._state()
        elif self._state is not None:
            text = self._state[0]
        else:
            text = self._loader.state(self._next_epoch)
        state: dict[str, Any] = json.loads(text)
        return state

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """The next iteration goes on after the batches that the state counts; the ones after it are the epochs that follow.

        The state is one of `state_dict()`, of any number of ranks and workers, or a trainer's own
        `{"batches_consumed": 1200, "batch_size": 32}`. One of another dataset or of other options is an error, unless not `strict`.
        """
        text = json.dumps(dict(state))
        epoch = self._loader.epoch_after(text, strict)
        self._end()
        self._state = (text, strict)
        self._next_epoch = epoch

    def coverage(self) -> CoverageReport:
        """Whether the epoch that has just ended emitted every frame once, over all ranks. With torch.distributed, every rank has to call it."""
        if self._stream is None:
            raise RuntimeError("no epoch has been iterated; coverage is known at the end of one")
        return _coverage.over_all_ranks(self.dataset._pool, self._stream._emitted())

    def metrics(self) -> dict[str, float]:
        """How the epoch went so far.

        `dataloading_s`: what the trainer waited for batches. `worker_loading_s`: what the batches have cost the workers, added up.
        `slowest_worker` and `slowest_worker_wait_s`: the worker that was waited for longest, and how long. `samples_per_s`, `batches`,
        `samples`.
        """
        return {} if self._stream is None else self._stream.metrics()

    def close(self) -> None:
        """Stops all threads at once. The loader can be iterated again."""
        if self._stream is not None:
            self._stream.close()

    def _end(self) -> None:
        self.close()
        self._stream = None
        self._state = None


class BatchStream(Iterator[dict[str, Any]]):
    """The rest of one epoch of a Loader."""

    def __init__(self, dataset: StreamingDataset, batches: _episode_pool.BatchIter, pin_memory: bool) -> None:
        self._dataset = dataset
        self._batches = batches
        self._pin_memory = pin_memory
        self._last_state: str | None = None
        self._last_emitted: list[str] = []
        self._last_times: list[tuple[int, float, float]] = []
        self._started = time.perf_counter()
        self._waited = 0.0
        self._num_batches = 0
        self._num_samples = 0

    @property
    def epoch(self) -> int:
        """The epoch's number."""
        return self._batches.epoch

    def __iter__(self) -> BatchStream:
        return self

    def __next__(self) -> dict[str, Any]:
        asked = time.perf_counter()
        try:
            fields = next(self._batches)
        finally:
            self._waited += time.perf_counter() - asked
        batch = self._finish(fields)
        self._num_batches += 1
        self._num_samples += len(next(iter(batch.values())))
        return batch

    def _finish(self, fields: dict[str, Any]) -> dict[str, Any]:
        dataset = self._dataset
        batch = _tensors.to_tensors(fields)
        if dataset.image_transforms is not None:
            for key in dataset._camera_keys:
                batch[key] = _tensors.stack([dataset.image_transforms(sample) for sample in batch[key]])
        return _tensors.pin(batch) if self._pin_memory else batch

    def metrics(self) -> dict[str, float]:
        """See `Loader.metrics`."""
        elapsed = time.perf_counter() - self._started
        times = self._batches.worker_times() or self._last_times
        slowest = max(times, key=lambda worker: worker[2], default=(-1, 0.0, 0.0))
        return {
            "dataloading_s": self._waited,
            "worker_loading_s": sum(loading for _, loading, _ in times),
            "slowest_worker": slowest[0],
            "slowest_worker_wait_s": slowest[2],
            "samples_per_s": self._num_samples / elapsed if elapsed > 0 else 0.0,
            "batches": self._num_batches,
            "samples": self._num_samples,
        }

    def close(self) -> None:
        """Stops the threads at once. There are no more batches."""
        self._last_state, self._last_emitted = self._state(), self._emitted()
        self._last_times = self._batches.worker_times() or self._last_times
        self._batches.close()

    def _state(self) -> str:
        state = self._batches.state() or self._last_state
        assert state is not None, "an epoch is asked for its state before it is closed"
        return state

    def _emitted(self) -> list[str]:
        coverage = self._batches.coverage()
        return self._last_emitted if coverage is None else coverage[1]
