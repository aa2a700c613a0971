"""Data sets: `SOURCES` lists where they come from, `open_dataset` opens one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from semigrad.data import cifar, digits, folder, imagenet, npz, svhn
from semigrad.data.dataset import Dataset, Request
from semigrad.data.places import data_root
from semigrad.errors import InputError, unknown
from semigrad.settings.fields import ImageSide, problems_of

__all__ = ["IN_PYTHON", "SOURCES", "Dataset", "Request", "Source", "data_root", "open_dataset", "shape_of"]


@dataclass(frozen=True)
class Source:
    """Where a data set comes from."""

    load: Callable[[Request], Dataset]
    summary: str
    needs_path: bool = False
    takes: tuple[str, ...] = ()  # which of image_size and resized_crop it understands
    shape: tuple[int, ...] | None = None  # of one example, where all data of this source have it
    look: Callable[[Path], tuple[int, ...] | None] = lambda path: None  # finds it out without reading the examples


_COLOR_32 = (3, 32, 32)

SOURCES: dict[str, Source] = {
    "digits": Source(digits.load, "1,797 handwritten digits of 8 x 8 pixels; comes with scikit-learn", shape=(1, 8, 8)),
    "cifar10": Source(cifar.load_cifar10, "60,000 color images of 32 x 32 pixels in 10 classes", shape=_COLOR_32),
    "cifar100": Source(cifar.load_cifar100, "60,000 color images of 32 x 32 pixels in 100 classes", shape=_COLOR_32),
    "svhn": Source(svhn.load_svhn, "99,289 house numbers of 32 x 32 pixels in 10 classes", shape=_COLOR_32),
    "svhn-extra": Source(svhn.load_svhn_extra, "svhn with 531,131 more training images", shape=_COLOR_32),
    "npz": Source(npz.load, "your arrays: x, y (-1: unlabeled), x_test, y_test", needs_path=True, look=npz.look),
    "folder": Source(folder.load, "your pictures in folders, or with a CSV table of labels", True, ("image_size",)),
    "imagenet": Source(
        imagenet.load,
        "pictures in train/<class>/ and val/<class>/, read while training",
        needs_path=True,
        takes=("image_size", "resized_crop"),
    ),
}


IN_PYTHON = "arrays"
"""What a run calls data that were given in Python, and that nobody can open again."""


def shape_of(name: str, path: Path | None) -> tuple[int, ...] | None:
    """The shape of one example, where it can be had without reading them; None: pictures of whatever size."""
    source = SOURCES.get(name)
    if source is None or (path is None and source.needs_path):
        return None
    return source.look(path) if path is not None else source.shape


def open_dataset(
    name: str,
    path: Path | None = None,
    *,
    image_size: int | None = None,
    resized_crop: bool = False,
    root: Path | None = None,
) -> Dataset:
    """The data set of a named source, or of the files at `path` for npz, folder and imagenet.

    `root` is where the named ones lie, `data_root()` unless given."""
    if name == IN_PYTHON:
        raise InputError("The data are arrays that were given in Python, and are not kept: only that code has them.")
    if name not in SOURCES:
        own = f" For your own write {'folder' if Path(name).is_dir() else 'npz'}:{name}." if Path(name).exists() else ""
        raise InputError(unknown("data set", name, SOURCES) + own)
    source = SOURCES[name]
    problems = []
    if source.needs_path and path is None:
        problems.append(f"The data set {name!r} needs a path: {name}:PATH.")
    if not source.needs_path and path is not None:
        problems.append(f"The data set {name!r} takes no path, {str(path)!r} was given; leave it out.")
    if source.needs_path and path is not None and not path.exists():
        problems.append(f"{path} does not exist.")
    for option, given in (("image_size", image_size is not None), ("resized_crop", resized_crop)):
        if given and option not in source.takes:
            able = " and ".join(other for other, entry in SOURCES.items() if option in entry.takes)
            problems.append(f"The data set {name!r} has no {option}; only {able} take it.")
    problems += problems_of("image_size", image_size, ImageSide | None)
    if problems:
        raise InputError(problems)
    return source.load(Request(root or data_root(), path, image_size, resized_crop))
