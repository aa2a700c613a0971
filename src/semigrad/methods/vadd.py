"""Adversarial Dropout for Supervised and Semi-Supervised Learning (Park, Park, Shin, Moon; 2018).

    h = features(x₂),  f(x₂, m) = softmax(head(h ⊙ m))
    J = h ⊙ ∂D(f(x₂, 1), f(x₁))/∂h                        = ∂D/∂m at m = 1; dropping entry i raises D by about −J_i
    m = 1, but 0 at the ⌊δ·dim⌋ most negative J_i < 0     then m ← m · dim/Σm
    L = CE(f(x), y) + λ(t) D(f(x₁), f(x₂, m)) + e H(f(x₁))

x₁ and x₂ are two views of the unlabeled examples. D(p, q) is KL(p ‖ q), or ‖p − q‖². f(x₁) is not detached: the
gradient flows into both branches; none flows through the choice of m. Where ⌊δ·dim⌋ is 0 (fewer than 20 features at
the default δ) nothing is dropped, and the term is that of a Π-model; so too for a row where nothing raises D.

As in the original code, all passes are in train mode and move the running statistics, but for the search (the modifier
leaves them to its host), the search starts from m = 1 where the paper says a random mask, and its KL is the other way
round than that of the loss. Not as there: it cuts at the (k+1)-th value, so that ties drop fewer entries than allowed,
here the k best are dropped, the first of equal ones; its squared error is averaged over the C classes too, so its λ of
25 is 25/C here; its entropy term is always on (e = 1), which hurts where labels are few; its fixed seeds suggest one
dropout mask for x₁ and x₂, here each pass has its own, as in the Π-model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Batch, Clock, Guess, Method, Modifier, Terms, Traits
from semigrad.core.divergences import kl_of_logits
from semigrad.core.ops import entropy, squared_error
from semigrad.core.passes import features, head, statistics_kept, watch
from semigrad.settings.fields import NotNegative, ShareBelowOne

Distance = Literal["kl", "squared"]


def _distance(distance: Distance, first: Tensor, second: Tensor) -> Tensor:
    """D(p, q) of two batches of logits, the mean over the rows."""
    if distance == "kl":
        return kl_of_logits(first, second).mean()
    return squared_error(first.softmax(1), second.softmax(1))


def _adversarial_mask(net: nn.Module, h: Tensor, target: Tensor, delta: float, distance: Distance) -> Tensor:
    """m (B, dim), scaled to a sum of dim: at most ⌊δ·dim⌋ features of a row are 0, those that raise D most."""
    h, dim = h.detach().requires_grad_(), h.shape[1]
    with statistics_kept(net):  # the search moves none, where the head has some
        distance_to_target = _distance(distance, head(net, h), target.detach())
    (slope,) = torch.autograd.grad(distance_to_target, h)
    influence = h.detach() * slope  # J
    limit = math.floor(delta * dim + 1e-9)  # 0.29 · 100 is 28.999… in floating point
    worst = influence.argsort(dim=1, stable=True)[:, :limit]
    dropped = torch.zeros_like(influence, dtype=torch.bool).scatter(1, worst, True) & (influence < 0)
    mask = (~dropped).to(h)
    return mask * (dim / mask.sum(1, keepdim=True))


def _term(net: nn.Module, target: Tensor, x2: Tensor, delta: float, distance: Distance, clock: Clock) -> Tensor:
    """D(f(x₁), f(x₂, m)), `target` being the logits of x₁."""
    with clock.masks("adversarial dropout"):
        h = features(net, x2)
        logits = head(net, h * _adversarial_mask(net, h, target, delta, distance))
    return _distance(distance, target, logits)


@dataclass(frozen=True)
class VAdD(Method):
    """The prediction must not change when the features that matter most for the change are dropped."""

    paper: ClassVar[str] = "Park, Park, Shin, Moon: Adversarial Dropout, 2018"

    delta: ShareBelowOne = 0.05
    """Largest share δ of the features of an example that is dropped."""
    distance: Distance = "kl"
    """D between two predictions: KL, or squared error summed over the classes."""
    entropy: NotNegative = 0.0
    """Weight e of the entropy of f(x₁), within `weight`; it has no ramp. The original's is 1."""
    weight: NotNegative = 1.0
    """Weight of both unlabeled terms, the largest value of λ."""
    ramp: NotNegative = 0.2
    """Length of the Gaussian rise of λ: a share of the run up to 1, above that steps."""

    @property
    def traits(self) -> Traits:
        return Traits(views=("weak", "weak"), guesses=True, student_view=1)  # not soft_targets: they have a gradient

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        with clock.masks("first"):
            first = net(batch.unlabeled[0])
        return {"targets": first.detach().softmax(1), "first": first}

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        (x,), (_, x2), first = batch.labeled, batch.unlabeled, guess["first"]
        with clock.masks("labeled"):
            terms = {"labeled": F.cross_entropy(net(x), batch.labels)}
        weight = self.weight * clock.gaussian_ramp(self.ramp)
        terms["adversarial_dropout"] = weight * _term(net, first, x2, self.delta, self.distance, clock)
        if self.entropy:
            terms["entropy"] = self.weight * self.entropy * entropy(first).mean()
        return terms


@dataclass(frozen=True)
class VAdDTerm(Modifier):
    """Adds the term of adversarial dropout to a host: x₁ is the view its student sees, x₂ another one."""

    paper: ClassVar[str] = VAdD.paper

    delta: ShareBelowOne = 0.05
    """Largest share δ of the features of an example that is dropped."""
    distance: Distance = "kl"
    """D between two predictions: KL, or squared error summed over the classes."""
    weight: NotNegative = 1.0
    """Weight of the term, the largest value of λ."""
    ramp: NotNegative = 0.2
    """Length of the Gaussian rise of λ: a share of the run up to 1, above that steps."""

    @property
    def traits(self) -> Traits:
        return replace(self.host.traits, views=(*self.host.traits.views, "weak"))

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        found = super().problems(batch, unlabeled_batch)
        if not self.host.traits.views:
            found.append(f"vadd needs unlabeled examples; {type(self.host).__name__} looks at none.")
        if any(isinstance(host, VAdD | VAdDTerm) for host in self.hosts()):
            found.append(f"{type(self.host).__name__} has the term of vadd already; it can be there only once.")
        return found

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        x1, x2 = batch.unlabeled[self.traits.student_view], batch.unlabeled[-1]
        with watch(net) as watched:
            terms = super().loss(net, memory, batch, guess, clock)
        seen = watched.of(x1)
        with statistics_kept(net):
            with clock.masks("first"):
                first = net(x1) if seen is None else seen.logits  # the host's own pass where there was one
            term = _term(net, first, x2, self.delta, self.distance, clock)
        return {**terms, "adversarial_dropout": self.weight * clock.gaussian_ramp(self.ramp) * term}
