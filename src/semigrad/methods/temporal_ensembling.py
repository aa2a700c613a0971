"""Temporal Ensembling for Semi-Supervised Learning (Laine, Aila; 2017).

    z̃_i = Z_i / (1 − α^{n_i})                                    n_i visits so far; none: no target
    L = CE(f(x), y) + w(t) (1/B) Σ_i 1[n_i > 0] ‖f(u_i) − z̃_i‖²
    Z_i ← α Z_i + (1 − α) f(u_i),  n_i ← n_i + 1                 the noisy prediction just trained on
    w(t) = w exp(−5 (1 − t/T)²)                                  until t = T, then w

The original writes all Z at the end of an epoch and corrects the bias by the number of epochs. Here there are no
epochs: each row is written when it is visited and counts its own visits, which is the same where an epoch visits every
example once. An example that stands twice in a batch makes one visit with the mean of its predictions. The original
averages the squared error over the classes and over labeled images too: its weights (30 or 100 times the share of
labeled examples) are to be divided by the number of classes with `whole_batch`; without it, by that number times the
share of labeled rows in its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Task, Terms, Traits
from semigrad.core.passes import both_batches
from semigrad.settings.fields import NotNegative, ShareBelowOne


@dataclass(frozen=True)
class TemporalEnsembling(Method):
    """The prediction for an example must agree with the average of those at its earlier visits."""

    paper: ClassVar[str] = "Laine, Aila: Temporal Ensembling for Semi-Supervised Learning, 2017"

    keep: ShareBelowOne = 0.6
    """Share α of the average of an example's predictions that stays at each of its visits."""
    weight: NotNegative = 1.0
    """Weight w of the squared error, summed over the classes, at the end of the ramp."""
    ramp: NotNegative = 0.2
    """Length T of the Gaussian rise of w: a share of the run up to 1, above that steps."""
    whole_batch: bool = False
    """Divide the labeled loss by the whole batch, labeled and unlabeled, as the original code does."""
    joint: bool = False
    """Labeled and unlabeled rows share one pass and its batch statistics, as in the original code."""

    @property
    def traits(self) -> Traits:
        return Traits(guesses=True, soft_targets=True)

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = nn.Module()
        memory.register_buffer("ensemble", torch.zeros(task.examples, len(task.classes)))
        memory.register_buffer("visits", torch.zeros(task.examples, dtype=torch.long))
        return memory

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        z = memory.get_buffer("ensemble")[batch.unlabeled_index]
        visits = memory.get_buffer("visits")[batch.unlabeled_index].to(z)
        visited = visits > 0
        corrected = z / (1 - self.keep ** visits.clamp(min=1))[:, None]
        uniform = torch.full_like(z, 1 / z.shape[1])  # it has no weight, but must be on the simplex
        return {"targets": torch.where(visited[:, None], corrected, uniform), "weights": visited.to(z)}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), (u,) = batch.labeled, batch.unlabeled
        labeled_logits, logits = both_batches(net, x, u, clock, self.joint)
        labeled, p = F.cross_entropy(labeled_logits, batch.labels), logits.softmax(1)
        if self.whole_batch:
            labeled = labeled * len(x) / (len(x) + len(u))
        # here and not in `update`, which does not see the predictions; the targets are copies made before
        self.remember(memory, batch.unlabeled_index, p.detach())
        weight = self.weight * clock.gaussian_ramp(self.ramp)
        distance = guess["weights"] * self.traits.divergence(p, guess["targets"])
        return {"labeled": labeled, "consistency": weight * distance.mean()}

    def remember(self, memory: nn.Module, index: Tensor, p: Tensor) -> None:
        """One visit of each example in the batch, with the mean of its predictions."""
        ensemble, visits = memory.get_buffer("ensemble"), memory.get_buffer("visits")
        rows, place, count = torch.unique(index, return_inverse=True, return_counts=True)
        total = ensemble.new_zeros(len(rows), p.shape[1]).index_add_(0, place, p.to(ensemble))
        mean = total / count[:, None]
        ensemble[rows] = self.keep * ensemble[rows] + (1 - self.keep) * mean
        visits[rows] += 1
