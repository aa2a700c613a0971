"""Views of feature arrays: noise, dropout and masking, since nothing is known of what the columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


def noise(features: Tensor, std: Tensor, amount: float, draws: Tensor) -> Tensor:
    """x + amount · σ_j · ε; features (B, D), std (D,), draws ε (B, D) from N(0, 1)."""
    return features + amount * std * draws


def dropout(features: Tensor, mean: Tensor, share: float, draws: Tensor) -> Tensor:
    """Features whose draw is below `share` become their mean, and the others move away from theirs by 1/(1 − share),
    so that the expectation stays."""
    kept = mean + (features - mean) / (1 - share)
    return torch.where(draws < share, mean, kept)


def mask(features: Tensor, mean: Tensor, share: float, draws: Tensor) -> Tensor:
    """Features whose draw is below `share` become their mean; the others stay."""
    return torch.where(draws < share, mean, features)


class Draws(Protocol):
    """What a view draws its numbers from: a generator of numpy's, or some rows of one."""

    def random(self, size: Sequence[int]) -> np.ndarray: ...
    def standard_normal(self, size: Sequence[int]) -> np.ndarray: ...


@dataclass(frozen=True)
class Corruption:
    """How strongly views of feature arrays differ from the rows: weak ones by noise, strong ones by all three."""

    noise: float = 0.0
    dropout: float = 0.0
    mask: float = 0.0

    def weak(self, features: Tensor, std: Tensor, draws: Draws) -> Tensor:
        """(B, D) -> (B, D) with noise; every row uses its own row of draws."""
        return noise(features, std, self.noise, torch.from_numpy(draws.standard_normal(features.shape)).to(features))

    def strong(self, features: Tensor, mean: Tensor, std: Tensor, draws: Draws) -> Tensor:
        """(B, D) -> (B, D) with noise, dropout and masking."""
        rows = self.weak(features, std, draws)
        rows = dropout(rows, mean, self.dropout, torch.from_numpy(draws.random(features.shape)).to(features))
        return mask(rows, mean, self.mask, torch.from_numpy(draws.random(features.shape)).to(features))
