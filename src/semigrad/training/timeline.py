"""The steps of a run in order: those in which the method prepares, and those in which it trains."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch

from semigrad.core import CPU, Clock, length
from semigrad.run import Run
from semigrad.training.schedule import learning_rate, step_of_schedule


@dataclass(frozen=True)
class Timeline:
    """Where a run begins and ends, and the clock of each of its steps.

    The steps of the prologue are numbered up to -1, so that step 0 and all after it draw what they draw without one.
    Nobody else has to know: `first` is where to begin, `taken` counts from there, `Clock.preparing` tells them apart.
    """

    run: Run

    @cached_property
    def prologue(self) -> int:
        """Steps before step 0, in which the method prepares."""
        return round(length(self.run.method.prologue(), self.run.steps))

    @property
    def first(self) -> int:
        return -self.prologue

    @property
    def total(self) -> int:
        return self.prologue + self.run.steps

    def taken(self, step: int) -> int:
        """How many steps were carried out before this one."""
        return step - self.first

    def clock(self, step: int, device: torch.device = CPU) -> Clock:
        """Where training stands at a step. The learning rate is what the method prescribes, else what the run says; in
        the prologue, which has no schedule, its peak."""
        run = self.run
        clock = Clock(step, run.steps, run.lr, run.seed, device)
        if clock.preparing:
            return clock
        prescribed = run.method.schedule(step_of_schedule(run, step), run.steps)
        return replace(clock, lr=learning_rate(run, step, prescribed))

    def words(self, step: int) -> str:
        """A step as a reader counts it."""
        return f"step {step}" if step >= 0 else f"step {self.taken(step)} of {self.prologue} that prepare"
