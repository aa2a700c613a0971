"""Virtual Adversarial Training: A Regularization Method for Supervised and Semi-Supervised Learning (Miyato, Maeda,
Koyama, Ishii; 2018).

    d ~ N(0, I);   K times:  d ← ∇_r KL(f(u) ‖ f(u + r)) at r = ξ d/‖d‖     power iteration on the Hessian at r = 0
    r = ε d/‖d‖                                                             one length ε for every example
    L = CE(f(x), y) + w (1/B) Σ KL(sg f(u) ‖ f(u + r))                      sg: no gradient

All passes over u share their dropout masks: with masks of their own the divergence is not 0 at r = 0, and the gradient
of that difference, of order 1, drowns the one looked for, of order ξ. They use batch statistics; only the labeled pass
moves the running ones.

The authors' ξ is 1e-6, which mostly disappears when added to a picture in single precision: what is added to a pixel is
below the spacing of the numbers there, and f(u + r) − f(u), from which the gradient is made, is rounding. At 0.01, the
default here, single and double precision give one direction, near that of ξ → 0, which at 1 it is not; where a network
has become all but certain, rounding shows there too, and the term is next to nothing.

ε is the length over a whole example, in units of the [0, 1] image; among features, in standard deviations of each, so
that nothing depends on whether a column is in meters or in miles. The authors' 3.5 for SVHN is in these too, their 8.0
for CIFAR-10 in those of ZCA-whitened images. u + r is not cut to [0, 1], as in their code, which also estimates
BatchNorm's statistics anew before it tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Task, Terms, Traits
from semigrad.core.divergences import kl_of_logits
from semigrad.core.ops import unit_rows
from semigrad.core.passes import exact_gradients, statistics_kept
from semigrad.settings.fields import Count, NotNegative, Positive


@dataclass(frozen=True)
class VAT(Method):
    """The prediction must not change in the direction of the input in which it changes most."""

    paper: ClassVar[str] = "Miyato, Maeda, Koyama, Ishii: Virtual Adversarial Training, 2018"

    epsilon: NotNegative = 1.0
    """Length ε of the perturbation of one example, in units of the [0, 1] image or of features' deviations."""
    xi: Positive = 0.01
    """Length ξ of the step at which the power iteration takes its gradient, in the same units."""
    iterations: Count = 1
    """Number K of power iterations; each costs a pass forward and one back."""
    weight: NotNegative = 1.0
    """Weight w of the adversarial term."""
    ramp: NotNegative = 0.0
    """Length of the linear rise of w: a share of the run up to 1, above that steps."""

    @property
    def traits(self) -> Traits:
        return Traits(guesses=True)  # not soft_targets: the network is trained on u + r, which is no view

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = nn.Module()
        memory.register_buffer("unit", task.unit, persistent=False)
        return memory

    @torch.no_grad()
    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        (u,) = batch.unlabeled
        with clock.masks("clean"), statistics_kept(net):
            clean = net(u)
        return {"targets": clean.softmax(1), "clean": clean}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), (u,) = batch.labeled, batch.unlabeled
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(x), batch.labels)
        r = self.perturbation(net, memory, u, guess["clean"], clock)
        with clock.masks("clean"), statistics_kept(net):
            logits = net(u + r)
        weight = self.weight * clock.ramp(self.ramp)
        return {"labeled": labeled, "adversarial": weight * kl_of_logits(guess["clean"], logits).mean()}

    def perturbation(self, net: nn.Module, memory: nn.Module, u: Tensor, clean: Tensor, clock: Clock) -> Tensor:
        """r of length ε for each row of u, whose logits are `clean`; 0 where the prediction does not depend on u."""
        unit = memory.get_buffer("unit")
        d = clock.draw("direction", lambda rng, rows: rng.standard_normal((rows, *u.shape[1:])), len(u)).to(u)
        for _ in range(self.iterations):
            step = (self.xi * unit_rows(d)).requires_grad_()
            with clock.masks("clean"), statistics_kept(net), exact_gradients():
                distance = kl_of_logits(clean, net(u + unit * step)).sum()
            (d,) = torch.autograd.grad(distance, step)
        return self.epsilon * (unit * unit_rows(d))
