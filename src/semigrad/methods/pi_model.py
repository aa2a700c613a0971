"""Temporal Ensembling for Semi-Supervised Learning (Laine, Aila; 2017): the Π-model.

    L = CE(f(x), y) + w(t) (1/B) Σ_i ‖f(u'_i) − f(u''_i)‖²      two views, two dropout masks, one network
    w(t) = w exp(−5 (1 − t/T)²)                                 until t = T, then w

Gradients flow through both branches, as in the original code; `detach` stops them in the second, as later ports do.
Both run in train mode, and only the first moves BatchNorm's running statistics, for there too one branch alone does.
The original runs one mixed batch: it averages the squared error over labeled images too and over the C classes, and
divides the cross-entropy by the whole batch. Its weights (100 times the share of labeled examples: 8 on CIFAR-10 with
4,000 labels) are to be divided by C with `whole_batch`; without it, by C times the share of labeled rows in the batch
(10 there). It also mirrors both views alike and keeps w at 0 in the first epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Terms, Traits
from semigrad.core.passes import both_batches, statistics_kept
from semigrad.settings.fields import NotNegative


@dataclass(frozen=True)
class PiModel(Method):
    """Two noisy passes of one network over two views of an example must agree."""

    paper: ClassVar[str] = "Laine, Aila: Temporal Ensembling for Semi-Supervised Learning, 2017"

    weight: NotNegative = 1.0
    """Weight w of the squared error, summed over the classes, at the end of the ramp."""
    ramp: NotNegative = 0.2
    """Length T of the Gaussian rise of w: a share of the run up to 1, above that steps."""
    detach: bool = False
    """Stop the gradient in the second branch: its prediction is then a target."""
    whole_batch: bool = False
    """Divide the labeled loss by the whole batch, labeled and unlabeled, as the original code does."""
    joint: bool = False
    """Labeled and unlabeled rows share one pass and its batch statistics, as in the original code."""

    @property
    def traits(self) -> Traits:
        # what carries a gradient cannot be replaced
        return Traits(views=("weak", "weak"), guesses=True, soft_targets=self.detach)

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        with clock.masks("second branch"), statistics_kept(net):
            targets = net(batch.unlabeled[1]).softmax(1)
        return {"targets": targets.detach() if self.detach else targets}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), u = batch.labeled, batch.unlabeled[0]
        labeled_logits, logits = both_batches(net, x, u, clock, self.joint)
        labeled, p = F.cross_entropy(labeled_logits, batch.labels), logits.softmax(1)
        if self.whole_batch:
            labeled = labeled * len(x) / (len(x) + len(u))
        weight = self.weight * clock.gaussian_ramp(self.ramp)
        return {"labeled": labeled, "consistency": weight * self.traits.divergence(p, guess["targets"]).mean()}
