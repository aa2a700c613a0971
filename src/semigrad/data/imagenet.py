"""`imagenet:PATH`: pictures in train/<class>/ and val/<class>/, too many for memory: read while training.

A `classes.txt` beside them may give readable names, a line for each class: its folder, then a tab, comma or space,
then its names.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from semigrad.data.dataset import Dataset, Request
from semigrad.data.index import index_of
from semigrad.data.pictures import Box, centered, cut, decode, quiet, subfolders
from semigrad.errors import InputError
from semigrad.names import by_shown, shown
from semigrad.reading import TEXT, read_file

USUAL_SIZE = 224
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
OFFICIAL_CLASSES, OFFICIAL = 1000, 1_281_167
LEAST_AREA = 0.1  # of a random-resized crop, as a share of the picture
WIDEST = 1.25  # largest width / height of such a crop, and largest height / width
MOST_UNREADABLE, FEW = 0.03, 3  # share of pictures that may be unreadable, and how many in any case
SAMPLE = 24  # pictures of each part that are decoded before training starts


@dataclass(frozen=True)
class Files:
    """Pictures that stay in their files. The names are one array of bytes, small to send to worker processes."""

    folder: str
    names: np.ndarray  # (N,) bytes, relative to the folder
    size: int
    resized_crop: bool = False
    streamed: bool = True
    mirrored: bool = True
    sizes: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64), compare=False, repr=False)  # (N,) bytes
    read: list[int] = field(default_factory=lambda: [0], compare=False, repr=False)  # pictures read by this process
    unreadable: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return 3, self.size, self.size

    def __len__(self) -> int:
        return len(self.names)

    def name_of(self, position: int) -> str:
        """With the name of the part in front: train/<class>/<file>."""
        return shown(os.path.join(os.path.basename(self.folder), os.fsdecode(self.names[position])))

    def take(self, index: np.ndarray) -> Files:
        return replace(self, names=self.names[index], sizes=self.sizes[index])

    def raw(self, index: np.ndarray) -> Tensor:
        """Shorter edge to size · 256/224, then the middle: uint8 (rows, 3, size, size)."""
        return self._read(index, None)

    def weak(self, index: np.ndarray, draws: np.ndarray) -> Tensor:
        """A random crop, mirrored where the third draw is below one half; the first two place the crop, the others
        shape it if `resized_crop`."""
        return self._read(index, draws)

    def path(self, position: int) -> str:
        return os.path.join(self.folder, os.fsdecode(self.names[position]))

    def _read(self, index: np.ndarray, draws: np.ndarray | None) -> Tensor:
        pixels = np.empty((len(index), *self.shape), dtype=np.uint8)
        with quiet():
            for row, position in enumerate(index):
                pixels[row] = self._readable_view(int(position), None if draws is None else draws[row])
        return torch.from_numpy(pixels)

    def _readable_view(self, position: int, draws: np.ndarray | None) -> np.ndarray:
        """The picture at a position; the next of its class stands in for one that cannot be read."""
        self.read[0] += 1
        for candidate in self._class_from(position):
            try:
                return self._view(self.path(candidate), draws)
            except Exception as problem:  # a damaged file can raise almost anything
                self._note(self.path(candidate), problem)
        raise InputError(f"No picture in {os.path.dirname(self.path(position))} can be read.")

    def _class_from(self, position: int) -> Iterator[int]:
        """This position, those after it in the same folder, and those before it."""
        folder = os.path.dirname(self.names[position])
        for step in range(len(self.names)):
            candidate = (position + step) % len(self.names)
            if os.path.dirname(self.names[candidate]) == folder:
                yield candidate

    def _note(self, path: str, problem: Exception) -> None:
        """Say once what cannot be read, and give up where it is more than a few."""
        if path in self.unreadable:
            return
        self.unreadable.add(path)
        print(f"semigrad: {path} cannot be read as a picture ({problem}); another stands in for it.", file=sys.stderr)
        if len(self.unreadable) > max(MOST_UNREADABLE * self.read[0], FEW):
            raise InputError(
                f"{len(self.unreadable)} of the {self.read[0]} pictures read so far in {self.folder} cannot be read, "
                f"{path} among them; repair or remove them."
            )

    def _view(self, path: str, draws: np.ndarray | None) -> np.ndarray:
        resized = resized_edge(self.size)
        if draws is None:
            picture = decode(path, enough=2 * resized)
            return cut(picture, centered(*picture.size, share=self.size / resized), self.size)
        # A small part of the picture may become the whole view, so a resized crop wants all its pixels.
        picture = decode(path, enough=None if self.resized_crop else 2 * resized)
        box = resized_box(*picture.size, draws) if self.resized_crop else shifted_box(*picture.size, self.size, draws)
        pixels = cut(picture, box, self.size)
        return pixels[:, :, ::-1] if draws[2] < 0.5 else pixels


def resized_edge(size: int) -> int:
    """What the shorter edge is resized to before a crop: 256 for 224."""
    return round(size * 256 / 224)


def shifted_box(width: int, height: int, size: int, draws: np.ndarray) -> Box:
    """A square of `size` pixels, in the picture resized to `resized_edge(size)`, at a place by draws 0 (down) and 1
    (right); in pixels of the original."""
    short, resized = min(width, height), resized_edge(size)
    scale = short / resized
    top = int(draws[0] * (height * resized // short - size + 1)) * scale
    left = int(draws[1] * (width * resized // short - size + 1)) * scale
    side = size * scale
    return left, top, min(left + side, width), min(top + side, height)


def resized_box(width: int, height: int, draws: np.ndarray) -> Box:
    """A part with a share of the area uniform in [0.1, 1] (draw 3) and width / height log-uniform in [0.8, 1.25]
    (draw 4), made smaller where it would not fit in, at a place by draws 0 and 1."""
    area = (LEAST_AREA + (1 - LEAST_AREA) * draws[3]) * width * height
    aspect = WIDEST ** (2 * draws[4] - 1)
    across, down = math.sqrt(area * aspect), math.sqrt(area / aspect)
    fit = min(1.0, width / across, height / down)
    across, down = min(across * fit, width), min(down * fit, height)  # rounding may leave a little too much
    top, left = draws[0] * (height - down), draws[1] * (width - across)
    return left, top, min(left + across, width), min(top + down, height)


def load(request: Request) -> Dataset:
    """The training and, if there, the validation part as files; a sample of each is decoded at once, so that a broken
    set is found before training."""
    assert request.path is not None
    path = request.path
    train_folder, test_folder = path / "train", path / "val"
    folders = subfolders(train_folder) if train_folder.is_dir() else []
    if len(folders) < 2:
        raise InputError(f"{path} has {len(folders)} folders train/<class>/, at least two are needed.")
    number = {folder.name: position for position, folder in enumerate(folders)}
    size = request.image_size or USUAL_SIZE
    train, labels = _part(train_folder, number, size, request.resized_crop, request.root)
    test, test_labels = None, None
    if test_folder.is_dir():
        test, test_labels = _part(test_folder, number, size, False, request.root)
    return Dataset(
        name=f"imagenet:{path.resolve().name}",
        classes=_class_names(path / "classes.txt", list(number)),
        train=train,
        labels=labels,
        test=test,
        test_labels=test_labels,
        mean=MEAN,
        std=STD,
        fingerprint=_fingerprint(train, test),
        official=OFFICIAL if len(folders) == OFFICIAL_CLASSES else None,
        notes=() if test else ("no val/ folder, so there is no test part",),
        seen=size / resized_edge(size),
    )


def _part(folder: Path, number: dict[str, int], size: int, resized_crop: bool, root: Path) -> tuple[Files, np.ndarray]:
    index = index_of(folder, root)
    problems: list[str] = []
    for name, count in zip(index.classes, index.counts, strict=True):
        if name not in number:
            problems.append(f"{folder / name} is a class that train/ does not have.")
        elif not count:
            problems.append(f"{folder / name} has no pictures.")
    if not len(index):
        problems.append(f"{folder} has no pictures in class folders; sort them into {folder}/<class>/.")
    if problems:
        raise InputError(problems)
    some = np.unique(np.linspace(0, len(index) - 1, SAMPLE).astype(int))
    if not index.fits(some.tolist()):  # pictures were written over in place
        index = index_of(folder, root, anew=True)
    files = Files(str(folder), index.names, size, resized_crop, sizes=index.sizes)
    files.raw(some)
    return files, np.repeat([number[name] for name in index.classes], index.counts).astype(np.int64)


def _fingerprint(*parts: Files | None) -> str:
    """sha256 over the names and sizes of all files, not over their content, which would take an hour to read."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"part;")
        if part is None:
            continue
        for start in range(0, len(part), 10_000):  # of what is mapped, a little at a time
            some = slice(start, start + 10_000)
            names, sizes = part.names[some].tolist(), part.sizes[some].tolist()
            lines = [b"%s:%d;" % (name, size) for name, size in zip(names, sizes, strict=True)]
            digest.update(b"".join(lines).replace(os.sep.encode(), b"/"))
    return digest.hexdigest()


def _class_names(path: Path, folders: list[str]) -> tuple[str, ...]:
    """The first of each class's names; where two classes share it, with the folder behind it ("crane (n02012849)").
    The folder alone where the file has no line for it, or is not there."""
    lines = read_file(path, TEXT).decode("utf-8", errors="replace").splitlines() if path.is_file() else []
    split = [re.split(r"\t|,|\s", line.strip(), maxsplit=1) for line in lines]
    given = {key: name.split(",")[0].strip() for key, *rest in split for name in rest}
    names = {name: given.get(name) or name for name in by_shown(folders, f"class folders beside {path}")}
    shared = Counter(names.values())
    return tuple(f"{name} ({folder})" if shared[name] > 1 else name for folder, name in names.items())
