"""Meta-gradient pseudo-labels: targets chosen so that a training step on them lowers the labeled loss.

    ∇ỹ = ∂/∂ỹ L(x, y; θ − α ∇θ (1/B) Σ ‖f(u; θ) − ỹ‖²)  at  ỹ = f(u; θ)                 (Equations 5 to 7)
       = (2α/B) · J g,   J = ∂f(u; θ)/∂θ,   g = ∇θ L(x, y; θ)                           (Equations 8 to 11)

The inner gradient is zero at ỹ, so the identity is exact and ∇ỹ is a Jacobian-vector product. All operators share
d = 2 J g = (B/α)·∇ỹ, which Algorithm 2 calls ∇ỹ. With a step s the new label is ŷ = ỹ − s·d, where s = β in the
printed scale (Algorithm 2, and what the authors ran) and s = αβ/B in the derived one (Equation 11).

Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, AISTATS 2021.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call

from semigrad.core import random_state_kept, seed_network
from semigrad.ops import clip_to_simplex, project_to_simplex, squared_error

Mode = Literal["eval", "train"]
Scale = Literal["printed", "derived"]
Projection = Literal["clip", "euclidean", "none"]
Parameters = dict[str, Tensor]


@dataclass(frozen=True)
class Problem:
    """One meta step: the network, a labeled batch and an unlabeled batch. Every pass is a pure function of the
    parameters it is given: buffers are copies, and passes over one batch share their dropout masks."""

    net: nn.Module
    x: Tensor  # (B_l, *shape)
    y: Tensor  # (B_l,) class numbers, or (B_l, classes) soft rows
    u: Tensor  # (B_u, *shape)
    masks: int = 0  # seed of the dropout masks

    @cached_property
    def parameters(self) -> Parameters:
        return {name: p.detach() for name, p in self.net.named_parameters() if p.requires_grad}

    def predict(self, parameters: Parameters) -> Tensor:
        """f(u; θ), (B_u, classes)."""
        return self._logits(parameters, self.u, self.masks + 1).softmax(1)

    def labeled_loss(self, parameters: Parameters) -> Tensor:
        """L(x, y; θ), the mean over the labeled batch; no weight decay."""
        return nn.functional.cross_entropy(self._logits(parameters, self.x, self.masks), self.y)

    @cached_property
    def labeled_gradient(self) -> Parameters:
        """g = ∇θ L(x, y; θ)."""
        leaves = {name: p.requires_grad_() for name, p in _detached(self.parameters).items()}
        with torch.enable_grad():
            loss = self.labeled_loss(leaves)
            grads = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        gradient = {
            name: torch.zeros_like(leaf) if grad is None else grad
            for (name, leaf), grad in zip(leaves.items(), grads, strict=True)
        }
        if not torch.stack(torch._foreach_norm(list(gradient.values()))).isfinite().all():
            wrong = [name for name, grad in gradient.items() if not grad.isfinite().all()]
            raise FloatingPointError(f"the labeled gradient of parameter {', '.join(map(repr, wrong))} is not finite")
        return gradient

    def along(self, amount: float | Tensor) -> Parameters:
        """θ + amount · g."""
        gradient = self.labeled_gradient
        return {name: p + amount * gradient[name] for name, p in self.parameters.items()}

    def _logits(self, parameters: Parameters, inputs: Tensor, seed: int) -> Tensor:
        buffers = {name: b.clone() for name, b in self.net.named_buffers()} if self.net.training else {}
        if self.net.training:
            seed_network(seed, inputs.device)
        logits: Tensor = functional_call(self.net, {**parameters, **buffers}, (inputs,))
        return logits


def _detached(parameters: Parameters) -> Parameters:
    return {name: p.detach() for name, p in parameters.items()}


class Operator(Protocol):
    """One way to turn a problem and a step s into ŷ = f − s·d, before projection."""

    def labels(self, problem: Problem, step: float) -> Tensor: ...


@dataclass(frozen=True)
class ForwardMode:
    """d as twice one forward-mode product along g: exact, no ε, no graph kept, weights never touched."""

    def gradient(self, problem: Problem) -> Tensor:
        return self._prediction_and_gradient(problem)[1]

    def labels(self, problem: Problem, step: float) -> Tensor:
        prediction, d = self._prediction_and_gradient(problem)
        return prediction - step * d

    def _prediction_and_gradient(self, problem: Problem) -> tuple[Tensor, Tensor]:
        gradient = problem.labeled_gradient
        try:
            with torch.no_grad(), forward_ad.dual_level():
                duals = {
                    name: forward_ad.make_dual(p, gradient[name])  # type: ignore[no-untyped-call]
                    for name, p in problem.parameters.items()
                }
                primal, tangent = forward_ad.unpack_dual(problem.predict(duals))  # type: ignore[no-untyped-call]
        except NotImplementedError as reason:
            _warn_of_fallback(str(reason))
            return Unrolled()._prediction_and_gradient(problem)
        return primal, torch.zeros_like(primal) if tangent is None else 2 * tangent


_warned: set[str] = set()


def _warn_of_fallback(reason: str) -> None:
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(
            f"this network has an operation without a forward-mode rule ({reason}); "
            "the meta-gradient is computed by double backward instead: as exact, slower",
            stacklevel=2,
        )


@dataclass(frozen=True)
class Unrolled:
    """d as B times the gradient through a step of inner rate 1 (d is free of α): double backward, the reference."""

    def gradient(self, problem: Problem) -> Tensor:
        return self._prediction_and_gradient(problem)[1]

    def labels(self, problem: Problem, step: float) -> Tensor:
        prediction, d = self._prediction_and_gradient(problem)
        return prediction - step * d

    def _prediction_and_gradient(self, problem: Problem) -> tuple[Tensor, Tensor]:
        leaves = {name: p.requires_grad_() for name, p in _detached(problem.parameters).items()}
        with torch.enable_grad():
            prediction = problem.predict(leaves)
            target = prediction.detach().requires_grad_()
            inner = torch.autograd.grad(
                squared_error(prediction, target), list(leaves.values()), create_graph=True, allow_unused=True
            )
            moved = {
                name: p if step is None else p - step for (name, p), step in zip(leaves.items(), inner, strict=True)
            }
            (meta,) = torch.autograd.grad(problem.labeled_loss(moved), target)
        return target.detach(), len(target) * meta


@dataclass(frozen=True)
class FiniteDifference:
    """d ≈ (f(u; θ + εg) − f(u; θ − εg))/ε with ε = epsilon/‖g‖: the paper's first-order approximation (Algorithm 2)."""

    epsilon: float = 0.01

    def gradient(self, problem: Problem) -> Tensor:
        with torch.no_grad():
            norm = torch.stack(torch._foreach_norm(list(problem.labeled_gradient.values()))).norm()
            if norm == 0:
                return torch.zeros_like(problem.predict(problem.parameters))
            size = self.epsilon / norm
            difference = problem.predict(problem.along(size)) - problem.predict(problem.along(-size))
            return difference.div(size)

    def labels(self, problem: Problem, step: float) -> Tensor:
        with torch.no_grad():
            return problem.predict(problem.parameters) - step * self.gradient(problem)


