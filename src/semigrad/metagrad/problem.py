"""One meta step as a mathematical problem: a network, a labeled batch, an unlabeled batch, two losses."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from semigrad.core import random_state_kept, seed_network
from semigrad.core.divergences import SQUARED_ERROR, Divergence
from semigrad.core.passes import exact_gradients, modes_kept
from semigrad.errors import InputError, unknown
from semigrad.metagrad.labels import check_logits, fitting

Mode = Literal["eval", "train"]
Parameters = dict[str, Tensor]
Outer = Callable[[Tensor, Tensor], Tensor]
"""L(logits, y): the labeled loss, a mean over the batch, such as `F.cross_entropy` with its options."""


@dataclass(frozen=True)
class Problem:
    """How do the labels of u change L(x, y; θ̃), θ̃ = θ − α∇θ (1/B) Σ Φ(f(u; θ), q)?

    Every pass is a pure function of the parameters it is given: buffers are copies, and passes over one batch share
    their dropout masks. Best made by `pose`, which also sees to the network's mode."""

    net: nn.Module
    x: Tensor  # (B_l, *shape)
    y: Tensor  # (B_l,) class numbers, or (B_l, classes) soft rows
    u: Tensor  # (B_u, *shape)
    inner: Divergence = SQUARED_ERROR  # the paper's
    outer: Outer = F.cross_entropy
    target: Tensor | None = None  # q, (B_u, classes), where it is not the network's own prediction f(u; θ)
    lr: float = 0.0  # α; plays no part for the network's own prediction, where θ̃ = θ
    rates: Mapping[str, float] = field(default_factory=dict)  # learning rate of a parameter relative to α, where not 1
    masks: int = 0  # seed of the dropout masks
    check: bool = True  # refuse a labeled gradient that is not finite, for which a device has to be waited for

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters that the step may move: those that are trained at a rate above zero."""
        trained = {name: p for name, p in self.net.named_parameters() if p.requires_grad}
        return {name: p.detach() for name, p in trained.items() if self.rates.get(name, 1.0) != 0}

    def predict(self, parameters: Parameters) -> Tensor:
        """f(u; θ), (B_u, classes)."""
        logits = self._logits(parameters, self.u, self.masks + 1)
        if self.target is not None and self.target.shape != logits.shape:
            raise InputError(
                f"target has the shape {tuple(self.target.shape)}, and the network gives {tuple(logits.shape)} for u."
            )
        return logits.softmax(1)

    def labeled_loss(self, parameters: Parameters) -> Tensor:
        """L(x, y; θ); no weight decay."""
        logits = self._logits(parameters, self.x, self.masks)
        return self.outer(logits, fitting(logits, self.y, self.outer, self.check))

    @property
    def settled(self) -> bool:
        """Whether the labeled loss asks for no other answers than f(x; θ): its derivative by the logits is zero."""
        logits = self._logits(self.parameters, self.x, self.masks).detach().requires_grad_()
        with torch.enable_grad():
            loss = self.outer(logits, fitting(logits, self.y, self.outer, self.check))
        (asked,) = torch.autograd.grad(loss, logits)
        return not asked.any()

    @cached_property
    def direction(self) -> Parameters:
        """g = ∇θ L(x, y; θ̃), scaled by each parameter's relative rate: what the derivative is taken along."""
        gradient = self.gradient_at(self.moved if self.target is not None else self.parameters)
        return self._at_rates(gradient)

    @cached_property
    def moved(self) -> Parameters:
        """θ̃, the parameters after the inner step towards the target."""
        assert self.target is not None
        leaves = as_leaves(self.parameters)
        with torch.enable_grad():
            loss = self.inner(self.predict(leaves), self.target).mean()
            step = self._at_rates(gradients(loss, leaves))
        return {name: p - self.lr * step[name] for name, p in self.parameters.items()}

    def gradient_at(self, parameters: Parameters) -> Parameters:
        """∇θ L(x, y; θ) at these parameters."""
        leaves = as_leaves(parameters)
        with torch.enable_grad():
            gradient = gradients(self.labeled_loss(leaves), leaves)
        if self.check:
            check_finite(gradient)
        return gradient

    def along(self, amount: float | Tensor) -> Parameters:
        """θ + amount · g."""
        direction = self.direction
        return {name: p + amount * direction[name] for name, p in self.parameters.items()}

    def _at_rates(self, gradient: Parameters) -> Parameters:
        return {name: g * self.rates[name] if name in self.rates else g for name, g in gradient.items()}

    def _logits(self, parameters: Parameters, inputs: Tensor, seed: int) -> Tensor:
        buffers = {name: b.clone() for name, b in self.net.named_buffers()} if self.net.training else {}
        seed_network(seed, inputs.device)
        logits: Tensor = functional_call(self.net, {**parameters, **buffers}, (inputs,))
        check_logits(logits)
        return logits


def as_leaves(parameters: Parameters) -> Parameters:
    return {name: p.detach().requires_grad_() for name, p in parameters.items()}


def gradients(loss: Tensor, leaves: Parameters, create_graph: bool = False) -> Parameters:
    """The gradient by name; zeros for what the loss does not depend on."""
    found = torch.autograd.grad(loss, list(leaves.values()), create_graph=create_graph, allow_unused=True)
    return {
        name: torch.zeros_like(leaf) if grad is None else grad
        for (name, leaf), grad in zip(leaves.items(), found, strict=True)
    }


def check_finite(gradient: Parameters) -> None:
    norms = torch.stack(torch._foreach_norm(list(gradient.values()))).tolist()
    wrong = [name for name, norm in zip(gradient, norms, strict=True) if not math.isfinite(norm)]
    if wrong:
        raise FloatingPointError(f"the labeled gradient of parameter {', '.join(map(repr, wrong))} is not finite")


@contextlib.contextmanager
def undisturbed(net: nn.Module, mode: Mode, device: torch.device) -> Iterator[int]:
    """The network in `mode`, outside autocast (which would compare cached weights), with layers whose declared gradient
    is not that of their function (shake-shake) using the true one, and attention by plain products; yields a seed for
    dropout masks. Afterwards every module's mode and the random state are as before."""
    check_word("mode", mode, Mode)
    with random_state_kept(device), modes_kept(net):
        seed = int(torch.randint(2**62, ()).numpy())  # of the processor's generator: no device is waited for
        net.train(mode == "train")
        with torch.autocast(device.type, enabled=False), exact_gradients(), plain_attention():
            yield seed


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Torch's fast kernels for attention have no second derivative and no forward-mode rule; the plain one has both."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def check_rate(name: str, given: object) -> None:
    """Refuse a rate that is negative, not finite or no number: with it, no label would mean anything."""
    try:
        holds = not isinstance(given, bool | str) and 0 <= float(given) < math.inf  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):
        holds = False
    if not holds:
        raise InputError(f"{name} must be a number, finite and not negative; given: {given!r}.")


def check_word(kind: str, given: object, words: object) -> None:
    """Refuse what is not among the words of a `Literal`: a misspelled one must not pass for the other."""
    if given not in get_args(words):
        raise InputError(unknown(kind, str(given), get_args(words)))
