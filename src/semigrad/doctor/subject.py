"""The data that are examined: labeled, unlabeled and test, each with its examples in memory, and what is broken."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from semigrad.data import album, folder
from semigrad.data.dataset import Dataset, Examples, InMemory
from semigrad.data.imagenet import Files
from semigrad.data.opening import divide, open_data
from semigrad.data.split import DataSpec
from semigrad.errors import InputError
from semigrad.fitting.looking import spec_of
from semigrad.names import shown
from semigrad.run import Run, configure

STREAMED_SIDE = 64  # height and width at which pictures that are read while training are looked at
STREAMED_BYTES = 10**9  # of such pictures of one part


@dataclass(frozen=True)
class Part:
    """Some of the data by what they are for."""

    name: str  # "labeled", "unlabeled" or "test"
    examples: Examples
    positions: np.ndarray  # in `examples`
    labels: np.ndarray  # class numbers, -1: not known or hidden
    known: np.ndarray  # class numbers of all that there are; more than `labels` where only some could be read

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def total(self) -> int:
        return len(self.known)

    def name_of(self, place: int) -> str:
        """The example at a place, with the part in front where its name does not say it."""
        name = self.examples.name_of(int(self.positions[place]))
        return name if os.sep in name else f"{self.name} {name}"

    def values(self, places: np.ndarray) -> np.ndarray:
        """uint8 (N, C, H, W) or float32 (N, D) of the examples at these places."""
        values: np.ndarray = self.examples.raw(self.positions[places]).cpu().numpy()
        return values

    def some(self, most: int) -> np.ndarray:
        """Places spread evenly over the part."""
        return np.unique(np.linspace(0, len(self) - 1, min(most, len(self))).astype(int)) if len(self) else np.arange(0)


@dataclass(frozen=True)
class Subject:
    """Data as they are examined."""

    title: str
    run: Run  # says how they are read and divided
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    parts: dict[str, Part]  # those that hold anything
    broken: dict[str, str] = field(default_factory=dict)  # file: why it cannot be read
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)  # width and height of picture files
    notes: tuple[str, ...] = ()

    @property
    def images(self) -> bool:
        return len(self.shape) == 3


def open_subject(
    given: str, seed: int, label: str | None, image_size: int | None, most: int, full: bool = False
) -> Subject:
    """Read data as `train` and `fit` do, but for broken pictures, which are no reason to give up here. `full`: at the
    size that a network takes, also where that many pictures have to be read for it."""
    spec = spec_of(given)
    asked: dict[str, Any] = {"label": label, "image_size": image_size}
    run = configure(spec, seed=seed, **{name: value for name, value in asked.items() if value is not None})
    if DataSpec.parse(spec).name == "folder":
        return _of_folder(spec, run)
    dataset = open_data(spec, run)
    if isinstance(dataset.train, Files):
        return _of_files(spec, run, dataset, most, full or image_size is not None)
    return _subject(spec, run, dataset)


def _subject(spec: str, run: Run, dataset: Dataset) -> Subject:
    parts = _parts(spec, run, dataset)
    kept = {part.name: part for part in parts if part.total}
    return Subject(dataset.name, run, dataset.classes, dataset.train.shape, kept, notes=dataset.notes)


def _parts(spec: str, run: Run, dataset: Dataset) -> list[Part]:
    parsed = DataSpec.parse(spec)
    if parsed.labels is None and parsed.share is None:
        labeled, unlabeled = np.flatnonzero(dataset.labels >= 0), np.flatnonzero(dataset.labels < 0)
    else:
        dataset, split = divide(spec, run, dataset)
        labeled, unlabeled = split.labeled, split.unlabeled
    hidden = np.full(len(unlabeled), -1)
    parts = [
        Part("labeled", dataset.train, labeled, dataset.labels[labeled], dataset.labels[labeled]),
        Part("unlabeled", dataset.train, unlabeled, hidden, hidden),
    ]
    if dataset.test is not None and dataset.test_labels is not None:
        everything = np.arange(len(dataset.test))
        parts.append(Part("test", dataset.test, everything, dataset.test_labels, dataset.test_labels))
    return parts


def _of_folder(spec: str, run: Run) -> Subject:
    path = DataSpec.parse(spec).path
    if path is None or not path.exists():
        raise InputError(f"{path} does not exist." if path else "The data set 'folder' needs a path: folder:PATH.")
    listing = folder.listing_of(path)
    files = [entry.path for entry in listing.entries]
    pictures = album.read(files, run.image_size)
    if not any(listing.entries[position].part == "train" for position in pictures.kept):
        raise InputError(f"{path}: none of the training pictures can be read.")
    subject = _subject(spec, run, folder.as_dataset(path, listing, pictures))
    broken = {
        shown(os.path.relpath(files[position], path)): reason for position, reason in sorted(pictures.lost.items())
    }
    sizes = Counter((width, height) for width, height, _ in album.heads_of(files))
    told = ("unreadable", *(("all are brought to",) if len(sizes) > 1 else ()))  # as findings
    notes = tuple(note for note in subject.notes if not any(words in note for words in told))
    return replace(subject, broken=broken, sizes=sizes, notes=notes)


def _of_files(spec: str, run: Run, dataset: Dataset, most: int, full: bool) -> Subject:
    """Some pictures of each part, small unless they must be in `full`, and the broken ones among those."""
    subject = _subject(spec, run, dataset)
    side = dataset.train.shape[1] if full else STREAMED_SIDE
    most = min(most, STREAMED_BYTES // (3 * side * side))
    broken: dict[str, str] = {}
    sizes: Counter[tuple[int, int]] = Counter()
    parts = {}
    for name, part in subject.parts.items():
        assert isinstance(part.examples, Files)
        places = part.some(most)
        files = [part.examples.path(int(position)) for position in part.positions[places]]
        pictures = album.read_as(files, 3, side, dataset.seen)
        names = [part.examples.name_of(int(position)) for position in part.positions[places]]
        broken |= {names[position]: reason for position, reason in sorted(pictures.lost.items())}
        sizes.update((width, height) for width, height, _ in album.heads_of(files))
        small = InMemory(torch.from_numpy(pictures.values), names=tuple(names[place] for place in pictures.kept))
        kept = np.arange(len(pictures.kept))
        parts[name] = Part(name, small, kept, part.labels[places][pictures.kept], part.known)
    return replace(subject, parts=parts, broken=broken, sizes=sizes, shape=(3, side, side))
