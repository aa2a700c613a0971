"""Faithful miniatures for two processor cores: a small network and few steps, every experiment within 40 minutes."""

from __future__ import annotations

from semigrad.experiments.experiment import ROOT, Plan
from semigrad.experiments.miniature import grid, hosts_with_and_without_meta, variants, with_and_without_mixup
from semigrad.experiments.published import LABELED_ONLY, OURS, TABLE1, TABLE3, TABLE4, TABLE5, rows_of
from semigrad.experiments.tuned import TUNED
from semigrad.settings.recipes import Layer

SEEDS = 5
ONE_SEED = 1  # for images of 32 x 32, where a run takes minutes

LAPTOP_DIGITS: Layer = {"model": {"name": "small-conv"}, "steps": 800, "batch": 64, "warmup": 0.075}
LAPTOP_IMAGES: Layer = {
    "model": {"name": "small-conv", "drop": 0.0}, "steps": 1500, "batch": 64, "warmup": 0.075, "lr": 0.3,
}  # fmt: skip
"""What every run on images of 32 x 32 has in common. Dropout and learning rate were chosen by labeled-only's error on
validation examples of CIFAR-10 and SVHN, see docs/results.md."""

TINY = "Tiny-ImageNet-20@10%"
TINY_TOP1, TINY_TOP5 = f"{TINY} top-1", f"{TINY} top-5"
TINY_IMAGES: Layer = {
    **LAPTOP_IMAGES, "data": f"folder:{ROOT}/tiny-imagenet-20@10%", "image_size": 32, "test_every": 50,
}  # fmt: skip
_TINY_NOTE = "In place of ImageNet: 20 classes of Tiny ImageNet, 10,000 training pictures brought to 32 x 32."
_DIGITS_NOTE = "In place of the paper's data and network: digits of 8 x 8 pixels and small-conv."
_NOTE = "Small-conv in place of the paper's network, and a small share of its steps: only orders can be compared."
_FEATURES_NOTE = "The features are 96 numbers, the paper's 128."
_VADD_NOTE = "VAT+VAdD is without the entropy term that its original has."
_PLUGIN_NOTE = (
    "A method's own fields are those chosen for it without meta, in both rows. beta is 0.01 for MT, where that was "
    "chosen, and for FixMatch, where that was beside another threshold; it is the learning rate for the others."
)


def digits(*labels: int) -> dict[str, Layer]:
    return {f"digits@{count}": {**LAPTOP_DIGITS, "data": f"digits@{count}"} for count in labels}


def images(*columns: str) -> dict[str, Layer]:
    """CIFAR-10@4000 and the like, by the name of the column."""
    return {column: {**LAPTOP_IMAGES, "data": column.lower().replace("-", "")} for column in columns}


def table1() -> Plan:
    return Plan(SEEDS, grid(rows_of(TABLE1), digits(40), TUNED), (_DIGITS_NOTE, _VADD_NOTE))


def table2() -> Plan:
    return Plan(SEEDS, grid(["fastSWA", OURS], digits(20, 40, 80), TUNED), (_DIGITS_NOTE,))


def table3() -> Plan:
    return Plan(ONE_SEED, grid(rows_of(TABLE3), {TINY_TOP1: TINY_IMAGES, TINY_TOP5: TINY_IMAGES}), (_TINY_NOTE, _NOTE))


def table4() -> Plan:
    large = images("CIFAR-10@4000", "SVHN@1000")
    runs = grid(rows_of(TABLE4), digits(40), TUNED) | grid(rows_of(TABLE4), large)
    return Plan(SEEDS, runs, (_DIGITS_NOTE, _NOTE), fewer_seeds=dict.fromkeys(large, ONE_SEED))


def table5() -> Plan:
    return Plan(SEEDS, with_and_without_mixup(rows_of(TABLE5), digits(40), TUNED), (_DIGITS_NOTE,))


def figure_accuracy() -> Plan:
    return Plan(ONE_SEED, grid([LABELED_ONLY, OURS], {TINY: TINY_IMAGES}), (_TINY_NOTE, _NOTE))


def figure_labels() -> Plan:
    large = images("SVHN@250", "SVHN@500", "SVHN@1000")
    runs = grid([LABELED_ONLY, OURS], digits(20, 40, 80, 160), TUNED) | grid([LABELED_ONLY, OURS], large)
    return Plan(SEEDS, runs, (_DIGITS_NOTE, _NOTE), fewer_seeds=dict.fromkeys(large, ONE_SEED))


def figure_features() -> Plan:
    large = images("SVHN@1000")
    runs = grid([LABELED_ONLY, OURS], digits(40), TUNED) | grid([LABELED_ONLY, OURS], large)
    notes = (_DIGITS_NOTE, _NOTE, _FEATURES_NOTE)
    return Plan(SEEDS, runs, notes, fewer_seeds=dict.fromkeys(large, ONE_SEED))


def ablation(named: dict[str, Layer]) -> Plan:
    """Variants of the method by their fields."""
    return Plan(SEEDS, variants(named, digits(40), TUNED), (_DIGITS_NOTE,))


def meta_plugin(hosts: dict[str, str], rows: tuple[str, str]) -> Plan:
    (layer,) = digits(40).values()
    return Plan(SEEDS, hosts_with_and_without_meta(hosts, rows, layer, TUNED), (_DIGITS_NOTE, _PLUGIN_NOTE))
