"""Ways of running a network that several methods need: in another mode, without touching running statistics, in two
halves, to its end, or looking over a host's shoulder."""

from __future__ import annotations

import contextlib
import contextvars
import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from semigrad.core.clock import Clock


def features(net: nn.Module, x: Tensor) -> Tensor:
    """(B, *shape) -> (B, width), what the head sees."""
    h: Tensor = net.features(x)  # type: ignore[operator]
    return h


def head(net: nn.Module, h: Tensor) -> Tensor:
    """(B, width) -> (B, classes), logits of features."""
    logits: Tensor = net.head(h)  # type: ignore[operator]
    return logits


def feature_width(net: nn.Module, shape: tuple[int, ...]) -> int:
    """How many features the head sees, for examples of this shape."""
    with torch.no_grad(), eval_mode(net):
        return features(net, torch.zeros(1, *shape).to(next(net.parameters()))).shape[1]


def both_batches(net: nn.Module, x: Tensor, u: Tensor, clock: Clock, joint: bool) -> tuple[Tensor, Tensor]:
    """Logits of labeled and unlabeled rows in train mode: in one pass with common batch statistics, or in two, the
    labeled one first."""
    if joint:
        with clock.masks("labeled"):
            logits = net(torch.cat([x, u]))
        return logits[: len(x)], logits[len(x) :]
    with clock.masks("labeled"):
        labeled = net(x)
    with clock.masks("unlabeled"):
        return labeled, net(u)


def last_layers(net: nn.Module, count: int) -> list[nn.Parameter]:
    """The parameters of so many of the last layers, in the order in which the network has them. A layer begins with a
    matrix or filters; biases, and what normalizes or scales behind it, are its own."""
    layers: list[list[nn.Parameter]] = [[]]
    for module in net.modules():
        own = list(module.parameters(recurse=False))
        if any(p.dim() > 1 for p in own):
            layers.append([])
        layers[-1] += own
    return [p for layer in layers[-count:] for p in layer]


@contextlib.contextmanager
def modes_kept(net: nn.Module) -> Iterator[None]:
    """Whatever is set inside, every module's mode is as before afterwards: they need not all be in one."""
    training = {module: module.training for module in net.modules()}
    try:
        yield
    finally:
        for module, was in training.items():
            module.training = was


@contextlib.contextmanager
def eval_mode(net: nn.Module) -> Iterator[None]:
    """Running statistics and no dropout inside; afterwards every module's mode is as before."""
    with modes_kept(net):
        net.eval()
        yield


@contextlib.contextmanager
def statistics_kept(net: nn.Module) -> Iterator[None]:
    """Train-mode passes inside use batch statistics as always, but leave the running ones as they are."""
    layers = [layer for layer in net.modules() if isinstance(layer, _BatchNorm) and layer.track_running_stats]
    with _instance_statistics_kept(net):
        for layer in layers:
            layer.track_running_stats = False
        try:
            yield
        finally:
            for layer in layers:
                layer.track_running_stats = True


@contextlib.contextmanager
def _instance_statistics_kept(net: nn.Module) -> Iterator[None]:
    """InstanceNorm moves its statistics whatever `track_running_stats` says, so it moves copies of them inside."""
    layers = [layer for layer in net.modules() if isinstance(layer, _InstanceNorm) and layer.track_running_stats]
    kept = [(layer.running_mean, layer.running_var) for layer in layers]
    for layer in layers:
        layer.running_mean, layer.running_var = copy.deepcopy((layer.running_mean, layer.running_var))
    try:
        yield
    finally:
        for layer, (mean, var) in zip(layers, kept, strict=True):
            layer.running_mean, layer.running_var = mean, var


def synchronize(device: torch.device) -> None:
    """Wait until a device has done all it was asked to; before a look at the clock, which else would show how long the
    asking took."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


@dataclass
class Pass:
    """One pass of a network over a batch, with its graph."""

    x: Tensor
    features: Tensor
    logits: Tensor


@dataclass
class Watched:
    """The passes that somebody else ran."""

    passes: list[Pass] = field(default_factory=list)

    def of(self, x: Tensor) -> Pass | None:
        """The last pass over this very tensor that can be differentiated, if there was one."""
        found = [seen for seen in self.passes if seen.x is x and seen.features.requires_grad]
        return found[-1] if found else None

    def of_both(self, x: Tensor, u: Tensor) -> Pass | None:
        """The last pass over the rows of x and behind them those of u that can be differentiated, if there was one."""
        rows = torch.cat([x, u])
        found = [seen for seen in self.passes if seen.features.requires_grad and torch.equal(seen.x, rows)]
        return found[-1] if found else None


@contextlib.contextmanager
def watch(net: nn.Module) -> Iterator[Watched]:
    """Watch the calls `net(x)` made inside, so that another term on the same x need not run the network again.

    Copies of the network are not watched; `torch.func.functional_call` with other weights cannot be told apart."""
    watched = Watched()
    seen: list[Tensor] = []

    def enter(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen.clear()

    def reach_head(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen.append(inputs[0])

    def leave(module: nn.Module, inputs: tuple[Tensor, ...], logits: Tensor) -> None:
        if module is net and len(seen) == 1:  # a copy made inside has copies of the hooks
            watched.passes.append(Pass(inputs[0], seen[0], logits))

    hooks = [
        net.register_forward_pre_hook(enter),
        net.head.register_forward_pre_hook(reach_head),  # type: ignore[union-attr]
        net.register_forward_hook(leave),
    ]
    try:
        yield watched
    finally:
        for hook in hooks:
            hook.remove()


_exact_gradients = contextvars.ContextVar("exact_gradients", default=False)


@contextlib.contextmanager
def exact_gradients() -> Iterator[None]:
    """Layers that declare a gradient which is not that of their function (shake-shake in train mode) use the true one
    inside, so that derivatives of the network mean what they say."""
    token = _exact_gradients.set(True)
    try:
        yield
    finally:
        _exact_gradients.reset(token)


def exact_gradients_wanted() -> bool:
    return _exact_gradients.get()
