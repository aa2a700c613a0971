"""A variational autoencoder, whose decoder spans the manifold of the data (Kingma, Welling: Auto-Encoding Variational
Bayes, 2014).

    q(z|x) = N(m(x), exp s(x)),   z = m + exp(s/2)·ε,   ε ~ N(0, I)
    L = (E(x, D(z)) + β·KL(q(z|x) ‖ N(0, I))) / d        d numbers in an example

For images E is the cross-entropy of the pixels and β = ½. For features, standardized first, E = √(1 + e²) − 1, which is
½e² for small errors e; the squared error itself lets SGD at the rate of a classifier diverge on a few features or on
outliers, this one cannot push harder than 1. β = 0.05, as if the noise of a feature had a twentieth of its variance: at
all of it no code would pay. Divided by d, the gradients are of one size for all shapes; where features are fewer than a
quarter of the hidden units, that stands for d. No layer depends on the mode or on other rows, and all are smooth: the
decoder has a Jacobian everywhere.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.core import Task
from semigrad.models.network import Normalize

GRID = 4  # images are halved until a side is this short
GAIN = 1.6  # SiLU makes a standard normal signal this much smaller
BOUND = 6.0  # of the log variance: its exponential cannot explode, whatever a step does


class VAE(nn.Module):
    """Encoder and decoder for any task: convolutions for images in [0, 1], linear layers for feature arrays."""

    def __init__(self, task: Task, latent: int, width: int) -> None:
        super().__init__()
        self.images, self.latent = task.images, latent
        dimension = math.prod(task.shape)
        self.scale = 1 / dimension if task.images else 1 / max(dimension, width / 4)
        self.normalize = Normalize(task.mean, task.std, task.images)
        layers = _convolutions if task.images else _linear
        self.encoder, self.decoder = layers(task.shape, latent, width)
        _initialize(self.encoder)
        _initialize(self.decoder)

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, *shape) -> mean and log variance of the latent code, (B, latent) each."""
        mean, log_variance = self.encoder(self.normalize(x)).chunk(2, dim=1)
        return mean, BOUND * torch.tanh(log_variance / BOUND)

    def decode(self, z: Tensor) -> Tensor:
        """(B, latent) -> (B, *shape), the mean of x given z, in units of x."""
        out: Tensor = self.decoder(z)
        return out.sigmoid() if self.images else self.normalize.mean + self.normalize.std * out

    def loss(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Error of reconstruction and β·KL, both divided by d: means over the rows; ε = noise (B, latent)."""
        mean, log_variance = self.encode(x)
        out = self.decoder(mean + (log_variance / 2).exp() * noise)
        if self.images:
            beta, error = 0.5, F.binary_cross_entropy_with_logits(out, x, reduction="none")
        else:
            beta, error = 0.05, (1 + (self.normalize(x) - out).square()).sqrt() - 1
        divergence = (mean.square() + log_variance.exp() - log_variance - 1) / 2
        return self.scale * error.sum() / len(x), self.scale * beta * divergence.sum() / len(x)


def _linear(shape: tuple[int, ...], latent: int, width: int) -> tuple[nn.Module, nn.Module]:
    def between(given: int, wanted: int) -> nn.Module:
        return nn.Sequential(
            nn.Linear(given, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, wanted)
        )

    return between(shape[0], 2 * latent), between(latent, shape[0])


def _convolutions(shape: tuple[int, ...], latent: int, width: int) -> tuple[nn.Module, nn.Module]:
    """Strided convolutions down to a small grid; back by enlarging to the sizes met on the way, which may be odd."""
    sizes, widths = [shape[1:]], [shape[0]]
    while min(sizes[-1]) > GRID or len(sizes) == 1:
        sizes.append(tuple((side + 1) // 2 for side in sizes[-1]))
        widths.append(min(2 * widths[-1], 4 * width) if len(widths) > 1 else width)
    down: list[nn.Module] = []
    up: list[nn.Module] = []
    for wide, narrow, size in zip(widths[1:], widths, sizes, strict=False):
        down += [nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.SiLU()]
        up = [nn.SiLU(), nn.Upsample(size=size), nn.Conv2d(wide, narrow, 3, padding=1), *up]
    grid = (widths[-1], *sizes[-1])
    return (
        nn.Sequential(*down, nn.Flatten(), nn.Linear(math.prod(grid), 2 * latent)),
        nn.Sequential(nn.Linear(latent, math.prod(grid)), nn.Unflatten(1, grid), *up),
    )


def _initialize(part: nn.Module) -> None:
    """Weights ~ N(0, 1/fan in) in the last layer, N(0, GAIN²/fan in) before: signals keep their size through SiLU."""
    layers = [layer for layer in part.modules() if isinstance(layer, nn.Linear | nn.Conv2d)]
    for layer in layers:
        gain = 1.0 if layer is layers[-1] else GAIN
        nn.init.normal_(layer.weight, std=gain / math.sqrt(layer.weight[0].numel()))
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
