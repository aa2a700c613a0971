"""A small convolutional network for quick work on a processor and images of 8 x 8 to 64 x 64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from semigrad.core import Task
from semigrad.models.layers import GlobalAverage, initialize_convolutions
from semigrad.models.network import Model, Network, Normalize
from semigrad.settings.fields import Count, ShareBelowOne, refuse, value_problems

SLOPE = 0.1  # of the leaky ReLU


@dataclass(frozen=True)
class SmallConv(Model):
    """Blocks of convolution, BatchNorm, leaky ReLU and 2 x 2 max pooling, then the average: 54 k parameters.

    Built for the task's shape: a block whose pooling would leave less than 2 x 2 does without. Dropout of channels
    between the blocks, as in Conv-Large, is what consistency methods are consistent against.
    """

    smallest: ClassVar[int | None] = 4  # below, a 3 x 3 kernel sees more padding than image

    widths: tuple[Count, ...] = (24, 48, 96)
    """filters of each block"""
    drop: ShareBelowOne = 0.25
    """probability of dropping a channel between blocks"""

    def __post_init__(self) -> None:
        refuse(value_problems(self) + ([] if self.widths else ["widths needs at least one width; given: none."]))

    def build(self, task: Task) -> Network:
        layers: list[nn.Module] = []
        width, size = task.shape[0], min(task.shape[1:])
        for filters in self.widths:
            layers += [nn.Conv2d(width, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters)]
            layers += [nn.LeakyReLU(SLOPE)]
            if size >= 4:
                layers += [nn.MaxPool2d(2)]
                size //= 2
            layers += [nn.Dropout2d(self.drop)]
            width = filters
        body = nn.Sequential(*layers[:-1], GlobalAverage())
        initialize_convolutions(body, "fan_in", SLOPE)
        head = nn.Linear(width, len(task.classes))  # torch's initial weights
        return Network(Normalize(task.mean, task.std, images=True), body, head)
