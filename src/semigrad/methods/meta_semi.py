"""Meta-Semi: A Meta-learning Approach for Semi-supervised Learning (Wang, Guo, Song, Huang; 2020).

    q = f(u'; θ'),  ℓ_j(θ) = CE(q_j, f(u_j; θ))                          soft targets from an average θ' of the weights
    θ̂(w) = θ − α Σ_j w_j ∇ℓ_j,  ∂L(x, y; θ̂)/∂w_j = −α ⟨∇L(θ̂), ∇ℓ_j⟩     what a row's weight does to the labeled loss
    w_j = 1[⟨g, ∇ℓ_j⟩ > 0],  g = ∇L(x, y; θ)                             "sign": the best weights in [0, 1], first order
    w_j = max(0, ⟨g, ∇ℓ_j⟩) / Σ_k max(0, ⟨g, ∇ℓ_k⟩)                      "proportional"
    L = CE(f(x), y) + w(t) (1/B) Σ_j w_j ℓ_j                             proportional: Σ_j w_j ℓ_j

Derived from the abstract of the paper, which says that the labeled loss is minimized by reweighting the losses of
unlabeled examples with soft pseudo-labels; neither the original's code nor its exact rule was at hand. The gradient of
the labeled loss belongs at θ̂(w), which depends on w; to first order in α it is g, at θ.

⟨g, ∇ℓ_j⟩ is the derivative of ℓ_j along g, so one forward-mode product gives all of them, exactly. It is taken in eval
mode. Targets are those of Mean Teacher, but in eval mode: noise in them would be noise in the weights.
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
from semigrad.core.divergences import CROSS_ENTROPY
from semigrad.core.ops import average_into
from semigrad.core.passes import eval_mode
from semigrad.metagrad import ForwardMode, pose
from semigrad.metagrad.meta_step import META_STEP, MetaStep
from semigrad.settings.fields import NotNegative, Positive


@dataclass(frozen=True)
class MetaSemi(Method):
    """Trains on those unlabeled examples whose soft target moves the weights so that the labeled loss falls."""

    paper: ClassVar[str] = (
        "Wang, Guo, Song, Huang: Meta-Semi: A Meta-learning Approach for Semi-supervised Learning, 2020 (derived from "
        "its abstract)"
    )

    rule: Literal["sign", "proportional"] = "sign"
    """Weights w_j of the unlabeled examples: 1 where the product is positive, or in proportion to its positive part."""
    horizon: Positive = 0.05
    """Memory of the average that gives targets: a share of the run up to 1, above that steps."""
    weight: NotNegative = 1.0
    """Weight w of the unlabeled term."""
    ramp: NotNegative = 0.2
    """Length of the Gaussian rise of w: a share of the run up to 1, above that steps."""

    @property
    def traits(self) -> Traits:
        return Traits(
            views=("weak", "weak"),
            guesses=True,
            soft_targets=True,
            divergence=CROSS_ENTROPY,
            meta_gradient=True,
            answers="running average of the weights (teacher)",
        )

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = nn.Module()
        memory.teacher = copy.deepcopy(net).requires_grad_(False)
        return memory

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        teacher, (u, other) = memory.get_submodule("teacher"), batch.unlabeled
        with torch.no_grad(), eval_mode(teacher):
            targets = teacher(other).softmax(1)
        with clock.masks("weights"), pose(net, batch.labeled[0], batch.labels, u, check=False) as problem:
            p, twice = ForwardMode().labels_and_gradient(problem)  # f(u; θ) and 2 J g
        step = MetaStep(net, batch.labeled[0], batch.labels, u, ForwardMode(), clock.lr, {"check": False})
        pull = targets / p.clamp(min=torch.finfo(p.dtype).tiny)  # −∂ℓ/∂p
        products = -(pull * twice / 2).sum(1)  # ⟨g, ∇ℓ_j⟩
        if self.rule == "sign":
            return {"targets": targets, "weights": (products > 0).to(p), META_STEP: step}
        helpful = products.clamp(min=0)
        share = helpful / helpful.sum().clamp(min=torch.finfo(p.dtype).tiny)
        return {"targets": targets, "weights": len(share) * share, META_STEP: step}  # the mean over rows makes it Σ w ℓ

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), u = batch.labeled, batch.unlabeled[self.traits.student_view]
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(x), batch.labels)
        with clock.masks("unlabeled"):
            losses = CROSS_ENTROPY.of_logits(net(u), guess["targets"])
        weight = self.weight * clock.gaussian_ramp(self.ramp)
        return {"labeled": labeled, "weighted": weight * (guess["weights"] * losses).mean()}

    def update(self, net: nn.Module, memory: nn.Module, clock: Clock) -> None:
        decay = 1 - 1 / max(length(self.horizon, clock.steps), 1)
        done = clock.step + 1
        average_into(memory.get_submodule("teacher"), net, min(1 - 1 / (done + 1), decay))

    def predictor(self, net: nn.Module, memory: nn.Module, batches: Iterable[Batch]) -> nn.Module:
        return memory.get_submodule("teacher")
