"""How long to train within a time: steps from the measured time of one, for every model that is to be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from semigrad.errors import InputError
from semigrad.fitting.looking import Look
from semigrad.run import Run, configure
from semigrad.settings.recipes import Layer
from semigrad.training.timing import seconds_of_steps

FEWEST_STEPS, MOST_STEPS = 200, 4000
UNITS = {"s": 1, "m": 60, "h": 3600}
BASELINE = "supervised"


def seconds_of(text: str) -> float:
    """`90s`, `10m` or `1.5h` in seconds."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?)([smh])", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"A time is written as 90s, 10m or 2h; given: {text!r}.")
    return float(match[1]) * UNITS[match[2]]


@dataclass(frozen=True)
class Plan:
    """What will be trained: every method on every fold, then the best of them on all labels."""

    look: Look
    methods: tuple[str, ...]  # labeled-only first
    folds: int
    steps: int
    seed: int
    seconds: float  # estimate for everything, several runs at a time
    jobs: int

    def run(self, method: str, fold: int | None = None) -> Run:
        """A method on all labels, or without those of a fold."""
        held: Layer = {} if fold is None else {"folds": self.folds, "fold": fold}
        return configure(self.look.spec, method=method, steps=self.steps, seed=self.seed, **self.look.reading, **held)

    def __str__(self) -> str:
        compared = " against ".join(reversed(self.methods)) if len(self.methods) == 2 else ", ".join(self.methods)
        trained = len(self.methods) * self.folds + 1
        return (
            f"{self.run(self.methods[0]).model_name}, {compared}, {self.steps:,} steps each; {self.folds} folds: "
            f"{trained} runs, {self.jobs} at a time, about {self.seconds / 60:.1f} minutes"
        )


def make_plan(look: Look, methods: tuple[str, ...], budget: float, jobs: int, seed: int, steps: int | None) -> Plan:
    """As many steps as the time allows, between 200 and 4,000; or so many as were asked for."""
    if look.folds == 0:
        raise InputError(
            f"Some class of {look.spec} has one label only, so that none can be held out to compare on. Label at least "
            "two of each class, or train without a comparison: semigrad train."
        )
    one_step = {method: configure(look.spec, method=method, seed=seed, **look.reading) for method in methods}
    times = seconds_of_steps(one_step, rounds=5)
    step = seconds_of_all(times, look.folds, jobs)
    steps = steps or int(min(max(budget / step, FEWEST_STEPS), MOST_STEPS))
    return Plan(look, methods, look.folds, steps, seed, steps * step, jobs)


def seconds_of_all(times: Mapping[str, float], folds: int, jobs: int) -> float:
    """Seconds for one step of everything that is trained: each method on each fold, so many at a time, none of them
    quicker than the slowest alone; then the slowest once more, by itself."""
    slowest = max(times.values())
    return max(folds * sum(times.values()) / jobs, slowest) + slowest
