"""`cifar10` and `cifar100`: 60,000 color images of 32 x 32 pixels, in the official binary or python layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semigrad.data import pickles
from semigrad.data.arrays import from_arrays, stack
from semigrad.data.dataset import Dataset, Request
from semigrad.data.places import missing
from semigrad.errors import InputError
from semigrad.reading import TEXT, read_file

PIXELS = 3 * 32 * 32
OFFICIAL = 50_000

CIFAR10_NAMES = "airplane automobile bird cat deer dog frog horse ship truck"
CIFAR100_NAMES = """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
"""


@dataclass(frozen=True)
class Layout:
    """How one of the official archives is laid out below the data folder."""

    folder: str
    train: tuple[str, ...]
    test: str
    names: str  # file of the class names
    label_bytes: int = 0  # labels before the pixels of a record, the class last; 0: a pickle
    label_key: bytes = b""  # of the labels in a pickle
    names_key: bytes = b""


BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
CIFAR10_LAYOUTS = (
    Layout("cifar-10-batches-bin", tuple(f"{b}.bin" for b in BATCHES), "test_batch.bin", "batches.meta.txt", 1),
    Layout("cifar-10-batches-py", BATCHES, "test_batch", "batches.meta", 0, b"labels", b"label_names"),
)
CIFAR100_LAYOUTS = (
    Layout("cifar-100-binary", ("train.bin",), "test.bin", "fine_label_names.txt", 2),
    Layout("cifar-100-python", ("train",), "test", "meta", 0, b"fine_labels", b"fine_label_names"),
)


def load_cifar10(request: Request) -> Dataset:
    """Ten classes, 5,000 training and 1,000 test images each."""
    return _load("cifar10", CIFAR10_LAYOUTS, CIFAR10_NAMES.split(), request.root)


def load_cifar100(request: Request) -> Dataset:
    """A hundred (fine) classes, 500 training and 100 test images each."""
    return _load("cifar100", CIFAR100_LAYOUTS, CIFAR100_NAMES.split(), request.root)


def _load(name: str, layouts: tuple[Layout, ...], standard: list[str], root: Path) -> Dataset:
    absent = {
        layout: [file for part in (*layout.train, layout.test) if not (file := root / layout.folder / part).is_file()]
        for layout in layouts
    }
    complete = [layout for layout in layouts if not absent[layout]]
    if not complete:
        begun = [layout for layout in layouts if (root / layout.folder).is_dir()]
        raise missing(name, root, absent[(begun or layouts)[0]])
    layout, folder = complete[0], root / complete[0].folder
    parts = [_read(folder / part, layout, len(standard)) for part in layout.train]
    train, labels = (stack(arrays) for arrays in zip(*parts, strict=True))
    test, test_labels = (stack([array]) for array in _read(folder / layout.test, layout, len(standard)))
    classes = _class_names(folder / layout.names, layout, standard)
    return from_arrays(name, classes, train, labels, test, test_labels, pad=4, flip=True, official=OFFICIAL)


def _read(path: Path, layout: Layout, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Images uint8 (N, 3, 32, 32) and labels (N,) of one file."""
    pixels, labels = _read_records(path, layout.label_bytes) if layout.label_bytes else _read_pickle(path, layout)
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(wrong):
        raise InputError(
            f"{path}: image {wrong[0]} has the label {labels[wrong[0]]}, expected 0 to {classes - 1} "
            f"({len(wrong)} wrong labels of {len(labels)}). It is damaged or another data set: fetch it again."
        )
    return pixels.reshape(-1, 3, 32, 32), labels


def _read_records(path: Path, label_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    record = label_bytes + PIXELS
    content = np.fromfile(path, dtype=np.uint8)
    if content.size == 0 or content.size % record:
        raise InputError(
            f"{path} has {content.size:,} bytes, expected a multiple of {record:,} (one record an image). "
            "It is damaged or cut short: fetch it again."
        )
    records = content.reshape(-1, record)
    return records[:, label_bytes:], records[:, label_bytes - 1]


def _read_pickle(path: Path, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    content = pickles.read(path)
    pixels, labels = (
        (content.get(b"data"), content.get(layout.label_key)) if isinstance(content, dict) else (None, None)
    )
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape[1:] != (PIXELS,):
        found = f"{pixels.dtype} {pixels.shape}" if isinstance(pixels, np.ndarray) else "none"
        raise InputError(f"{path}: expected an array 'data' of uint8 (images, {PIXELS:,}), found {found}.")
    if not isinstance(labels, list) or not all(type(label) is int for label in labels):
        raise InputError(f"{path}: expected a list of whole numbers {layout.label_key.decode()!r}.")
    if not labels or len(labels) != len(pixels):
        raise InputError(f"{path}: {len(pixels):,} images with {len(labels):,} labels, expected as many of each.")
    return pixels, np.asarray(labels)


def _class_names(path: Path, layout: Layout, standard: list[str]) -> tuple[str, ...]:
    """The names in the file; the standard ones where it is not there."""
    if not path.is_file():
        return tuple(standard)
    if layout.label_bytes:
        lines = read_file(path, TEXT).decode("utf-8", errors="replace").splitlines()
        names = [line.strip() for line in lines if line.strip()]
    else:
        content = pickles.read(path)
        found = content.get(layout.names_key) if isinstance(content, dict) else None
        given = found if isinstance(found, list) else []
        names = [name.decode("utf-8", errors="replace") if isinstance(name, bytes) else str(name) for name in given]
    if len(names) != len(standard):
        raise InputError(f"{path} names {len(names)} classes, expected {len(standard)}; delete it or fetch it again.")
    return tuple(names)
