"""What all measurements share: digits as features, two networks, and the points at which they are looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from semigrad.core import CPU, derive_seed, generator, random_state_kept
from semigrad.core.ops import one_hot, squared_error

CLASSES = 10


@dataclass(frozen=True)
class Scene:
    """N^l labeled examples, and a pool of N^u that contains them: its first N^l rows."""

    x: Tensor  # (N^l, features) float64
    y: Tensor  # (N^l, classes) rows with a single one
    pool: Tensor  # (N^u, features)

    def batch(self, size: int, *seed: object) -> Tensor:
        """A uniformly drawn unlabeled batch (size, features); a pure function of the seed."""
        return self.pool[torch.from_numpy(generator("batch", *seed).choice(len(self.pool), size, replace=False))]


def digits_scene(labeled: int = 100) -> Scene:
    """scikit-learn's 1,797 digits: pixels / 16, less their mean, and a constant 1 for the bias: 65 features.

    Without the mean taken off, its direction alone makes L0 eleven times larger."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    pixels = bunch.images.reshape(len(bunch.images), -1) / 16
    features = np.concatenate([pixels - pixels.mean(0), np.ones((len(pixels), 1))], axis=1)
    order = generator("theory", "labeled").permutation(len(features))
    rank = np.zeros(len(order), dtype=int)  # how many of its class come before it
    for digit in range(CLASSES):
        of_class = order[bunch.target[order] == digit]
        rank[of_class] = np.arange(len(of_class))
    order = order[np.argsort(rank[order], kind="stable")]  # so that any first rows hold the classes equally
    pool = torch.from_numpy(features[order])
    return Scene(pool[:labeled], one_hot(torch.from_numpy(bunch.target[order[:labeled]]), CLASSES, pool), pool)


def linear_softmax(scene: Scene, seed: int = 0, spread: float = 0.3) -> nn.Linear:
    """f = softmax(Wx), the entries of W normal with standard deviation `spread`."""
    net = nn.Linear(scene.x.shape[1], CLASSES, bias=False, device="meta", dtype=torch.float64).to_empty(device=CPU)
    with torch.no_grad():
        net.weight.copy_(torch.from_numpy(generator("linear", seed).normal(0, spread, tuple(net.weight.shape))))
    return net.eval()


def smooth_mlp(scene: Scene, seed: int = 0, width: int = 16) -> nn.Sequential:
    """features -> width -> classes with tanh: twice continuously differentiable, as the theorems need."""
    with random_state_kept(CPU):
        torch.manual_seed(derive_seed("mlp", seed))
        net = nn.Sequential(nn.Linear(scene.x.shape[1], width), nn.Tanh(), nn.Linear(width, CLASSES))
    return net.double().eval()


def squared_error_of_logits(logits: Tensor, rows: Tensor) -> Tensor:
    """(1/N) Σ ‖softmax(z_k) − y_k‖²: the labeled loss of Theorem 2's proof, as a loss of logits."""
    return squared_error(logits.softmax(1), rows)
