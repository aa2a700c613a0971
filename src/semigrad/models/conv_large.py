"""Conv-Large, the 13-layer network of the consistency papers (Laine and Aila, 2017; Tarvainen and Valpola, 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from semigrad.core import Task
from semigrad.models.layers import GaussianNoise, GlobalAverage, NormalizedLinear, initialize_convolutions
from semigrad.models.network import Model, Network, Normalize
from semigrad.models.weight_norm import MeanOnlyBatchNorm2d, WeightNormConv2d
from semigrad.settings.fields import NotNegative, ShareBelowOne, refuse, value_problems

Norm = Literal["batch", "weight", "weight-mean-only"]
Dropout = Literal["channel", "element", "none"]
Initial = Literal["he", "torch"]

SLOPE = 0.1  # of the leaky ReLU
POOL = None

# Filters, kernel size and padding, row by row as in the paper's table of the architecture; POOL is the 2 x 2 max
# pooling and the dropout behind it. (The table gives its second pooling 128 filters: a misprint for 256.)
ROWS: tuple[tuple[int, int, int] | None, ...] = (
    (128, 3, 1),
    (128, 3, 1),
    (128, 3, 1),
    POOL,
    (256, 3, 1),
    (256, 3, 1),
    (256, 3, 1),
    POOL,
    (512, 3, 0),
    (256, 1, 0),
    (128, 1, 0),
)


@dataclass(frozen=True)
class ConvLarge(Model):
    """Three convolutions of 128, three of 256, then 512, 256, 128 and the average: 3.1 M parameters.

    The default is the network of the meta-gradient paper; the fields give those of the papers it compares with.
    """

    smallest: ClassVar[int | None] = 12  # two poolings leave 3 x 3, which the unpadded convolution takes to 1 x 1

    norm: Norm = "batch"
    """BatchNorm; weight normalization and BatchNorm (fastSWA, Dual Student); or the former and mean-only (tempens)"""
    dropout: Dropout = "channel"
    """what dropout zeroes: whole channels, single elements (VAT, tempens), or nothing"""
    drop: ShareBelowOne = 0.5
    """probability of dropout"""
    noise: NotNegative = 0.0
    """standard deviation of the Gaussian noise on the normalized input in training (tempens: 0.15)"""
    top_norm: bool = False
    """BatchNorm on the logits (VAT and ADA-Net on SVHN)"""
    initial: Initial = "he"
    """initial weights of the convolutions: He et al.'s, or torch's own, which are smaller (the meta-gradient paper)"""

    def __post_init__(self) -> None:
        refuse(value_problems(self))

    def build(self, task: Task) -> Network:
        # The noise follows the normalization, as in the originals, whose inputs were whitened beforehand.
        layers: list[nn.Module] = [GaussianNoise(self.noise)]
        width = task.shape[0]
        for row in ROWS:
            if row is POOL:
                layers += [nn.MaxPool2d(2), self._dropout()]
            else:
                layers.append(self._convolution(width, *row))
                width = row[0]
        body = nn.Sequential(*layers, GlobalAverage())
        if self.initial == "he":
            initialize_convolutions(body, "fan_in", SLOPE)
        head = (NormalizedLinear if self.top_norm else nn.Linear)(width, len(task.classes))  # torch's initial weights
        return Network(Normalize(task.mean, task.std, images=True), body, head)

    def _convolution(self, width: int, filters: int, kernel: int, padding: int) -> nn.Module:
        convolution = (
            nn.Conv2d(width, filters, kernel, padding=padding, bias=False)
            if self.norm == "batch"
            else WeightNormConv2d(width, filters, kernel, padding, SLOPE)
        )
        norm = MeanOnlyBatchNorm2d(filters) if self.norm == "weight-mean-only" else nn.BatchNorm2d(filters)
        return nn.Sequential(convolution, norm, nn.LeakyReLU(SLOPE))

    def _dropout(self) -> nn.Module:
        if self.dropout == "none":
            return nn.Identity()
        return nn.Dropout2d(self.drop) if self.dropout == "channel" else nn.Dropout(self.drop)
