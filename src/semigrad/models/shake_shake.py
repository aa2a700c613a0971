"""ResNet-26 2x96d with shake-shake regularization (Gastaldi, 2017), as the semi-supervised papers trained it.

In eval mode a block here has the gradient of its function, ½ to each branch. The code of the meta-gradient paper draws
a random gate for the backward pass in that mode too, so that its labeled gradient g is that of another network at every
call; on average over the gates it is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Task
from semigrad.core.passes import exact_gradients_wanted
from semigrad.errors import InputError
from semigrad.models.layers import GlobalAverage, initialize_convolutions
from semigrad.models.network import Model, Network, Normalize


class TwoGates(torch.autograd.Function):
    """Forward α·a + (1 − α)·b; backward as if the gate had been β."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
        return alpha * a + (1 - alpha) * b

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[3])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (beta,) = ctx.saved_tensors
        return beta * gradient, (1 - beta) * gradient, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        raise InputError(
            "Shake-shake in train mode has no forward-mode derivative: use eval mode, or exact_gradients()."
        )


def shake(a: Tensor, b: Tensor, training: bool) -> Tensor:
    """½(a + b), or in training a mix by gates α (forward) and β (backward) ~ U(0, 1), a pair for each example.

    a, b (B, C, H, W). Both gates are drawn here, so that β depends on the random state of the pass and not on when its
    backward runs.
    """
    if not training:
        return (a + b) / 2
    alpha, beta = (torch.rand(len(a), 1, 1, 1, dtype=a.dtype, device=a.device) for _ in range(2))
    if exact_gradients_wanted():  # one gate for both directions, the same as without the wish
        return alpha * a + (1 - alpha) * b
    mixed: Tensor = TwoGates.apply(a, b, alpha, beta)  # type: ignore[no-untyped-call]
    return mixed


class Branch(nn.Sequential):
    """ReLU - convolution - BatchNorm - ReLU - convolution - BatchNorm."""

    def __init__(self, width: int, filters: int, stride: int) -> None:
        super().__init__(
            nn.ReLU(),
            nn.Conv2d(width, filters, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(filters),
            nn.ReLU(),
            nn.Conv2d(filters, filters, 3, padding=1, bias=False),
            nn.BatchNorm2d(filters),
        )


class ShiftedShortcut(nn.Module):
    """Half the filters see every second pixel, the other half its diagonal neighbor: (B, C, H, W) -> (B, filters,
    ⌈H/2⌉, ⌈W/2⌉)."""

    def __init__(self, width: int, filters: int) -> None:
        super().__init__()
        self.straight = nn.Conv2d(width, filters // 2, 1)
        self.shifted = nn.Conv2d(width, filters // 2, 1)
        self.norm = nn.BatchNorm2d(filters)

    def initialize(self) -> None:
        """As one convolution in two groups, whose outputs all count: N(0, 2/filters), and torch's biases."""
        for half in (self.straight, self.shifted):
            half.reset_parameters()
            nn.init.normal_(half.weight, std=math.sqrt(2 / (2 * half.out_channels)))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(x)
        neighbors = F.pad(x, (-1, 1, -1, 1))
        halves = self.straight(x[:, :, ::2, ::2]), self.shifted(neighbors[:, :, ::2, ::2])
        joined: Tensor = self.norm(torch.cat(halves, dim=1))
        return joined


class ShakeBlock(nn.Module):
    """shortcut(x) + shake(first(x), second(x))."""

    def __init__(self, width: int, filters: int, stride: int) -> None:
        super().__init__()
        self.first = Branch(width, filters, stride)
        self.second = Branch(width, filters, stride)
        self.shortcut: nn.Module = nn.Identity()
        if stride == 2:
            self.shortcut = ShiftedShortcut(width, filters)
        elif width != filters:
            self.shortcut = nn.Sequential(nn.Conv2d(width, filters, 1, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x: Tensor) -> Tensor:
        shortcut: Tensor = self.shortcut(x)
        return shortcut + shake(self.first(x), self.second(x), self.training)


@dataclass(frozen=True)
class ShakeShake26(Model):
    """Three stages of four two-branch blocks, 96, 192 and 384 wide: 26.2 M parameters.

    The network of Mean Teacher, fastSWA and the meta-gradient paper: nothing behind the first convolution, nothing
    before the average.
    """

    smallest: ClassVar[int | None] = 8  # the last stage sees 2 x 2

    original: bool = False
    """Gastaldi's own network: BatchNorm behind the first convolution, ReLU before the average"""

    def build(self, task: Task) -> Network:
        layers: list[nn.Module] = [nn.Conv2d(task.shape[0], 16, 3, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(16)] if self.original else []
        width = 16
        for filters, stride in ((96, 1), (192, 2), (384, 2)):
            for block in range(4):
                layers.append(ShakeBlock(width, filters, stride if block == 0 else 1))
                width = filters
        body = nn.Sequential(*layers, *([nn.ReLU()] if self.original else []), GlobalAverage())
        initialize_convolutions(body, "fan_out")
        for layer in body.modules():
            if isinstance(layer, ShiftedShortcut):
                layer.initialize()
        head = nn.Linear(width, len(task.classes))  # torch's initial weights
        return Network(Normalize(task.mean, task.std, images=True), body, head)
