"""How long a step takes, measured."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Mapping

import torch

from semigrad.core import Clock
from semigrad.data.dataset import Dataset
from semigrad.run import Run
from semigrad.training.schedule import learning_rate
from semigrad.training.setup import Setup, set_up
from semigrad.training.threads import processor_threads
from semigrad.training.training import Step


def seconds_of_steps(runs: Mapping[str, Run], rounds: int = 15, dataset: Dataset | None = None) -> dict[str, float]:
    """What a step of each run takes on one thread: medians over rounds in which every run takes one, so that other work
    on the machine hurts all alike. Reads the data, unless they are given."""
    with processor_threads(1):
        works = {name: _step_of(run, dataset) for name, run in runs.items()}
        times: dict[str, list[float]] = {name: [] for name in works}
        for number in range(rounds + 2):
            for name, work in works.items():
                started = time.perf_counter()
                work()
                if number >= 2:  # the first are slower
                    times[name].append(time.perf_counter() - started)
    return {name: statistics.median(each) for name, each in times.items()}


def _step_of(run: Run, dataset: Dataset | None) -> Callable[[], None]:
    setup = set_up(run, "cpu", dataset)
    return whole_step(run, setup, Step(run.method, setup.net, setup.memory))


def whole_step(run: Run, setup: Setup, step: Step) -> Callable[[], None]:
    """The first step, again and again, on a copy that is thrown away: reading the batch, targets, loss, backward pass
    and averages. The optimizer's own step is the same for all methods, and the first step has all that a method does
    now and then."""
    trial = copy.deepcopy(step).train()
    clock = Clock(0, run.steps, learning_rate(run, run.steps // 2), run.seed, setup.device)

    def work() -> None:
        batch = next(setup.stream.batches(range(1), setup.device))
        terms, _ = trial(batch, clock)
        trial.zero_grad()
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        run.method.update(trial.net, trial.memory, clock)

    return work
