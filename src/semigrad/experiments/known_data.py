"""The data of the experiments, known by heart, so that a plan needs none of them: shapes, classes, counts. Other data
are looked at."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from semigrad.data import open_dataset
from semigrad.data.split import DataSpec
from semigrad.run import Run

CLASSES_AND_EXAMPLES = {
    "digits": (10, 1297),
    "cifar10": (10, 50_000),
    "cifar100": (100, 50_000),
    "svhn": (10, 73_257),
    "imagenet": (1000, 1_281_167),
    "tiny-imagenet-20": (20, 10_000),
}
"""Classes and training examples by the name of the data, or of their folder."""


def count_labels(run: Run) -> int:
    """Labels that the run's data give it."""
    spec = DataSpec.parse(run.data)
    if spec.labels is not None:
        return spec.labels
    _, _, examples = _facts(run)
    told_apart = len(run.classes) / shape_and_classes(run)[1] if run.classes else 1.0
    return round((examples * told_apart - run.validation) * (1.0 if spec.share is None else spec.share / 100))


def shape_and_classes(run: Run) -> tuple[tuple[int, ...], int]:
    """Shape of an example and number of classes."""
    shape, classes, _ = _facts(run)
    return shape, classes


def _facts(run: Run) -> tuple[tuple[int, ...], int, int]:
    """Shape of an example, classes, training examples."""
    spec = DataSpec.parse(run.data)
    name = spec.path.name if spec.path is not None and spec.path.name in CLASSES_AND_EXAMPLES else spec.name
    if name not in CLASSES_AND_EXAMPLES:
        return _look(spec.name, spec.path, run.image_size)
    side = 32 if spec.path is None else run.image_size or 224
    return (1, 8, 8) if name == "digits" else (3, side, side), *CLASSES_AND_EXAMPLES[name]


@cache
def _look(name: str, path: Path | None, image_size: int | None) -> tuple[tuple[int, ...], int, int]:
    dataset = open_dataset(name, path, image_size=image_size)
    return dataset.train.shape, len(dataset.classes), len(dataset.train)
