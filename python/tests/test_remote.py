"""A dataset behind a web server: the same samples, and nothing left of what was fetched."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from conftest import fixture
from test_dataloader import assert_same, dataloader

from episode_pool import Loader, StreamingDataset

ROOT = Path(fixture("pusht_like"))


class Files(BaseHTTPRequestHandler):
    """The files of a dataset, or parts of them."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        file = ROOT / self.path.lstrip("/")
        if not file.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = file.read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self.send_response(200)
        else:
            first, last = int(asked[1]), int(asked[2] or len(body) - 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(body)}")
            body = body[first : last + 1]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def left_in(cache: Path) -> list[Path]:
    root = cache / "episode-pool-cache-v1"
    return [path for folder in ("pieces", "parts", "users") for path in (root / folder).iterdir()]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("fetch", ["ranges", "files"])
def test_the_samples_are_those_of_the_folder(url: str, tmp_path: Path, start: str, fetch: str) -> None:
    near = StreamingDataset(ROOT, seed=3)
    far = StreamingDataset(url, seed=3, cache_dir=tmp_path, fetch=fetch)
    context = {"multiprocessing_context": start}
    assert assert_same(dataloader(near, 2, **context), dataloader(far, 2, **context)) > 0
    assert left_in(tmp_path) == []


def test_a_loader_fetches_ahead_and_leaves_nothing(url: str, tmp_path: Path) -> None:
    far = StreamingDataset(url, cache_dir=tmp_path)
    before = far.fetched
    loader = Loader(far, 8, num_workers=2)
    frames = sum(len(batch["index"]) for batch in loader)
    assert frames == far.num_frames
    assert far.fetched["bytes_fetched"] > before["bytes_fetched"]
    del loader
    assert left_in(tmp_path) == []


def test_rows_and_videos_may_lie_elsewhere(url: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "meta", tmp_path / "near" / "meta")
    apart = StreamingDataset(tmp_path / "near", data_files_root=url, cache_dir=tmp_path / "cache")
    whole = StreamingDataset(ROOT)
    for ours, theirs in zip(apart, whole, strict=True):
        assert torch.equal(ours["observation.image"], theirs["observation.image"])
        assert ours["index"] == theirs["index"]


@pytest.mark.parametrize("option", ["admission", "fetch", "on_fetch_error"])
def test_an_unknown_word_is_refused(option: str) -> None:
    with pytest.raises(ValueError, match=f"`{option}` is .*expected"):
        StreamingDataset(ROOT, **{option: "nonsense"})
