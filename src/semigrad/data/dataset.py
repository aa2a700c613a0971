"""What every source returns: examples in memory or in files, their classes, and where they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from semigrad import augment
from semigrad.core import on_device
from semigrad.data.columns import Columns

MEMORY = "memory"
"""In front of the name that a run has for data that were given from Python: `memory:NAME-FINGERPRINT`."""
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

    def name_of(self, position: int) -> str:
        """What a user knows the example by: its file below the data's folder, or where its row stands."""
        ...

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
    names: tuple[str, ...] = ()  # of files, or where rows stand; none: the numbers of rows from 0
    mapped: bool = False  # from a file, because they are many

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[1:])

    @property
    def mirrored(self) -> bool:
        return self.flip

    def __len__(self) -> int:
        return len(self.values)

    def name_of(self, position: int) -> str:
        return self.names[position] if self.names else str(position)

    def take(self, index: np.ndarray) -> InMemory:
        names = tuple(self.names[position] for position in index.tolist()) if self.names else ()
        return replace(self, values=self.raw(index), names=names, mapped=False)

    def raw(self, index: np.ndarray) -> Tensor:
        return self.values.index_select(0, torch.as_tensor(index, dtype=torch.long, device=self.values.device))

    def weak(self, index: np.ndarray, draws: np.ndarray) -> Tensor:
        rows, numbers = self.raw(index), on_device(draws, self.values.device)
        mirror = numbers[:, 2] if self.flip else None
        if self.pad:
            return augment.crop(rows, self.pad, numbers[:, 0], numbers[:, 1], mirror)
        return rows if mirror is None else augment.flip(rows, mirror)


@dataclass(frozen=True)
class Outline:
    """What can be told of data without reading their examples."""

    shape: tuple[int, ...] | None = None  # of one; None: pictures of whatever size
    rows: int | None = None  # of the training part, about; None: not known


UNSEEN = Outline()


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
    seen: float = 1.0  # side of the middle square that is looked at, as a share of a picture's shorter edge
    columns: Columns | None = None  # how the columns of a table became features
    backbone: bytes | None = None  # the network whose features these are, as `folder.backbone` packs it

    @staticmethod
    def from_arrays(
        x: Any, y: Any, x_test: Any = None, y_test: Any = None, class_names: Sequence[str] | None = None,
        unlabeled: Any = -1, *, flip: bool = False, name: str = "arrays",
    ) -> Dataset:  # fmt: skip
        """Data of your own, as numpy arrays, tensors or lists; `unlabeled` is what y has where nobody knows, as is
        None, NaN or pandas' NA.

        x: (N, D) numbers, or images (N, H, W), (N, H, W, C) or (N, C, H, W) as uint8 or as floats in [0, 1]; y: (N,)
        whole numbers from 0 on, or texts. `flip` mirrors images at random: right for photos, wrong for digits."""
        from semigrad.data.given import arrays_dataset

        return arrays_dataset(x, y, x_test, y_test, class_names, unlabeled, flip, name)

    @staticmethod
    def from_frame(frame: Any, label: Any = None, test: Any = None, *, name: str = "frame") -> Dataset:
        """The rows of a DataFrame: numbers, categories, and labels in the column `label` (none: the one that is called
        label, class, target or y), missing where nobody knows. `test`: another one, with labels in every row; or a
        column `split` has train and test in it."""
        from semigrad.data.given import frame_dataset

        return frame_dataset(frame, label, test, name)

    @staticmethod
    def from_torch(
        dataset: Any, test: Any = None, class_names: Sequence[str] | None = None, *, flip: bool = False,
        name: str = "torch",
    ) -> Dataset:  # fmt: skip
        """A torch Dataset of (image or array, label), -1 for unlabeled; images are PIL's, or as `from_arrays` has them.
        Every example is read once, now: leave random transforms and normalization out, they are made here."""
        from semigrad.data.given import torch_dataset

        return torch_dataset(dataset, test, class_names, flip, name)

    @staticmethod
    def from_huggingface(
        path_or_dataset: Any, *, label: str | None = None, image: str | None = None, flip: bool = False,
        name: str = "huggingface",
    ) -> Dataset:  # fmt: skip
        """What `datasets` saved on disk with `save_to_disk`, or one of its data sets with the parts train and, if
        wanted, unlabeled and test: pictures where there is a column of them, else numbers and categories."""
        from semigrad.data.huggingface import huggingface_dataset

        return huggingface_dataset(path_or_dataset, label, image, flip, name)

    @property
    def outline(self) -> Outline:
        return Outline(self.train.shape, len(self.train))

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
    label: str | None = None  # csv, parquet and huggingface: the column of labels


def ready(examples: Tensor, device: torch.device) -> Tensor:
    """On the device; images from 0..255 to [0, 1]."""
    examples = examples.to(device)
    return examples.float().div_(255) if examples.dtype == torch.uint8 else examples
