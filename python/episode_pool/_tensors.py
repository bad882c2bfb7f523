"""Arrays as tensors, where there is torch."""

from __future__ import annotations

from typing import Any

import numpy as np

try:
    import torch
    from torch.utils.data import IterableDataset

    HAS_TORCH = True
except ImportError:
    HAS_TORCH = False


def to_tensors(fields: dict[str, Any]) -> dict[str, Any]:
    """The same dict with a tensor on each array's own memory; text stays as it is."""
    if not HAS_TORCH:
        return fields
    return {
        key: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for key, value in fields.items()
    }


def pin(fields: dict[str, Any]) -> dict[str, Any]:
    """The tensors in page-locked memory."""
    return {
        key: value.pin_memory() if isinstance(value, torch.Tensor) else value for key, value in fields.items()
    }


def can_pin() -> bool:
    return HAS_TORCH and bool(torch.cuda.is_available())


def stack(values: list[Any]) -> Any:
    """What `DataLoader`'s own collation makes of one field's values."""
    if HAS_TORCH and isinstance(values[0], torch.Tensor):
        return torch.stack(values)
    return np.stack(values)


if HAS_TORCH:
    Iterable = IterableDataset[dict[str, Any]]
else:

    class Iterable:  # type: ignore[no-redef]
        """Stands for torch's class where there is no torch."""
