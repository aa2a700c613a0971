"""Every experiment's whole path in seconds: all rows, a tiny network, three steps."""

from __future__ import annotations

from semigrad.experiments.experiment import Plan
from semigrad.experiments.miniature import grid, hosts_with_and_without_meta, variants, with_and_without_mixup
from semigrad.experiments.published import LABELED_ONLY, OURS, TABLE1, TABLE3, TABLE4, TABLE5, rows_of
from semigrad.settings.recipes import Layer

SEEDS = 2
SMOKE: Layer = {"model": {"name": "small-conv", "widths": [4]}, "steps": 3, "batch": 10, "warmup": 0.0}
TOP1, TOP5 = "digits@20 top-1", "digits@20 top-5"
NOTES = ("Three steps of a tiny network: this shows that everything runs; its figures mean nothing.",)


def digits(*labels: int) -> dict[str, Layer]:
    return {f"digits@{count}": {**SMOKE, "data": f"digits@{count}"} for count in labels}


def table1() -> Plan:
    return Plan(1, grid(rows_of(TABLE1), digits(20)), NOTES)


def table2() -> Plan:
    return Plan(SEEDS, grid(["fastSWA", OURS], digits(10, 20)), NOTES)


def table3() -> Plan:
    (layer,) = digits(20).values()
    return Plan(1, grid(rows_of(TABLE3), {TOP1: layer, TOP5: layer}), NOTES)


def table4() -> Plan:
    return Plan(SEEDS, grid(rows_of(TABLE4), digits(20)), NOTES)


def table5() -> Plan:
    return Plan(SEEDS, with_and_without_mixup(rows_of(TABLE5), digits(20)), NOTES)


def figure_accuracy() -> Plan:
    curves = {column: {**layer, "test_every": 1} for column, layer in digits(20).items()}
    return Plan(1, grid([LABELED_ONLY, OURS], curves), NOTES)


def figure_labels() -> Plan:
    return Plan(SEEDS, grid([LABELED_ONLY, OURS], digits(10, 20)), NOTES)


def figure_features() -> Plan:
    small: Layer = {"classes": ("0", "1", "2"), "unlabeled": 60}  # t-SNE takes most of the time
    columns = {column: {**layer, **small} for column, layer in digits(12).items()}
    return Plan(1, grid([LABELED_ONLY, OURS], columns), NOTES)


def ablation(named: dict[str, Layer]) -> Plan:
    return Plan(SEEDS, variants(named, digits(20)), NOTES)


def meta_plugin(hosts: dict[str, str], rows: tuple[str, str]) -> Plan:
    (layer,) = digits(20).values()
    return Plan(1, hosts_with_and_without_meta(hosts, rows, layer), NOTES)
