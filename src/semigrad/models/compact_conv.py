"""A convolutional network for two processor cores and natural images: the most accuracy for a second, not for a step.

    x -> whitened 2 x 2 patches -> blocks of (convolution, 2 x 2 max pooling, norm, activation, convolution, norm,
    activation) -> the largest value of each channel -> linear

After the fastest public trainings on CIFAR-10 (Jordan: 94 % on CIFAR-10 in 3.29 seconds on a single GPU, 2024), made
small. The first convolution is not trained: its filters are the eigenvectors of the covariance of 2 x 2 patches, each
divided by the root of its eigenvalue, with both signs, so that what the next layer sees has no correlation left between
neighboring pixels. They come from training images without their labels. Pooling before normalization makes a block
cheap where images are large, and convolutions that start by handing on what they are given make the first steps count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Task
from semigrad.models.layers import GlobalAverage, GlobalMaximum, initialize_convolutions
from semigrad.models.network import Model, Network, Normalize
from semigrad.settings.fields import Count, PositiveShare, ShareBelowOne, refuse, value_problems

SLOPE = 0.1  # of the leaky ReLU
SIDE = 2  # of the patches that are whitened
SMALLEST_EIGENVALUE = 5e-4  # added, so that what hardly varies is not blown up


@dataclass(frozen=True)
class CompactConv(Model):
    """Whitened patches and three blocks of two convolutions, made for images of 16 x 16 to 64 x 64 on a processor."""

    smallest: ClassVar[int | None] = 8

    widths: tuple[Count, ...] = (24, 48, 48)
    """filters of each block"""
    activation: Literal["gelu", "leaky"] = "gelu"
    """nonlinearity: GELU, or a leaky ReLU"""
    whiten: bool = True
    """begin with whitened patches; else the first block sees the image"""
    initial: Literal["identity", "he"] = "identity"
    """initial weights: convolutions hand on what they are given, or He et al.'s"""
    top: Literal["maximum", "average"] = "maximum"
    """what is taken of each channel at the end"""
    momentum: PositiveShare = 0.4
    """share of the newest batch in BatchNorm's running statistics"""
    drop: ShareBelowOne = 0.0
    """probability of dropping a channel behind each block but the last"""

    def __post_init__(self) -> None:
        refuse(value_problems(self) + ([] if self.widths else ["widths needs at least one width; given: none."]))

    def build(self, task: Task) -> Network:
        normalize = Normalize(task.mean, task.std, images=True)
        layers: list[nn.Module] = []
        width, size = task.shape[0], min(task.shape[1:])
        if self.whiten:
            stride = max(1, size // 32)  # larger images become about as large as the small ones
            sample = None if task.sample is None else normalize(task.sample())
            filters = whitening_filters(sample, width)
            layers += [Whitening(filters, stride), self._activation()]
            width, size = len(filters), (size - SIDE) // stride + 1
        for place, wide in enumerate(self.widths):
            layers += self._block(width, wide, pooled=size >= 2, dropped=place + 1 < len(self.widths))
            width, size = wide, size // 2 if size >= 2 else size
        top = GlobalMaximum() if self.top == "maximum" else GlobalAverage()
        body = nn.Sequential(*layers, top)
        self._initialize(body)
        return Network(normalize, body, nn.Linear(width, len(task.classes)))

    def _block(self, width: int, filters: int, pooled: bool, dropped: bool) -> list[nn.Module]:
        return [
            nn.Conv2d(width, filters, 3, padding=1, bias=False),
            *([nn.MaxPool2d(2)] if pooled else []),
            nn.BatchNorm2d(filters, momentum=self.momentum),
            self._activation(),
            nn.Conv2d(filters, filters, 3, padding=1, bias=False),
            nn.BatchNorm2d(filters, momentum=self.momentum),
            self._activation(),
            *([nn.Dropout2d(self.drop)] if self.drop and dropped else []),
        ]

    def _activation(self) -> nn.Module:
        return nn.GELU() if self.activation == "gelu" else nn.LeakyReLU(SLOPE)

    def _initialize(self, body: nn.Module) -> None:
        """Torch's weights with the first filters replaced by those that copy a channel each; or He et al.'s."""
        for layer in (layer for layer in body.modules() if isinstance(layer, nn.Conv2d)):
            if self.initial == "he":
                initialize_convolutions(layer, "fan_in", SLOPE)
            else:
                with torch.no_grad():
                    nn.init.dirac_(layer.weight[: layer.in_channels])


class Whitening(nn.Module):
    """A convolution over 2 x 2 patches whose filters are those of the data; only its biases are trained."""

    filters: Tensor

    def __init__(self, filters: Tensor, stride: int) -> None:
        super().__init__()
        self.register_buffer("filters", filters)
        self.bias = nn.Parameter(torch.zeros(len(filters)))
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.filters, self.bias, self.stride)


def whitening_filters(images: Tensor | None, channels: int) -> Tensor:
    """(2 · C · 4, C, 2, 2): eigenvectors of the covariance of patches over the roots of their eigenvalues, largest
    first, and the same with the other sign. Without images, as where weights are loaded over them, single pixels."""
    count = channels * SIDE**2
    covariance = torch.eye(count, dtype=torch.float64)
    if images is not None:
        patches = images.double().unfold(2, SIDE, 1).unfold(3, SIDE, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, count)
        covariance = torch.cov(patches.T)
    values, vectors = torch.linalg.eigh(covariance)
    rows = (vectors / (values + SMALLEST_EIGENVALUE).sqrt()).T.flip(0).reshape(count, channels, SIDE, SIDE)
    return torch.cat([rows, -rows]).float()
