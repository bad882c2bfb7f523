"""The dataset: an iterable of samples, for a DataLoader or a Loader."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _guard, _tensors, _world
from ._epochs import Epochs
from ._episode_pool import Pool, SampleIter
from ._meta import Metadata

State = Mapping[str, Any]
Transforms = Callable[[Any], Any]


class StreamingDataset(_tensors.Iterable):
    """A LeRobotDataset v3 as an iterable of samples, shuffled across a pool of whole episodes: every frame once an epoch.

    A sample is a dict with the keys, shapes, dtypes and values of lerobot's own datasets: tensors where torch is installed, numpy
    arrays otherwise, and text as `str`. Pictures are float32 `[C, H, W]` from 0 to 1.

    Ranks, and a rank's DataLoader workers, share the frames out among themselves. `rank` and `world_size` are found out when they are not
    given: from Accelerate or torch.distributed where one is initialised, else from the environment (torchrun, srun, mpirun).

    Every `iter()` is the next epoch, in an order of its own.

    Args:
        repo_or_path: a dataset of the Hugging Face Hub (`lerobot/pusht`), a directory, or a URL (`hf://`, `s3://`, `gs://`, `https://`).
        root: the directory of the dataset; `repo_or_path` is then only its name.
        episodes: the episodes to emit, by their numbers; all by default.
        exclude_episodes, drop_n_first_frames, drop_n_last_frames: what not to emit. Windows may still look into it.
        keep_ranges_file: a JSON file of ranges of frames to emit, such as `{"3": [[0, 40], [60, 90]]}`.
        delta_timestamps: windows by feature, in seconds relative to the emitted frame.
        image_transforms: is called with each camera's tensor of a sample.
        tolerance_s: how far a delta or a video frame may lie from where it should.
        revision: a branch, tag or commit of a dataset of the Hub.
        episode_pool_size: the episodes that frames are drawn from at a time.
        buffer_size: accepted for those who come from a shuffle buffer; has no effect, and warns.
        shard_unit: "episode" shares out single episodes; "file" whole data files, in `max_num_shards` groups.
        seed, shuffle: of the order.
        return_uint8: pictures as bytes from 0 to 255.
        resize: height and width of all pictures; as they are stored by default.
        num_threads: the threads that decode video, for all workers of a rank together; as many as there are cores by default.
        decode_ahead_bytes: the most memory that decoded frames may take before they are emitted.
        video_decoder_cache_size: the most video files open at once in each worker.
        video_decode_device: "cpu" is all there is.
        admission: "shuffled", or "file_grouped": data file by data file, which mixes less and goes with `fetch="files"`.
        data_files_root: where rows and videos lie, if not beside the metadata: a directory or a URL with the same layout.
        index: an index of a remote dataset's files, made by `episode-pool index`; one in the cache's folder or in the dataset is found without.
        cache_dir: where fetched video is kept while it is needed, on a disk of this machine. Processes that share it fetch nothing twice.
        cache_bytes: the most bytes in that folder, for all processes that share it; 32 GiB by default.
        warm_cache: whether what nobody needs stays there until the room is needed.
        prefetch_episodes: the episodes that each worker fetches before they are admitted.
        fetch: "ranges" fetches of a remote video file the packets of an episode's own frames, "files" all of it.
        on_fetch_error: what to do when an episode cannot be fetched: "fail", or "skip_episode": leave out its frames, and warn.
        prefetch: the samples that each worker of a DataLoader makes ahead.
    """

    def __init__(
        self,
        repo_or_path: str | os.PathLike[str],
        *,
        root: str | os.PathLike[str] | None = None,
        episodes: Sequence[int] | None = None,
        exclude_episodes: Sequence[int] | None = None,
        drop_n_first_frames: int = 0,
        drop_n_last_frames: int = 0,
        keep_ranges_file: str | os.PathLike[str] | None = None,
        delta_timestamps: Mapping[str, Sequence[float]] | None = None,
        image_transforms: Transforms | None = None,
        tolerance_s: float = 1e-4,
        revision: str | None = None,
        episode_pool_size: int = 64,
        buffer_size: int | None = None,
        shard_unit: str = "episode",
        max_num_shards: int | None = None,
        seed: int = 42,
        shuffle: bool = True,
        return_uint8: bool = False,
        resize: tuple[int, int] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        num_threads: int | None = None,
        decode_ahead_bytes: int | None = None,
        video_decoder_cache_size: int | None = None,
        video_decode_device: str = "cpu",
        admission: str = "shuffled",
        data_files_root: str | os.PathLike[str] | None = None,
        index: str | os.PathLike[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        cache_bytes: int | None = None,
        warm_cache: bool = False,
        prefetch_episodes: int = 8,
        fetch: str = "ranges",
        on_fetch_error: str = "fail",
        prefetch: int = 2,
    ) -> None:
        super().__init__()
        if video_decode_device != "cpu":
            raise ValueError(f'`video_decode_device` is {video_decode_device!r}; expected "cpu"')
        if (rank is None) != (world_size is None):
            raise ValueError(f"`rank` is {rank} and `world_size` is {world_size}; expected both, or none of them")
        if prefetch < 0:
            raise ValueError(f"`prefetch` is {prefetch}; expected 0 or more")
        self._name = os.fspath(repo_or_path)
        self._source = _source(self._name, root, revision)
        self._has_own_place = rank is not None
        place = _world.running_world() if rank is None or world_size is None else (rank, world_size)
        deltas = {key: [float(delta) for delta in deltas] for key, deltas in (delta_timestamps or {}).items()}
        self._options: dict[str, Any] = {
            "episodes": None if episodes is None else [int(episode) for episode in episodes],
            "exclude_episodes": None if exclude_episodes is None else [int(episode) for episode in exclude_episodes],
            "drop_n_first_frames": drop_n_first_frames,
            "drop_n_last_frames": drop_n_last_frames,
            "keep_ranges_file": None if keep_ranges_file is None else Path(keep_ranges_file),
            "delta_timestamps": deltas,
            "tolerance_s": tolerance_s,
            "episode_pool_size": episode_pool_size,
            "buffer_size": buffer_size,
            "shard_unit": shard_unit,
            "max_num_shards": max_num_shards,
            "seed": seed,
            "shuffle": shuffle,
            "uint8": return_uint8,
            "resize": resize,
            "num_threads": num_threads,
            "decode_ahead_bytes": decode_ahead_bytes,
            "video_decoder_cache_size": video_decoder_cache_size,
            "admission": admission,
            "data_root": None if data_files_root is None else os.fspath(data_files_root),
            "index": None if index is None else Path(index),
            "cache_dir": None if cache_dir is None else Path(cache_dir),
            "cache_bytes": cache_bytes,
            "warm_cache": warm_cache,
            "prefetch_episodes": prefetch_episodes,
            "fetch": fetch,
            "on_fetch_error": on_fetch_error,
            "place": place,
        }
        self.image_transforms = image_transforms
        self.delta_timestamps = None if delta_timestamps is None else deltas
        self._prefetch = prefetch
        self._epochs = Epochs()
        self._resumed: tuple[str, bool, bool] | None = None
        self._open()
        # Other processes find the place that this one has found.
        self._options["place"] = (self._pool.rank, self._pool.world_size)
        for warning in self._pool.warnings():
            warnings.warn(warning, stacklevel=2)

    def _open(self) -> None:
        self._pool = Pool(self._source, self._options)
        self.meta = Metadata(self._name, self._pool)
        self._camera_keys = [key for key, _, _, is_camera in self._pool.fields() if is_camera]

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for key in ("_pool", "meta", "_camera_keys"):
            del state[key]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()

    @property
    def rank(self) -> int:
        """The rank whose share this is."""
        return self._pool.rank

    @property
    def world_size(self) -> int:
        """The number of ranks that share the frames."""
        return self._pool.world_size

    @property
    def num_frames(self) -> int:
        """The frames of an epoch, over all ranks."""
        return self._pool.fleet_frames

    @property
    def num_episodes(self) -> int:
        """The episodes of the dataset, or those that were asked for."""
        episodes = self._options["episodes"]
        return self._pool.total_episodes if episodes is None else len(episodes)

    @property
    def fetched(self) -> dict[str, int]:
        """What this process has asked of a remote dataset so far: `requests`, `retries` and `bytes_fetched`; zeros for a directory."""
        requests, retries, bytes_fetched = self._pool.fetched()
        return {"requests": requests, "retries": retries, "bytes_fetched": bytes_fetched}

    @property
    def fps(self) -> int | float:
        """Frames per second."""
        return self.meta.fps

    @property
    def features(self) -> dict[str, dict[str, Any]]:
        """The features of `meta`."""
        return self.meta.features

    @property
    def epoch(self) -> int:
        """The epoch that was begun last; before the first, the one to come."""
        latest = self._epochs.latest
        return self._epochs.base if latest is None else latest

    def set_epoch(self, epoch: int) -> None:
        """Makes `epoch` the next one to be iterated. There is no need to: epochs count themselves."""
        if epoch < 0:
            raise ValueError(f"`epoch` is {epoch}; expected 0 or more")
        _guard.refuse_double_sharding()
        # accelerate counts from 0 in every process, also in one that goes on from a saved state.
        if not _guard.is_called_by_accelerate():
            self._resumed = None
            self._epochs.start_at(epoch)

    def load_state_dict(self, state: State | str, *, drop_last: bool = False, strict: bool = True) -> None:
        """The next iteration, by a DataLoader or by itself, goes on from a saved state; the ones after it are the epochs that follow.

        Args:
            state: what `Loader.state_dict()` gave, or a trainer's own `{"batches_consumed": 1200, "batch_size": 32}`: batches that this
                rank has taken since the first epoch.
            drop_last: the DataLoader's. A state of `Loader` knows it.
            strict: whether another option than the saved run's is an error, or only a warning.
        """
        text = state if isinstance(state, str) else json.dumps(dict(state))
        drop_last = bool(json.loads(text).get("drop_last", drop_last))
        self._pool.epoch_after(text, drop_last, strict, 0)
        self._resumed = (text, drop_last, strict)
        self._epochs.start_at(0)

    def sample(self, index: int) -> dict[str, Any]:
        """The sample of one frame by its number in the dataset: for looking, not for training, since it reads the episode anew."""
        return self._finish(self._pool.sample(index))

    def __iter__(self) -> SampleStream:
        _guard.refuse_double_sharding()
        worker = _world.this_worker()
        if worker.number is None:
            self._check_place()
        return SampleStream(self, worker)

    def _check_place(self) -> None:
        world = _world.running_world()
        here = (self.rank, self.world_size)
        if not self._has_own_place and world is not None and world != here:
            raise RuntimeError(
                f"the dataset was made as rank {here[0]} of {here[1]}, and this process is rank {world[0]} of {world[1]}; make the dataset "
                "after Accelerate or torch.distributed is initialised, or give `rank` and `world_size`"
            )

    def _finish(self, fields: dict[str, Any]) -> dict[str, Any]:
        sample = _tensors.to_tensors(fields)
        if self.image_transforms is not None:
            for key in self._camera_keys:
                sample[key] = self.image_transforms(sample[key])
        return sample

    def __repr__(self) -> str:
        return (
            f"StreamingDataset({self._name!r}, rank {self.rank} of {self.world_size}, {self.num_frames} frames, "
            f"features={list(self.features)})"
        )


class SampleStream(Iterator[dict[str, Any]]):
    """One consumer's samples of one epoch. Nothing is read before the first of them is asked for."""

    def __init__(self, dataset: StreamingDataset, worker: _world.Worker) -> None:
        self._dataset = dataset
        self._worker = worker
        self._number = worker.number or 0
        self._samples: SampleIter | None = None
        self._is_open = False
        self._taken = 0
        self._skip = 0
        resumed = dataset._resumed
        resumed_epoch = None
        if resumed is not None:
            text, drop_last, strict = resumed
            resumed_epoch = dataset._pool.epoch_after(text, drop_last, strict, worker.num_workers)
        base = dataset._epochs.base if resumed_epoch is None else resumed_epoch
        self.epoch = dataset._epochs.begin(worker.number, worker.seed, lambda: base)
        self._resumed = resumed if self.epoch == resumed_epoch else None

    def __iter__(self) -> SampleStream:
        return self

    def __next__(self) -> dict[str, Any]:
        if not self._is_open:
            self._samples = self._open()
            self._is_open = True
        if self._samples is None:
            raise StopIteration
        fields = next(self._samples)
        self._taken += 1
        return self._dataset._finish(fields)

    def _open(self) -> SampleIter | None:
        pool, prefetch = self._dataset._pool, self._dataset._prefetch
        worker = (self._number, self._worker.num_workers)
        if self._resumed is None:
            return pool.samples(self.epoch, *worker, self._skip, prefetch)
        text, drop_last, strict = self._resumed
        return pool.samples_after(text, drop_last, strict, *worker, prefetch)

    def close(self) -> None:
        """Stops reading at once. There are no more samples."""
        if self._samples is not None:
            self._samples.close()
            self._samples = None
        self._is_open = True

    def state_dict(self) -> dict[str, Any]:
        """Where this consumer stands; torchdata's StatefulDataLoader asks for it in each worker."""
        state: dict[str, Any] = {
            "epoch": self.epoch,
            "samples": self._skip + self._taken,
            "worker": self._number,
            "num_workers": self._worker.num_workers,
        }
        if self._resumed is not None:
            state["resumed"] = list(self._resumed)
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another stream of the same worker stood."""
        here = {"worker": self._number, "num_workers": self._worker.num_workers}
        for key, value in here.items():
            if state[key] != value:
                raise ValueError(
                    f"the saved state is of {key} {state[key]}, and this is {key} {value}; use the DataLoader's num_workers of the saved run, "
                    "or episode_pool.Loader, whose states hold for any number of workers"
                )
        self.close()
        self.epoch = state["epoch"]
        self._dataset._epochs.note(self._worker.number, self._worker.seed, self.epoch)
        resumed = state.get("resumed")
        self._resumed = None if resumed is None else (resumed[0], resumed[1], resumed[2])
        self._taken, self._skip, self._is_open = 0, state["samples"], False
        if self._resumed is not None:
            self._skip = 0
            for _ in range(state["samples"]):
                next(self)


def _source(name: str, root: str | os.PathLike[str] | None, revision: str | None) -> str:
    """Where the dataset is: what was given, or a dataset of the Hub."""
    if root is not None:
        return os.fspath(root)
    is_hub_name = "://" not in name and name.count("/") == 1 and not name.startswith((".", "/", "~"))
    if is_hub_name and not os.path.isdir(name):
        return f"hf://datasets/{name}" + (f"@{revision}" if revision is not None else "")
    if revision is not None and "://" in name and "@" not in name:
        return f"{name}@{revision}"
    return name
