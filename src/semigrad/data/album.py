"""Many picture files as one array: decides on a common size, decodes in parallel, tells which could not be read."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from PIL import Image
from rich.console import Console
from rich.progress import track

from semigrad.data import pictures
from semigrad.data.mapped import room_for
from semigrad.data.places import data_root

COMMON_LIMIT = 96  # the largest size that pictures keep if all share it
USUAL_SIZE = 64
WORTH_A_BAR = 2000  # pictures

Result = TypeVar("Result")


@dataclass(frozen=True)
class Album:
    """The pictures that could be read, and why not for the others."""

    values: np.ndarray  # uint8 (len(kept), channels, size, size)
    kept: list[int]  # positions among the given paths
    lost: dict[int, str]  # position: reason
    notes: tuple[str, ...] = ()  # on how they were brought to one form


def read(paths: Sequence[str], asked: int | None) -> Album:
    """All pictures at the size that is asked for; else at their own if it is small, square and common to all, or at 64.

    The shorter edge is brought to the size and the middle cut out. Gray if every one is gray, else RGB."""
    lost: dict[int, str] = {}
    with pictures.quiet():
        heads = _each(
            lambda position: pictures.inspect(paths[position]), range(len(paths)), lost, "Looking at pictures"
        )
        size, gray = common_form(list(heads.values()), asked)
        album = _decoded(paths, heads, lost, (1 if gray else 3, size), 1.0)
        advice = " (--image-size chooses another size)"
        notes = form_notes(list(heads.values()), size, gray, advice) if asked is None else ()
    return replace(album, notes=notes)


def read_as(paths: Sequence[str], channels: int, size: int, seen: float = 1.0) -> Album:
    """All pictures as something trained on others takes them: gray or RGB, the middle square whose side is the share
    `seen` of the shorter edge brought to `size`."""
    with pictures.quiet():
        return _decoded(paths, range(len(paths)), {}, (channels, size), seen)


def _decoded(
    paths: Sequence[str], positions: Iterable[int], lost: dict[int, str], kind: tuple[int, int], seen: float
) -> Album:
    """The pictures at these positions in one array, `kind` being their channels and size."""
    channels, size = kind
    values = _room(len(paths), channels, size)

    def place(position: int) -> None:
        picture = pictures.decode(paths[position], gray=channels == 1, enough=round(2 * size / seen))
        values[position] = pictures.cut(picture, pictures.centered(*picture.size, seen), size)

    kept = list(_each(place, positions, lost, "Reading pictures"))
    for row, position in enumerate(kept):
        if row != position:  # some before it are lost
            values[row] = values[position]
    return Album(values[: len(kept)], kept, lost)


def heads_of(paths: Sequence[str]) -> list[pictures.Head]:
    """What the heads of these files say, of those that can be read."""
    with pictures.quiet():
        return list(_each(lambda position: pictures.inspect(paths[position]), range(len(paths)), {}, "").values())


def stack_images(images: Sequence[Image.Image]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Pictures that are open already as one array, and what there is to note; the same rules as for files."""
    heads = [pictures.head(image) for image in images]
    size, gray = common_form(heads)
    values = _room(len(images), 1 if gray else 3, size)
    for position, image in enumerate(images):
        picture = pictures.upright(image.copy(), gray)
        values[position] = pictures.cut(picture, pictures.centered(*picture.size), size)
    return values, form_notes(heads, size, gray)


def images_as(images: Sequence[Image.Image], channels: int, size: int, seen: float = 1.0) -> np.ndarray:
    """Pictures that are open already, as `read_as` has those in files."""
    values = _room(len(images), channels, size)
    for position, image in enumerate(images):
        picture = pictures.upright(image.copy(), channels == 1)
        values[position] = pictures.cut(picture, pictures.centered(*picture.size, seen), size)
    return values


def form_notes(heads: Sequence[pictures.Head], size: int, gray: bool, advice: str = "") -> tuple[str, ...]:
    """What pictures lose, or gain, on the way to one form that nobody asked for."""
    notes = []
    sizes = Counter((width, height) for width, height, _ in heads)
    (usual, count), *others = sizes.most_common() or [((size, size), 0)]
    form = f"all are brought to {size} x {size}{advice}"
    if others and 2 * count > len(heads):
        notes.append(f"{len(heads) - count:,} of {len(heads):,} pictures are not {usual[0]} x {usual[1]}: {form}")
    elif others:
        notes.append(f"pictures have {len(sizes):,} different sizes, {usual[0]} x {usual[1]} most often: {form}")
    elif heads and usual != (size, size):
        notes.append(f"pictures are {usual[0]} x {usual[1]}: {form}")
    colored = sum(not is_gray for _, _, is_gray in heads)
    if not gray and 2 * colored < len(heads):
        notes.append(f"{colored:,} of {len(heads):,} pictures are in color, the others gray: all are read as color")
    return tuple(notes)


def common_form(heads: Sequence[pictures.Head], size: int | None = None) -> tuple[int, bool]:
    """The size that pictures are brought to, and whether all stay gray."""
    edges = {edge for width, height, _ in heads for edge in (width, height)}
    common = max(edges) if len(edges) == 1 and max(edges) <= COMMON_LIMIT else USUAL_SIZE
    return size or common, bool(heads) and all(gray for _, _, gray in heads)


def _room(count: int, channels: int, size: int) -> np.ndarray:
    return room_for((count, channels, size, size), data_root())


def _each(
    work: Callable[[int], Result], positions: Iterable[int], lost: dict[int, str], title: str
) -> dict[int, Result]:
    """`work(position)` by position, in order; failures go to `lost`. In threads, because Pillow decodes and resizes
    outside the interpreter's lock."""

    def attempt(position: int) -> Result | Exception:
        try:
            return work(position)
        except Exception as problem:  # a damaged or hostile file can raise almost anything
            return problem

    todo = list(positions)
    results: dict[int, Result] = {}
    console = Console(stderr=True)
    hidden = len(todo) < WORTH_A_BAR or not console.is_terminal
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 16)) as pool:
        outcomes = track(pool.map(attempt, todo), title, len(todo), console=console, transient=True, disable=hidden)
        for position, outcome in zip(todo, outcomes, strict=True):
            if isinstance(outcome, Exception):
                lost[position] = str(outcome) or type(outcome).__name__
            else:
                results[position] = outcome
    return results
