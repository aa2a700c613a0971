"""From the names that the paper gives data sets to those that a run gives them."""

from __future__ import annotations

from semigrad.experiments.experiment import ROOT, Column

SOURCES = {
    "SVHN": "svhn",
    "CIFAR-10": "cifar10",
    "CIFAR-100": "cifar100",
    "ImageNet": f"imagenet:{ROOT}/imagenet",
    "Tiny-ImageNet-20": f"folder:{ROOT}/tiny-imagenet-20",
    "digits": "digits",
}


def source(column: Column) -> str:
    """The data of a column with every label: `cifar10`."""
    return SOURCES[column.data]


def data(column: Column) -> str:
    """The data of a column with as many labels as it says: `cifar10@4000`."""
    return f"{source(column)}@{column.labels}"
