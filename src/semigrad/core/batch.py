"""What a method is given: the batch of a step, and what the data are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Batch:
    """What one step sees. Images are in [0, 1]; features are as they came."""

    labeled: tuple[Tensor, ...]  # one (B_l, *shape) for each of the method's labeled views
    labels: Tensor  # (B_l,) class numbers
    unlabeled: tuple[Tensor, ...]  # one (B_u, *shape) for each of the method's views
    labeled_index: Tensor  # (B_l,) positions in the training part
    unlabeled_index: Tensor  # (B_u,) positions in the training part

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The same batch with every tensor of examples changed (moved, converted)."""
        return Batch(
            tuple(change(x) for x in self.labeled),
            self.labels,
            tuple(change(x) for x in self.unlabeled),
            self.labeled_index,
            self.unlabeled_index,
        )


@dataclass(frozen=True)
class Task:
    """What the data are."""

    classes: tuple[str, ...]
    shape: tuple[int, ...]  # of one example: (channels, height, width), or (features,)
    mean: tuple[float, ...]  # per channel or feature, over the training part
    std: tuple[float, ...]
    labeled: int  # number of labeled examples
    unlabeled: int  # number of examples in the unlabeled pool
    examples: int  # number of examples in the training part, to which positions in a batch refer
    marginal: tuple[float, ...]  # share of each class among the labeled examples
    fresh: Callable[[], nn.Module]  # another network of the same kind, newly initialized
    mirrored: bool = False  # a mirrored image keeps its class (not so for digits)
    sample: Callable[[], Tensor] | None = None  # some training images in [0, 1], (N, *shape), without their labels

    @property
    def images(self) -> bool:
        return len(self.shape) == 3

    @property
    def unit(self) -> Tensor:
        """What a change by 1 is, for methods that change examples: the width of [0, 1] in images; in features, which
        have scales of their own, the standard deviation of each."""
        return torch.ones(()) if self.images else torch.tensor(self.std)
