"""About how long a run will take on this machine, from its description alone: no data are read.

A step is so many passes through the network, which are counted. A pass has the multiplications of the network's
convolutions and matrices, the numbers that its layers put out, which go through memory, and the calls of its layers;
what each of them takes here is measured (`speed`)."""

from __future__ import annotations

from typing import NamedTuple

from semigrad.experiments.known_data import shape_and_classes
from semigrad.experiments.speed import Speed
from semigrad.run import Run
from semigrad.training.work import network_size, numbers_put_out, passes_of_step


class StepWork(NamedTuple):
    """What there is to do in one step."""

    multiplications: float  # of the network's convolutions and matrices
    numbers: float  # that its layers put out
    layers: float  # each as often as a batch goes through it, forward or back

    def seconds(self, speed: Speed) -> float:
        return self.multiplications / speed.multiplications + self.numbers * speed.number + self.layers * speed.layer


def estimate_seconds(run: Run, speed: Speed) -> float:
    """Of a run's steps; not of reading data."""
    return run.steps * work_of_step(run, *shape_and_classes(run)).seconds(speed)


def work_of_step(run: Run, shape: tuple[int, ...], classes: int) -> StepWork:
    """On examples of this shape."""
    multiplications, layers = network_size(run.model, shape, classes)
    numbers = numbers_put_out(run.model, shape, classes)
    passes = passes_of_step(run.method, run.batch, run.unlabeled_rows, run.accumulate)
    return StepWork(passes.examples * multiplications, passes.examples * numbers, passes.calls * layers)


def multiplications_of_step(run: Run) -> float:
    """Of the network's convolutions and matrices in one step."""
    return work_of_step(run, *shape_and_classes(run)).multiplications
