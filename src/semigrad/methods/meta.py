"""The meta-gradient on top of another method's targets, which the paper leaves as future work.

    θ̃ = θ − α ∇θ (1/B) Σ Φ(f(u; θ), q)                      a step towards the host's targets q
    ∇q = −(α/B) · D_θ[∂Φ/∂q](θ) · g(θ̃),   q̂ = q − β ∇q      labeled gradient at θ̃, derivative at θ

A host's target is not f(u; θ), so the step moves the weights, and the closed form with g at θ would be wrong. u is the
view that the host trains on (the first, where it has one target for several), Φ the host's own loss with the weights of
its rows. The step is on u alone: without what the host does besides (its weight, ramp and other terms, MixMatch's
mixing). Targets of a cross-entropy or KL leave the plane Σq = 1 as they are adapted; they return to it before they are
projected. Where q = f(u; θ) this is the method of the paper without mixup.

After Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, AISTATS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from torch import Tensor, nn

from semigrad.core import Batch, Clock, Guess, Modifier, Traits
from semigrad.core.divergences import Divergence, Weighted
from semigrad.metagrad import OPERATORS, Mode, Projection, Scale
from semigrad.metagrad.meta_step import META_STEP, MetaStep
from semigrad.settings.fields import NotNegative


@dataclass(frozen=True)
class Meta(Modifier):
    """Adapts the targets of a host that has soft targets; everything else is the host's."""

    paper: ClassVar[str] = "Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, 2021"

    beta: NotNegative | Literal["lr"] = "lr"
    """Meta learning rate β; "lr" follows the learning rate."""
    scale: Scale = "printed"
    """Whether β is in Algorithm 2's scale, or in Equation 11's, which carries α/B."""
    operator: Literal["forward-mode", "unrolled", "finite-difference"] = "forward-mode"
    """How the meta-gradient is computed."""
    mode: Mode = "eval"
    """Mode of the network during the meta step."""
    project: Projection = "clip"
    """How new targets return to the simplex."""

    @property
    def traits(self) -> Traits:
        return replace(self.host.traits, adapts_targets=True, meta_gradient=True)

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        found = super().problems(batch, unlabeled_batch)
        name = type(self.host).__name__
        if not self.host.traits.soft_targets:
            found.append(f"meta adapts soft targets of unlabeled examples; {name} trains on none.")
        elif self.host.traits.adapts_targets:
            found.append(f"{name} has the meta-gradient already; meta on top of it makes no sense.")
        return found

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        guess = super().guess(net, memory, batch, clock)
        u = batch.unlabeled[self.host.traits.student_view]
        inner = inner_loss(self.traits.divergence, guess.get("weights"))
        step = MetaStep(
            net, batch.labeled[0], batch.labels, u, OPERATORS[self.operator](), clock.lr,
            {"mode": self.mode, "check": False, "inner": inner, "target": guess["targets"]},
        )  # fmt: skip
        with clock.masks("meta"):
            targets = step.pseudo_labels(clock.lr if self.beta == "lr" else self.beta, self.scale, self.project)
        return {**guess, "targets": targets, META_STEP: step}


def inner_loss(divergence: Divergence, weights: Tensor | None) -> Divergence:
    """Φ of a host with the weights of its rows, where it has some."""
    return divergence if weights is None else Weighted(divergence, weights)
