"""From a dataset's statistics to the numbers that bring its values to scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._dataset import StreamingDataset

_EPSILON = 1e-8


def scales(dataset: StreamingDataset, normalize: str | Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """For each feature how `(value - shift) / divisor + offset` is done.

    - "mean_std": mean 0 and standard deviation 1.
    - "min_max": the least value becomes -1, the greatest 1.
    - "quantiles": the same with the first and the 99th percentile.
    """
    stats = dataset.meta.stats or {}
    kinds = {key: dtype for key, dtype, _, _ in dataset._pool.fields()}
    shapes = {key: shape for key, _, shape, _ in dataset._pool.fields()}
    if isinstance(normalize, str):
        chosen = ("observation.", "action")
        modes = {key: normalize for key in dataset.features if key.startswith(chosen) and kinds[key] == "float32"}
    else:
        modes = dict(normalize)
    found = {}
    for key, mode in modes.items():
        if kinds.get(key) != "float32":
            raise ValueError(f"`normalize`: `{key}` is {kinds.get(key, 'no feature of the dataset')}; expected a feature of float32")
        run = int(np.prod(shapes[key][-2:])) if key in dataset._camera_keys else 1
        found[key] = {**_numbers(key, mode, stats.get(key, {})), "run": run}
    return found


def _numbers(key: str, mode: str, stats: Mapping[str, Any]) -> dict[str, Any]:
    names = {"mean_std": ("mean", "std"), "min_max": ("min", "max"), "quantiles": ("q01", "q99")}.get(mode)
    if names is None:
        raise ValueError(f'`normalize` is {mode!r} for `{key}`; expected "mean_std", "min_max" or "quantiles"')
    missing = [name for name in names if name not in stats]
    if missing:
        raise ValueError(f"`normalize`: meta/stats.json has no {' and no '.join(missing)} of `{key}`, which {mode} needs")
    low, high = (np.asarray(stats[name], dtype=np.float64).ravel() for name in names)
    if mode == "mean_std":
        return {"shift": low.tolist(), "divisor": (high + _EPSILON).tolist(), "offset": 0.0}
    # A value that never changes is told by its least alone: it becomes -1.
    half = np.where(high > low, (high - low) / 2, _EPSILON / 2)
    return {"shift": low.tolist(), "divisor": half.tolist(), "offset": -1.0}
