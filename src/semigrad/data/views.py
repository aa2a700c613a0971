"""The views of an example that a method can ask for: as it is, weakly changed, strongly changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from semigrad import augment
from semigrad.augment import Corruption
from semigrad.augment.arrays import Draws
from semigrad.data.dataset import DRAWS, Dataset, ready


@dataclass(frozen=True)
class RowsOfDraws:
    """Some rows of what a generator draws for a whole batch of so many."""

    draws: np.random.Generator
    total: int
    rows: slice

    def random(self, size: Sequence[int]) -> np.ndarray:
        return self.draws.random((self.total, *size[1:]))[self.rows]

    def standard_normal(self, size: Sequence[int]) -> np.ndarray:
        return self.draws.standard_normal((self.total, *size[1:]))[self.rows]


@dataclass(frozen=True)
class Sight:
    """What a view is made from: some training examples, and the draws for this view of them."""

    dataset: Dataset
    positions: np.ndarray
    corruption: Corruption  # for feature arrays
    draws: Draws

    @property
    def raw(self) -> Tensor:
        return self.dataset.train.raw(self.positions)

    @property
    def of_features(self) -> bool:
        return len(self.dataset.train.shape) == 1

    def uniform(self, count: int) -> np.ndarray:
        """(rows, count) numbers in [0, 1), the next ones for this view."""
        return self.draws.random((len(self.positions), count))


def raw(sight: Sight) -> Tensor:
    return sight.raw


def weak(sight: Sight) -> Tensor:
    """Images cropped and mirrored as the data allow; features with noise."""
    if sight.of_features:
        rows = sight.raw
        return sight.corruption.weak(rows, rows.new_tensor(sight.dataset.std), sight.draws)
    return sight.dataset.train.weak(sight.positions, sight.uniform(DRAWS))


def strong(sight: Sight) -> Tensor:
    """RandAugment and cutout on top of the weak view; features with noise, dropout and masking."""
    if sight.of_features:
        rows, mean, std = sight.raw, sight.dataset.mean, sight.dataset.std
        return sight.corruption.strong(rows, rows.new_tensor(mean), rows.new_tensor(std), sight.draws)
    images = weak(sight)
    return augment.strong(ready(images, images.device), sight.uniform(augment.STRONG_DRAWS))


VIEWS: dict[str, Callable[[Sight], Tensor]] = {"raw": raw, "weak": weak, "strong": strong}
"""By the names that `Traits.views` has; (B, *shape) each, images as uint8 or in [0, 1]."""
