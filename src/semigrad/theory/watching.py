"""Real training runs, looked at between their steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from semigrad.core import CPU, Batch, random_state_kept
from semigrad.data.arrays import from_arrays
from semigrad.data.dataset import Dataset
from semigrad.data.opening import open_data
from semigrad.data.stream import in_order
from semigrad.folder.keeping import InMemory
from semigrad.run import Run
from semigrad.settings import Execution
from semigrad.training.setup import Setup, set_up
from semigrad.training.training import Training


def watch(run: Run, every: int, dataset: Dataset | None = None) -> Iterator[tuple[Training, Batch]]:
    """Train, stopping before each `every`-th step, with the batch that comes, and after the last one, with its own.
    Nothing is written."""
    setup = set_up(run, "cpu", dataset)
    with random_state_kept(CPU):
        training = Training(run, setup, InMemory(), Execution())
        for step, batch in enumerate(setup.stream.batches(range(run.steps), CPU)):
            if step % every == 0:
                training.look()
                yield training, batch
            training.one_step(batch)
        training.look()
        yield training, batch


def as_features(run: Run) -> Dataset:
    """The run's images as rows of features, for networks that take those."""
    images = open_data(run.data, run)

    def rows(examples: Tensor) -> np.ndarray:
        return examples.flatten(1).numpy()

    assert images.test is not None
    train = rows(next(in_order(images.train, np.arange(len(images.train)), CPU, size=len(images.train))))
    test = rows(next(in_order(images.test, np.arange(len(images.test)), CPU, size=len(images.test))))
    return from_arrays(images.name, images.classes, train, images.labels, test, images.test_labels)


def unaugmented(setup: Setup, positions: np.ndarray) -> Tensor:
    """Training examples as they are, (rows, *shape)."""
    return next(in_order(setup.dataset.train, positions, CPU, size=len(positions)))
