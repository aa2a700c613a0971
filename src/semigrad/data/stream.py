"""The batches of a run: the batch of a step is a pure function of (seed, step).

Each pool is an endless sequence of permutations cut into batches; a batch may span two of them (64 from a pool of 40:
every example once, 24 twice). There is no state to save, so a run can stop and go on at any step.

Where labeled batches are balanced, the classes are permuted endlessly, and within each class its examples: in the n-th
permutation of the classes each gives the n-th example of its own sequence. So over any steps the classes come equally
often, but for what is cut off at the ends, and so do the examples of a class.

Where several processes carry out a run, each reads and augments its own rows of a batch, with the draws that these rows
have in the whole of it, and is handed the others'."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np
import torch
from torch import Tensor

from semigrad.augment import Corruption
from semigrad.core import Batch, generator
from semigrad.core.processes import ALONE, Processes
from semigrad.data.ahead import read_ahead
from semigrad.data.dataset import Dataset, Examples, InMemory, ready
from semigrad.data.split import Split
from semigrad.data.views import VIEWS, RowsOfDraws, Sight
from semigrad.errors import unknown
from semigrad.settings.fields import refuse


@lru_cache(maxsize=8)
def _permutation(seed: int, pool: str, turn: int, size: int) -> np.ndarray:
    return generator(seed, "permutation", pool, turn).permutation(size)


def places(seed: int, pool: str, size: int, batch: int, step: int) -> np.ndarray:
    """(batch,) places in a pool of `size` examples for this step."""
    return _permuted(seed, pool, size, np.arange(step * batch, (step + 1) * batch))


def _permuted(seed: int, pool: str, size: int, position: np.ndarray) -> np.ndarray:
    """What stands at these positions, ascending, of the endless sequence of permutations."""
    turns, members = np.divmod(position, size)
    found = np.empty_like(members)
    for turn in range(turns[0], turns[-1] + 1):  # taken from where they stand: a pool may have millions
        found[turns == turn] = _permutation(seed, pool, turn, size)[members[turns == turn]]
    return found


def balanced(seed: int, pool: str, classes: Sequence[np.ndarray], batch: int, step: int) -> np.ndarray:
    """(batch,) members of these classes for this step, all classes equally often."""
    position = np.arange(step * batch, (step + 1) * batch)
    turn, chosen = position // len(classes), _permuted(seed, f"classes of {pool}", len(classes), position)
    found = np.empty(batch, np.int64)
    for number in np.unique(chosen):
        rows, members = chosen == number, classes[number]
        found[rows] = members[_permuted(seed, f"class {number} of {pool}", len(members), turn[rows])]
    return found


@dataclasses.dataclass(frozen=True)
class Stream:
    """`stream[step]` is the batch of a step, images as uint8 (see `ready`): of its views the rows of this process."""

    dataset: Dataset
    split: Split
    views: tuple[str, ...]
    labeled_views: tuple[str, ...]
    batch: int
    unlabeled_batch: int
    seed: int
    corruption: Corruption = Corruption()  # noqa: RUF009 (frozen) - views of feature arrays
    processes: Processes = ALONE
    balanced: bool = False

    def __post_init__(self) -> None:
        asked = dict.fromkeys((*self.labeled_views, *self.views))
        refuse([unknown("view", name, VIEWS) for name in asked if name not in VIEWS])

    def __getitem__(self, step: int) -> Batch:
        labeled = self._labeled(step)
        unlabeled = self._positions("unlabeled", self.split.unlabeled, self.unlabeled_batch if self.views else 0, step)
        return Batch(
            labeled=self._views("labeled", self.labeled_views, labeled, step),
            labels=torch.from_numpy(self.dataset.labels[labeled]),
            unlabeled=self._views("unlabeled", self.views, unlabeled, step),
            labeled_index=torch.from_numpy(labeled),
            unlabeled_index=torch.from_numpy(unlabeled),
        )

    @cached_property
    def _by_class(self) -> list[np.ndarray]:
        """The labeled positions of each class."""
        labels = self.dataset.labels[self.split.labeled]
        return [self.split.labeled[labels == number] for number in np.unique(labels)]

    def _labeled(self, step: int) -> np.ndarray:
        if self.balanced:
            return balanced(self.seed, "labeled", self._by_class, self.batch, step)
        return self._positions("labeled", self.split.labeled, self.batch, step)

    def _positions(self, name: str, pool: np.ndarray, batch: int, step: int) -> np.ndarray:
        return pool[places(self.seed, name, len(pool), batch, step)] if batch else pool[:0]

    def _views(self, name: str, views: tuple[str, ...], positions: np.ndarray, step: int) -> tuple[Tensor, ...]:
        total = len(positions)

        def view(kind: str, number: int) -> Tensor:
            draws = generator(self.seed, step, "view", name, kind, number)
            if not self.processes.divide(total):
                return VIEWS[kind](Sight(self.dataset, positions, self.corruption, draws))
            rows = self.processes.rows(total)
            own = RowsOfDraws(draws, total, rows)
            return VIEWS[kind](Sight(self.dataset, positions[rows], self.corruption, own))

        return tuple(view(kind, number) for number, kind in enumerate(views))

    def batches(self, steps: range, device: torch.device, workers: int = 0) -> Iterator[Batch]:
        """The batches of these steps in order, on the device, in [0, 1]. Examples in files are read ahead by worker
        processes, whose number changes nothing."""
        source: Iterable[Batch] = (self[step] for step in steps)
        if self.dataset.train.streamed:
            source = read_ahead(self, steps, workers)
        for batch in source:
            yield Batch(
                labeled=self._complete(batch.labeled, len(batch.labels), device),
                labels=batch.labels.to(device),
                unlabeled=self._complete(batch.unlabeled, len(batch.unlabeled_index), device),
                labeled_index=batch.labeled_index.to(device),
                unlabeled_index=batch.unlabeled_index.to(device),
            )

    def _complete(self, views: tuple[Tensor, ...], total: int, device: torch.device) -> tuple[Tensor, ...]:
        """With the rows of all processes, on the device, in [0, 1]."""
        return tuple(ready(self.processes.gather(view.to(device), total), device) for view in views)


def on_device(dataset: Dataset, device: torch.device) -> Dataset:
    """The data set with what stands in memory on the device; what is mapped may be too large for it."""

    def move(examples: Examples) -> Examples:
        if not isinstance(examples, InMemory) or examples.mapped:
            return examples
        return dataclasses.replace(examples, values=examples.values.to(device))

    return dataclasses.replace(dataset, train=move(dataset.train), test=dataset.test and move(dataset.test))


@dataclasses.dataclass(frozen=True)
class _Slices:
    examples: Examples
    positions: np.ndarray
    size: int
    processes: Processes

    def __getitem__(self, number: int) -> Tensor:
        positions = self.of(number)
        own = self.processes.rows(len(positions)) if self.processes.divide(len(positions)) else slice(None)
        return self.examples.raw(positions[own])

    def of(self, number: int) -> np.ndarray:
        return self.positions[number * self.size : (number + 1) * self.size]


def in_order(
    examples: Examples, positions: np.ndarray, device: torch.device, workers: int = 0, size: int = 500,
    processes: Processes = ALONE,
) -> Iterator[Tensor]:  # fmt: skip
    """Unaugmented examples at these positions, batch by batch, in [0, 1]. Several processes read their own rows."""
    slices = _Slices(examples, positions, size, processes)
    numbers = range(-(-len(positions) // size))
    source: Iterable[Tensor] = (slices[number] for number in numbers)
    if examples.streamed:
        source = read_ahead(slices, numbers, workers)
    for number, rows in zip(numbers, source, strict=True):
        yield ready(processes.gather(rows.to(device), len(slices.of(number))), device)