@dataclass(frozen=True)
class Lookahead:
    """ŷ = f(u; θ − 2s·g), the prediction after a labeled step of size 2s: equal to f − s·d to first order in s.

    One forward pass instead of three, and always on the simplex; it has no d of its own."""

    def labels(self, problem: Problem, step: float) -> Tensor:
        with torch.no_grad():
            return problem.predict(problem.along(-2 * step))


OPERATORS: dict[str, type[ForwardMode | Unrolled | FiniteDifference | Lookahead]] = {
    "forward-mode": ForwardMode,
    "unrolled": Unrolled,
    "finite-difference": FiniteDifference,
    "lookahead": Lookahead,
}


def meta_pseudo_labels(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    u: Tensor,
    *,
    lr: float,
    beta: float | None = None,
    scale: Scale = "printed",
    operator: Operator | None = None,
    mode: Mode = "eval",
    project: Projection | None = "clip",
) -> Tensor:
    """Pseudo-labels for `u`, chosen so that a training step on them lowers the loss on (x, y).

    net: any module that gives logits. x (B_l, *shape), y (B_l,) class numbers or (B_l, classes) soft rows,
    u (B_u, *shape). `beta` is the meta learning rate, None: equal to `lr`. `mode` is the mode of the network for the
    whole meta step. Returns (B_u, classes), detached. The network, its buffers, `.grad`s and mode and the random
    state are left bit-identical. In a loop of your own:

        for (x, y), u in zip(labeled, unlabeled):
            lr = optimizer.param_groups[0]["lr"]
            targets = meta_pseudo_labels(net, x, y, u, lr=lr)
            loss = F.cross_entropy(net(x), y)
            loss = loss + (net(u).softmax(1) - targets).square().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """
    beta = lr if beta is None else beta
    step = beta if scale == "printed" else lr * beta / len(u)
    with undisturbed(net, mode, u.device) as masks:
        problem = Problem(net, x, y, u, masks)
        if step == 0:
            with torch.no_grad():
                return problem.predict(problem.parameters)
        labels = (operator or ForwardMode()).labels(problem, step)
    if project == "clip":
        return clip_to_simplex(labels)
    return project_to_simplex(labels) if project == "euclidean" else labels


@contextlib.contextmanager
def undisturbed(net: nn.Module, mode: Mode, device: torch.device) -> Iterator[int]:
    """The network in `mode`, outside autocast (which would compare cached weights); yields a seed for dropout masks.
    Afterwards every module's mode and the random state are as before."""
    training = {module: module.training for module in net.modules()}
    with random_state_kept(device):
        seed = int(torch.randint(2**62, ()))
        net.train(mode == "train")
        try:
            with torch.autocast(device.type, enabled=False):
                yield seed
        finally:
            for module, was in training.items():
                module.training = was
