"""Which examples are labeled, unlabeled and held out: `cifar10@4000` and a seed, the same on every platform.

Orders come from a hash of seed and position, never from a library's random generator, so a split can be made again
anywhere and at any time."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semigrad.data.dataset import Dataset
from semigrad.errors import InputError

_GRAMMAR = re.compile(r"(?P<name>[^:@]+)(:(?P<path>.+?))?(@(?P<labels>\d+(\.\d+)?%?))?", re.DOTALL)


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
            int(float(labels)) if labels and not labels.endswith("%") else None,
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
    dataset: Dataset, spec: DataSpec, seed: int, *, validation: int = 0, include_labeled: bool = False
) -> Split:
    """Cut the validation part off first, then choose the labels, class by class; the rest is the unlabeled pool.

    `include_labeled` puts the labeled examples into the pool too, with their labels hidden there."""
    held, problems = _choose(dataset, "validation", seed, spec_of_total(validation), np.array([], np.int64))
    labeled, more = _choose(dataset, "labeled", seed, spec, held)
    if problems or more:
        raise InputError(problems + more)
    away = held if include_labeled else np.concatenate([held, labeled])
    unlabeled = np.setdiff1d(np.arange(len(dataset.train)), away)
    return Split(labeled, unlabeled, held)


def spec_of_total(total: int) -> DataSpec:
    """The request for `total` examples, equal per class."""
    return DataSpec("", labels=total)


def _choose(
    dataset: Dataset, purpose: str, seed: int, spec: DataSpec, taken: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    """Class-balanced positions for a purpose, and why they cannot be had."""
    classes, names = len(dataset.classes), dataset.classes
    free = np.setdiff1d(np.flatnonzero(dataset.labels >= 0), taken)
    by_class = [free[dataset.labels[free] == c] for c in range(classes)]
    available = [len(members) for members in by_class]
    if spec.labels is not None:
        if spec.labels % classes:
            near = sorted({max(spec.labels // classes, 1) * classes, (spec.labels // classes + 1) * classes})
            choice = " or ".join(map(str, near))
            return free[:0], [
                f"{spec.labels} {purpose} examples cannot be shared equally by {classes} classes. Ask for {choice}."
            ]
        wanted = [spec.labels // classes] * classes
        if purpose == "labeled" and spec.labels == 0:
            return free[:0], ["0 labels were asked for. Ask for at least one of each class."]
    elif spec.share is not None:
        if not 0 < spec.share <= 100:
            return free[:0], [f"A share of labels lies above 0 % and up to 100 %; given: {spec.share} %."]
        wanted = [max(1, round(spec.share / 100 * count)) for count in available]
    else:
        wanted = available
    problems = [
        f"Class {names[c]!r} has {available[c]} examples with a label, but {wanted[c] or 1} {purpose} ones are needed."
        for c in range(classes)
        if available[c] < wanted[c] or (purpose == "labeled" and available[c] == 0)
    ]
    if problems:
        cut = f"(and {len(problems) - 5} more classes with too few)" if len(problems) > 5 else ""
        return free[:0], problems[:5] + [cut] * bool(cut)
    if spec.labels is None and spec.share is None:
        return free, []
    chosen = [_hash_order(purpose, seed, members)[:count] for members, count in zip(by_class, wanted, strict=True)]
    return np.sort(np.concatenate(chosen)), []


def _hash_order(purpose: str, seed: int, positions: np.ndarray) -> np.ndarray:
    def key(position: int) -> bytes:
        return hashlib.blake2b(f"{purpose} {seed} {position}".encode(), digest_size=16).digest()

    return np.array(sorted(positions.tolist(), key=key), np.int64)
