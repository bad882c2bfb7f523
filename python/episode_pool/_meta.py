"""What a policy reads of a dataset: features, statistics, tasks, totals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ._episode_pool import Pool

class Metadata:
    """`dataset.meta`: the names are those of lerobot's LeRobotDatasetMetadata."""

    repo_id: str
    """What the dataset was opened as."""
    info: dict[str, Any]
    """The contents of meta/info.json."""
    features: dict[str, dict[str, Any]]
    """By key: `dtype`, `shape` (a tuple), `names`, and a camera's `info`."""
    stats: dict[str, dict[str, np.ndarray[Any, Any]]] | None
    """By key: `mean`, `std`, `min`, `max`, `count`, `q01`, ..., as far as the dataset has them. A camera's are `[C, 1, 1]`."""
    tasks: dict[int, str]
    """The sentences by `task_index`."""
    total_frames: int
    total_episodes: int

    def __init__(self, repo_id: str, pool: Pool) -> None:
        self.repo_id = repo_id
        self.info = json.loads(pool.info_json())
        self.features = {
            key: {**feature, "shape": tuple(feature.get("shape") or ())}
            for key, feature in self.info["features"].items()
        }
        text = pool.stats_json()
        self.stats = None if text is None else _arrays(json.loads(text))
        self.tasks = pool.tasks()
        self.total_frames = pool.total_frames
        self.total_episodes = pool.total_episodes

    @property
    def fps(self) -> int | float:
        """Frames per second, as the file has it."""
        fps: int | float = self.info["fps"]
        return fps

    @property
    def robot_type(self) -> str | None:
        """The kind of robot, where the file tells."""
        return self.info.get("robot_type")

    @property
    def camera_keys(self) -> list[str]:
        """The features that hold pictures."""
        return self._keys("image", "video")

    @property
    def video_keys(self) -> list[str]:
        """The cameras whose pictures are in video files."""
        return self._keys("video")

    @property
    def image_keys(self) -> list[str]:
        """The cameras whose pictures are in the data files."""
        return self._keys("image")

    @property
    def total_tasks(self) -> int:
        """The number of tasks."""
        return len(self.tasks)

    @property
    def names(self) -> dict[str, Any]:
        """The names of each feature's elements or axes."""
        return {key: feature.get("names") for key, feature in self.features.items()}

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each feature, as the file declares it."""
        return {key: feature["shape"] for key, feature in self.features.items()}

    def _keys(self, *dtypes: str) -> list[str]:
        return [key for key, feature in self.features.items() if feature["dtype"] in dtypes]

    def __repr__(self) -> str:
        return (
            f"Metadata(repo_id={self.repo_id!r}, total_episodes={self.total_episodes}, total_frames={self.total_frames}, "
            f"fps={self.fps}, features={list(self.features)})"
        )


def _arrays(stats: dict[str, dict[str, Any]]) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    return {
        key: {name: np.atleast_1d(np.array(value)) for name, value in feature.items()}
        for key, feature in stats.items()
    }
