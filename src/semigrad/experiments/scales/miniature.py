"""Rows of the paper as methods by name, and grids of them on small data: what the scales below `paper` are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from semigrad.experiments.experiment import Column, Runs
from semigrad.experiments.published import BOTH, FULLY_SUPERVISED, LABELED_ONLY, META, MIXUP, OURS, WITH, WITHOUT
from semigrad.experiments.scales.sources import data, source
from semigrad.experiments.scales.tuned import Chosen
from semigrad.settings.recipes import Layer

STRONG = "Labeled-Only (strong)"
NO_META_STEP, RAMP = "Meta + Mix-Up (beta 0)", "Meta + Mix-Up (ramp)"
MIXMATCH, REMIXMATCH, FIXMATCH, META_MATCH = "MixMatch", "ReMixMatch", "FixMatch", "Meta-Match"

METHODS_OF_ROWS: dict[str, Layer] = {
    LABELED_ONLY: {"name": "supervised"},
    "Pi-Model": {"name": "pi-model"},
    "TE": {"name": "temporal-ensembling"},
    "MT": {"name": "mean-teacher"},
    "MT+SNTG": {"name": "mean-teacher+sntg"},
    "VAT": {"name": "vat"},
    "VAT+Ent": {"name": "vat+ent"},
    "VAT+Ent+SNTG": {"name": "vat+ent+sntg"},
    "VAT+VAdD": {"name": "vat+vadd"},
    "MA-DNN": {"name": "ma-dnn"},
    "Co-training": {"name": "co-training"},
    "MT+fastSWA": {"name": "mean-teacher+fast-swa"},
    "fastSWA": {"name": "mean-teacher+fast-swa"},
    "TNAR-VAE": {"name": "tnar"},
    "ADA-Net": {"name": "ada-net"},
    "ADA-Net+fastSWA": {"name": "ada-net+fast-swa"},
    "DualStudent": {"name": "dual-student"},
    OURS: {"name": "meta-gradient"},
    META: {"name": "meta-gradient", "mixup": False},
    MIXUP: {"name": "meta-gradient", "meta": False},
    BOTH: {"name": "meta-gradient"},
    FULLY_SUPERVISED: {"name": "supervised"},
    STRONG: {"name": "supervised", "strong": True},
    NO_META_STEP: {"name": "meta-gradient", "beta": 0.0},
    RAMP: {"name": "meta-gradient", "ramp": 0.4},
    MIXMATCH: {"name": "mixmatch"},
    REMIXMATCH: {"name": "remixmatch"},
    FIXMATCH: {"name": "fixmatch"},
    META_MATCH: {"name": "meta-match"},
}
"""Those of the paper, and what small scales put beside them."""

AS_PUBLISHED: Layer = {"fixmatch": {"threshold": 0.95}}
"""Fields that a method has from its paper where images are given others by default."""

UNCHOSEN: Chosen = {}


def digits(layer: Layer, *labels: int) -> dict[Column, Layer]:
    """A column for each number of labels."""
    columns = [Column("digits", str(count)) for count in labels]
    return {column: {**layer, "data": data(column)} for column in columns}


def method(table: Layer, chosen: Chosen) -> Layer:
    """A method's table over the fields that were chosen for its name, over those of its paper."""
    name: str = table["name"]
    return {**AS_PUBLISHED.get(name.partition("+")[0], {}), **chosen.get(name, {}), **table}


def grid(rows: Iterable[str], columns: Mapping[Column, Layer], chosen: Chosen = UNCHOSEN) -> Runs:
    """Every row on the data of every column; all labels where the row asks for them."""
    runs: Runs = {}
    for row in rows:
        for column, layer in columns.items():
            every_label = {"data": source(column)} if row == FULLY_SUPERVISED else {}
            runs[row, column] = {**layer, **every_label, "method": method(METHODS_OF_ROWS[row], chosen)}
    return runs


def variants(named: Mapping[str, Layer], columns: Mapping[Column, Layer], chosen: Chosen = UNCHOSEN) -> Runs:
    """The baseline, and the method with other fields."""
    runs = grid([LABELED_ONLY], columns, chosen)
    for row, fields in named.items():
        table = method({"name": "meta-gradient", **fields}, chosen)
        runs |= {(row, column): {**layer, "method": table} for column, layer in columns.items()}
    return runs


def over_steps(
    rows: Iterable[str], columns: Mapping[Column, Layer], steps: Iterable[int], chosen: Chosen = UNCHOSEN
) -> Runs:
    """Every row on every data set, trained for so many steps."""
    longer: dict[Column, Layer] = {
        replace(column, condition=steps_of(count)): {**layer, "steps": count}
        for column, layer in columns.items()
        for count in steps
    }
    return grid(rows, longer, chosen)


def steps_of(count: int) -> str:
    """The condition of a column whose runs are so long."""
    return f"{count} steps"


def with_and_without_mixup(rows: Iterable[str], columns: Mapping[Column, Layer], chosen: Chosen = UNCHOSEN) -> Runs:
    """Each row twice on every data set."""
    runs: Runs = {}
    for row in rows:
        for column, layer in columns.items():
            for word, mixup in ((WITHOUT, False), (WITH, True)):
                table = method({**METHODS_OF_ROWS[row], "mixup": mixup}, chosen)
                runs[row, replace(column, condition=word)] = {**layer, "method": table}
    return runs


def hosts_with_and_without_meta(
    hosts: Mapping[str, str], rows: tuple[str, str], layer: Layer, chosen: Chosen = UNCHOSEN
) -> Runs:
    """Each host by its column, plain in the first row; its fields stay the same when `meta` is put on it, whose own
    fields were chosen on top."""
    runs: Runs = {}
    for name, host in hosts.items():
        column = Column(condition=name)
        plain: dict[str, Any] = method({"name": host}, chosen)
        runs[rows[0], column] = {**layer, "method": plain}
        own = {name: table for name, table in chosen.get(f"{host}+meta", {}).items() if name == "meta"}
        runs[rows[1], column] = {**layer, "method": {**plain, **own, "name": f"{host}+meta"}}
    return runs
