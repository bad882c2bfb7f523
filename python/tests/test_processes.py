"""Processes and threads: forks, Ctrl-C, the interpreter's end, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from conftest import fixture
from episode_pool import Loader, StreamingDataset
from test_dataloader import dataloader, frames

NO_CAMERA = fixture("no_camera")


def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    """A Python program of its own; a hang fails by the limit."""
    program = [sys.executable, "-c", textwrap.dedent(code), *args]
    return subprocess.run(program, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize("what", ["dataset", "loader"])
def test_a_fork_in_the_middle_of_reading_is_refused_and_does_not_hang(what: str) -> None:
    dataset = StreamingDataset(fixture("pusht_like"))
    stream = iter(dataset if what == "dataset" else Loader(dataset, 4))
    next(stream)
    with pytest.raises(RuntimeError, match="forked while its parent was reading"):
        list(dataloader(dataset, 2, multiprocessing_context="fork"))
    # Another start method does not mind.
    assert frames(dataloader(StreamingDataset(NO_CAMERA), 1, multiprocessing_context="spawn"))
    stream.close()
    dataset.set_epoch(0)
    assert len(frames(dataloader(dataset, 2, multiprocessing_context="fork"))) == dataset.num_frames


def test_an_iterator_of_the_parent_is_of_no_use_to_a_child() -> None:
    result = run(
        """
        import os, sys
        from episode_pool import Loader, StreamingDataset
        dataset = StreamingDataset(sys.argv[1])
        streams = [iter(dataset), iter(Loader(dataset, 4))]
        for stream in streams:
            next(stream)
        child = os.fork()
        if child == 0:
            refused = 0
            for stream in streams:
                try:
                    next(stream)
                except RuntimeError as error:
                    refused += "before the process was forked" in str(error)
            del stream, streams  # Ends no thread of the parent's.
            os._exit(refused)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), len(list(streams[0])) > 0)
        """,
        NO_CAMERA,
    )
    assert result.stdout.strip() == "2 True", result.stderr


def test_ctrl_c_ends_a_wait_for_a_batch() -> None:
    result = run(
        """
        import os, signal, sys, threading
        from episode_pool import Loader, StreamingDataset
        dataset = StreamingDataset(sys.argv[1])
        loader = Loader(dataset, dataset.num_frames)
        stream = iter(loader)
        asked = threading.Event()
        def interrupt():
            asked.wait()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            asked.set()
            next(stream)
        except KeyboardInterrupt:
            # The one batch of the epoch would count, had it been waited for.
            print(loader.state_dict()["batches_in_epoch"])
        """,
        fixture("aloha_like"),
    )
    assert result.stdout.strip() == "0", result.stderr


@pytest.mark.parametrize("what", ["iter(dataset)", "iter(Loader(dataset, 4, num_workers=2))", "iter(DataLoader(dataset, 4, num_workers=2))"])
def test_the_interpreter_ends_in_the_middle_of_an_epoch(what: str) -> None:
    result = run(
        f"""
        import sys
        from torch.utils.data import DataLoader
        from episode_pool import Loader, StreamingDataset
        dataset = StreamingDataset(sys.argv[1])
        stream = {what}
        next(stream)
        cycle = [stream]
        cycle.append(cycle)
        print("done")
        """,
        fixture("pusht_like"),
    )
    assert (result.returncode, result.stdout.strip()) == (0, "done"), result.stderr


def test_a_thousand_iterators_leave_nothing_behind() -> None:
    result = run(
        """
        import gc, os, sys
        from pathlib import Path
        from episode_pool import Loader, StreamingDataset
        rows, cameras = (StreamingDataset(path) for path in sys.argv[1:])
        loader = Loader(rows, 8, num_workers=2)
        def use(count):
            for _ in range(count // 2):
                next(iter(rows))
                next(iter(loader))
            for _ in range(count // 20):
                next(iter(cameras))
                next(iter(Loader(cameras, 4)))
            loader.close()
        def left():
            gc.collect()
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd")), resident
        use(200)
        before = left()
        use(1000)
        after = left()
        print(after[0] - before[0], after[1] - before[1], after[2] - before[2])
        """,
        NO_CAMERA,
        fixture("pusht_like"),
    )
    assert result.stdout, result.stderr
    threads, files, resident_bytes = map(int, result.stdout.split())
    assert (threads, files) == (0, 0)
    # One episode's rows or one batch's pictures left behind by each of them would be more.
    assert resident_bytes < 20_000_000


def test_nothing_has_threads_before_the_first_sample() -> None:
    before = _threads()
    stream = iter(StreamingDataset(fixture("pusht_like")))
    assert _threads() == before
    next(stream)
    assert _threads() > before
    stream.close()
    assert _threads() == before
    assert list(stream) == []


def test_importing_needs_no_torch() -> None:
    result = run(
        """
        import sys
        sys.modules["torch"] = None
        import numpy
        from episode_pool import Loader, StreamingDataset
        dataset = StreamingDataset(sys.argv[1])
        sample, batch = next(iter(dataset)), next(iter(Loader(dataset, 4)))
        assert isinstance(sample["action"], numpy.ndarray) and sample["index"].shape == ()
        assert batch["action"].shape == (4, *sample["action"].shape) and len(batch["task"]) == 4
        print(len(list(dataset)) == dataset.num_frames)
        """,
        NO_CAMERA,
    )
    assert result.stdout.strip() == "True", result.stderr


def test_batches_are_handed_over_without_a_copy() -> None:
    batch = next(iter(Loader(StreamingDataset(fixture("pusht_like")), 4)))
    picture = batch["observation.image"]
    assert picture.is_contiguous()
    # numpy made no array of its own: the memory belongs to an object of the extension.
    owner = picture.numpy()
    while isinstance(owner.base, type(owner)):
        owner = owner.base
    assert not owner.flags.owndata and owner.base is not None


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))
