"""How far predictions are from labels, as values that know their own derivatives: squared error, KL, cross entropy.

Φ(p, q) is one number for each row of predictions p and labels q, both (B, classes). A label is pulled along ∂Φ/∂q, and
the meta-gradient is how that pull changes as the prediction moves: `pull_along` is D_p[∂Φ/∂q]·t."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


class Divergence(abc.ABC):
    """Φ(p, q). Derivatives are those of `__call__` by differentiation, unless a subclass has them at hand."""

    @abc.abstractmethod
    def __call__(self, p: Tensor, q: Tensor) -> Tensor:
        """(B, classes) each -> (B,)."""

    def of_logits(self, logits: Tensor, q: Tensor) -> Tensor:
        """Φ(softmax(logits), q); ours have a slope also where a probability has become 0."""
        return self(logits.softmax(1), q)

    def pull(self, p: Tensor, q: Tensor) -> Tensor:
        """∂Φ/∂q, (B, classes)."""
        by_label: Tensor = torch.func.grad(lambda labels: self(p, labels).sum())(q)
        return by_label

    def pull_along(self, p: Tensor, q: Tensor, tangent: Tensor) -> Tensor:
        """The derivative of the pull as p moves along a tangent."""
        change: Tensor = torch.func.jvp(lambda moved: self.pull(moved, q), (p,), (tangent,))[1]
        return change

    def pull_between(self, start: Tensor, end: Tensor, q: Tensor) -> Tensor:
        """What the pull gains as p goes from one prediction to another."""
        return self.pull(end, q) - self.pull(start, q)


@dataclass(frozen=True)
class SquaredError(Divergence):
    """‖p − q‖², summed over the classes."""

    def __call__(self, p: Tensor, q: Tensor) -> Tensor:
        return (p - q).square().sum(1)

    def pull(self, p: Tensor, q: Tensor) -> Tensor:
        return 2 * (q - p)

    def pull_along(self, p: Tensor, q: Tensor, tangent: Tensor) -> Tensor:
        return -2 * tangent

    def pull_between(self, start: Tensor, end: Tensor, q: Tensor) -> Tensor:
        return 2 * (start - end)


@dataclass(frozen=True)
class CrossEntropy(Divergence):
    """−Σ_c q_c log p_c; a probability that has become 0 has no logarithm and counts as the smallest number."""

    def __call__(self, p: Tensor, q: Tensor) -> Tensor:
        return -(q * log_of(p)).sum(1)

    def of_logits(self, logits: Tensor, q: Tensor) -> Tensor:
        return -(q * logits.log_softmax(1)).sum(1)

    def pull(self, p: Tensor, q: Tensor) -> Tensor:
        return -log_of(p)

    def pull_along(self, p: Tensor, q: Tensor, tangent: Tensor) -> Tensor:
        return torch.where(p >= torch.finfo(p.dtype).tiny, -tangent / p, 0)


@dataclass(frozen=True)
class KL(Divergence):
    """KL(q ‖ p) = Σ_c q_c (log q_c − log p_c); 0·log 0 is 0, with a finite slope."""

    def __call__(self, p: Tensor, q: Tensor) -> Tensor:
        return relative_entropy(q, log_of(q), log_of(p))

    def of_logits(self, logits: Tensor, q: Tensor) -> Tensor:
        return relative_entropy(q, log_of(q), logits.log_softmax(1))

    def pull(self, p: Tensor, q: Tensor) -> Tensor:
        return log_of(q) + (q >= torch.finfo(q.dtype).tiny).to(q) - log_of(p)

    def pull_along(self, p: Tensor, q: Tensor, tangent: Tensor) -> Tensor:
        return CROSS_ENTROPY.pull_along(p, q, tangent)  # the two differ by what does not depend on p


@dataclass(frozen=True, eq=False)
class Weighted(Divergence):
    """w_i Φ(p_i, q_i): another divergence whose rows count so much, weights (B,)."""

    divergence: Divergence
    weights: Tensor

    def __call__(self, p: Tensor, q: Tensor) -> Tensor:
        return self.weights * self.divergence(p, q)

    def of_logits(self, logits: Tensor, q: Tensor) -> Tensor:
        return self.weights * self.divergence.of_logits(logits, q)

    def pull(self, p: Tensor, q: Tensor) -> Tensor:
        return self.weights[:, None] * self.divergence.pull(p, q)

    def pull_along(self, p: Tensor, q: Tensor, tangent: Tensor) -> Tensor:
        return self.weights[:, None] * self.divergence.pull_along(p, q, tangent)

    def pull_between(self, start: Tensor, end: Tensor, q: Tensor) -> Tensor:
        return self.weights[:, None] * self.divergence.pull_between(start, end, q)


@dataclass(frozen=True)
class Custom(Divergence):
    """A function of one's own, differentiated."""

    function: Callable[[Tensor, Tensor], Tensor]

    def __call__(self, p: Tensor, q: Tensor) -> Tensor:
        return self.function(p, q)


SQUARED_ERROR = SquaredError()
CROSS_ENTROPY = CrossEntropy()
KL_DIVERGENCE = KL()


def as_divergence(given: Divergence | Callable[[Tensor, Tensor], Tensor]) -> Divergence:
    """One of ours as it is; any other function of (p, q) with derivatives by differentiation."""
    return given if isinstance(given, Divergence) else Custom(given)


def relative_entropy(q: Tensor, log_q: Tensor, log_p: Tensor) -> Tensor:
    """KL(q ‖ p) = Σ_c q_c (log q_c − log p_c), one number for each row."""
    return (q * (log_q - log_p)).sum(1)


def kl_of_logits(target_logits: Tensor, logits: Tensor) -> Tensor:
    """KL(q ‖ p) where both are given as logits, with gradients into both."""
    log_q = target_logits.log_softmax(1)
    return relative_entropy(log_q.exp(), log_q, logits.log_softmax(1))


def log_of(probabilities: Tensor) -> Tensor:
    """The logarithm; a probability that has become 0 counts as the smallest number."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()
