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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Literal, TypedDict, Unpack

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core.divergences import CROSS_ENTROPY, KL_DIVERGENCE, SQUARED_ERROR, Custom, Divergence, as_divergence
from semigrad.core.ops import clip_to_simplex, onto_plane, project_to_simplex
from semigrad.errors import InputError
from semigrad.metagrad.batches import Rows, as_batch, demand
from semigrad.metagrad.operators import OPERATORS, FiniteDifference, ForwardMode, Lookahead, Operator, Unrolled
from semigrad.metagrad.problem import (
    Mode,
    Outer,
    Problem,
    check_rate,
    check_word,
    undisturbed,
)  # fmt: skip

__all__ = [
    "CROSS_ENTROPY",
    "KL_DIVERGENCE",
    "OPERATORS",
    "SQUARED_ERROR",
    "Divergence",
    "FiniteDifference",
    "ForwardMode",
    "Lookahead",
    "Mode",
    "Operator",
    "Options",
    "Problem",
    "Projection",
    "Scale",
    "Unrolled",
    "meta_gradient",
    "meta_pseudo_labels",
    "pose",
    "project_labels",
    "undisturbed",
]

Scale = Literal["printed", "derived"]
Projection = Literal["clip", "euclidean", "none"]
A_WAY = "one of the ways to the meta-gradient, such as ForwardMode()"
Inner = Divergence | Callable[[Tensor, Tensor], Tensor]
"""Φ: one of ours, which knows its derivatives, or any function of (p, q) with one number for each row."""


class Options(TypedDict, total=False):
    """What else a meta step may be told; the defaults are the paper's."""

    mode: Mode  # of the network during the whole meta step: "eval", or "train", where passes share dropout masks
    inner: Inner  # Φ(p, q), one number a row; for others than squared error the rows of ŷ need not sum to one
    outer: Outer  # the labeled loss: `functools.partial(F.cross_entropy, label_smoothing=0.1)`, or any callable
    target: Rows | None  # what is adapted where it is not the network's own prediction: a host's (B_u, classes)
    parameters: Iterable[nn.Parameter] | None  # only these enter the product (the head, say): cheaper, and a part
    optimizer: torch.optim.Optimizer | None  # the learning rates of its groups count relative to the first group's
    check: (
        bool  # raise where the labeled gradient is not finite; False: labels are nan then, and no device is waited for
    )


def meta_pseudo_labels(
    net: nn.Module,
    x: Rows,
    y: Rows,
    u: Rows,
    *,
    lr: float,
    beta: float | None = None,
    scale: Scale = "printed",
    operator: Operator = ForwardMode(),  # noqa: B008 (frozen)
    project: Projection | None = "clip",
    **options: Unpack[Options],
) -> Tensor:
    """Pseudo-labels for `u`, chosen so that a training step on them lowers the loss on (x, y).

    net         any module that gives logits
    x, y        labeled batch (B_l, *shape); class numbers (B_l,) or soft rows (B_l, classes)
    u           unlabeled batch (B_u, *shape); arrays and lists become tensors as the network's parameters are
    lr, beta    learning rate α; meta learning rate β, None: equal to α
    scale       whether β is in Algorithm 2's scale or in Equation 11's, which carries α/B
    project     how the labels return to the simplex: "clip" (and renormalize), "euclidean", None
    options     mode, inner, outer, target, parameters, optimizer, check: see `Options`

    Returns (B_u, classes), detached. The network, its buffers, `.grad`s and mode and the random state are left
    bit-identical. In a loop of your own:

    >>> net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
    >>> x, y, u = torch.randn(8, 5), torch.arange(8) % 3, torch.randn(12, 5)
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> for _ in range(10):
    ...     targets = meta_pseudo_labels(net, x, y, u, lr=optimizer.param_groups[0]["lr"])
    ...     loss = F.cross_entropy(net(x), y) + (net(u).softmax(1) - targets).square().sum(1).mean()
    ...     optimizer.zero_grad()
    ...     loss.backward()
    ...     optimizer.step()
    >>> targets.shape, targets.requires_grad
    (torch.Size([12, 3]), False)
    """
    demand(hasattr(operator, "labels") and not isinstance(operator, type), "operator", operator, A_WAY)
    check_word("scale", scale, Scale)
    check_word("projection", project or "none", Projection)
    beta = lr if beta is None else beta
    check_rate("lr", lr)
    check_rate("beta", beta)
    with pose(net, x, y, u, lr=lr, **options) as problem:
        step = beta if scale == "printed" else lr * beta / len(problem.u)
        if step == 0:  # what is not moved is not projected either: β = 0 leaves a host's targets to the bit
            with torch.no_grad():
                return problem.predict(problem.parameters) if problem.target is None else problem.target.clone()
        labels = operator.labels(problem, step)
    if project in ("clip", "euclidean") and options.get("target") is not None:
        labels = onto_plane(labels)  # the network's own prediction stays on it by itself, under squared error
    return project_labels(labels, project)


