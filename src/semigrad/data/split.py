"""Which examples are labeled, unlabeled and held out: `cifar10@4000` and a seed, the same on every platform.

Orders come from a hash of seed and position, never from a library's random generator, so a split can be made again
anywhere and at any time."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semigrad.data.dataset import MEMORY, Dataset
from semigrad.errors import InputError

_GRAMMAR = re.compile(
    r"(?P<name>[^:@]+)(:(?P<path>.+?))?(@(?P<labels>[0-9]{1,12}|[0-9]{1,12}(\.[0-9]+)?%))?", re.DOTALL
)


@dataclass(frozen=True)
class DataSpec:
    """`NAME`, `NAME:PATH`, each with `@LABELS` (in all, equal per class) or `@SHARE%` (of each class) behind it."""

    name: str
    path: Path | None = None
    labels: int | None = None
    share: float | None = None  # in per cent

    @classmethod
    def parse(cls, text: str) -> DataSpec:
        match = _GRAMMAR.fullmatch(text)
        if match is None:
            raise InputError(
                f"Cannot read the data {text!r}. Write NAME or NAME:PATH, with @4000 (labels in all) or @10% (of each "
                "class) behind it: cifar10@4000, folder:photos, imagenet:/data/imagenet@10%."
            )
        path, labels = match["path"], match["labels"]
        return cls(
            match["name"],
            Path(path).expanduser() if path else None,
            int(labels) if labels and not labels.endswith("%") else None,
            float(labels[:-1]) if labels and labels.endswith("%") else None,
        )


@dataclass(frozen=True)
class Split:
    """Positions in the training part, ascending."""

    labeled: np.ndarray
    unlabeled: np.ndarray
    validation: np.ndarray

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for part in (self.labeled, self.unlabeled, self.validation):
            digest.update(np.asarray(part, "<i8").tobytes() + b"|")
        return digest.hexdigest()


def make_split(
    dataset: Dataset, spec: DataSpec, seed: int, *,
    validation: int = 0, fold: int = 0, folds: int = 0, include_labeled: bool = False,
) -> Split:  # fmt: skip
    """Cut the validation part off first, then choose the labels, class by class; the rest is the unlabeled pool. With
    `folds` the labels are those that there would be without them, and one fold of them is the validation part.

    `include_labeled` puts the labeled examples into the pool too, with their labels hidden there."""
    known = np.flatnonzero(dataset.labels >= 0)
    held = _choose(dataset, known, "validation", seed, lambda a: [equally(validation, len(a))] * len(a))
    labeled = _choose(dataset, np.setdiff1d(known, held), "labeled", seed, lambda available: _asked(spec, available))
    if folds:
        held = _fold(dataset, labeled, seed, fold, folds)
        labeled = np.setdiff1d(labeled, held)
    away = held if include_labeled else np.concatenate([held, labeled])
    unlabeled = np.setdiff1d(np.arange(len(dataset.train)), away)
    return Split(labeled, unlabeled, held)


def _fold(dataset: Dataset, labeled: np.ndarray, seed: int, fold: int, folds: int) -> np.ndarray:
    """Every `folds`-th of the labeled positions of each class in hash order; the only one of its class stays."""
    by_class = [labeled[dataset.labels[labeled] == number] for number in range(len(dataset.classes))]
    parts = [hash_order("fold", seed, members)[fold::folds] for members in by_class if len(members) > 1]
    held = np.sort(np.concatenate(parts)) if parts else labeled[:0]
    if len(held) == 0:
        raise InputError(f"{len(labeled)} labels are too few for {folds} folds: fold {fold} would be empty. Use fewer.")
    return held


def _choose(
    dataset: Dataset, candidates: np.ndarray, purpose: str, seed: int, count: Callable[[list[int]], list[int]]
) -> np.ndarray:
    """Positions for a purpose, `count(available)` of each class, the first ones in hash order."""
    by_class = [candidates[dataset.labels[candidates] == c] for c in range(len(dataset.classes))]
    available = [len(members) for members in by_class]
    wanted = count(available)
    problems = [
        f"Class {name!r} has {there} examples with a label, but {needed} {purpose} ones are needed."
        for name, there, needed in zip(dataset.classes, available, wanted, strict=True)
        if there < needed
    ]
    if len(problems) > 5:
        problems = [*problems[:5], f"{len(problems) - 5} more classes have too few."]
    if problems:
        raise InputError(problems)
    chosen = [hash_order(purpose, seed, members)[:n] for members, n in zip(by_class, wanted, strict=True)]
    return np.sort(np.concatenate(chosen))


def _asked(spec: DataSpec, available: list[int]) -> list[int]:
    """Labels of each class that a request asks for, at least one."""
    if spec.labels == 0:
        raise InputError("0 labels were asked for. Ask for at least one of each class.")
    if spec.labels is not None and spec.labels > sum(available) and spec.labels % len(available):
        most = len(available) * min(available)
        raise InputError(f"{spec.labels} labels were asked for; equally many of each class are at most {most}.")
    if spec.labels is not None:
        return [equally(spec.labels, len(available))] * len(available)
    if spec.share is not None and not 0 < spec.share <= 100:
        raise InputError(f"A share of labels lies above 0 % and up to 100 %; given: {spec.share} %.")
    share = 1.0 if spec.share is None else spec.share / 100
    return [max(1, round(share * count)) for count in available]


def fewer_labels(data: str, available: Sequence[int] | np.ndarray) -> str:
    """How to ask for fewer labels of the same data, of which there are so many of each class: for ten, or half of
    them."""
    spec, some = DataSpec.parse(data), len(available) * max(1, min(10, int(min(available)) // 2))
    if spec.name == MEMORY:
        return f"labels={some}"
    return f"{data if spec.labels is None and spec.share is None else data.rpartition('@')[0]}@{some}"


def equally(total: int, classes: int) -> int:
    """The share of each class."""
    if total % classes:
        below, above = total // classes * classes, (total // classes + 1) * classes
        choice = f"{below} or {above}" if below else str(above)
        raise InputError(f"{total} examples cannot be shared equally by {classes} classes. Ask for {choice}.")
    return total // classes


def hash_order(purpose: str, seed: int, positions: np.ndarray) -> np.ndarray:
    """Positions in an order that depends on purpose, seed and each position alone."""

    def key(position: int) -> bytes:
        return hashlib.blake2b(f"{purpose} {seed} {position}".encode(), digest_size=16).digest()

    return np.array(sorted(positions.tolist(), key=key), np.int64)
