"""Every experiment's whole path in seconds: all rows, a tiny network, three steps."""

from __future__ import annotations

from semigrad.experiments.experiment import Plan
from semigrad.experiments.published import LABELED_ONLY, OURS, TABLE1, TABLE3, TABLE4, TABLE5, rows_of, top_1_and_5
from semigrad.experiments.scales.miniature import (
    digits,
    grid,
    hosts_with_and_without_meta,
    over_steps,
    variants,
    with_and_without_mixup,
)
from semigrad.settings.recipes import Layer

SEEDS = 2
SMOKE: Layer = {"model": {"name": "small-conv", "widths": [4]}, "steps": 3, "batch": 10, "warmup": 0.0}
NOTES = ("Three steps of a tiny network: this shows that everything runs; its figures mean nothing.",)


def table1() -> Plan:
    return Plan.of(1, grid(rows_of(TABLE1), digits(SMOKE, 20)), NOTES)


def table2() -> Plan:
    return Plan.of(SEEDS, grid(["fastSWA", OURS], digits(SMOKE, 10, 20)), NOTES)


def table3() -> Plan:
    (layer,) = digits(SMOKE, 20).values()
    return Plan.of(1, grid(rows_of(TABLE3), dict.fromkeys(top_1_and_5("digits", "20"), layer)), NOTES)


def table4() -> Plan:
    return Plan.of(SEEDS, grid(rows_of(TABLE4), digits(SMOKE, 20)), NOTES)


def table5() -> Plan:
    return Plan.of(SEEDS, with_and_without_mixup(rows_of(TABLE5), digits(SMOKE, 20)), NOTES)


def figure_accuracy() -> Plan:
    curves = {column: {**layer, "test_every": 1} for column, layer in digits(SMOKE, 20).items()}
    return Plan.of(1, grid([LABELED_ONLY, OURS], curves), NOTES)


def figure_labels() -> Plan:
    return Plan.of(SEEDS, grid([LABELED_ONLY, OURS], digits(SMOKE, 10, 20)), NOTES)


def figure_features() -> Plan:
    small: Layer = {"classes": ("0", "1", "2"), "unlabeled": 60}  # t-SNE takes most of the time
    columns = {column: {**layer, **small} for column, layer in digits(SMOKE, 12).items()}
    return Plan.of(1, grid([LABELED_ONLY, OURS], columns), NOTES)


def ablation(named: dict[str, Layer]) -> Plan:
    return Plan.of(SEEDS, variants(named, digits(SMOKE, 20)), NOTES)


def ablation_steps() -> Plan:
    return Plan.of(1, over_steps(rows_of(TABLE4), digits(SMOKE, 20), (2, 3)), NOTES)


def meta_plugin(hosts: dict[str, str], rows: tuple[str, str]) -> Plan:
    (layer,) = digits(SMOKE, 20).values()
    return Plan.of(1, hosts_with_and_without_meta(hosts, rows, layer), NOTES)
