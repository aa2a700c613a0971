"""Natural images on two processor cores: the network, the budgets and the fields that every scale has which shows them.

A miniature speaks about semi-supervised learning only where labeled-only has run out of labels to learn from. So there
is a rule for the budget, written down before any table was made: the smallest number of steps, doubled from 500 on, at
which labeled-only has a training error below 1 % and gains less than half a point of validation error from twice as
many (means of three seeds that no table uses). Where that is more than a night holds for all rows, the budget is cut,
and docs/results.md says what twice as many would give. Every row has the same budget, network, batch and schedule. Only
a row's own fields differ; they were chosen by the same number of short validation runs for each, see `tuned.py`."""

from __future__ import annotations

from collections.abc import Iterable

from semigrad.experiments.experiment import Column, Runs
from semigrad.experiments.scales.miniature import grid
from semigrad.experiments.scales.sources import data
from semigrad.experiments.scales.tuned import Chosen, chosen_for
from semigrad.settings.recipes import Layer

_COMMON: Layer = {"model": {"name": "compact-conv"}, "batch": 64, "warmup": 0.075, "lr": 0.1}
TINY = Column("Tiny-ImageNet-20", "10%")
BUDGETS = {"SVHN": 2000, "CIFAR-10": 4000, "Tiny-ImageNet-20": 2000}
"""Steps: SVHN's by the rule, CIFAR-10's cut to 4,000 where it asks for more than 8,000 (docs/results.md); those of Tiny
ImageNet are SVHN's, which has as many labels."""
LOOKS = 100  # steps between looks at the test part, for the curves
_OWN: dict[str, Layer] = {"Tiny-ImageNet-20": {"image_size": 32}}

SMALL_NOTE = "A small network and a small share of the paper's steps: orders and gaps can be compared, not errors."
TINY_NOTE = "In place of ImageNet: 20 classes of Tiny ImageNet, 10,000 training pictures brought to 32 x 32."

AS_ORIGINAL: dict[str, dict[str, Layer]] = {
    "SVHN": {name: {"gamma": 0.1} for name in ("meta-gradient", "ada-net", "ada-net+fast-swa")}
}
"""Mixing as both papers have it on a data set, so that the two methods that mix are compared on equal terms."""

AS_BY_DEFAULT: dict[str, Layer] = {"fixmatch": {"threshold": 0.8}}
"""What images are trained with where nothing is said, so that its row is what somebody gets."""


def fields_for(data: str) -> Chosen:
    """The fields of each method on the data that a column names: those of its paper below those that were chosen."""
    layers = (AS_BY_DEFAULT, AS_ORIGINAL.get(data, {}), chosen_for(data))
    return {
        name: {key: value for layer in layers for key, value in layer.get(name, {}).items()}
        for layer in layers
        for name in layer
    }


def images(*columns: Column, **more: object) -> dict[Column, Layer]:
    """What every run on a column's data has in common."""
    return {
        column: {**_COMMON, "steps": BUDGETS[column.data], **_OWN.get(column.data, {}), "data": data(column), **more}
        for column in columns
    }


def rows_on(rows: Iterable[str], columns: dict[Column, Layer]) -> Runs:
    """Every row on every column, with the fields that were chosen for the column's data."""
    names = list(rows)
    return {
        place: run
        for column, layer in columns.items()
        for place, run in grid(names, {column: layer}, fields_for(column.data)).items()
    }
