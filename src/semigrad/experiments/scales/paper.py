"""The settings of the papers: ours by the appendix, and by its authors' code where that is silent; the other rows by
their originals; all as recipes with a name.

What an original does not publish for a row or a data set is composed from the nearest recipe, as said beside it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from semigrad.experiments import published
from semigrad.experiments.experiment import Column, Plan, Runs, make_run
from semigrad.experiments.published import CIFAR10, FULLY_SUPERVISED, IMAGE_SETS, LABELED_ONLY, OURS, SVHN
from semigrad.experiments.scales.miniature import steps_of
from semigrad.experiments.scales.sources import data, source
from semigrad.settings.recipes import RECIPES, Layer

SEEDS = 3
IMAGENET = Column("ImageNet", "10%")

ORIGINALS = {
    "Pi-Model": "pi-model",
    "TE": "temporal-ensembling",
    "MT": "mean-teacher",
    "VAT": "vat",
    "VAT+Ent": "vat-ent",
    "VAT+VAdD": "vat-vadd",
    "MA-DNN": "ma-dnn",
    "Co-training": "co-training",
    "MT+fastSWA": "fast-swa",
    "TNAR-VAE": "tnar",
    "ADA-Net": "ada-net",
    "DualStudent": "dual-student",
}
"""Rows with recipes of their own: RECIPE-DATA."""


def ours(column: Column, **method: Any) -> Layer:
    """What was run for a data set; `method` are fields that differ. As printed (`paper-DATA`) it does not train."""
    return {
        "data": data(column),
        "recipe": f"authors-{source(column)}",
        "method": {"name": "meta-gradient", **method},
    }


def labeled_only(column: Column) -> Layer:
    return {"data": data(column), "recipe": f"authors-{source(column)}", "method": "supervised"}


def fully_supervised(column: Column) -> Layer:
    """Every label of the training part."""
    return {**labeled_only(column), "data": source(column)}


def original(row: str, column: Column) -> Layer:
    """Another paper's row as its authors ran it."""
    if row in ORIGINALS and f"{ORIGINALS[row]}-{source(column)}" in RECIPES:
        return {"data": data(column), "recipe": f"{ORIGINALS[row]}-{source(column)}"}
    return {"data": data(column), **_COMPOSED[row, column]}


def _with_sntg(recipe: str, weight: float, ramp: float) -> Layer:
    """SNTG has 0.4 of the weight of consistency, not divided by the number of classes, and its ramp."""
    host = RECIPES[recipe]["method"]["name"]
    sntg = {"weight": 0.4 * weight, "margin": 1.0, "ramp": ramp}
    return {"recipe": recipe, "method": {"name": f"{host}+sntg", "sntg": sntg}}


_COMPOSED: Runs = {
    # SNTG published code for the Pi-Model and temporal ensembling only; its hosts here keep their own recipes.
    ("MT+SNTG", SVHN): _with_sntg("mean-teacher-svhn", 1.0, 40_000 / 180_000),
    ("MT+SNTG", CIFAR10): _with_sntg("mean-teacher-cifar10", 100 * 4000 / 50_000, 40_000 / 150_000),
    ("VAT+Ent+SNTG", SVHN): _with_sntg("vat-ent-svhn", 1.0, 0.0),
    ("VAT+Ent+SNTG", CIFAR10): _with_sntg("vat-ent-cifar10", 1.0, 0.0),
    # TNAR published its settings for CIFAR-10 only, with VAT's schedule; on SVHN it gets VAT's for SVHN.
    ("TNAR-VAE", SVHN): {
        "recipe": "tnar-cifar10",
        **{name: RECIPES["vat-svhn"][name] for name in ("model", "steps", "milestones")},
    },
    # ADA-Net's code has no weight averaging: fastSWA's 180, 210 and 30 of 300 epochs, as shares of ADA-Net's run.
    ("ADA-Net+fastSWA", CIFAR10): {
        "recipe": "ada-net-cifar10",
        "method": {
            "name": "ada-net+fast-swa",
            "fast-swa": {"start": 180 / 300, "period": 210 / 300, "cycle": 30 / 300, "every": 3 / 300, "batches": 100},
        },
    },
}


def table1() -> Plan:
    special = {LABELED_ONLY: labeled_only, OURS: ours, FULLY_SUPERVISED: fully_supervised}
    runs = {
        (row, column): special[row](column) if row in special else original(row, column)
        for row, column in published.TABLE1
    }
    notes = (
        "MT+SNTG, VAT+Ent+SNTG, ADA-Net+fastSWA and TNAR-VAE on SVHN have no published settings; theirs are composed "
        "from the recipes of their parts. Those of DualStudent on CIFAR-10 were published for 1,000 labels.",
    )
    return Plan.of(SEEDS, runs, notes)