def meta_gradient(
    net: nn.Module,
    x: Rows,
    y: Rows,
    u: Rows,
    *,
    lr: float,
    operator: ForwardMode | Unrolled | FiniteDifference = ForwardMode(),  # noqa: B008 (frozen)
    **options: Unpack[Options],
) -> Tensor:
    """∇ỹ of Equation 11 in its derived scale, (B_u, classes): how the labeled loss after a step on u with learning rate
    `lr` changes with each entry of the pseudo-labels. Arguments as for `meta_pseudo_labels`.

    >>> net = nn.Linear(5, 3).double()
    >>> x, y, u = torch.randn(8, 5).double(), torch.arange(8) % 3, torch.randn(12, 5).double()
    >>> exact = meta_gradient(net, x, y, u, lr=0.1)
    >>> torch.allclose(exact, meta_gradient(net, x, y, u, lr=0.1, operator=Unrolled()))
    True
    """
    if isinstance(operator, Lookahead):
        raise ValueError(
            "Lookahead predicts labels and has no gradient; use ForwardMode, FiniteDifference or Unrolled."
        )
    demand(hasattr(operator, "gradient") and not isinstance(operator, type), "operator", operator, A_WAY)
    with pose(net, x, y, u, lr=lr, **options) as problem:
        return lr / len(problem.u) * operator.gradient(problem)


@contextlib.contextmanager
def pose(
    net: nn.Module,
    x: Rows,
    y: Rows,
    u: Rows,
    *,
    lr: float = 0.0,
    mode: Mode = "eval",
    inner: Inner = SQUARED_ERROR,
    outer: Outer = F.cross_entropy,
    target: Rows | None = None,
    parameters: Iterable[nn.Parameter] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    check: bool = True,
) -> Iterator[Problem]:
    """The meta step's problem, with the network in the right mode as long as it is open."""
    check_rate("lr", lr)
    demand(callable(inner), "inner", inner, "a divergence, or a function of (p, q)")
    demand(callable(outer), "outer", outer, "a loss of (logits, y)")
    demand(optimizer is None or hasattr(optimizer, "param_groups"), "optimizer", optimizer, "an optimizer of torch")
    x, y, u = as_batch(net, "x", x), as_batch(net, "y", y), as_batch(net, "u", u)
    if len(x) == 0 or len(u) == 0:
        raise InputError(f"A meta step needs labeled and unlabeled examples; given: {len(x)} and {len(u)}.")
    rates = _relative_rates(net, parameters, optimizer)
    target = None if target is None else as_batch(net, "target", target).detach()
    with undisturbed(net, mode, u.device) as masks:
        problem = Problem(net, x, y, u, as_divergence(inner), outer, target, lr, rates, masks, check)
        if not problem.parameters:
            raise ValueError("no parameter can enter the product: all are frozen, left out or trained at rate 0")
        if isinstance(problem.inner, Custom) and target is None:
            # nobody knows whether its gradient is 0 at the network's own prediction, so that is a target as any other
            with torch.no_grad():
                problem = replace(problem, target=problem.predict(problem.parameters))
        yield problem


def _relative_rates(
    net: nn.Module, parameters: Iterable[nn.Parameter] | None, optimizer: torch.optim.Optimizer | None
) -> dict[str, float]:
    """Learning rates relative to the first group's, where they are not 1; what is not to enter the product has 0."""
    rates = dict.fromkeys(net.parameters(), 1.0)
    if optimizer is not None:
        groups, first = optimizer.param_groups, optimizer.param_groups[0]["lr"]
        # where a warm-up begins, all rates are 0 and count alike
        grouped = {p: group["lr"] / first if first else 1.0 for group in groups for p in group["params"]}
        rates = {p: grouped.get(p, 0.0) for p in rates}
    if parameters is not None:
        asked = set(parameters)
        rates = {p: rate if p in asked else 0.0 for p, rate in rates.items()}
    return {name: rates[p] for name, p in net.named_parameters() if rates[p] != 1.0}


def project_labels(labels: Tensor, project: Projection | None) -> Tensor:
    """Back to the simplex."""
    check_word("projection", project or "none", Projection)
    if project == "clip":
        return clip_to_simplex(labels)
    return project_to_simplex(labels) if project == "euclidean" else labels
