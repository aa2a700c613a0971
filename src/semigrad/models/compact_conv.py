"""A convolutional network for two processor cores and natural images: the most accuracy for a second, not for a step.

    x -> whitened patches -> blocks of (convolution, 2 x 2 max pooling, norm, activation, convolution, norm, activation)
    -> the largest value of each channel -> linear

After the fastest public trainings on CIFAR-10 (Jordan: 94 % on CIFAR-10 in 3.29 seconds on a single GPU, 2024), made
small. The first convolution is not trained: its filters are the first eigenvectors of the covariance of patches, each
divided by the root of its eigenvalue, with both signs, so that what the next layer sees has no correlation left between
neighboring pixels. They come from training images without their labels. Patches are twice as wide as they are apart, so
that every pixel is seen by neighbors. What is large is narrow: half of the eigenvectors, and a first block of few
filters, since on the whole image each costs 16 times what it costs in the third block. Pooling before normalization
makes a block cheap where images are large, and convolutions that start by handing on what they are given make the first
steps count.
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
from semigrad.settings.fields import Count, Positive, PositiveShare, ShareBelowOne, refuse, value_problems

SLOPE = 0.1  # of the leaky ReLU
SMALLEST_EIGENVALUE = 5e-4  # added, so that what hardly varies is not blown up


@dataclass(frozen=True)
class CompactConv(Model):
    """Whitened patches and three blocks of two convolutions, made for images of 16 x 16 to 64 x 64 on a processor."""

    smallest: ClassVar[int | None] = 8

    widths: tuple[Count, ...] = (16, 48, 64)
    """filters of each block"""
    activation: Literal["gelu", "leaky"] = "leaky"
    """nonlinearity: GELU, or a leaky ReLU"""
    stride: Count = 1
    """pixels between whitened patches in an image of 32 x 32; in larger ones in proportion"""
    filters: Count = 12
    """whitened patches: at most so many filters, every second with the other sign"""
    whiten: bool = True
    """begin with whitened patches; else the first block sees the image"""
    initial: Literal["identity", "he"] = "identity"
    """initial weights: convolutions hand on what they are given, or He et al.'s"""
    top: Literal["maximum", "average"] = "maximum"
    """what is taken of each channel at the end"""
    scale: Positive = 0.3
    """what that is multiplied by: small logits let targets that are not sure yet teach from the first steps on"""
    momentum: PositiveShare = 0.4
    """share of the newest batch in BatchNorm's running statistics"""
    drop: ShareBelowOne = 0.1
    """probability of dropping a channel behind each block but the last"""

    def __post_init__(self) -> None:
        refuse(value_problems(self) + ([] if self.widths else ["widths needs at least one width; given: none."]))

    def build(self, task: Task) -> Network:
        normalize = Normalize(task.mean, task.std, images=True)
        layers: list[nn.Module] = []
        width, size = task.shape[0], min(task.shape[1:])
        if self.whiten:
            stride = self.stride * max(1, size // 32)  # larger images become about as large as the small ones
            sample = None if task.sample is None else normalize(task.sample())
            filters = whitening_filters(sample, width, 2 * stride, (self.filters + 1) // 2)
            first = Whitening(filters, stride, padding_for(size, stride))
            layers += [first, self._activation()]
            width, size = len(filters), first.size_of(size)
        for place, wide in enumerate(self.widths):
            layers += self._block(width, wide, pooled=size >= 2, dropped=place + 1 < len(self.widths))
            width, size = wide, size // 2 if size >= 2 else size
        top = GlobalMaximum() if self.top == "maximum" else GlobalAverage()
        body = nn.Sequential(*layers, top, Scaled(self.scale))
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


@dataclass(frozen=True)
class CompactConvLarge(CompactConv):
    """The same, twice as wide: 3.4 times the work, for those who have the time."""

    widths: tuple[Count, ...] = (32, 96, 128)
    """filters of each block"""


class Scaled(nn.Module):
    """A factor that is not trained."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x


class Whitening(nn.Module):
    """A convolution over patches whose filters are those of the data; only its biases are trained."""

    filters: Tensor

    def __init__(self, filters: Tensor, stride: int, padding: int) -> None:
        super().__init__()
        self.register_buffer("filters", filters)
        self.bias = nn.Parameter(torch.zeros(len(filters)))
        self.stride, self.padding = stride, padding

    def size_of(self, side: int) -> int:
        """What becomes of the side of an image."""
        return (side + 2 * self.padding - self.filters.shape[-1]) // self.stride + 1

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.filters, self.bias, self.stride, self.padding)


def padding_for(side: int, stride: int) -> int:
    """The padding nearest to half a stride with which patches reach the last pixel of a side."""
    reaching = [padding for padding in range(stride + 1) if (side + 2 * padding) % stride == 0]
    return min(reaching or [stride // 2], key=lambda padding: abs(2 * padding - stride))


def whitening_filters(images: Tensor | None, channels: int, side: int, most: int) -> Tensor:
    """(2 · N, C, side, side): the first N eigenvectors of the covariance of patches, each over the root of its
    eigenvalue, and the same with the other sign. Without images, as where weights are loaded over them: pixels."""
    count = channels * side**2
    covariance = torch.eye(count, dtype=torch.float64)
    if images is not None:
        covariance = torch.cov(F.unfold(images.double(), side).transpose(0, 1).flatten(1))
    values, vectors = torch.linalg.eigh(covariance)
    rows = (vectors / (values + SMALLEST_EIGENVALUE).sqrt()).T.flip(0)[:most].reshape(-1, channels, side, side)
    return torch.cat([rows, -rows]).float()