def table2() -> Plan:
    """Shake-shake. An epoch of fastSWA is a pass over the unlabeled images, 97 a step: fewer labels make more steps."""
    epochs = {"cifar10": 180 + 100 * 30, "cifar100": 180 + 20 * 30}
    runs: Runs = {}
    for column in published.TABLE2_COLUMNS:
        unlabeled = 50_000 - int(column.labels)
        runs["fastSWA", column] = {
            "data": data(column),
            "recipe": f"fast-swa-shake-shake-{source(column)}",
            "steps": epochs[source(column)] * (unlabeled // 97),
        }
        runs[OURS, column] = {**ours(column), "model": {"name": "shake-shake-26"}}
    notes = (
        "fastSWA on CIFAR-100 has published settings and a published figure for 10,000 labels alone; with fewer it is "
        "trained by the same ones.",
    )
    return Plan.of(SEEDS, runs, notes)


def _imagenet(row: str) -> Layer:
    """With a look at the test part every ten of our epochs, so that the table and the curves share their runs."""
    layer: Layer = {"data": data(IMAGENET), "recipe": "authors-imagenet", "test_every": 10 * 2253}
    changes: dict[str, Layer] = {
        LABELED_ONLY: {"method": "supervised"},
        "MT": {"recipe": "mean-teacher-imagenet"},
        # Ours, as nothing is published: its weights and ramp for CIFAR-10, whose 600 epochs of a cosine from 0.1 and
        # weight decay are those of our row.
        "Co-training": {"method": RECIPES["co-training-cifar10"]["method"]},
        "ADA-Net": {"recipe": "ada-net-imagenet"},
        OURS: {},
        FULLY_SUPERVISED: {"method": "supervised", "data": source(IMAGENET)},
    }
    return {**layer, **changes[row]}


_EQUAL_STEPS = (
    "Labeled-Only and Fully-Supervised have as many steps as Ours, 600 passes over its unlabeled images; the authors' "
    "code gives labeled-only 600 passes over the labeled ones, a ninth of that."
)


def table3() -> Plan:
    note = (
        "Co-training on ImageNet has no published settings: it is trained by our row's, with its weights for CIFAR-10."
    )
    return Plan.of(1, {(row, column): _imagenet(row) for row, column in published.TABLE3}, (note, _EQUAL_STEPS))


def table4() -> Plan:
    return Plan.of(SEEDS, {(row, column): ablation(row, column) for row, column in published.TABLE4})


def ablation(row: str, column: Column) -> Layer:
    """Meta and mixup, each on or off."""
    if row == LABELED_ONLY:
        return labeled_only(column)
    off = {published.META: {"mixup": False}, published.MIXUP: {"meta": False}, published.BOTH: {}}
    return ours(column, **off[row])


def ablation_steps() -> Plan:
    """A quarter of the paper's steps and all of them; warm-up, ramp and milestones are shares of a run."""
    whole = make_run(labeled_only(CIFAR10), 0).steps
    runs: Runs = {
        (row, replace(column, condition=steps_of(count))): {**ablation(row, column), "steps": count}
        for row, column in published.TABLE4
        if column == CIFAR10
        for count in (whole // 4, whole)
    }
    return Plan.of(SEEDS, runs)


def table5() -> Plan:
    runs: Runs = {}
    for row, column in published.TABLE5:
        change: Layer = {} if column.condition == published.WITH else {"mixup": False}
        if row == OURS:
            runs[row, column] = ours(column, **change)
        else:
            runs[row, column] = {**original(row, column), "method": {"name": "ada-net", **change}}
    return Plan.of(SEEDS, runs)


def figure_accuracy() -> Plan:
    return Plan.of(1, {(row, IMAGENET): _imagenet(row) for row in (LABELED_ONLY, OURS)}, (_EQUAL_STEPS,))


def figure_labels() -> Plan:
    columns = [Column("SVHN", labels) for labels in ("250", "500", "1000")]
    columns += [Column("CIFAR-10", labels) for labels in ("1000", "2000", "4000")]
    return Plan.of(SEEDS, pair(columns))


def figure_features() -> Plan:
    return Plan.of(1, pair([SVHN]))


def pair(columns: Iterable[Column]) -> Runs:
    """The baseline and the method."""
    runs: Runs = {(LABELED_ONLY, column): labeled_only(column) for column in columns}
    return {**runs, **{(OURS, column): ours(column) for column in columns}}


def variants(named: dict[str, Layer]) -> Plan:
    """The baseline and variants of the method by their fields, on the three image sets."""
    runs: Runs = {(LABELED_ONLY, column): labeled_only(column) for column in IMAGE_SETS}
    runs |= {(row, column): ours(column, **fields) for row, fields in named.items() for column in IMAGE_SETS}
    return Plan.of(SEEDS, runs)


def meta_plugin(hosts: dict[str, str], rows: tuple[str, str]) -> Plan:
    """Hosts by the name of their column and their method, which is also the stem of their recipe."""
    runs: Runs = {}
    for name, host in hosts.items():
        column = Column(condition=name)
        layer: Layer = {"data": data(CIFAR10), "recipe": f"{host}-cifar10"}
        runs[rows[0], column] = layer
        runs[rows[1], column] = {**layer, "method": {"name": f"{host}+meta"}}
    return Plan.of(SEEDS, runs)
