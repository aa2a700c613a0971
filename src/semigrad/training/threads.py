"""How many threads of the processor a run has."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterator

import torch

ROUNDS, ENOUGH = 5, 4.0
"""Times that the work is carried out with each number of threads, and seconds after which there are no more rounds."""
SLOW = 2.0
"""Seconds of work with all threads for which nobody wants to wait with one."""
WORTH_IT = 1.25
"""So many times quicker more threads have to be: one gives the same bits on every machine of a kind."""


@contextlib.contextmanager
def processor_threads(count: int | None) -> Iterator[None]:
    """So many threads inside, as many as before afterwards; None: no change."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def quicker_threads(work: Callable[[], object]) -> int:
    """One thread, or as many as torch would take where those are clearly quicker just now. On a machine that has other
    work to do they wait for each other, and a step can take many times longer with them."""
    most = torch.get_num_threads()
    if most == 1:
        return 1
    times: dict[int, list[float]] = {most: [], 1: []}
    started = time.perf_counter()
    for _ in range(ROUNDS):
        for count, each in times.items():
            with processor_threads(count):
                before = time.perf_counter()
                work()
                each.append(time.perf_counter() - before)
            if each[0] > SLOW and count == most:
                return most
        if time.perf_counter() - started > ENOUGH:
            break
    many, one = (statistics.median(each) for each in times.values())
    return most if one > WORTH_IT * many else 1
