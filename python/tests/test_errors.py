"""What is wrong is said in the words of the library, by exceptions that everybody knows."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import fixture
from episode_pool import Loader, StreamingDataset
from episode_pool._dataset import _source
from test_dataloader import dataloader

NO_CAMERA = fixture("no_camera")


def test_options_out_of_range_are_value_errors() -> None:
    with pytest.raises(ValueError, match="`episode_pool_size` is 0; expected at least 1"):
        StreamingDataset(NO_CAMERA, episode_pool_size=0)
    with pytest.raises(ValueError, match="delta_timestamps do not fit the dataset.*nothing"):
        StreamingDataset(NO_CAMERA, delta_timestamps={"nothing": [0.0]})
    with pytest.raises(ValueError, match="cannot plan the epoch.*99"):
        StreamingDataset(NO_CAMERA, episodes=[99])
    with pytest.raises(ValueError, match='`shard_unit` is "frame"; expected "episode" or "file"'):
        StreamingDataset(NO_CAMERA, shard_unit="frame")
    with pytest.raises(ValueError, match='expected "cpu"'):
        StreamingDataset(NO_CAMERA, video_decode_device="cuda")
    with pytest.raises(ValueError, match="expected both, or none"):
        StreamingDataset(NO_CAMERA, rank=1)
    with pytest.raises(ValueError, match="rank"):
        StreamingDataset(NO_CAMERA, rank=2, world_size=2)
    with pytest.raises(ValueError, match="`batch_size` is 0"):
        Loader(StreamingDataset(NO_CAMERA), 0)
    with pytest.raises(ValueError, match="`epoch_end` is"):
        Loader(StreamingDataset(NO_CAMERA), 4, epoch_end="cut")
    with pytest.raises(TypeError, match="expected a StreamingDataset"):
        Loader([1, 2], 4)  # type: ignore[arg-type]
    with pytest.raises(IndexError, match="frame 100000 is not in the dataset"):
        StreamingDataset(NO_CAMERA).sample(100000)


def test_a_dataset_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot reach the dataset.*nowhere"):
        StreamingDataset(tmp_path / "nowhere")


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_file_that_cannot_be_read_ends_the_epoch_with_its_name(tmp_path: Path, num_workers: int) -> None:
    damaged = tmp_path / "dataset"
    shutil.copytree(fixture("pusht_like"), damaged)
    video = next((damaged / "videos").rglob("*.mp4"))
    video.write_bytes(video.read_bytes()[:1000])
    dataset = StreamingDataset(damaged)
    with pytest.raises(RuntimeError, match=r"observation\.image.*file-000\.mp4"):
        list(dataloader(dataset, num_workers))
    with pytest.raises(RuntimeError, match=r"observation\.image.*file-000\.mp4"):
        list(Loader(dataset, 4, num_workers=num_workers))


def test_a_shuffle_buffer_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="`buffer_size` = 1000 has no effect"):
        StreamingDataset(NO_CAMERA, buffer_size=1000)


def test_a_root_and_a_name(tmp_path: Path) -> None:
    dataset = StreamingDataset("someone/something", root=NO_CAMERA)
    assert dataset.meta.repo_id == "someone/something"
    assert dataset.num_frames == StreamingDataset(NO_CAMERA).num_frames


def test_where_a_name_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _source("lerobot/pusht", None, None) == "hf://datasets/lerobot/pusht"
    assert _source("lerobot/pusht", None, "v3.0") == "hf://datasets/lerobot/pusht@v3.0"
    assert _source("hf://datasets/lerobot/pusht", None, "main") == "hf://datasets/lerobot/pusht@main"
    assert _source("lerobot/pusht", tmp_path, "v3.0") == str(tmp_path)
    assert _source("./data/pusht", None, None) == "./data/pusht"
    (tmp_path / "lerobot/pusht").mkdir(parents=True)
    assert _source("lerobot/pusht", None, None) == "lerobot/pusht"


def test_an_epoch_is_not_negative() -> None:
    dataset = StreamingDataset(NO_CAMERA)
    for what in (dataset, Loader(dataset, 4)):
        with pytest.raises(ValueError, match="`epoch` is -1; expected 0 or more"):
            what.set_epoch(-1)
