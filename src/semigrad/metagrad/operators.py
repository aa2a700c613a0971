"""Four ways to the meta-gradient.

All share d = (B/α)·∇q = −D_θ[∂Φ/∂q (f(u; θ), q)]·g, which is 2 J g for squared error, and is what Algorithm 2 calls
∇ỹ. With a step s the new label is ŷ = q − s·d."""

from __future__ import annotations

import abc
import warnings
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.autograd import forward_ad

from semigrad.core.divergences import SQUARED_ERROR
from semigrad.metagrad.problem import Problem, as_leaves, gradients


class Operator(Protocol):
    """One way to turn a problem and a step s into ŷ = q − s·d, before projection."""

    def labels(self, problem: Problem, step: float) -> Tensor: ...


class _ByGradient(abc.ABC):
    """An operator that knows the labels q and d."""

    def gradient(self, problem: Problem) -> Tensor:
        """d, (B_u, classes)."""
        return self.labels_and_gradient(problem)[1]

    def labels(self, problem: Problem, step: float) -> Tensor:
        labels, d = self.labels_and_gradient(problem)
        return labels - step * d

    @abc.abstractmethod
    def labels_and_gradient(self, problem: Problem) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True)
class ForwardMode(_ByGradient):
    """d by one forward-mode product along g: exact, no ε, no graph kept, weights never touched."""

    fallback: bool = True
    """Where an operation has no forward-mode rule: warn once and use the double backward; else raise."""

    def labels_and_gradient(self, problem: Problem) -> tuple[Tensor, Tensor]:
        direction = problem.direction
        try:
            with torch.no_grad(), forward_ad.dual_level():
                duals = {
                    name: forward_ad.make_dual(p, direction[name])  # type: ignore[no-untyped-call]
                    for name, p in problem.parameters.items()
                }
                f, tangent = forward_ad.unpack_dual(problem.predict(duals))  # type: ignore[no-untyped-call]
        except NotImplementedError as reason:
            if not self.fallback:
                raise
            _warn_of_fallback(str(reason))
            return Unrolled().labels_and_gradient(problem)
        labels = f if problem.target is None else problem.target
        if tangent is None:
            return labels, torch.zeros_like(f)
        return labels, -problem.inner.pull_along(f, labels, tangent)


@dataclass(frozen=True)
class Unrolled(_ByGradient):
    """d as B times the gradient through the inner step: double backward, the reference.

    The step has the value that α gives it and the derivative of a step with rate 1, so that α = 0 is no special
    case."""

    def labels_and_gradient(self, problem: Problem) -> tuple[Tensor, Tensor]:
        leaves = as_leaves(problem.parameters)
        with torch.enable_grad():
            f = problem.predict(leaves)
            labels = (f if problem.target is None else problem.target).detach().requires_grad_()
            inner = gradients(problem.inner(f, labels).mean(), leaves, create_graph=True)
            value = problem.parameters if problem.target is None else problem.moved
            moved = {
                name: value[name] - problem.rates.get(name, 1.0) * (step - step.detach())
                for name, step in inner.items()
            }
            (meta,) = torch.autograd.grad(problem.labeled_loss(moved), labels)
        return labels.detach(), len(labels) * meta


@dataclass(frozen=True)
class FiniteDifference(_ByGradient):
    """d by a central difference along g with ε = epsilon/‖g‖: the paper's first-order approximation (Equation 10;
    for squared error Algorithm 2's (f(u; θ + εg) − f(u; θ − εg))/ε)."""

    epsilon: float = 0.01

    def labels_and_gradient(self, problem: Problem) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            f = problem.predict(problem.parameters)
            labels = f if problem.target is None else problem.target
            norm = torch.stack(torch._foreach_norm(list(problem.direction.values()))).norm()
            size = self.epsilon / norm.clamp(min=torch.finfo(norm.dtype).tiny)  # along g = 0 nothing changes
            plus, minus = problem.predict(problem.along(size)), problem.predict(problem.along(-size))
            return labels, problem.inner.pull_between(plus, minus, labels).div(2 * size)


@dataclass(frozen=True)
class Lookahead:
    """ŷ = f(u; θ − 2s·g), the prediction after a labeled step of size 2s: equal to f − s·d to first order in s.

    One forward pass instead of three, and always on the simplex; it has no d of its own."""

    def labels(self, problem: Problem, step: float) -> Tensor:
        if problem.inner != SQUARED_ERROR or problem.target is not None:
            raise ValueError(
                "Lookahead predicts after a labeled step, which is the new label only for squared error as the inner "
                "loss and the network's own prediction as the target; use ForwardMode, FiniteDifference or Unrolled."
            )
        with torch.no_grad():
            return problem.predict(problem.along(-2 * step))


OPERATORS: dict[str, type[ForwardMode | Unrolled | FiniteDifference | Lookahead]] = {
    "forward-mode": ForwardMode,
    "unrolled": Unrolled,
    "finite-difference": FiniteDifference,
    "lookahead": Lookahead,
}

_warned: set[str] = set()


def _warn_of_fallback(reason: str) -> None:
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(
            f"this network has an operation without a forward-mode rule ({reason}); "
            "the meta-gradient is computed by double backward instead: as exact, slower",
            stacklevel=2,
        )
