"""A work in a process of its own, which takes its turn when it is told to.

How a program gets its memory is decided for the whole of it (`training.allocator`): what is measured as others run it
must not find what ours has kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

from benchmarks.turns import Clock

from semigrad.errors import InputError


class Apart(AbstractContextManager["Apart"]):
    """`python -m` these words: a program that first says a number, and then how long each turn took."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.process = subprocess.Popen(
            [sys.executable, "-m", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            self.said_first = self.answer()
        except BaseException:
            self.__exit__()
            raise

    def __call__(self) -> float:
        """One turn: its seconds, by that process's own clock."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> float:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise InputError(f"{' '.join(self.words)} ended before its turn.")
        return float(line)

    def __exit__(self, *_: object) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()  # at its end the program ends too
        self.process.wait()


def take_turns(first: float, work: Callable[[], object], clock: Clock) -> None:
    """The other end."""
    print(first, flush=True)
    for _ in sys.stdin:
        started = clock()
        work()
        print(clock() - started, flush=True)
