"""Against lerobot's own reader, where it is installed: every key of every frame."""

from __future__ import annotations

import pytest
import torch
from conftest import FIXTURES, fixture, truth
from episode_pool import StreamingDataset

lerobot = pytest.importorskip("lerobot.datasets.lerobot_dataset", reason="lerobot is not installed: NOT COMPARED with it")


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("name", FIXTURES)
def test_every_key_equals_lerobots(name: str, windowed: bool) -> None:
    deltas = truth(name)["delta_timestamps"] if windowed else None
    theirs = lerobot.LeRobotDataset("fixtures/" + name, root=fixture(name), delta_timestamps=deltas, video_backend="pyav")
    ours = StreamingDataset(fixture(name), delta_timestamps=deltas)
    assert (ours.meta.fps, ours.meta.camera_keys, ours.meta.video_keys) == (theirs.meta.fps, theirs.meta.camera_keys, theirs.meta.video_keys)
    assert ours.meta.features.keys() == theirs.meta.features.keys()
    for index in range(0, len(theirs), max(1, len(theirs) // 12)):
        expected, sample = theirs[index], ours.sample(index)
        assert sample.keys() == expected.keys()
        for key, value in expected.items():
            if not isinstance(value, torch.Tensor):
                assert sample[key] == value, key
                continue
            assert (sample[key].shape, sample[key].dtype) == (value.shape, value.dtype), key
            if key in theirs.meta.camera_keys:
                difference = (sample[key] - value).abs() * 255
                assert difference.mean() <= 1.0 and difference.max() <= 4.5, f"{key} of {index}"
            else:
                assert torch.equal(sample[key], value), f"{key} of {index}"
