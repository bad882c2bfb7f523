"""Every value is the one that lerobot's map-style dataset gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from conftest import FIXTURES, ROOT, fixture, truth
from episode_pool import Loader, StreamingDataset
from PIL import Image


def assert_equal(value: Any, expected: Any, what: str) -> None:
    """A value of ours against one that JSON has carried: doubles may stand where single precision is meant."""
    if isinstance(expected, str):
        assert value == expected, what
        return
    assert isinstance(value, torch.Tensor), what
    reference = np.asarray(expected)
    assert tuple(value.shape) == reference.shape, what
    assert value.is_floating_point() == (reference.dtype.kind == "f"), what
    assert (value.dtype == torch.bool) == (reference.dtype.kind == "b"), what
    np.testing.assert_array_equal(value.numpy(), reference.astype(value.numpy().dtype), err_msg=what)


def assert_frame(picture: torch.Tensor, path: str) -> None:
    """Pictures in 0..1 against a stored one: a mean difference of 1 level and a largest of 4, as conversions to RGB differ."""
    with Image.open(path) as image:
        reference = np.asarray(image.convert("RGB")).astype(np.float32)
    assert picture.dtype == torch.float32
    assert 0.0 <= float(picture.min()) and float(picture.max()) <= 1.0
    difference = np.abs(picture.permute(1, 2, 0).numpy() * 255.0 - reference)
    assert difference.mean() <= 1.0 and difference.max() <= 4.5, path


@pytest.mark.parametrize("kind", ["plain", "windowed"])
@pytest.mark.parametrize("name", FIXTURES)
def test_samples_equal_those_of_the_map_style_reader(name: str, kind: str) -> None:
    expected = truth(name)
    deltas = expected["delta_timestamps"] if kind == "windowed" else None
    dataset = StreamingDataset(fixture(name), delta_timestamps=deltas)
    cameras = dataset.meta.camera_keys
    frames = ROOT / "fixtures" / name / "frames"
    seen = 0
    for entry in expected[kind]:
        index = entry["dataset_index"]
        sample = dataset.sample(index)
        assert sample.keys() == entry["item"].keys() | set(cameras)
        for key, value in entry["item"].items():
            assert_equal(sample[key], value, f"{name} {index} {key}")
        for camera in cameras:
            windowed = kind == "windowed" and camera in expected["delta_timestamps"]
            pictures = sample[camera] if windowed else sample[camera][None]
            for k, picture in enumerate(pictures):
                path = frames / (f"windowed_{index}_{camera}_{k}.png" if windowed else f"{kind}_{index}_{camera}.png")
                if path.exists():
                    assert_frame(picture, str(path))
                    seen += 1
    assert seen > 0 or not cameras


@pytest.mark.parametrize("name", ["pusht_like", "no_camera"])
def test_what_streams_by_is_what_sample_gives(name: str) -> None:
    dataset = StreamingDataset(fixture(name), delta_timestamps=truth(name)["delta_timestamps"])
    for number, streamed in enumerate(dataset):
        if number % 17 == 0:
            alone = dataset.sample(int(streamed["index"]))
            assert streamed.keys() == alone.keys()
            for key, value in alone.items():
                assert torch.equal(streamed[key], value) if torch.is_tensor(value) else streamed[key] == value


def test_bytes_are_the_same_pictures() -> None:
    name = fixture("pusht_like")
    bytes_ = StreamingDataset(name, return_uint8=True).sample(40)["observation.image"]
    floats = StreamingDataset(name).sample(40)["observation.image"]
    assert bytes_.dtype == torch.uint8
    assert torch.equal(bytes_.float() / 255.0, floats)


def test_transforms_are_given_each_camera_of_a_sample() -> None:
    def halved(picture: torch.Tensor) -> torch.Tensor:
        assert picture.shape == (3, 96, 96)
        return picture[:, ::2, ::2]

    dataset = StreamingDataset(fixture("pusht_like"), image_transforms=halved, shuffle=False)
    plain = StreamingDataset(fixture("pusht_like"), shuffle=False)
    expected = next(iter(plain))["observation.image"][:, ::2, ::2]
    assert torch.equal(next(iter(dataset))["observation.image"], expected)
    assert torch.equal(next(iter(Loader(dataset, 4)))["observation.image"][0], expected)


def test_the_metadata_is_that_of_lerobot() -> None:
    meta = StreamingDataset(fixture("aloha_like")).meta
    assert (meta.fps, meta.total_frames, meta.total_episodes) == (30, 867, 10)
    assert meta.camera_keys == meta.video_keys == [f"observation.images.{c}" for c in ("top", "left_wrist", "right_wrist")]
    assert meta.image_keys == []
    assert meta.features["action"]["shape"] == (14,)
    assert sorted(meta.tasks) == [0, 1, 2] and meta.tasks[0] == "insert the peg"
    assert meta.stats is not None
    assert meta.stats["action"]["mean"].shape == (14,)
    assert meta.stats["observation.images.top"]["mean"].shape == (3, 1, 1)
    images = StreamingDataset(fixture("image_only")).meta
    assert images.camera_keys == images.image_keys and images.video_keys == []
