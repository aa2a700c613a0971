"""Labeled-only training, the baseline of every table; with all labels given, the fully-supervised bound.

L = CE(f(x), y)
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Terms, Traits


@dataclass(frozen=True)
class Supervised(Method):
    """Cross-entropy on the labeled examples; unlabeled ones are not looked at."""

    @property
    def traits(self) -> Traits:
        return Traits(views=())

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,) = batch.labeled
        with clock.masks("labeled"):
            return {"labeled": F.cross_entropy(net(x), batch.labels)}
