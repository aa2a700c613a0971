"""Natural images on two processor cores, with seeds enough to tell: every experiment within a night."""

from __future__ import annotations

from dataclasses import replace

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
    RAMP,
    REMIXMATCH,
    STRONG,
    hosts_with_and_without_meta,
    over_steps,
    steps_of,
    variants,
    with_and_without_mixup,
)
from semigrad.experiments.scales.natural import BUDGETS, LOOKS, SMALL_NOTE, TINY, TINY_NOTE, fields_for, images, rows_on
from semigrad.settings.recipes import Layer

SEEDS = 3
ONE_SEED = 1  # for figures that are looked at

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
_RAMP_NOTE = f"{RAMP}: as {BOTH}, the consistency weight rising over 40 % of the run, which the paper does not print."


def table1() -> Plan:
    rows = (*rows_of(TABLE1), STRONG, MIXMATCH, REMIXMATCH, FIXMATCH, META_MATCH)
    return Plan.of(SEEDS, rows_on(rows, images(SVHN)), (SMALL_NOTE, _STRONG_NOTE, _META_MATCH_NOTE, _FIXMATCH_NOTE))


def table2() -> Plan:
    columns = images(*(Column("CIFAR-10", labels) for labels in ("1000", "2000", "4000")))
    return Plan.of(SEEDS, rows_on(["fastSWA", OURS], columns), (SMALL_NOTE,))


def table3() -> Plan:
    (layer,) = images(TINY, test_every=LOOKS).values()
    columns = dict.fromkeys(top_1_and_5(TINY.data, TINY.labels), layer)
    return Plan.of(SEEDS, rows_on(rows_of(TABLE3), columns), (TINY_NOTE, SMALL_NOTE))


def table4() -> Plan:
    rows = (*rows_of(TABLE4), NO_META_STEP, RAMP, STRONG, META_MATCH, FIXMATCH)
    notes = (SMALL_NOTE, _NO_META_STEP_NOTE, _RAMP_NOTE, _STRONG_NOTE, _META_MATCH_NOTE, _FIXMATCH_NOTE)
    return Plan.of(SEEDS, rows_on(rows, images(SVHN, CIFAR10)), notes)


def table5() -> Plan:
    runs: Runs = {}
    for column, layer in images(SVHN, CIFAR10).items():
        runs |= with_and_without_mixup(rows_of(TABLE5), {column: layer}, fields_for(column.data))
    return Plan.of(SEEDS, runs, (SMALL_NOTE,))


def figure_accuracy() -> Plan:
    return Plan.of(
        ONE_SEED, rows_on([LABELED_ONLY, OURS], images(TINY, SVHN, test_every=LOOKS)), (TINY_NOTE, SMALL_NOTE)
    )


def figure_labels() -> Plan:
    columns = images(*(Column("SVHN", labels) for labels in ("250", "500", "1000")))
    rows = [LABELED_ONLY, OURS, STRONG, FIXMATCH, META_MATCH]
    return Plan.of(SEEDS, rows_on(rows, columns), (SMALL_NOTE, _STRONG_NOTE, _META_MATCH_NOTE, _FIXMATCH_NOTE))


def figure_features() -> Plan:
    return Plan.of(ONE_SEED, rows_on([LABELED_ONLY, OURS], images(SVHN, TINY)), (TINY_NOTE, SMALL_NOTE))


def ablation(named: dict[str, Layer]) -> Plan:
    """Variants of the method by their fields."""
    return Plan.of(SEEDS, variants(named, images(SVHN), fields_for(SVHN.data)), (SMALL_NOTE,))


def ablation_steps() -> Plan:
    """CIFAR-10, where labeled-only still errs on its own labels after the steps of the other tables."""
    usual = BUDGETS[CIFAR10.data]
    longest = 4 * usual
    rows = (*rows_of(TABLE4), FIXMATCH)
    runs = over_steps(rows, images(CIFAR10), (usual // 4, usual, longest), fields_for(CIFAR10.data))
    fewer = {replace(CIFAR10, condition=steps_of(longest)): ONE_SEED}
    return Plan.of(SEEDS, runs, (SMALL_NOTE, _FIXMATCH_NOTE), fewer_seeds=fewer)


def meta_plugin(hosts: dict[str, str], rows: tuple[str, str]) -> Plan:
    (layer,) = images(SVHN).values()
    return Plan.of(SEEDS, hosts_with_and_without_meta(hosts, rows, layer, fields_for(SVHN.data)), (SMALL_NOTE,))
