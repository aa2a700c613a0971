"""Weight averaging along a cyclic learning rate: SWA (Izmailov, Podoprikhin, Garipov, Vetrov, Wilson; 2018) and fastSWA
(Athiwaratkun, Finzi, Izmailov, Wilson; 2019).

    η(t)/η₀ = ½(1 + cos(πt/ℓ₀))                              for t < ℓ
              ½(1 + cos(π(ℓ − c + ((t − ℓ) mod c))/ℓ₀))      for t ≥ ℓ: cycles that repeat the last c steps before ℓ
    a ← a + (θ_t − a)/(n + 1),  n ← n + 1                    SWA:      t ≥ ℓ,      (t − ℓ) mod c = 0
                                                             fastSWA:  t ≥ ℓ − c,  (t − ℓ + c) mod k = 0

θ_t are the weights after t steps, so SWA takes those at the end of each cycle, and fastSWA many of each. With weight
normalization the mean is over (g, v), not over the weights they make.

Both average the student, also where the host has a teacher that would answer. The statistics of BatchNorm are estimated
anew for the average, in train mode with dropout: here as the mean over up to 100 unlabeled batches, in fastSWA's code
by 101 mixed batches at the layers' usual momentum. Their code counts in epochs (ℓ = 180, ℓ₀ = 210, c = 30, k = 3); here
all are shares of the run.
"""

from __future__ import annotations

import abc
import copy
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim.swa_utils import update_bn

from semigrad.core import Batch, Clock, Modifier, Task, Traits, derive_seed, random_state_kept, seed_network
from semigrad.core.ops import average_into
from semigrad.settings.fields import Count, PositiveShare


@dataclass(frozen=True)
class _Averaging(Modifier):
    """A cyclic learning rate, a running mean of the weights, and statistics estimated for it."""

    name: ClassVar[str]  # in a plan

    start: PositiveShare = 0.6
    """Where the cycles begin, ℓ, as a share of the run."""
    period: float = 0.7
    """Length of the cosine, ℓ₀, in runs; at least `start`."""
    cycle: float = 0.1
    """Length of a cycle, c, as a share of the run."""
    batches: Count = 100
    """Batches over which the statistics of BatchNorm are estimated anew."""

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        found = super().problems(batch, unlabeled_batch)
        if any(isinstance(host, _Averaging) for host in self.hosts()):
            found.append("The host averages its weights along a cyclic learning rate already; once is enough.")
        if not self.start <= self.period < math.inf:
            found.append(f"period must be finite and at least start ({self.start}); given: {self.period}.")
        if not 0 < self.cycle <= self.start:
            found.append(f"cycle must be positive and at most start ({self.start}); given: {self.cycle}.")
        return found

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = super().init(net, task)
        memory.average = copy.deepcopy(net).requires_grad_(False)
        memory.register_buffer("count", torch.zeros((), dtype=torch.long))
        return memory

    def schedule(self, step: int, steps: int) -> float:
        start, cycle = _whole(self.start, steps), _whole(self.cycle, steps)
        place = step if step < start else start - cycle + (step - start) % cycle
        return 0.5 * (1 + math.cos(math.pi * place / (self.period * steps)))

    def schedule_words(self, steps: int) -> str:
        start, cycle = _whole(self.start, steps), _whole(self.cycle, steps)
        return f"cycles of {self.name}, {cycle:,} long from {start:,} on"

    @abc.abstractmethod
    def averages_after(self, done: int, steps: int) -> bool:
        """Whether the weights after `done` steps enter the mean."""

    def update(self, net: nn.Module, memory: nn.Module, clock: Clock) -> None:
        super().update(net, memory, clock)
        if self.averages_after(clock.step + 1, clock.steps):
            count = memory.get_buffer("count")
            average_into(memory.get_submodule("average"), net, 1 - 1 / (int(count) + 1))
            count += 1

    def predictor(self, net: nn.Module, memory: nn.Module, batches: Iterable[Batch]) -> nn.Module:
        if memory.get_buffer("count") == 0:
            return super().predictor(net, memory, batches)
        answer = copy.deepcopy(memory.get_submodule("average"))
        if any(isinstance(layer, _BatchNorm) and layer.track_running_stats for layer in answer.modules()):
            device = next(answer.parameters()).device
            with random_state_kept(device):
                seed_network(derive_seed("statistics of the average"), device)
                update_bn((_examples(batch) for batch in itertools.islice(batches, self.batches)), answer)
        return answer


@dataclass(frozen=True)
class SWA(_Averaging):
    """Averages the weights at the end of each cycle of the learning rate; everything else is the host's."""

    paper: ClassVar[str] = (
        "Izmailov, Podoprikhin, Garipov, Vetrov, Wilson: Averaging Weights Leads to Wider Optima and Better "
        "Generalization, 2018"
    )
    name: ClassVar[str] = "swa"

    @property
    def traits(self) -> Traits:
        return replace(self.host.traits, answers="average of the weights at the ends of cycles (SWA)")

    def averages_after(self, done: int, steps: int) -> bool:
        start, cycle = _whole(self.start, steps), _whole(self.cycle, steps)
        return done >= start and (done - start) % cycle == 0


@dataclass(frozen=True)
class FastSWA(_Averaging):
    """Averages the weights many times in each cycle of the learning rate; everything else is the host's."""

    paper: ClassVar[str] = (
        "Athiwaratkun, Finzi, Izmailov, Wilson: There Are Many Consistent Explanations of Unlabeled Data: Why You "
        "Should Average, 2019"
    )
    name: ClassVar[str] = "fast-swa"

    every: float = 0.01
    """How often the weights enter the mean, k, as a share of the run; at least each step."""

    @property
    def traits(self) -> Traits:
        return replace(self.host.traits, answers="average of the weights along cycles (fastSWA)")

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        found = super().problems(batch, unlabeled_batch)
        if not 0 < self.every <= self.cycle:
            found.append(f"every must be positive and at most cycle ({self.cycle}); given: {self.every}.")
        return found

    def averages_after(self, done: int, steps: int) -> bool:
        first = _whole(self.start, steps) - _whole(self.cycle, steps)
        return done >= first and (done - first) % _whole(self.every, steps) == 0


def _whole(share: float, steps: int) -> int:
    """A share of the run in whole steps, at least one: so there is a moment to average in the shortest run."""
    return max(round(share * steps), 1)


def _examples(batch: Batch) -> Tensor:
    return batch.unlabeled[0] if batch.unlabeled else batch.labeled[0]
