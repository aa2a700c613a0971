"""Labeled-only training, the baseline of every table; with all labels given, the fully-supervised bound.

    L = CE(f(x), (1 − s) y + s / C)        s = 0 where labels are not smoothed

With strongly augmented labeled examples it is the baseline that tells what unlabeled data give from what augmentation
gives: methods with strong views must beat this one.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Terms, Traits
from semigrad.settings.fields import ShareBelowOne


@dataclass(frozen=True)
class Supervised(Method):
    """Cross-entropy on the labeled examples; unlabeled ones are not looked at."""

    strong: bool = False
    """Augment the labeled examples strongly (RandAugment and cutout) instead of weakly."""
    smoothing: ShareBelowOne = 0.0
    """Share of each label that is spread evenly over all classes."""

    @property
    def traits(self) -> Traits:
        return Traits(views=(), labeled_views=("strong" if self.strong else "weak",))

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,) = batch.labeled
        with clock.masks("labeled"):
            return {"labeled": F.cross_entropy(net(x), batch.labels, label_smoothing=self.smoothing)}
