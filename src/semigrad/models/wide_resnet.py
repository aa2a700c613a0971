"""Wide ResNet-28 (Zagoruyko and Komodakis, 2016) as MixMatch, ReMixMatch and FixMatch use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from semigrad.core import Task
from semigrad.models.layers import GlobalAverage, initialize_convolutions
from semigrad.models.network import Model, Network, Normalize
from semigrad.settings.fields import Count, ShareBelowOne, refuse, value_problems

SLOPE = 0.1  # of the leaky ReLU
BLOCKS = 4  # in each of three groups: 3 · 4 · 2 convolutions, the stem and three shortcuts make 28


def activate(width: int, momentum: float) -> nn.Sequential:
    return nn.Sequential(nn.BatchNorm2d(width, momentum=momentum), nn.LeakyReLU(SLOPE))


class PreactivationBlock(nn.Module):
    """shortcut(x) + residual(a) with a = activate(x); the network's first block takes its shortcut from a as well."""

    def __init__(self, width: int, filters: int, stride: int, momentum: float, first: bool) -> None:
        super().__init__()
        self.first = first
        self.activate = activate(width, momentum)
        self.residual = nn.Sequential(
            nn.Conv2d(width, filters, 3, stride, padding=1, bias=False),
            activate(filters, momentum),
            nn.Conv2d(filters, filters, 3, padding=1, bias=False),
        )
        self.shortcut: nn.Module = nn.Identity()
        if width != filters:
            self.shortcut = nn.Conv2d(width, filters, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        activated = self.activate(x)
        shortcut: Tensor = self.shortcut(activated if self.first else x)
        residual: Tensor = self.residual(activated)
        return shortcut + residual


@dataclass(frozen=True)
class WideResNet28(Model):
    """Three groups of four pre-activation blocks, 32, 64 and 128 wide at width 2: 1.5 M parameters."""

    smallest: ClassVar[int | None] = 8  # the last group sees 2 x 2

    width: Count = 2
    """factor on the widths 16, 32 and 64 of the three groups (FixMatch on CIFAR-100: 8)"""
    momentum: ShareBelowOne = 0.1
    """share of the newest batch in BatchNorm's running statistics (the *Match papers: 0.001)"""

    def __post_init__(self) -> None:
        refuse(value_problems(self))

    def build(self, task: Task) -> Network:
        layers: list[nn.Module] = [nn.Conv2d(task.shape[0], 16, 3, padding=1, bias=False)]
        width = 16
        for group, filters in enumerate((16 * self.width, 32 * self.width, 64 * self.width)):
            for block in range(BLOCKS):
                stride = 2 if group > 0 and block == 0 else 1
                layers.append(PreactivationBlock(width, filters, stride, self.momentum, first=group == block == 0))
                width = filters
        body = nn.Sequential(*layers, activate(width, self.momentum), GlobalAverage())
        initialize_convolutions(body, "fan_out")
        head = nn.Linear(width, len(task.classes))
        nn.init.xavier_normal_(head.weight)  # as in their networks
        nn.init.zeros_(head.bias)
        return Network(Normalize(task.mean, task.std, images=True), body, head)
