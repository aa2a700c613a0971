"""MixMatch: A Holistic Approach to Semi-Supervised Learning (Berthelot, Carlini, Goodfellow, Papernot, Oliver, Raffel;
NeurIPS 2019).

    q = sharpen((1/K) Σ_k f(u_k), T), detached                                one target for K weak views of a row
    W = shuffle(X ∪ U),  X = {(x, y)},  U = {(u_k, q)}                        the pool of all rows
    λ' = max(λ, 1−λ),  λ ~ Beta(α, α),  X' ∪ U' = λ'(X ∪ U) + (1−λ')W         every row stays closer to itself
    L = CE(y', f(x')) + w(t) (1/KB) Σ ‖q' − f(u')‖²                           w(t) rises linearly

As in the original code, rows are exchanged between the K + 1 batches before the passes, so that batch statistics are
of labeled and unlabeled rows alike, only the first pass moves the running statistics, and targets come from the network
in train mode. The original averages the squared error over the classes: its weights (CIFAR-10: 75, SVHN: 250) are to be
divided by their number, and w rises over 1.6 % of a run of a million steps, which is longer here. With α → 0 and w = 0
the loss is the cross-entropy of the labeled rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from semigrad.core import Batch, Clock, Guess, Method, Terms, Traits
from semigrad.core.ops import interleave, mix, one_hot, sharpen, soft_cross_entropy, squared_error
from semigrad.core.passes import statistics_kept
from semigrad.settings.fields import Count, NotNegative, Positive


@dataclass(frozen=True)
class MixMatch(Method):
    """Sharpened mean predictions over weak views as targets, and mixup of all rows, labeled and unlabeled."""

    paper: ClassVar[str] = (
        "Berthelot, Carlini, Goodfellow, Papernot, Oliver, Raffel: MixMatch: A Holistic Approach to Semi-Supervised "
        "Learning, 2019"
    )

    copies: Count = 2
    """Number K of weak views of each unlabeled row."""
    temperature: Positive = 0.5
    """Temperature T of sharpening; 1 changes nothing."""
    alpha: Positive = 0.75
    """Shape α of the Beta(α, α) distribution of the mixing weights."""
    weight: NotNegative = 7.5
    """Weight w (λ_U) of the unlabeled term."""
    ramp: NotNegative = 0.2
    """Length of the linear rise of w: a share of the run up to 1, above that steps."""

    @property
    def traits(self) -> Traits:
        return Traits(views=("weak",) * self.copies, guesses=True, soft_targets=True, mixes_batches=True)

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        predictions = []
        for number, view in enumerate(batch.unlabeled):
            with torch.no_grad(), clock.masks(f"guess {number}"), statistics_kept(net):
                predictions.append(net(view).softmax(1))
        return {"targets": sharpen(torch.stack(predictions).mean(0), self.temperature)}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), targets = batch.labeled, guess["targets"]
        inputs = torch.cat([x, *batch.unlabeled])
        labels = torch.cat([one_hot(batch.labels, targets.shape[1], targets), *[targets] * self.copies])
        partner = clock.draw("shuffle", lambda rng, rows: rng.permutation(rows), len(inputs))
        lam = clock.draw("mixup", lambda rng, rows: rng.beta(self.alpha, self.alpha, rows), len(inputs))
        lam = torch.maximum(lam, 1 - lam)
        inputs, labels = mix(lam, inputs, inputs[partner]), mix(lam, labels, labels[partner])

        first, *others = interleave(torch.split(inputs, len(x)))
        with clock.masks("labeled"):
            passes = [net(first)]
        for number, rows in enumerate(others):
            with clock.masks(f"mixed {number}"), statistics_kept(net):
                passes.append(net(rows))
        logits, *unlabeled = interleave(passes)

        weight = self.weight * clock.ramp(self.ramp)
        return {
            "labeled": soft_cross_entropy(logits, labels[: len(x)]),
            "consistency": weight * squared_error(torch.cat(unlabeled).softmax(1), labels[len(x) :]),
        }
