"""Pseudo-Label: The Simple and Efficient Semi-Supervised Learning Method for Deep Neural Networks (Lee; 2013).

    q_i = one-hot of argmax_c f_c(u_i),  m_i = 1[max_c f_c(u_i) ≥ τ]
    L = CE(f(x), y) + w(t) (1/B) Σ_i m_i CE(f(u_i), q_i)
    w(t) = w · min(t/T, 1)

The labels are made anew in every step, by a pass in eval mode: they are then what the network answers, whatever the
dropout mask and the other rows of the batch, and no running statistics move. In the paper w is 0 for a first stretch of
epochs, then rises linearly; here it rises from the start, over a share of the run. The paper has no threshold τ: 0
counts every row. The mean is over all rows, also those below τ.
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
from semigrad.core.passes import eval_mode
from semigrad.settings.fields import NotNegative, Share


@dataclass(frozen=True)
class PseudoLabel(Method):
    """The network's own answer, as a hard label, is trained on with a rising weight."""

    paper: ClassVar[str] = (
        "Lee: Pseudo-Label: The Simple and Efficient Semi-Supervised Learning Method for Deep Neural Networks, 2013"
    )

    weight: NotNegative = 1.0
    """Weight w of the cross-entropy to the pseudo-labels, at the end of the ramp."""
    ramp: NotNegative = 0.4
    """Length T of the linear rise of w: a share of the run up to 1, above that steps."""
    threshold: Share = 0.0
    """Confidence τ below which a row does not count."""

    @property
    def traits(self) -> Traits:
        return Traits(guesses=True, soft_targets=True, divergence=CROSS_ENTROPY)

    @torch.no_grad()
    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        with eval_mode(net):
            p = net(batch.unlabeled[0]).softmax(1)
        confidence, answer = p.max(1)
        return {"targets": one_hot(answer, p.shape[1], p), "weights": (confidence >= self.threshold).to(p)}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), (u,) = batch.labeled, batch.unlabeled
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(x), batch.labels)
        with clock.masks("unlabeled"):
            losses = CROSS_ENTROPY.of_logits(net(u), guess["targets"])
        counted = (guess["weights"] * losses).mean()
        return {"labeled": labeled, "pseudo-label": self.weight * clock.ramp(self.ramp) * counted}
