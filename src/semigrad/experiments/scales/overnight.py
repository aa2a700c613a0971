"""Natural images on two processor cores, with seeds enough to tell: every experiment within a night.

A miniature speaks about semi-supervised learning only where labeled-only has run out of labels to learn from. So there
is a rule for the budget, written down before any table was made: the smallest number of steps, doubled from 500 on, at
which labeled-only has a training error below 1 % and gains less than half a point of validation error from twice as
many (means of three seeds that no table uses). Where that is more than a night holds for all rows, the budget is cut,
and docs/results.md says what twice as many would give. Every row has the same budget, network, batch and schedule. Only
a row's own fields differ; they were chosen by the same number of short validation runs for each, see `tuned.py`."""

from __future__ import annotations

from collections.abc import Iterable

from semigrad.experiments.experiment import Column, Plan, Runs
from semigrad.experiments.published import (
    BOTH,
    CIFAR10,
    LABELED_ONLY,
    OURS,
    SVHN,
    TABLE1,
    TABLE3,
    TABLE4,
    TABLE5,
    rows_of,
    top_1_and_5,
)
from semigrad.experiments.scales.miniature import (
    FIXMATCH,
    META_MATCH,
    MIXMATCH,
    NO_META_STEP,
    STRONG,
    grid,
    hosts_with_and_without_meta,
    variants,
    with_and_without_mixup,
)
from semigrad.experiments.scales.sources import data
from semigrad.experiments.scales.tuned import Chosen, chosen_for
from semigrad.settings.recipes import Layer

SEEDS = 3
ONE_SEED = 1  # for figures that are looked at
LOOKS = 100  # steps between looks at the test part, for the curves

_IMAGES: Layer = {"model": {"name": "compact-conv"}, "batch": 64, "warmup": 0.075, "lr": 0.1}
TINY = Column("Tiny-ImageNet-20", "10%")
BUDGETS = {"SVHN": 2000, "CIFAR-10": 4000, "Tiny-ImageNet-20": 2000}
"""Steps: SVHN's by the rule, CIFAR-10's cut to 4,000 where it asks for more than 8,000 (docs/results.md); those of Tiny
ImageNet are SVHN's, which has as many labels."""
_OWN: dict[str, Layer] = {"Tiny-ImageNet-20": {"image_size": 32}}

_NOTE = "A small network and a small share of the paper's steps: orders and gaps can be compared, not errors."
_TINY_NOTE = "In place of ImageNet: 20 classes of Tiny ImageNet, 10,000 training pictures brought to 32 x 32."
_STRONG_NOTE = (
    f"{STRONG}: labeled examples with RandAugment and cutout, so that what unlabeled data give can be told from what "
    "augmentation gives."
)
_META_MATCH_NOTE = (
    f"{META_MATCH}: not in the paper; labels as they are beside the mixed ones, and strong views of the unlabeled "
    "examples."
)
_FIXMATCH_NOTE = (
    f"{FIXMATCH}: with the threshold that images are given by default, 0.8, chosen on validation images of several "
    "data sets; its paper has 0.95."
)
_NO_META_STEP_NOTE = f"{NO_META_STEP}: as {BOTH}, with the network's own predictions for pseudo-labels."


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
        column: {**_IMAGES, "steps": BUDGETS[column.data], **_OWN.get(column.data, {}), "data": data(column), **more}
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


def table1() -> Plan:
    rows = (*rows_of(TABLE1), STRONG, MIXMATCH, FIXMATCH, META_MATCH)
    return Plan.of(SEEDS, rows_on(rows, images(SVHN)), (_NOTE, _STRONG_NOTE, _META_MATCH_NOTE, _FIXMATCH_NOTE))


def table2() -> Plan:
    columns = images(*(Column("CIFAR-10", labels) for labels in ("1000", "2000", "4000")))
    return Plan.of(SEEDS, rows_on(["fastSWA", OURS], columns), (_NOTE,))


def table3() -> Plan:
    (layer,) = images(TINY, test_every=LOOKS).values()
    columns = dict.fromkeys(top_1_and_5(TINY.data, TINY.labels), layer)
    return Plan.of(SEEDS, rows_on(rows_of(TABLE3), columns), (_TINY_NOTE, _NOTE))


def table4() -> Plan:
    rows = (*rows_of(TABLE4), NO_META_STEP, STRONG, META_MATCH, FIXMATCH)
    notes = (_NOTE, _NO_META_STEP_NOTE, _STRONG_NOTE, _META_MATCH_NOTE, _FIXMATCH_NOTE)
    return Plan.of(SEEDS, rows_on(rows, images(SVHN, CIFAR10)), notes)


def table5() -> Plan:
    runs: Runs = {}
    for column, layer in images(SVHN, CIFAR10).items():
        runs |= with_and_without_mixup(rows_of(TABLE5), {column: layer}, fields_for(column.data))
    return Plan.of(SEEDS, runs, (_NOTE,))


def figure_accuracy() -> Plan:
    return Plan.of(ONE_SEED, rows_on([LABELED_ONLY, OURS], images(TINY, SVHN, test_every=LOOKS)), (_TINY_NOTE, _NOTE))


def figure_labels() -> Plan:
    columns = images(*(Column("SVHN", labels) for labels in ("250", "500", "1000")))
    rows = [LABELED_ONLY, OURS, STRONG, FIXMATCH, META_MATCH]
    return Plan.of(SEEDS, rows_on(rows, columns), (_NOTE, _STRONG_NOTE, _META_MATCH_NOTE, _FIXMATCH_NOTE))


def figure_features() -> Plan:
    return Plan.of(ONE_SEED, rows_on([LABELED_ONLY, OURS], images(SVHN, TINY)), (_TINY_NOTE, _NOTE))


def ablation(named: dict[str, Layer]) -> Plan:
    """Variants of the method by their fields."""
    return Plan.of(SEEDS, variants(named, images(SVHN), fields_for(SVHN.data)), (_NOTE,))


def meta_plugin(hosts: dict[str, str], rows: tuple[str, str]) -> Plan:
    (layer,) = images(SVHN).values()
    return Plan.of(SEEDS, hosts_with_and_without_meta(hosts, rows, layer, fields_for(SVHN.data)), (_NOTE,))
