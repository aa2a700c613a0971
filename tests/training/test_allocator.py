"""Whether memory that was freed is taken again, by the pages that the system had to give: no time is measured."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest
import torch

from semigrad import Execution, configure
from semigrad.training.allocator import freed_memory_kept
from semigrad.training.loop import train, train_in_memory
from semigrad.training.progress import Quiet
from semigrad.training.setup import set_up

resource = pytest.importorskip("resource")
BLOCK = 40 * 2**20  # above 32 MB glibc asks the system each time

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs Linux with glibc"
)


def pages(blocks: int = 3, before_them: int = 20) -> int:
    """That the system gives while a block is filled and freed so many times; where it stands has settled before."""
    for _ in range(before_them):  # a few bytes that lie behind one keep the next from its place, some times
        torch.ones(BLOCK, dtype=torch.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(blocks):
        torch.ones(BLOCK, dtype=torch.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_what_is_freed_is_taken_again_inside_and_given_back_afterwards():
    usual = pages()
    with freed_memory_kept():
        kept = pages()
        held = resident()
    assert 10 * kept < usual
    assert resident() < held - BLOCK / 2


class Counting(Quiet):
    """Counts pages after each step."""

    def __init__(self) -> None:
        self.pages: list[int] = []

    def step(self, *_: object) -> None:
        self.pages.append(pages())


def test_steps_of_training_take_what_was_freed(tmp_path):
    usual, run = pages(), configure("digits@40", method="supervised", steps=2)
    in_folder, in_memory = Counting(), Counting()
    train(run, tmp_path / "run", execution=Execution(threads=1), progress=in_folder)
    train_in_memory(run, set_up(run, "cpu").dataset, execution=Execution(threads=1), progress=in_memory)
    for progress in (in_folder, in_memory):
        assert len(progress.pages) == 2
        assert 10 * max(progress.pages) < usual
