"""About how long a run will take on this machine, from its description alone: no data are read.

A step is so many passes through the network, which are counted, and a pass has the multiplications of the network's
convolutions and matrices; how many this machine does in a second is measured with a matrix product."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch

from semigrad.experiments.known_data import shape_and_classes
from semigrad.run import Run
from semigrad.training.threads import processor_threads
from semigrad.training.work import network_size, passes_of_step

EFFICIENCY = 0.35  # of convolutions in training against one large matrix product; up to 0.7 where a run is alone
SECONDS_A_LAYER = 8e-5  # what a layer takes in a pass beside its multiplications, which is most on tiny images


def estimate_seconds(run: Run, speed: float) -> float:
    """Steps times passes times what a pass takes; `speed` is in multiplications a second."""
    return seconds_of(run, EFFICIENCY * speed, SECONDS_A_LAYER)


def seconds_of(run: Run, rate: float, layer: float) -> float:
    """Where training reaches `rate` multiplications a second, and a layer takes `layer` seconds beside them."""
    work = work_of_step(run, *shape_and_classes(run))
    return run.steps * (work.multiplications / rate + work.layers * layer)


class StepWork(NamedTuple):
    """What there is to do in one step."""

    multiplications: float  # of the network's convolutions and matrices
    layers: float  # each as often as a batch goes through it, forward or back


def work_of_step(run: Run, shape: tuple[int, ...], classes: int) -> StepWork:
    """On examples of this shape."""
    multiplications, layers = network_size(run.model, shape, classes)
    passes = passes_of_step(run.method, run.batch, run.unlabeled_rows, run.accumulate)
    return StepWork(passes.examples * multiplications, passes.calls * layers)


def multiplications_of_step(run: Run) -> float:
    """Of the network's convolutions and matrices in one step."""
    return work_of_step(run, *shape_and_classes(run)).multiplications


def multiplications_a_second(seconds: float = 1.0, size: int = 512) -> float:
    """Of single-precision matrix products on one thread: the best of a second's tries, so that other work on the
    machine counts little."""
    with processor_threads(1):
        left, right = torch.ones(size, size), torch.ones(size, size)
        best, end = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < end:
            started = time.perf_counter()
            left @ right
            best = min(best, time.perf_counter() - started)
    return size**3 / best
