"""Many picture files as one array: decides on a common size, decodes in parallel, tells which could not be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track

from semigrad.data import pictures
from semigrad.errors import InputError

COMMON_LIMIT = 96  # the largest size that pictures keep if all share it
USUAL_SIZE = 64
BYTES_LIMIT = 4 * 10**9
WORTH_A_BAR = 2000  # pictures

Result = TypeVar("Result")


@dataclass(frozen=True)
class Album:
    """The pictures that could be read, and why not for the others."""

    values: np.ndarray  # uint8 (len(kept), channels, size, size)
    kept: list[int]  # positions among the given paths
    lost: dict[int, str]  # position: reason


def read(paths: Sequence[str], size: int | None) -> Album:
    """All pictures at `size`; without one at their own if it is small, square and common to all, else at 64.

    The shorter edge is brought to the size and the middle cut out. Gray if every one is gray, else RGB."""
    lost: dict[int, str] = {}
    with pictures.quiet():
        heads = _each(
            lambda position: pictures.inspect(paths[position]), range(len(paths)), lost, "Looking at pictures"
        )
        size = size or _common_size({edge for width, height, _ in heads.values() for edge in (width, height)})
        gray = bool(heads) and all(gray for _, _, gray in heads.values())
        return _decoded(paths, heads, lost, (1 if gray else 3, size), 1.0)


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
    return Album(values if len(kept) == len(paths) else values[kept], kept, lost)


def _common_size(edges: set[int]) -> int:
    return edges.pop() if len(edges) == 1 and max(edges) <= COMMON_LIMIT else USUAL_SIZE


def _room(count: int, channels: int, size: int) -> np.ndarray:
    if count * channels * size * size > BYTES_LIMIT:
        raise InputError(
            f"{count:,} pictures of {size} x {size} need {count * channels * size * size / 1e9:.1f} GB, more than "
            f"{BYTES_LIMIT / 1e9:.0f} GB; give a smaller image size, or use `imagenet:PATH`, which reads pictures "
            "while it trains."
        )
    return np.empty((count, channels, size, size), dtype=np.uint8)


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
