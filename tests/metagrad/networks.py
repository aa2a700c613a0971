"""Networks and batches that the tests of the meta-gradient share; all in float64."""

import torch
from torch import nn


def tanh_mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 7), nn.Tanh(), nn.Linear(7, 4)).double()


def conv_net() -> nn.Sequential:
    net = nn.Sequential(
        nn.Conv2d(2, 5, 3, padding=1), nn.BatchNorm2d(5), nn.LeakyReLU(0.1), nn.MaxPool2d(2), nn.Dropout(0.4),
        nn.Conv2d(5, 6, 3), nn.BatchNorm2d(6), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(6, 4),
    ).double()  # fmt: skip
    with torch.no_grad():
        for _ in range(3):
            net(torch.randn(16, 2, 8, 8, dtype=torch.float64))  # running statistics away from their initial values
    return net


def batches(net: nn.Sequential) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Five labeled and seven unlabeled examples for one of the networks above."""
    labeled, unlabeled = 5, 7
    shape = (6,) if isinstance(net[0], nn.Linear) else (2, 8, 8)
    x, u = (torch.randn(n, *shape, dtype=torch.float64) for n in (labeled, unlabeled))
    return x, torch.randint(4, (labeled,)), u


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())
