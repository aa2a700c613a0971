"""A map of some rows in two dimensions on which near ones are near: t-SNE (van der Maaten, Hinton: Visualizing Data
using t-SNE, 2008), with all pairs.

    p(j|i) ∝ exp(−βᵢ |xᵢ − xⱼ|²), βᵢ so that its perplexity is the one asked for;  p = (p(j|i) + p(i|j)) / 2N
    q ∝ 1 / (1 + |yᵢ − yⱼ|²);  minimize KL(p ‖ q) over y

For the few hundred points of a page all pairs are quicker than scikit-learn's tree, and than loading scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

PERPLEXITY = 30.0
EXAGGERATION, EXAGGERATED = 12.0, 250  # of p, in the first so many steps
STEPS = 750
WIDTH = 30
"""Principal axes that are looked at: neighbors hardly change, and noise is left out."""
HALVINGS = 50
SMALLEST = 0.01  # of the factor that each coordinate's steps have


def neighbor_map(features: np.ndarray) -> np.ndarray:
    """(N, width) -> (N, 2), the same whenever it is asked."""
    x = principal_axes(torch.from_numpy(features).double())
    near = affinities(x).float()
    y = (1e-4 * x[:, :2] / x[:, 0].std().clamp(min=1e-12)).float()
    if y.shape[1] < 2:
        y = torch.cat([y, torch.zeros_like(y)], 1)
    speed, factor = torch.zeros_like(y), torch.ones_like(y)
    rate = max(len(y) / EXAGGERATION / 4, 50.0)
    for step in range(STEPS):
        gradient = _gradient(y, near * EXAGGERATION if step < EXAGGERATED else near)
        onward = speed * gradient < 0
        factor = torch.where(onward, factor + 0.2, factor * 0.8).clamp(min=SMALLEST)
        speed = (0.5 if step < EXAGGERATED else 0.8) * speed - rate * factor * gradient
        y = y + speed
    found: np.ndarray = (y - y.mean(0)).double().numpy()
    return found


def principal_axes(x: Tensor) -> Tensor:
    """(N, width) -> (N, at most 30): coordinates along the axes of largest variance."""
    u, sizes, _ = torch.linalg.svd(x - x.mean(0), full_matrices=False)
    signs = u.gather(0, u.abs().argmax(0, keepdim=True)).sign()  # an axis has no sign of its own
    coordinates: Tensor = u * signs * sizes
    return coordinates[:, :WIDTH]


def affinities(x: Tensor) -> Tensor:
    """p, (N, N): a distribution over pairs."""
    distances = torch.cdist(x, x).square()
    perplexity = min(PERPLEXITY, (len(x) - 1) / 3)
    low, high = torch.full((len(x), 1), 1e-12).double(), torch.full((len(x), 1), 1e12).double()
    scale = distances.mean().clamp(min=1e-300)
    for _ in range(HALVINGS):  # of the logarithm: the entropy falls as β grows
        beta = (low * high).sqrt()
        wide = _entropy(_conditional(distances, beta / scale)) > math.log(perplexity)
        low, high = torch.where(wide, beta, low), torch.where(wide, high, beta)
    given = _conditional(distances, (low * high).sqrt() / scale)
    return (given + given.T) / (2 * len(x))


def _conditional(distances: Tensor, beta: Tensor) -> Tensor:
    """p(j|i), row by row."""
    logits = -beta * distances
    return logits.fill_diagonal_(-math.inf).softmax(1)


def _entropy(p: Tensor) -> Tensor:
    return -torch.xlogy(p, p).sum(1, keepdim=True)


def _gradient(y: Tensor, near: Tensor) -> Tensor:
    """Of KL(p ‖ q), where p need not sum to one."""
    lengths = y.square().sum(1)
    kernel = (1 + lengths[:, None] + lengths[None] - 2 * y @ y.T).clamp(min=1).reciprocal().fill_diagonal_(0)
    pull = (near - kernel / kernel.sum()) * kernel
    return 4 * (pull.sum(1, keepdim=True) * y - pull @ y)
