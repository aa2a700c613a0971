"""Data sets: `SOURCES` lists where they come from, `open_dataset` opens one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from semigrad.data import cifar, digits, folder, imagenet, npz, saved, svhn, tables
from semigrad.data.dataset import MEMORY, UNSEEN, Dataset, Outline, Request
from semigrad.data.places import data_root
from semigrad.errors import InputError, unknown
from semigrad.settings.fields import ImageSide, problems_of

__all__ = ["SOURCES", "Dataset", "Request", "Source", "data_root", "open_dataset", "outline_of", "source_for"]


ENDINGS = (".npz", ".csv", ".tsv", ".parquet")
"""Of files with somebody's own data."""


@dataclass(frozen=True)
class Source:
    """Where a data set comes from."""

    load: Callable[[Request], Dataset]
    summary: str
    needs_path: bool = False
    takes: tuple[str, ...] = ()  # which of image_size, resized_crop and label it understands
    outline: Outline = UNSEEN  # where the data of this source have one
    look: Callable[[Path], Outline] = lambda path: UNSEEN  # finds it out without reading the examples


_CIFAR, _SVHN, _EXTRA = (Outline((3, 32, 32), rows) for rows in (50_000, 73_257, 604_388))

SOURCES: dict[str, Source] = {
    "digits": Source(
        digits.load,
        "1,797 handwritten digits of 8 x 8 pixels; comes with scikit-learn",
        outline=Outline((1, 8, 8), 1297),
    ),
    "cifar10": Source(cifar.load_cifar10, "60,000 color images of 32 x 32 pixels in 10 classes", outline=_CIFAR),
    "cifar100": Source(cifar.load_cifar100, "60,000 color images of 32 x 32 pixels in 100 classes", outline=_CIFAR),
    "svhn": Source(svhn.load_svhn, "99,289 house numbers of 32 x 32 pixels in 10 classes", outline=_SVHN),
    "svhn-extra": Source(svhn.load_svhn_extra, "svhn with 531,131 more training images", outline=_EXTRA),
    "npz": Source(npz.load, "your arrays: x, y (-1: unlabeled), x_test, y_test", needs_path=True, look=npz.look),
    "csv": Source(
        tables.load_csv, "your table: numbers, categories, labels", True, ("label",), look=tables.csv_outline
    ),
    "parquet": Source(
        tables.load_parquet, "the same as Parquet (needs pyarrow)", True, ("label",), look=tables.parquet_outline
    ),
    "folder": Source(
        folder.load, "your pictures in folders, or with a CSV table of labels", True, ("image_size",), look=folder.look
    ),
    "huggingface": Source(
        saved.load, "a folder that datasets wrote with save_to_disk (needs datasets)", True, ("label",), look=saved.look
    ),
    "imagenet": Source(
        imagenet.load,
        "pictures in train/<class>/ and val/<class>/, read while training",
        needs_path=True,
        takes=("image_size", "resized_crop"),
    ),
}


def outline_of(name: str, path: Path | None) -> Outline:
    """What can be told of the data without reading them."""
    source = SOURCES.get(name)
    if source is None or (path is None and source.needs_path):
        return UNSEEN
    return source.look(path) if path is not None else source.outline


def open_dataset(
    name: str,
    path: Path | None = None,
    *,
    image_size: int | None = None,
    resized_crop: bool = False,
    label: str | None = None,
    root: Path | None = None,
) -> Dataset:
    """The data set of a named source, or of the files at `path` for the others.

    `root` is where the named ones lie, `data_root()` unless given."""
    if name == MEMORY:
        raise InputError(
            f"{name}:{path} stood in memory when the run was made, and cannot be read again: give the data from "
            "Python, as semigrad.train(run, out, dataset=...)."
        )
    if name not in SOURCES:
        raise InputError(unknown("data set", name, SOURCES) + _own(name))
    source = SOURCES[name]
    problems = []
    if source.needs_path and path is None:
        problems.append(f"The data set {name!r} needs a path: {name}:PATH.")
    if not source.needs_path and path is not None:
        problems.append(f"The data set {name!r} takes no path, {str(path)!r} was given; leave it out.")
    if source.needs_path and path is not None and not path.exists():
        problems.append(f"{path} does not exist.")
    options = {"image_size": image_size is not None, "resized_crop": resized_crop, "label": label is not None}
    for option, given in options.items():
        if given and option not in source.takes:
            *able, last = (other for other, entry in SOURCES.items() if option in entry.takes)
            others = f"{', '.join(able)} and {last} take it" if able else f"{last} takes it"
            problems.append(f"The data set {name!r} has no {option}; only {others}.")
    problems += problems_of("image_size", image_size, ImageSide | None)
    if problems:
        raise InputError(problems)
    return source.load(Request(root or data_root(), path, image_size, resized_crop, label))


def _own(name: str) -> str:
    """What to write where somebody's own data stand without their kind in front, and whether they are there."""
    path = Path(name).expanduser()
    if path.exists():
        return f" For your own write {source_for(path)}:{name}."
    if path.suffix.lower() in ENDINGS or os.sep in name:
        kind = source_for(path) if path.suffix else "folder"
        return f" For your own write {kind}:{name}; but {name} does not exist."
    return ""


def source_for(path: Path) -> str:
    """The source that a path without one is most likely meant for."""
    if path.is_dir():
        if saved.is_saved(path):
            return "huggingface"
        tables = [ending for ending in ("csv", "parquet") if (path / f"train.{ending}").is_file()]
        return tables[0] if tables else "folder"
    ending = path.suffix.lower().removeprefix(".")
    return ending if ending in ("csv", "parquet") else "csv" if ending in ("tsv", "txt") else "npz"
