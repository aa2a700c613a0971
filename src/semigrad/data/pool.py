"""Unlabeled data as they are in practice: fewer of them, or of classes that nobody asked for.

After Oliver, Odena, Raffel, Cubuk, Goodfellow: Realistic Evaluation of Deep Semi-Supervised Learning Algorithms,
2018."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from semigrad.data.dataset import Dataset
from semigrad.data.split import Split, equally, hash_order
from semigrad.errors import InputError, unknown


@dataclass(frozen=True)
class Pool:
    """What the unlabeled pool holds, where it is not simply all that has no label."""

    classes: tuple[str, ...] = ()  # the classes to tell apart; none: all
    unlabeled: int | None = None  # its size, equal per class; None: all there are
    mismatch: float = 0.0  # share of it that is of other classes

    def problems(self, dataset: Dataset) -> list[str]:
        found = [unknown("class", name, dataset.classes) for name in self.classes if name not in dataset.classes]
        if len(set(self.classes)) != len(self.classes) or len(self.classes) == 1:
            found.append(
                f"classes names the classes to tell apart, at least two different ones; given: {self.classes}."
            )
        if self.mismatch and (not self.classes or self.unlabeled is None):
            found.append("mismatch is the share of the pool that is of other classes: it needs classes and unlabeled.")
        if self.mismatch and set(dataset.classes) <= set(self.classes):
            found.append(
                "mismatch is the share of the pool that is of other classes, and classes names all "
                f"{len(dataset.classes)} there are. Leave some of them out, or leave mismatch out."
            )
        return found

    def restrict(self, dataset: Dataset) -> Dataset:
        """The data set with these classes alone: others have no label in the training part and no place in the test
        part. Where that leaves nothing of it, there is none, as where a source has none: one can still train."""
        if not self.classes:
            return dataset
        numbers = np.full(len(dataset.classes) + 1, -1)  # the last place is for examples whose class is not known
        for new, name in enumerate(self.classes):
            numbers[dataset.classes.index(name)] = new
        labels, test, test_labels = numbers[dataset.labels], dataset.test, dataset.test_labels
        notes = dataset.notes
        if test is not None and test_labels is not None:
            kept = np.flatnonzero(numbers[test_labels] >= 0)
            test, test_labels = (test.take(kept), numbers[test_labels[kept]]) if len(kept) else (None, None)
            notes += () if len(kept) else ("no test example is of the chosen classes, so there is no test part",)
        return dataclasses.replace(
            dataset, classes=self.classes, labels=labels, test=test, test_labels=test_labels, notes=notes
        )

    def cut(self, dataset: Dataset, split: Split, seed: int) -> Split:
        """The split with its unlabeled part as asked for; `dataset` still has all classes."""
        if not self.classes and self.unlabeled is None:
            return split
        inside = [dataset.classes.index(name) for name in self.classes or dataset.classes]
        outside = [number for number in range(len(dataset.classes)) if number not in inside]
        size = self.unlabeled
        if size is None:
            return dataclasses.replace(
                split, unlabeled=split.unlabeled[~np.isin(dataset.labels[split.unlabeled], outside)]
            )
        away = round(self.mismatch * size)
        parts = [(inside, size - away), (outside, away)]
        chosen = [self._of(dataset, split, seed, classes, count) for classes, count in parts if count]
        return dataclasses.replace(split, unlabeled=np.sort(np.concatenate(chosen)))

    def _of(self, dataset: Dataset, split: Split, seed: int, classes: list[int], count: int) -> np.ndarray:
        """So many examples of these classes, the first ones in hash order."""
        wanted = equally(count, len(classes))
        chosen = []
        for number in classes:
            members = split.unlabeled[dataset.labels[split.unlabeled] == number]
            if len(members) < wanted:
                raise InputError(
                    f"Class {dataset.classes[number]!r} has {len(members)} examples for the unlabeled pool, but "
                    f"{wanted} are needed."
                )
            chosen.append(hash_order("unlabeled", seed, members)[:wanted])
        return np.concatenate(chosen)
