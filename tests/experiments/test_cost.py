"""Estimates against what torch counts on real steps, and the plan of an experiment without its data."""

import json

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from semigrad.core import Clock, Task
from semigrad.experiments import EXPERIMENTS, SCALES, Cell
from semigrad.experiments.cost import (
    CLASSES_AND_EXAMPLES,
    METHOD_PASSES,
    count_labels,
    estimate_seconds,
    method_passes,
    multiplications_a_second,
    network_size,
    plan_rows,
    schedule_words,
)
from semigrad.models import MODELS, ResNet18, SmallConv
from semigrad.run import configure
from semigrad.training.schedule import learning_rate
from semigrad.training.setup import set_up
from semigrad.training.training import Step

SMALL_HELPERS = {"ada-net": {"hidden": 8}, "tnar": {"latent": 2, "width": 1, "vae_steps": 0.0}}


class Multiplications(TorchDispatchMode):
    """Torch's own formulas for each operator, without the module tracker of its FlopCounterMode, which cannot follow
    gradients taken inside a step. Torch counts a multiplication and its addition as two."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        out = function(*arguments, **(options or {}))
        if count := flop_registry.get(function._overloadpacket):
            self.total += count(*arguments, **(options or {}), out_val=out) // 2
        return out


def tables_in_use():
    """Every method of the catalogue with its fields, and every method of the table with its own."""
    found = {name: {"name": name} for name in METHOD_PASSES}
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
    example = next(setup.stream.batches(range(50, 51), setup.device))
    with Multiplications() as whole:
        terms, _ = step(example, Clock(50, 100, 0.1, 0))
        torch.stack(list(terms.values())).sum().backward()
    one, _ = network_size(run.model, (1, 8, 8), 10)
    passes = method_passes(run.method, run.method_name)
    return whole.total / one, passes.labeled * batch + passes.unlabeled * unlabeled


@pytest.mark.parametrize("table", tables_in_use(), ids=lambda table: table["name"])
def test_passes_are_those_that_torch_counts(table):
    """The estimate is a little above: the first layer needs no gradient for its input."""
    equal, unequal = counted_passes(table, 16, 16), counted_passes(table, 10, 30)
    for counted, estimated in (equal, unequal or equal):  # some pair labeled with unlabeled examples
        assert estimated == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "mlp"])
def test_network_sizes_are_those_that_torch_counts(name):
    model, shape = MODELS[name](), (3, 32, 32)
    third = (1 / 3,) * 3
    task = Task(tuple("abcdefg"), shape, third, third, 1, 1, 1, (), nn.Module)
    with torch.no_grad(), Multiplications() as counter:
        model.build(task).eval()(torch.rand(1, *shape))
    multiplications, layers = network_size(model, shape, 7)
    assert multiplications == counter.total
    assert layers > 5


def test_network_sizes_known_by_heart():
    assert network_size(ResNet18(), (3, 224, 224), 1000)[0] == pytest.approx(1.81e9, rel=0.01)
    own = 32 * 32 * 9 * 3 * 24 + 16 * 16 * 9 * 24 * 48 + 8 * 8 * 9 * 48 * 96 + 96 * 10
    assert network_size(SmallConv(), (3, 32, 32), 10)[0] == own


def test_more_of_anything_takes_longer_and_a_faster_machine_less():
    short = configure("cifar10@4000", steps=100, method="supervised")
    base = estimate_seconds(short, 1e9)
    assert estimate_seconds(configure("cifar10@4000", steps=200, method="supervised"), 1e9) == pytest.approx(2 * base)
    assert estimate_seconds(configure("cifar10@4000", steps=100), 1e9) > 3 * base
    assert estimate_seconds(short, 2e9) < base
    assert estimate_seconds(configure("cifar10@4000", steps=100, method="supervised", model="conv-large"), 1e9) > base


def test_labels_come_from_the_spec_or_the_official_counts():
    assert count_labels(configure("svhn@250")) == 250
    assert count_labels(configure("svhn")) == 73_257
    assert count_labels(configure("imagenet:somewhere/imagenet@10%")) == 128_117
    assert count_labels(configure("cifar10", validation=500)) == 49_500


def test_every_data_set_of_the_catalogue_has_its_counts():
    for experiment in EXPERIMENTS.values():
        for scale in SCALES:
            for row in plan_rows(experiment.cells(scale, 1), 1e10):
                assert 0 < row["labels"] <= max(examples for _, examples in CLASSES_AND_EXAMPLES.values())
                assert row["seconds"] > 0


def test_no_experiment_takes_two_cores_of_a_laptop_over_40_minutes():
    for experiment in EXPERIMENTS.values():
        runs = {cell.run.key: cell for cell in experiment.cells("laptop")}
        assert sum(row["seconds"] for row in plan_rows(list(runs.values()), 4e10)) / 2 < 40 * 60


def test_a_plan_says_what_an_appendix_says_and_needs_no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path / "nothing"))
    rows = plan_rows(EXPERIMENTS["table1"].cells("paper"), 5e10)
    (ours,) = [row for row in rows if (row["row"], row["column"], row["seed"]) == ("Ours", "SVHN@1000", 0)]
    seconds = ours.pop("seconds")
    assert ours == {
        "row": "Ours", "column": "SVHN@1000", "data": "svhn@1000", "labels": 1000, "seed": 0,
        "method": "meta-gradient", "network": "conv-large", "steps": 400_000, "batch": 128, "unlabeled_batch": 128,
        "optimizer": "sgd", "momentum": 0.9, "momentum_end": None, "nesterov": False, "lr": 0.1,
        "schedule": "step at 300,000 and 350,000 by 0.1", "milestones": [300_000, 350_000], "decay": 0.1, "warmup": 0,
        "weight_decay": 5e-5, "gamma": 0.1, "beta": "lr",
    }  # fmt: skip
    assert 86_400 < seconds < 365 * 86_400
    (plain,) = [row for row in rows if (row["row"], row["column"], row["seed"]) == ("Labeled-Only", "SVHN@1000", 0)]
    assert (plain["unlabeled_batch"], plain["gamma"], plain["beta"]) == (0, None, None)
    assert len(rows) == len(EXPERIMENTS["table1"].cells("paper"))


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        ("cosine after 60 steps of warm-up", {"schedule": "cosine", "warmup": 0.075}),
        ("cosine over 1.17 runs", {"schedule": "cosine", "cosine_length": 350 / 300}),
        ("cosine-7/16", {"schedule": "cosine-7/16"}),
        ("constant", {"schedule": "constant", "milestones": (0.5,)}),
        ("step at 600 by 0.2", {"schedule": "step", "milestones": (600,), "decay": 0.2}),
        ("step at 200, 400 and 600 by 0.1", {"schedule": "step", "milestones": (0.25, 0.5, 0.75)}),
        ("linear from 400 on", {"schedule": "linear", "milestones": (0.5,)}),
        ("linear", {"schedule": "linear", "milestones": (0.0,)}),
        (
            "gaussian from 700 on after 200 steps of gaussian warm-up",
            {"schedule": "gaussian", "milestones": (0.875,), "warmup": 0.25, "warmup_shape": "gaussian"},
        ),
        ("cycles of fast-swa, 80 long from 480 on", {"method": "mean-teacher+fast-swa"}),
        ("cycles of swa, 80 long from 480 on", {"method": "supervised+swa", "schedule": "step"}),
    ],
)
def test_the_schedule_in_words(words, settings):
    assert schedule_words(configure("digits@40", **{"steps": 800, "warmup": 0.0, **settings})) == words


def test_a_step_of_the_plan_is_the_first_one_at_the_new_rate():
    run = configure("digits@40", steps=7, schedule="step", milestones=(0.5, 5), decay=0.1, warmup=0.0)
    (row,) = plan_rows([Cell("", "", run)], 1e9)
    rates = [learning_rate(run, step) for step in range(run.steps)]
    assert row["milestones"] == [step for step in range(1, run.steps) if rates[step] < rates[step - 1]] == [4, 5]


def test_milestones_and_decay_are_shown_where_they_act():
    def shown(**settings):
        run = configure("digits@40", **{"steps": 100, "warmup": 0.0, **settings})
        (row,) = plan_rows([Cell("", "", run)], 1e9)
        return row["milestones"], row["decay"], row["momentum_end"]

    assert shown(schedule="step") == ([75, 88], 0.1, None)
    assert shown(schedule="cosine") == ([], None, None)
    assert shown(schedule="cosine", momentum_end=0.5) == ([75], None, 0.5)
    assert shown(schedule="linear") == ([75], None, None)
    assert shown(schedule="step", method="mean-teacher+swa") == ([], None, None)
    assert shown(schedule="linear", method="mean-teacher+swa", momentum_end=0.5) == ([75], None, 0.5)


def test_a_schedule_that_the_method_prescribes_is_named():
    prescribed = {True: set(), False: set()}
    for experiment in EXPERIMENTS.values():
        for scale in SCALES:
            for cell in experiment.cells(scale, 1):
                own = cell.run.method.schedule(0, cell.run.steps) is not None
                prescribed[own].add(schedule_words(cell.run).startswith("cycles of "))
    assert prescribed == {True: {True}, False: {False}}


def test_beta_and_gamma_are_shown_where_they_act():
    rows = plan_rows(EXPERIMENTS["table4"].cells("paper", 1), 5e10)
    shown = {row["row"]: (row["gamma"], row["beta"]) for row in rows if row["column"] == "CIFAR-10@4000"}
    assert shown == {
        "Labeled-Only": (None, None), "Meta": (None, "lr"), "Mix-Up": (1.0, None), "Meta + Mix-Up": (1.0, "lr"),
    }  # fmt: skip
    plugged = plan_rows(EXPERIMENTS["meta-plugin"].cells("paper", 1), 5e10)
    assert {row["beta"] for row in plugged if row["row"] == "with meta"} == {"lr"}


def test_the_benchmark_measures_this_machine_and_leaves_the_threads_alone():
    threads = torch.get_num_threads()
    assert 1e8 < multiplications_a_second(0.1) < 1e13
    assert torch.get_num_threads() == threads
