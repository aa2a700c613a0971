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
from semigrad.training.allocator import freed_memory_kept
from semigrad.training.schedule import learning_rate
from semigrad.training.setup import Setup, set_up
from semigrad.training.threads import processor_threads
from semigrad.training.training import Step


def seconds_of_steps(runs: Mapping[str, Run], rounds: int = 15, dataset: Dataset | None = None) -> dict[str, float]:
    """What a step of each run takes on one thread: medians over rounds in which every run takes one, so that other work
    on the machine hurts all alike. Reads the data, unless they are given."""
    with freed_memory_kept(), processor_threads(1):
        works = {
            (name, number): work for name, run in runs.items() for number, work in enumerate(_steps_of(run, dataset))
        }
        times: dict[tuple[str, int], list[float]] = {place: [] for place in works}
        for turn in range(rounds + 2):
            for place, work in works.items():
                started = time.perf_counter()
                work()
                if turn >= 2:  # the first are slower
                    times[place].append(time.perf_counter() - started)
    medians = {place: statistics.median(each) for place, each in times.items()}
    return {
        name: run.method.traits.mean_over_steps(lambda number, name=name: medians[name, number])  # type: ignore[misc]
        for name, run in runs.items()
    }


def _steps_of(run: Run, dataset: Dataset | None) -> list[Callable[[], None]]:
    """A step at which the method does all that it does, and one at which it does not, if there are such."""
    setup = set_up(run, "cpu", dataset)
    step, kinds = Step(run.method, setup.net, setup.memory), 1 if run.method.traits.more_every == 1 else 2
    return [whole_step(run, setup, step, number) for number in range(kinds)]


def whole_step(run: Run, setup: Setup, step: Step, number: int = 0) -> Callable[[], None]:
    """One step again and again, on a copy that is thrown away: reading a batch, targets, loss, backward pass and
    averages. The optimizer's own step is the same for all methods, and step 0 has all that a method does now and
    then."""
    trial = copy.deepcopy(step).train()
    clock = Clock(number, run.steps, learning_rate(run, run.steps // 2), run.seed, setup.device)

    def work() -> None:
        batch = next(setup.stream.batches(range(1), setup.device))
        terms, _ = trial(batch, clock)
        trial.zero_grad()
        torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
        run.method.update(trial.net, trial.memory, clock)

    return work
