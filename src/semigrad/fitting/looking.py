"""What somebody's data are, before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from semigrad.data import SOURCES, source_for
from semigrad.data.dataset import Dataset
from semigrad.data.opening import divide, open_data
from semigrad.errors import InputError
from semigrad.run import configure
from semigrad.settings.recipes import Layer

ENDINGS = (".npz", ".csv", ".parquet")
MOST_FOLDS, FEWEST_LABELS = 5, 2


def spec_of(given: str) -> str:
    """The data spec for what was given: itself where it names a source, else by what lies at the path."""
    path = Path(given).expanduser()
    if given.partition(":")[0].partition("@")[0] in SOURCES and not path.exists():
        return given
    if not path.exists():
        raise InputError(f"{given} does not exist. Give a folder of pictures or a file ({', '.join(ENDINGS)}).")
    if path.is_file() and path.suffix.lower() not in ENDINGS:
        raise InputError(f"{given} is no folder of pictures and none of {', '.join(ENDINGS)}.")
    return f"{source_for(path)}:{path}"


@dataclass(frozen=True)
class Look:
    """The numbers that a plan goes by."""

    spec: str
    dataset: Dataset
    labels: np.ndarray  # labeled examples of each class
    unlabeled: int
    reading: Layer = field(default_factory=dict)  # settings that say how the data are read

    @property
    def labeled(self) -> int:
        return int(self.labels.sum())

    @property
    def folds(self) -> int:
        """As many folds as the rarest class has labels, 5 at most; 0 where some class has one label only."""
        fewest = int(self.labels.min())
        return min(MOST_FOLDS, fewest) if fewest >= FEWEST_LABELS else 0

    def __str__(self) -> str:
        shape = self.dataset.train.shape
        kind = f"rows of {shape[0]} features" if len(shape) == 1 else f"images of {' x '.join(map(str, shape))}"
        test = 0 if self.dataset.test is None else len(self.dataset.test)
        return (
            f"{self.dataset.name}: {kind}, {len(self.labels)} classes, {self.labeled:,} labeled "
            f"({self.labels.min():,} to {self.labels.max():,} of a class), {self.unlabeled:,} unlabeled, {test:,} test"
        )


def look_at(given: str, seed: int = 0, **reading: Any) -> Look:
    """Read the data once, and count. `reading` are the settings that say how: label, image_size."""
    spec = spec_of(given)
    run = configure(spec, seed=seed, **reading)
    dataset, split = divide(spec, run, open_data(spec, run))
    counts = np.bincount(dataset.labels[split.labeled], minlength=len(dataset.classes))
    return Look(spec, dataset, counts, len(split.unlabeled), reading)
