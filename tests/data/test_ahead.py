"""Processes that read ahead: whatever happens to one, its parent goes on or says so, and none is left."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from semigrad.data.ahead import FOR_THE_PARENT, read_ahead, started
from semigrad.errors import InputError


class Rows:
    """Tensors large enough to travel in shared memory; number 13 cannot be read, and number 14 cannot be sent."""

    def __getitem__(self, number):
        if number == 13:
            raise InputError(["first", "second"])
        return (lambda: number) if number == 14 else torch.full((1000, 100), float(number))


@pytest.mark.parametrize("workers", [0, 1, 2, 5, 50])
@pytest.mark.parametrize("numbers", [range(0), range(1), range(3, 12)], ids=str)
def test_items_come_in_order(workers, numbers):
    found = [int(item[0, 0]) for item in read_ahead(Rows(), numbers, workers)]
    assert found == list(numbers)
    assert multiprocessing.active_children() == []


def test_what_goes_wrong_comes_back_as_it_is():
    with pytest.raises(InputError) as caught:
        list(read_ahead(Rows(), range(10, 20), 2))
    assert caught.value.problems == ["first", "second"]
    with pytest.raises((AttributeError, TypeError), match=r"[Pp]ickle"):
        list(read_ahead(Rows(), range(14, 15), 1))
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("before", range(5))
def test_a_killed_one_is_noticed_and_takes_the_others_along(before):
    items = read_ahead(Rows(), range(2000), 3)
    for _ in range(before + 1):
        next(items)
    os.kill(multiprocessing.active_children()[before % 3].pid, signal.SIGKILL)
    with pytest.raises(InputError, match="A process that reads examples died"):
        for _ in items:
            pass
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("waited", [0, 0.001, 0.01, 0.1])
def test_signals_to_the_whole_group_are_left_to_the_parent(waited):
    """However young a process is when they reach it."""
    for _ in range(10):
        with started(Rows(), 2) as readers:
            time.sleep(waited)
            for reader in readers:
                for number in FOR_THE_PARENT:
                    os.kill(reader.process.pid, number)
            for reader in readers:
                reader.ask([7])
                assert int(reader.next()[0, 0]) == 7


def test_an_iterator_that_is_left_alone_ends_them():
    items = read_ahead(Rows(), range(100, 200), 2)
    next(items)
    assert len(multiprocessing.active_children()) == 2
    items.close()
    assert multiprocessing.active_children() == []


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(processes, seconds=20.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(map(alive, processes)):
            return True
        time.sleep(0.02)
    return False


LEFT = """
import multiprocessing, sys, time
from tests.data.test_ahead import Rows, read_ahead
items = read_ahead(Rows(), range(100, 1000), 2)
next(items)
print(*(child.pid for child in multiprocessing.active_children()), flush=True)
if sys.argv[1] == "wait":
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("end", ["leave", "wait"])
def test_they_end_with_a_parent_that_leaves_or_is_killed(end):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", LEFT, end], **pipes) as parent:
        children = list(map(int, parent.stdout.readline().split()))
        assert len(children) == 2
        if end == "wait":
            parent.kill()
        assert parent.wait(60) == (-signal.SIGKILL if end == "wait" else 0)
        assert gone(children)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder, draws = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for part in ("train", "val"):
        for name in ("a", "b"):
            (folder / part / name).mkdir(parents=True)
            for number in range(10):
                image = Image.fromarray(draws.integers(0, 256, (20, 20, 3), np.uint8))
                image.save(folder / part / name / f"{number}.png")
    return folder


def children_of(process):
    return list(map(int, Path(f"/proc/{process}/task/{process}/children").read_text().split()))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc")
@pytest.mark.parametrize("victim", [0, 1])
def test_training_ends_with_one_message_when_a_reading_process_is_killed(victim, pictures, tmp_path):
    words = ["train", f"imagenet:{pictures}@8", "--image-size", "8", "--model", "small-conv", "--model.widths", "4",
             "--method", "supervised", "--batch", "4", "--steps", "1000000", "--checkpoint-every", "10", "--threads",
             "1", "--workers", "2", "--out", str(tmp_path / "run")]  # fmt: skip
    command = [sys.executable, "-m", "semigrad", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as training:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "run").glob("checkpoints/*.pt")) and time.monotonic() < deadline:
            time.sleep(0.05)
        children = children_of(training.pid)
        assert len(children) == 2
        os.kill(children[victim], signal.SIGKILL)
        out, err = training.communicate(timeout=60)
    assert training.returncode == 2
    assert out == ""
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("semigrad: A process that reads examples died")
    assert gone(children)
