"""What the Loader adds: values brought to scale, metrics, lengths."""

from __future__ import annotations

import pytest
import torch
from conftest import fixture
from episode_pool import Loader, StreamingDataset

NO_CAMERA = fixture("no_camera")


def whole(dataset: StreamingDataset, **options: object) -> dict[str, torch.Tensor]:
    """One epoch as one batch."""
    (batch,) = Loader(dataset, dataset.num_frames, **options)  # type: ignore[arg-type]
    return batch


def test_mean_and_deviation_are_brought_to_zero_and_one() -> None:
    batch = whole(StreamingDataset(NO_CAMERA), normalize="mean_std")
    for key in ("observation.state", "action"):
        assert torch.allclose(batch[key].mean(0), torch.zeros(batch[key].shape[1]), atol=1e-3)
        assert torch.allclose(batch[key].std(0, unbiased=False), torch.ones(batch[key].shape[1]), atol=1e-3)
    plain = whole(StreamingDataset(NO_CAMERA))
    assert torch.equal(batch["index"], plain["index"]) and torch.equal(batch["timestamp"], plain["timestamp"])


def test_windows_and_chosen_features_only() -> None:
    dataset = StreamingDataset(NO_CAMERA, delta_timestamps={"action": [0.0, 0.02]})
    batch, plain = whole(dataset, normalize={"action": "min_max"}), whole(dataset)
    stats = dataset.meta.stats["action"]  # type: ignore[index]
    low, high = (torch.tensor(stats[name], dtype=torch.float32) for name in ("min", "max"))
    expected = (plain["action"] - low) / (high - low) * 2 - 1
    assert torch.allclose(batch["action"], expected, atol=1e-5)
    assert float(batch["action"].min()) == -1.0 and abs(float(batch["action"].max()) - 1.0) < 1e-6
    assert torch.equal(batch["observation.state"], plain["observation.state"])


def test_pictures_are_scaled_by_channel() -> None:
    dataset = StreamingDataset(fixture("image_only"), episodes=[0])
    camera = dataset.meta.camera_keys[0]
    stats = dataset.meta.stats[camera]  # type: ignore[index]
    mean, std = (torch.tensor(stats[name], dtype=torch.float32) for name in ("mean", "std"))
    expected = (whole(dataset)[camera] - mean) / std
    assert torch.allclose(whole(dataset, normalize={camera: "mean_std"})[camera], expected, atol=1e-4)


def test_what_cannot_be_brought_to_scale_is_refused() -> None:
    dataset = StreamingDataset(NO_CAMERA)
    with pytest.raises(ValueError, match="`phase` is str; expected a feature of float32"):
        Loader(dataset, 4, normalize={"phase": "mean_std"})
    with pytest.raises(ValueError, match="`nothing` is no feature"):
        Loader(dataset, 4, normalize={"nothing": "mean_std"})
    with pytest.raises(ValueError, match="'zscore' for `action`"):
        Loader(dataset, 4, normalize={"action": "zscore"})


def test_metrics_have_the_names_that_trainers_log() -> None:
    loader = Loader(StreamingDataset(NO_CAMERA), 64, num_workers=2)
    assert loader.metrics() == {}
    count = sum(1 for _ in loader)
    metrics = loader.metrics()
    assert (metrics["batches"], metrics["samples"]) == (count, loader.dataset.num_frames)
    assert metrics["dataloading_s"] > 0 and metrics["worker_loading_s"] > 0 and metrics["samples_per_s"] > 0
    assert metrics["slowest_worker"] in (0, 1)
    loader.close()
    assert loader.metrics()["worker_loading_s"] == metrics["worker_loading_s"]
