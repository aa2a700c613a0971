"""Faithful miniatures for two processor cores, every experiment within about an hour: digits with several seeds; SVHN,
and Tiny ImageNet in place of ImageNet, with one seed, whose runs are some of those of `overnight.py`."""

from __future__ import annotations

from semigrad.experiments.experiment import Column, Plan
from semigrad.experiments.published import (
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
    digits,
    grid,
    hosts_with_and_without_meta,
    over_steps,
    variants,
    with_and_without_mixup,
)
from semigrad.experiments.scales.natural import LOOKS, SMALL_NOTE, TINY, TINY_NOTE, images, rows_on
from semigrad.experiments.scales.tuned import TUNED
from semigrad.settings.recipes import Layer

SEEDS = 5
ONE_SEED = 1  # for images of 32 x 32, where a run takes minutes

LAPTOP_DIGITS: Layer = {"model": {"name": "small-conv"}, "steps": 800, "batch": 64, "warmup": 0.075}

_DIGITS_NOTE = "In place of the paper's data and network: digits of 8 x 8 pixels and small-conv."
_FEATURES_NOTE = "The features are 96 numbers, the paper's 128."
_GAMMA_NOTE = "Both rows have their default fields, the mixing weights of one distribution (gamma 1) among them."
_VADD_NOTE = "VAT+VAdD is without the entropy term that its original has."
_PLUGIN_NOTE = (
    "A method's own fields are those chosen for it without meta, in both rows. beta is 0.01 for MT, where that was "
    "chosen, and for FixMatch, where that was beside another threshold; it is the learning rate for the others."
)


def table1() -> Plan:
    return Plan.of(SEEDS, grid(rows_of(TABLE1), digits(LAPTOP_DIGITS, 40), TUNED), (_DIGITS_NOTE, _VADD_NOTE))


def table2() -> Plan:
    return Plan.of(SEEDS, grid(["fastSWA", OURS], digits(LAPTOP_DIGITS, 20, 40, 80), TUNED), (_DIGITS_NOTE,))


def table3() -> Plan:
    (layer,) = images(TINY, test_every=LOOKS).values()
    columns = dict.fromkeys(top_1_and_5(TINY.data, TINY.labels), layer)
    return Plan.of(ONE_SEED, rows_on(rows_of(TABLE3), columns), (TINY_NOTE, SMALL_NOTE))


def table4() -> Plan:
    large = images(SVHN)
    runs = grid(rows_of(TABLE4), digits(LAPTOP_DIGITS, 40), TUNED) | rows_on(rows_of(TABLE4), large)
    return Plan.of(SEEDS, runs, (_DIGITS_NOTE, SMALL_NOTE), fewer_seeds=dict.fromkeys(large, ONE_SEED))


def table5() -> Plan:
    runs = with_and_without_mixup(rows_of(TABLE5), digits(LAPTOP_DIGITS, 40))
    return Plan.of(SEEDS, runs, (_DIGITS_NOTE, _GAMMA_NOTE))


def figure_accuracy() -> Plan:
    return Plan.of(ONE_SEED, rows_on([LABELED_ONLY, OURS], images(TINY, test_every=LOOKS)), (TINY_NOTE, SMALL_NOTE))


def figure_labels() -> Plan:
    large = images(*(Column("SVHN", labels) for labels in ("250", "500", "1000")))
    rows = [LABELED_ONLY, OURS]
    runs = grid(rows, digits(LAPTOP_DIGITS, 20, 40, 80, 160), TUNED) | rows_on(rows, large)
    return Plan.of(SEEDS, runs, (_DIGITS_NOTE, SMALL_NOTE), fewer_seeds=dict.fromkeys(large, ONE_SEED))


def figure_features() -> Plan:
    large = images(SVHN)
    rows = [LABELED_ONLY, OURS]
    runs = grid(rows, digits(LAPTOP_DIGITS, 40), TUNED) | rows_on(rows, large)
    notes = (_DIGITS_NOTE, SMALL_NOTE, _FEATURES_NOTE)
    return Plan.of(SEEDS, runs, notes, fewer_seeds=dict.fromkeys(large, ONE_SEED))


def ablation(named: dict[str, Layer]) -> Plan:
    """Variants of the method by their fields."""
    return Plan.of(SEEDS, variants(named, digits(LAPTOP_DIGITS, 40), TUNED), (_DIGITS_NOTE,))


def ablation_steps() -> Plan:
    runs = over_steps(rows_of(TABLE4), digits(LAPTOP_DIGITS, 40), (200, 800), TUNED)
    return Plan.of(SEEDS, runs, (_DIGITS_NOTE,))


def meta_plugin(hosts: dict[str, str], rows: tuple[str, str]) -> Plan:
    (layer,) = digits(LAPTOP_DIGITS, 40).values()
    return Plan.of(SEEDS, hosts_with_and_without_meta(hosts, rows, layer, TUNED), (_DIGITS_NOTE, _PLUGIN_NOTE))
