"""What every source returns: examples in memory or in files, their classes, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from semigrad import augment
from semigrad.core import on_device
from semigrad.data.columns import Columns

DRAWS = 5
"""Uniform numbers in [0, 1) that one weak view of one example may use."""


class Examples(Protocol):
    """A row of examples that can be taken by position: uint8 images (rows, channels, height, width), or float32
    features (rows, features)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one example."""
        ...

    @property
    def streamed(self) -> bool:
        """Read from files at every step (by worker processes) instead of standing in memory."""
        ...

    @property
    def mirrored(self) -> bool:
        """A mirrored image keeps its class; not so for digits."""
        ...

    def __len__(self) -> int: ...

    def take(self, index: np.ndarray) -> Examples:
        """The examples at these positions alone."""
        ...

    def raw(self, index: np.ndarray) -> Tensor:
        """The examples at these positions, unchanged but for the deterministic part of preprocessing."""
        ...

    def weak(self, index: np.ndarray, draws: np.ndarray) -> Tensor:
        """Images weakly augmented: a pure function of each example and its row of `draws` (rows, DRAWS)."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Examples that stand in memory as one tensor."""

    values: Tensor  # uint8 (N, C, H, W), or float32 (N, D)
    pad: int = 0  # zero-padding of the random crop; 0: no crop
    flip: bool = False  # weak views are mirrored at random
    streamed: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[1:])

    @property
    def mirrored(self) -> bool:
        return self.flip

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: np.ndarray) -> InMemory:
        return replace(self, values=self.raw(index))

    def raw(self, index: np.ndarray) -> Tensor:
        return self.values[torch.as_tensor(index, device=self.values.device)]

    def weak(self, index: np.ndarray, draws: np.ndarray) -> Tensor:
        rows, numbers = self.raw(index), on_device(draws, self.values.device)
        if self.pad:
            rows = augment.crop(rows, self.pad, numbers[:, 0], numbers[:, 1])
        if self.flip:
            rows = augment.flip(rows, numbers[:, 2])
        return rows


@dataclass(frozen=True)
class Dataset:
    """A data set as its source read it."""

    name: str
    classes: tuple[str, ...]
    train: Examples
    labels: np.ndarray  # (len(train),) int64 class numbers, -1: not known
    test: Examples | None
    test_labels: np.ndarray | None  # (len(test),) int64
    mean: tuple[float, ...]  # per channel in units of [0, 1], or per feature
    std: tuple[float, ...]
    fingerprint: str  # hash of the content, see `fingerprint`
    official: int | None = None  # number of training examples in the official data set, where there is one
    notes: tuple[str, ...] = ()  # what a reader of the record should know ("3 unreadable images skipped")
    columns: Columns | None = None  # how the columns of a table became features

    @property
    def title(self) -> str:
        """The name for tables: a part of an official set says its size."""
        if self.official is None or self.official == len(self.train):
            return self.name
        return f"{self.name}, {len(self.train):,} of {self.official:,}"


@dataclass(frozen=True)
class Request:
    """What a source is asked for."""

    root: Path  # where the named data sets lie
    path: Path | None = None  # behind the colon: `folder:PATH`
    image_size: int | None = None  # height and width to bring images to, for sources whose images vary
    resized_crop: bool = False  # imagenet: random-resized crop instead of resize and random crop
    label: str | None = None  # csv and parquet: the column of labels


def ready(examples: Tensor, device: torch.device) -> Tensor:
    """On the device; images from 0..255 to [0, 1]."""
    examples = examples.to(device)
    return examples.float().div_(255) if examples.dtype == torch.uint8 else examples
