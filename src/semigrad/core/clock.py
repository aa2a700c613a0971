"""Where training stands, and what may be drawn there."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from semigrad.core.randomness import CPU, derive_seed, generator, on_device, random_state_kept, seed_network
from semigrad.settings import length


@dataclass(frozen=True)
class Clock:
    """Where training stands, and the source of every random draw a method makes."""

    step: int
    steps: int
    lr: float
    seed: int
    device: torch.device = CPU

    @property
    def preparing(self) -> bool:
        """Whether this is a step of the prologue, in which the method prepares."""
        return self.step < 0

    def draw(self, name: str, sample: Callable[[np.random.Generator, int], np.ndarray], rows: int) -> Tensor:
        """`sample(generator, rows)` for this seed, step and name, one row for each place in the batch."""
        return on_device(np.asarray(sample(generator(self.seed, self.step, "draw", name), rows)), self.device)

    @contextlib.contextmanager
    def masks(self, name: str) -> Iterator[None]:
        """Dropout masks and gates drawn inside depend on (seed, step, name) only: two passes under one name share
        them. The random state outside is untouched."""
        with random_state_kept(self.device):
            seed_network(derive_seed(self.seed, self.step, "masks", name), self.device)
            yield

    def ramp(self, over: float) -> float:
        """Linear from 0 to 1 over a length (a share of the run, or steps), 0 before; 1 where there is no ramp."""
        end = length(over, self.steps)
        return 1.0 if end <= 0 else min(max(self.step / end, 0.0), 1.0)

    def gaussian_ramp(self, over: float) -> float:
        """exp(−5 (1 − t)²), t linear from 0 to 1 over a length: from 0.0067 to 1 (Laine & Aila, 2017)."""
        return math.exp(-5 * (1 - self.ramp(over)) ** 2)
