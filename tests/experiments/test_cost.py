"""Estimates against what torch counts on real steps, and against each other."""

import json

import pytest
import torch

from semigrad.core import Clock
from semigrad.experiments import EXPERIMENTS, SCALES
from semigrad.experiments.cost import estimate_seconds, work_of_step
from semigrad.experiments.known_data import shape_and_classes
from semigrad.experiments.plan import plan_rows
from semigrad.experiments.speed import Speed
from semigrad.methods import METHODS
from semigrad.run import configure
from semigrad.training.setup import set_up
from semigrad.training.training import Step
from semigrad.training.work import Work, network_size, passes_of_step
from tests.methods.toy_method import Toy

COMPOSITIONS = ("vat+ent", "vat+ent+sntg", "vat+vadd", "vat+ent+vadd")
BUSY = Speed(0.35 * 4e10, 0.0, 8e-5)
"""A core of a laptop that others use too."""
SMALL_HELPERS = {"ada-net": {"hidden": 8}, "tnar": {"latent": 2, "width": 1, "vae_steps": 0.0}}


def tables_in_use():
    """Every method of the catalogue with its fields, and every method by its name."""
    found = {name: {"name": name} for name in (*METHODS, *COMPOSITIONS)}
    for experiment in EXPERIMENTS.values():
        for scale in SCALES:
            for cell in experiment.cells(scale, 1):
                table = cell.run.to_dict()["method"]
                found[json.dumps(table)] = table
    return list(found.values())


def counted_passes(table, batch, unlabeled):
    """Passes of a whole real step, and what the estimate says, both times the examples."""
    helpers = SMALL_HELPERS.get(table["name"].partition("+")[0], {})
    run = configure(
        "digits@40", method={**table, **helpers}, batch=batch, unlabeled_batch=unlabeled, steps=100,
    )  # fmt: skip
    if run.method.problems(batch, unlabeled):
        return None
    setup = set_up(run, "cpu")
    step = Step(run.method, setup.net, setup.memory).train()
    numbers = range(50, 50 + run.method.traits.more_every)
    with Work() as whole:
        for number, example in zip(numbers, setup.stream.batches(numbers, setup.device), strict=True):
            terms, _ = step(example, Clock(number, 100, 0.1, 0))
            torch.stack(list(terms.values())).sum().backward()
    one, _ = network_size(run.model, (1, 8, 8), 10)
    return whole.multiplications / one / len(numbers), passes_of_step(run.method, batch, unlabeled).examples


@pytest.mark.parametrize("table", tables_in_use(), ids=lambda table: table["name"])
def test_passes_are_those_that_torch_counts(table):
    """The estimate is a little above: the first layer needs no gradient for its input. Where the product goes along the
    last layers alone, it is below: what these cost is not counted, and of the few layers here they are most."""
    equal, unequal = counted_passes(table, 16, 16), counted_passes(table, 10, 30)
    for counted, estimated in (equal, unequal or equal):  # some pair labeled with unlabeled examples
        if table.get("meta_layers", "all") == "all":
            assert estimated == pytest.approx(counted, rel=0.05)
        else:
            assert 0.6 * counted < estimated < counted


def test_more_of_anything_takes_longer_and_a_faster_machine_less():
    short = configure("cifar10@4000", steps=100, method="supervised")
    base = estimate_seconds(short, Speed(1e9))
    assert estimate_seconds(configure("cifar10@4000", steps=200, method="supervised"), Speed(1e9)) == pytest.approx(
        2 * base
    )
    assert estimate_seconds(configure("cifar10@4000", steps=100, method="meta-match"), Speed(1e9)) > 3 * base
    assert estimate_seconds(short, Speed(2e9)) < base
    assert (
        estimate_seconds(configure("cifar10@4000", steps=100, method="supervised", model="conv-large"), Speed(1e9))
        > base
    )


def test_a_method_of_ones_own_costs_its_passes(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", Toy)
    own, same = (estimate_seconds(configure("cifar10@4000", method=name), Speed(1e9)) for name in ("toy", "pi-model"))
    assert own == same  # two views of each unlabeled example are trained on


def test_no_experiment_takes_two_cores_of_a_laptop_over_40_minutes():
    for experiment in EXPERIMENTS.values():
        runs = {cell.run.key: cell for cell in experiment.cells("laptop")}
        assert sum(row["seconds"] for row in plan_rows(list(runs.values()), BUSY)) / 2 < 40 * 60


def test_no_experiment_takes_two_cores_longer_than_a_night():
    for experiment in EXPERIMENTS.values():
        runs = {cell.run.key: cell for cell in experiment.cells("overnight")}
        assert sum(row["seconds"] for row in plan_rows(list(runs.values()), BUSY)) / 2 < 12 * 3600


QUICK = Speed(1.25e11, 3.7e-10, 2.3e-5)
"""One core of an AMD EPYC with AVX-512, by `speed_here`; its matrix products in torch's first way: 5.5e10."""
MEASURED = [
    ("cifar10@4000", "compact-conv", 64, "supervised", 19.9),
    ("cifar10@4000", "compact-conv", 64, "meta-gradient", 83.0),
    ("cifar10@4000", "compact-conv", 64, "fixmatch", 46.0),
    ("cifar10@4000", "conv-large", 32, "supervised", 670.0),
    ("cifar10@4000", "conv-large", 32, "meta-gradient", 2540.0),
    ("digits@40", "small-conv", 64, "supervised", 2.4),
    ("digits@40", "small-conv", 64, "meta-gradient", 10.1),
    ("digits@40", "small-conv", 64, "fixmatch", 5.4),
]
"""Milliseconds of processor time of a step there, on one thread: medians of 2 to 12 steps."""


@pytest.mark.parametrize(("data", "model", "batch", "method", "milliseconds"), MEASURED)
def test_steps_that_were_measured_are_predicted_within_a_quarter(data, model, batch, method, milliseconds):
    run = configure(data, model=model, batch=batch, method=method)
    estimated = work_of_step(run, *shape_and_classes(run)).seconds(QUICK)
    assert 1000 * estimated == pytest.approx(milliseconds, rel=0.25)
