"""What somebody's data are, before anything is trained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from semigrad.data import ENDINGS, SOURCES, source_for
from semigrad.data.dataset import Dataset
from semigrad.data.opening import divide, open_data
from semigrad.data.split import fewer_labels
from semigrad.errors import InputError, nearest
from semigrad.run import configure
from semigrad.settings.recipes import Layer

MOST_FOLDS = 5
LABELS_BEHIND = re.compile(r"@[0-9]+(\.[0-9]+)?%?$")


def spec_of(given: str) -> str:
    """The data spec for what was given: itself where it names a source, else by what lies at the path."""
    if not given:  # as a path, nothing is the folder where one is
        raise InputError("The data are an empty word. Give a folder, a file, or data by name such as digits@40.")
    path = Path(given).expanduser()
    if given.partition(":")[0].partition("@")[0] in SOURCES and not path.exists():
        return given
    if not path.exists():
        advice = f"Give a folder of pictures or a file ({', '.join(ENDINGS)})."
        meant = nearest(given.partition("@")[0], [name for name, source in SOURCES.items() if not source.needs_path])
        raise InputError(" ".join(filter(None, [f"{given} does not exist.", meant, advice])))
    if path.is_file() and path.suffix.lower() not in ENDINGS:
        raise InputError(f"{given} is no folder of pictures and none of {', '.join(ENDINGS)}.")
    all_labels = "@100%" if LABELS_BEHIND.search(str(path)) else ""  # else photos@40 would be 40 labels of photos
    return f"{source_for(path)}:{path}{all_labels}"


@dataclass(frozen=True)
class Look:
    """The numbers that a plan goes by."""

    spec: str
    dataset: Dataset
    labels: np.ndarray  # how many of each class
    unlabeled: int
    reading: Layer = field(default_factory=dict)  # settings that say how the data are read

    @property
    def labeled(self) -> int:
        return int(self.labels.sum())

    @property
    def folds(self) -> int:
        """As many folds as the most frequent class has labels, 5 at most; 0 where no class has two labels."""
        most = int(self.labels.max())
        return min(MOST_FOLDS, most) if most > 1 else 0

    @property
    def with_fewer_labels(self) -> str:
        """The same data with some of the labels hidden."""
        return fewer_labels(self.spec, self.labels)

    @property
    def notes(self) -> list[str]:
        """What there is to know of the data, and of what a comparison on them cannot tell."""
        notes = list(self.dataset.notes)
        single = [name for name, count in zip(self.dataset.classes, self.labels, strict=True) if count == 1]
        if self.folds == 0:
            notes.append(
                "every class has one label only, so that none can be held out: nothing is compared, and whether the "
                "unlabeled data help stays open. Label two examples of some classes to know"
            )
        elif single:
            named = ", ".join(single[:5]) + (", ..." if len(single) > 5 else "")
            notes.append(
                f"{len(single):,} of {len(self.labels):,} classes have one label only ({named}), which is always "
                "trained on: what is compared says nothing of them"
            )
        return notes

    def __str__(self) -> str:
        shape = self.dataset.train.shape
        kind = f"rows of {shape[0]} features" if len(shape) == 1 else f"images of {' x '.join(map(str, shape))}"
        test = 0 if self.dataset.test is None else len(self.dataset.test)
        return (
            f"{self.dataset.name}: {kind}, {len(self.labels)} classes, {self.labeled:,} labeled "
            f"({of_each_class(self.labels)}), {self.unlabeled:,} unlabeled, {test:,} test"
        )


def of_each_class(counts: Sequence[int] | np.ndarray) -> str:
    """How many examples the classes have, in words."""
    least, most = min(counts), max(counts)
    return f"{least:,} of each class" if least == most else f"{least:,} to {most:,} of a class"


def look_at(given: str, seed: int = 0, **reading: Any) -> Look:
    """Read the data once, and count. `reading` are the settings that say how: label, image_size."""
    spec = spec_of(given)
    run = configure(spec, seed=seed, **reading)
    dataset, split = divide(spec, run, open_data(spec, run))
    counts = np.bincount(dataset.labels[split.labeled], minlength=len(dataset.classes))
    return Look(spec, dataset, counts, len(split.unlabeled), reading)
