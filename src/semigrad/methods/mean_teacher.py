"""Mean teachers are better role models: Weight-averaged consistency targets improve semi-supervised deep learning
results (Tarvainen, Valpola; 2017).

    L = CE(f(x; θ), y) + w(t) (1/B) Σ_i ‖f(u'_i; θ) − f(u''_i; θ')‖²      no gradient to θ'
    θ' ← α_t θ' + (1 − α_t) θ,  α_t = min(1 − 1/(t + 1), α)               after the t-th step, t = 1, 2, ...
    w(t) = w exp(−5 (1 − t/T)²)                                           until t = T, then w

θ' is the plain mean of the initial weights and all later ones until α binds. The original's α of 0.99 to 0.9997
averages over 100 to 3,000 steps whatever the length of the run, which in a short one is nearly all of it; here the
length of the teacher's memory is the setting, α = 1 − 1/length, and 0 where that is below a step. The teacher of the
original in PyTorch is initialized on its own; here it starts as a copy.

The teacher runs in train mode, with its own dropout and batch statistics, and its running statistics are of its own
passes: the average is over parameters alone. The original averages over the classes and over labeled images too: its
weights of the squared error are to be divided by the number of classes, those of KL are not, and without `whole_batch`
all by the share of labeled rows in its batch. Its second head for consistency is left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Task, Terms, Traits, length
from semigrad.core.divergences import KL_DIVERGENCE, SQUARED_ERROR
from semigrad.core.passes import both_batches
from semigrad.settings.fields import NotNegative, Positive


@dataclass(frozen=True)
class MeanTeacher(Method):
    """The network must agree with a teacher whose weights are the average of its own."""

    paper: ClassVar[str] = (
        "Tarvainen, Valpola: Mean teachers are better role models: Weight-averaged consistency targets improve "
        "semi-supervised deep learning results, 2017"
    )

    horizon: Positive = 0.05
    """Length of the teacher's memory, 1/(1 − α): a share of the run up to 1, above that steps."""
    distance: Literal["squared", "kl"] = "squared"
    """Distance to the teacher's prediction: squared error, or KL(teacher ‖ student), as the original on ImageNet."""
    weight: NotNegative = 1.0
    """Weight w of the distance, squared error summed over the classes, at the end of the ramp."""
    ramp: NotNegative = 0.2
    """Length T of the Gaussian rise of w: a share of the run up to 1, above that steps."""
    whole_batch: bool = False
    """Divide the labeled loss by the whole batch, labeled and unlabeled, as the original code does."""
    joint: bool = False
    """Labeled and unlabeled rows share one pass and its batch statistics, as in the original code."""

    @property
    def traits(self) -> Traits:
        return Traits(
            views=("weak", "weak"),
            guesses=True,
            soft_targets=True,
            divergence=SQUARED_ERROR if self.distance == "squared" else KL_DIVERGENCE,
            answers="teacher: average of the student's weights",
        )

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = nn.Module()
        memory.teacher = copy.deepcopy(net).requires_grad_(False)
        return memory

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        with torch.no_grad(), clock.masks("teacher"):
            return {"targets": memory.get_submodule("teacher")(batch.unlabeled[1]).softmax(1)}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), u = batch.labeled, batch.unlabeled[0]
        labeled_logits, logits = both_batches(net, x, u, clock, self.joint)
        labeled = F.cross_entropy(labeled_logits, batch.labels)
        if self.whole_batch:
            labeled = labeled * len(x) / (len(x) + len(u))
        distance = self.traits.divergence.of_logits(logits, guess["targets"])
        weight = self.weight * clock.gaussian_ramp(self.ramp)
        return {"labeled": labeled, "consistency": weight * distance.mean()}

    @torch.no_grad()
    def update(self, net: nn.Module, memory: nn.Module, clock: Clock) -> None:
        done = clock.step + 1
        new = max(1 / (done + 1), min(1 / length(self.horizon, clock.steps), 1.0))  # 1 − α_t
        torch._foreach_lerp_(list(memory.get_submodule("teacher").parameters()), list(net.parameters()), new)

    def predictor(self, net: nn.Module, memory: nn.Module, batches: Iterable[Batch]) -> nn.Module:
        return memory.get_submodule("teacher")
