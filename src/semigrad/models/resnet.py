"""ResNet-18 for large images (He et al., 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Task
from semigrad.models.layers import GlobalAverage, initialize_convolutions
from semigrad.models.network import Model, Network, Normalize


class BasicBlock(nn.Module):
    """ReLU(shortcut(x) + residual(x)), the residual two 3 x 3 convolutions with BatchNorm."""

    def __init__(self, width: int, filters: int, stride: int, zero_init: bool) -> None:
        super().__init__()
        last = nn.BatchNorm2d(filters)
        if zero_init:
            nn.init.zeros_(last.weight)
        self.residual = nn.Sequential(
            nn.Conv2d(width, filters, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(filters),
            nn.ReLU(),
            nn.Conv2d(filters, filters, 3, padding=1, bias=False),
            last,
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or width != filters:
            self.shortcut = nn.Sequential(nn.Conv2d(width, filters, 1, stride, bias=False), nn.BatchNorm2d(filters))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.shortcut(x) + self.residual(x))


@dataclass(frozen=True)
class ResNet18(Model):
    """A 7 x 7 stem and four stages of two blocks, 64 to 512 wide: 11.7 M parameters for 1000 classes."""

    smallest: ClassVar[int | None] = 32  # halved five times, to 1 x 1

    zero_init: bool = False
    """start each block as the identity: its last BatchNorm's weight is 0"""

    def build(self, task: Task) -> Network:
        layers: list[nn.Module] = [
            nn.Conv2d(task.shape[0], 64, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.MaxPool2d(3, stride=2, padding=1),
        ]
        width = 64
        for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            layers += [BasicBlock(width, filters, stride, self.zero_init)]
            layers += [BasicBlock(filters, filters, 1, self.zero_init)]
            width = filters
        body = nn.Sequential(*layers, GlobalAverage())
        initialize_convolutions(body, "fan_out")
        head = nn.Linear(width, len(task.classes))  # torch's initial weights
        return Network(Normalize(task.mean, task.std, images=True), body, head)
