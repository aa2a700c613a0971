"""Meta-gradient pseudo-labels: targets chosen so that a training step on them lowers the labeled loss.

    ∇ỹ = ∂/∂ỹ L(x, y; θ − α ∇θ (1/B) Σ ‖f(u; θ) − ỹ‖²)  at  ỹ = f(u; θ)                 (Equations 5 to 7)
       = (2α/B) · J g,   J = ∂f(u; θ)/∂θ,   g = ∇θ L(x, y; θ)                           (Equations 8 to 11)

The inner gradient is zero at ỹ, so the identity is exact and ∇ỹ is a Jacobian-vector product. All operators share
d = 2 J g = (B/α)·∇ỹ, which Algorithm 2 calls ∇ỹ. With a step s the new label is ŷ = ỹ − s·d, where s = β in the
printed scale (Algorithm 2, and what the authors ran) and s = αβ/B in the derived one (Equation 11).

For another inner loss Φ and other targets q the inner step moves the weights:
∇q = −(α/B)·D_θ[∂Φ/∂q](θ)·g(θ̃), with the labeled gradient at θ̃ = θ − α∇θ(1/B)ΣΦ(f(u; θ), q).

Zhang, Xiao, Jia, Cheng, Yang: Semi-Supervised Learning with Meta-Gradient, AISTATS 2021.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.metagrad.operators import OPERATORS, FiniteDifference, ForwardMode, Lookahead, Operator, Unrolled
from semigrad.metagrad.problem import (
    Divergence,
    Mode,
    Outer,
    Problem,
    kl_divergence,
    squared_distance,
    undisturbed,
)  # fmt: skip
from semigrad.ops import clip_to_simplex, project_to_simplex

__all__ = [
    "OPERATORS",
    "Divergence",
    "FiniteDifference",
    "ForwardMode",
    "Lookahead",
    "Mode",
    "Operator",
    "Problem",
    "Projection",
    "Scale",
    "Unrolled",
    "kl_divergence",
    "meta_gradient",
    "meta_pseudo_labels",
    "pose",
    "project_labels",
    "squared_distance",
    "undisturbed",
]

Scale = Literal["printed", "derived"]
Projection = Literal["clip", "euclidean", "none"]


def meta_pseudo_labels(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    u: Tensor,
    *,
    lr: float,
    beta: float | None = None,
    scale: Scale = "printed",
    operator: Operator = ForwardMode(),  # noqa: B008 (frozen)
    mode: Mode = "eval",
    project: Projection | None = "clip",
    inner: Divergence = squared_distance,
    outer: Outer = F.cross_entropy,
    target: Tensor | None = None,
    parameters: Iterable[nn.Parameter] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Tensor:
    """Pseudo-labels for `u`, chosen so that a training step on them lowers the loss on (x, y).

    net         any module that gives logits
    x, y        labeled batch (B_l, *shape); class numbers (B_l,) or soft rows (B_l, classes)
    u           unlabeled batch (B_u, *shape)
    lr, beta    learning rate α; meta learning rate β, None: equal to α
    scale       whether β is in Algorithm 2's scale or in Equation 11's, which carries α/B
    mode        of the network during the whole meta step; in train mode passes share their dropout masks
    project     how the labels return to the simplex: "clip" (and renormalize), "euclidean", None
    inner       Φ(p, y), one number a row; for other losses than squared error the rows of ŷ need not sum to one
    outer       the labeled loss; `functools.partial(F.cross_entropy, label_smoothing=0.1)`, class weights, any callable
    target      what is adapted where it is not the network's own prediction: a host's targets (B_u, classes)
    parameters  only these enter the product (the head, say): cheaper, and no longer the whole meta-gradient
    optimizer   where its groups have learning rates of their own, they count relative to the first group's

    Returns (B_u, classes), detached. The network, its buffers, `.grad`s and mode and the random state are left
    bit-identical. In a loop of your own:

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
    settings = {"inner": inner, "outer": outer, "target": target, "parameters": parameters, "optimizer": optimizer}
    with pose(net, x, y, u, lr=lr, mode=mode, **settings) as problem:  # type: ignore[arg-type]
        if step == 0:
            with torch.no_grad():
                return problem.predict(problem.parameters) if target is None else target.detach()
        return project_labels(operator.labels(problem, step), project)


def meta_gradient(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    u: Tensor,
    *,
    lr: float,
    operator: ForwardMode | Unrolled | FiniteDifference = ForwardMode(),  # noqa: B008 (frozen)
    mode: Mode = "eval",
    inner: Divergence = squared_distance,
    outer: Outer = F.cross_entropy,
    target: Tensor | None = None,
    parameters: Iterable[nn.Parameter] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Tensor:
    """∇ỹ of Equation 11 in its derived scale, (B_u, classes): how the labeled loss after a step on u with learning rate
    `lr` changes with each entry of the pseudo-labels. Arguments as for `meta_pseudo_labels`."""
    settings = {"inner": inner, "outer": outer, "target": target, "parameters": parameters, "optimizer": optimizer}
    with pose(net, x, y, u, lr=lr, mode=mode, **settings) as problem:  # type: ignore[arg-type]
        return lr / len(u) * operator.gradient(problem)


@contextlib.contextmanager
def pose(
    net: nn.Module,
    x: Tensor,
    y: Tensor,
    u: Tensor,
    *,
    lr: float = 0.0,
    mode: Mode = "eval",
    inner: Divergence = squared_distance,
    outer: Outer = F.cross_entropy,
    target: Tensor | None = None,
    parameters: Iterable[nn.Parameter] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
) -> Iterator[Problem]:
    """The meta step's problem, with the network in the right mode as long as it is open."""
    rates = _relative_rates(net, parameters, optimizer)
    target = None if target is None else target.detach()
    with undisturbed(net, mode, u.device) as masks:
        yield Problem(net, x, y, u, inner, outer, target, lr, rates, masks)


def _relative_rates(
    net: nn.Module, parameters: Iterable[nn.Parameter] | None, optimizer: torch.optim.Optimizer | None
) -> dict[str, float]:
    """Learning rates relative to the first group's, where they are not 1; what is not to enter the product has 0."""
    rates = dict.fromkeys(net.parameters(), 1.0)
    if optimizer is not None:
        first = optimizer.param_groups[0]["lr"]
        grouped = {p: group["lr"] / first for group in optimizer.param_groups for p in group["params"]}
        rates = {p: grouped.get(p, 0.0) for p in rates}
    if parameters is not None:
        asked = set(parameters)
        rates = {p: rate if p in asked else 0.0 for p, rate in rates.items()}
    return {name: rates[p] for name, p in net.named_parameters() if rates[p] != 1.0}


def project_labels(labels: Tensor, project: Projection | None) -> Tensor:
    """Back to the simplex."""
    if project == "clip":
        return clip_to_simplex(labels)
    return project_to_simplex(labels) if project == "euclidean" else labels
