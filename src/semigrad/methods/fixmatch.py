"""FixMatch: Simplifying Semi-Supervised Learning with Consistency and Confidence (Sohn, Berthelot, Li, Zhang, Carlini,
Cubuk, Kurakin, Zhang, Raffel; NeurIPS 2020).

    q = f(weak(u)), detached
    L = CE(f(x), y) + w (1/B_u) Σ_i 1[max q_i ≥ τ] CE(argmax q_i, f(strong(u_i)))       mean over all rows

The original runs labeled, weak and strong rows through the network in one pass. Here targets come before the loss, so
the weak rows have a train-mode pass of their own, which moves no running statistics, and labeled and strong rows share
the other (`joint`). The paper has 7 unlabeled rows for each labeled one and answers with an average of the weights:
both belong to the run. Its learning rate, cos(7πk/16K), is a schedule of the run too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Terms, Traits
from semigrad.core.divergences import CROSS_ENTROPY
from semigrad.core.ops import one_hot
from semigrad.core.passes import both_batches, statistics_kept
from semigrad.settings.fields import NotNegative


@dataclass(frozen=True)
class FixMatch(Method):
    """Where the network is sure of a weakly augmented image, it learns its class from a strongly augmented one."""

    paper: ClassVar[str] = (
        "Sohn, Berthelot, Li, Zhang, Carlini, Cubuk, Kurakin, Zhang, Raffel: FixMatch: Simplifying Semi-Supervised "
        "Learning with Consistency and Confidence, 2020"
    )

    threshold: NotNegative = 0.95
    """Confidence τ from which on a row counts."""
    weight: NotNegative = 1.0
    """Weight w (λ_u) of the unlabeled term."""
    ramp: NotNegative = 0.0
    """Length of the linear rise of w: a share of the run up to 1, above that steps; the paper has none."""
    joint: bool = True
    """Labeled and strong rows share one pass and its batch statistics, as in the original code."""

    @property
    def traits(self) -> Traits:
        return Traits(
            views=("weak", "strong"),
            guesses=True,
            soft_targets=True,
            student_view=1,
            divergence=CROSS_ENTROPY,
        )

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        weak, _ = batch.unlabeled
        with torch.no_grad(), clock.masks("weak"), statistics_kept(net):
            q = net(weak).softmax(1)
        confidence, best = q.max(1)
        return {"targets": one_hot(best, q.shape[1], q), "weights": (confidence >= self.threshold).to(q)}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), (_, strong) = batch.labeled, batch.unlabeled
        logits, strong_logits = both_batches(net, x, strong, clock, self.joint)
        losses = CROSS_ENTROPY.of_logits(strong_logits, guess["targets"])  # soft: a modifier may adapt the targets
        weight = self.weight * clock.ramp(self.ramp)
        return {
            "labeled": F.cross_entropy(logits, batch.labels),
            "consistency": weight * (guess["weights"] * losses).mean(),
        }
