"""Ways of running a network that several methods need: in another mode, without touching BatchNorm's statistics, in two
halves, or looking over a host's shoulder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


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


@contextlib.contextmanager
def eval_mode(net: nn.Module) -> Iterator[None]:
    """Running statistics and no dropout inside; afterwards every module's mode is as before."""
    training = {module: module.training for module in net.modules()}
    net.eval()
    try:
        yield
    finally:
        for module, was in training.items():
            module.training = was


@contextlib.contextmanager
def statistics_kept(net: nn.Module) -> Iterator[None]:
    """Train-mode passes inside use batch statistics as always, but leave the running ones as they are."""
    layers = [layer for layer in net.modules() if isinstance(layer, _BatchNorm) and layer.track_running_stats]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True


@dataclass
class Watched:
    """The passes that somebody else ran over some inputs, as features with their graph."""

    inputs: list[Tensor] = field(default_factory=list)
    features: list[Tensor] = field(default_factory=list)

    def of(self, x: Tensor) -> Tensor | None:
        """The features of the last pass over this very tensor that can be differentiated, if there was one."""
        pairs = zip(self.inputs, self.features, strict=True)
        found = [h for seen, h in pairs if seen is x and h.requires_grad]
        return found[-1] if found else None


@contextlib.contextmanager
def watch(net: nn.Module) -> Iterator[Watched]:
    """Watch the calls `net(x)` made inside, so that a term on the features of x need not run the network again.

    Copies of the network are not watched; `torch.func.functional_call` with other weights cannot be told apart."""
    watched = Watched()
    given: list[Tensor] = []

    def enter(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if module is net:  # a copy made inside has copies of the hooks
            given.append(inputs[0])

    def reach_head(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if given:  # called on its way through the whole network
            watched.inputs.append(given.pop())
            watched.features.append(inputs[0])

    hooks = [
        net.register_forward_pre_hook(enter),
        net.head.register_forward_pre_hook(reach_head),  # type: ignore[union-attr]
    ]
    try:
        yield watched
    finally:
        for hook in hooks:
            hook.remove()
