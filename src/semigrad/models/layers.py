"""Layers and initial weights that several networks share."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn


class GlobalAverage(nn.Module):
    """The mean over height and width: (B, C, H, W) -> (B, C), for maps of any size."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


class GlobalMaximum(nn.Module):
    """The largest value over height and width: (B, C, H, W) -> (B, C)."""

    def forward(self, x: Tensor) -> Tensor:
        return x.amax((2, 3))


class GaussianNoise(nn.Module):
    """x + σ·ε with ε ~ N(0, 1) for each element, in train mode only."""

    def __init__(self, sigma: float) -> None:
        super().__init__()
        self.sigma = sigma

    def forward(self, x: Tensor) -> Tensor:
        return x + self.sigma * torch.randn_like(x) if self.training and self.sigma > 0 else x

    def extra_repr(self) -> str:
        return f"sigma={self.sigma}"


class NormalizedLinear(nn.Linear):
    """BatchNorm(W h + b): a head whose logits are normalized over the batch."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features)
        self.norm = nn.BatchNorm1d(out_features)

    def forward(self, h: Tensor) -> Tensor:
        logits: Tensor = self.norm(super().forward(h))
        return logits


def initialize_convolutions(net: nn.Module, fan: Literal["fan_in", "fan_out"], slope: float = 0.0) -> None:
    """He et al. (2015): weights ~ N(0, 2 / ((1 + slope²)·fan)), biases 0; `slope` is the leaky ReLU's."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, a=slope, mode=fan, nonlinearity="leaky_relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
