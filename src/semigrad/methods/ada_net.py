"""Semi-Supervised Learning by Augmented Distribution Alignment (Wang, Li, Gool; 2019).

    ỹ = f(u)                                                          eval mode, detached
    λ_i ~ Beta(γ, γ),  x' = λx + (1−λ)u,  y' = λy + (1−λ)ỹ            mixup across the two batches, pair by pair
    L = mean[λ_i CE(y'_i, f(x'_i))] + w mean CE((λ_i, 1−λ_i), D(h'_i))
    h' = features of x', through gradient reversal: ∂L/∂h' is multiplied by −ℓ(t),  ℓ(t) = 2 / (1 + e^(−10t)) − 1

D is a discriminator that tells labeled from unlabeled; it learns as usual, while the network learns to deceive it, from
not at all at the start (t = 0) to fully. Without mixup (a row of the paper's ablation) λ is 1 or 0, and this is

    L = CE(f(x), y) + w ½ [mean CE((1, 0), D(h_x)) + mean CE((0, 1), D(h_u))]

The factor λ_i of the cross-entropy is in the original code for CIFAR and SVHN (`weigh_by_lambda`). That code also
estimates BatchNorm's statistics anew before it tests; here they are those of training.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Task, Terms, Traits
from semigrad.core.divergences import CROSS_ENTROPY
from semigrad.core.ops import mix, one_hot, soft_cross_entropy
from semigrad.core.passes import eval_mode, feature_width, features, head
from semigrad.settings.fields import Count, NotNegative, Positive


def reverse_gradient(h: Tensor, factor: float) -> Tensor:
    """h itself; its gradient is multiplied by −factor on the way back."""
    passed = h.view_as(h)  # a hook on h would reverse what comes through the head too
    if passed.requires_grad:
        passed.register_hook(lambda gradient: -factor * gradient)  # type: ignore[no-untyped-call]
    return passed


@dataclass(frozen=True)
class AdaNet(Method):
    """Makes labeled and unlabeled examples look alike to a discriminator, with mixup across the two."""

    paper: ClassVar[str] = "Wang, Li, Gool: Semi-Supervised Learning by Augmented Distribution Alignment, 2019"

    mixup: bool = True
    """Interpolate labeled and unlabeled examples, pair by pair."""
    gamma: Positive = 1.0
    """Shape γ of the Beta(γ, γ) distribution of the mixing weights, with `mixup`."""
    weigh_by_lambda: bool = True
    """With mixup: weigh the cross-entropy of each example by its share λ of the labeled one, as the original code."""
    hidden: Count = 1024
    """Width of the two hidden layers of the discriminator."""
    weight: NotNegative = 1.0
    """Weight w of the domain term."""

    @property
    def traits(self) -> Traits:
        # without mixup, nothing is trained on pseudo-labels
        return Traits(guesses=self.mixup, soft_targets=self.mixup, divergence=CROSS_ENTROPY, mixes_batches=self.mixup)

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        width = feature_width(net, task.shape)
        memory = nn.Module()
        memory.discriminator = nn.Sequential(
            nn.Linear(width, self.hidden), nn.ReLU(),
            nn.Linear(self.hidden, self.hidden), nn.ReLU(),
            nn.Linear(self.hidden, 2),
        )  # fmt: skip
        return memory

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        if not self.mixup:
            return {}
        with torch.no_grad(), eval_mode(net):
            return {"targets": net(batch.unlabeled[0]).softmax(1)}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), (u,), y = batch.labeled, batch.unlabeled, batch.labels
        discriminator = memory.get_submodule("discriminator")
        factor = 2 / (1 + math.exp(-10 * clock.step / clock.steps)) - 1

        def domain(h: Tensor, labeled: Tensor) -> Tensor:
            """Cross-entropy of the discriminator, `labeled` being how much of each row is."""
            return soft_cross_entropy(
                discriminator(reverse_gradient(h, factor)), torch.stack([labeled, 1 - labeled], 1)
            )

        if not self.mixup:
            with clock.masks("labeled"):
                h_x = features(net, x)
                labeled = F.cross_entropy(head(net, h_x), y)
            with clock.masks("unlabeled"):
                h_u = features(net, u)
            # each batch by its own mean: the larger one must not tell by its size
            both = (domain(h_x, h_x.new_ones(len(x))) + domain(h_u, h_u.new_zeros(len(u)))) / 2
            return {"labeled": labeled, "domain": self.weight * both}

        targets = guess["targets"]
        lam = clock.draw("mixup", lambda rng, rows: rng.beta(self.gamma, self.gamma, rows), len(x)).to(targets)
        with clock.masks("labeled"):
            h = features(net, mix(lam, x, u))
            logits = head(net, h)
        mixed = mix(lam, one_hot(y, targets.shape[1], targets), targets)
        rows = CROSS_ENTROPY.of_logits(logits, mixed)
        share = lam if self.weigh_by_lambda else torch.ones_like(lam)
        return {"mixed": (share * rows).mean(), "domain": self.weight * domain(h, lam)}
