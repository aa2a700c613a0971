"""The plan of an experiment without its data."""

from dataclasses import dataclass

import pytest

from semigrad.core import Modifier
from semigrad.experiments import EXPERIMENTS, SCALES, Cell
from semigrad.experiments.plan import plan_rows, schedule_words
from semigrad.experiments.speed import Speed
from semigrad.methods import METHODS, MODIFIERS
from semigrad.run import configure
from semigrad.training.schedule import learning_rate
from tests.methods.toy_method import Toy


def test_a_plan_says_what_an_appendix_says_and_needs_no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path / "nothing"))
    rows = plan_rows(EXPERIMENTS["table1"].cells("paper"), Speed(5e10))
    (ours,) = [row for row in rows if (row["row"], row["column"], row["seed"]) == ("Ours", "SVHN@1000", 0)]
    seconds = ours.pop("seconds")
    assert ours == {
        "row": "Ours", "column": "SVHN@1000", "data": "svhn@1000", "labels": 1000, "seed": 0,
        "method": "meta-gradient", "network": "conv-large", "steps": 400_000, "batch": 128, "unlabeled_batch": 128,
        "optimizer": "sgd", "momentum": 0.9, "momentum_end": None, "nesterov": False, "lr": 0.1,
        "schedule": "step at 300,001 and 350,001 by 0.1 after 4,000 steps of warm-up",
        "milestones": [300_001, 350_001], "decay": 0.1, "warmup": 4000,
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
    (row,) = plan_rows([Cell("", "", run)], Speed(1e9))
    rates = [learning_rate(run, step) for step in range(run.steps)]
    assert row["milestones"] == [step for step in range(1, run.steps) if rates[step] < rates[step - 1]] == [4, 5]


def test_milestones_and_decay_are_shown_where_they_act():
    def shown(**settings):
        run = configure("digits@40", **{"steps": 100, "warmup": 0.0, **settings})
        (row,) = plan_rows([Cell("", "", run)], Speed(1e9))
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
    rows = plan_rows(EXPERIMENTS["table4"].cells("paper", 1), Speed(5e10))
    shown = {row["row"]: (row["gamma"], row["beta"]) for row in rows if row["column"] == "CIFAR-10@4000"}
    assert shown == {
        "Labeled-Only": (None, None), "Meta": (None, "lr"), "Mix-Up": (1.0, None), "Meta + Mix-Up": (1.0, "lr"),
    }  # fmt: skip
    plugged = plan_rows(EXPERIMENTS["meta-plugin"].cells("paper", 1), Speed(5e10))
    assert {row["beta"] for row in plugged if row["row"] == "with meta"} == {"lr"}


@dataclass(frozen=True)
class Falling(Modifier):
    """A learning rate that falls as it likes, and fields whose names are known."""

    gamma: float = 0.5
    """Of mixing."""
    beta: float = 0.25
    """Of a meta step."""
    meta: bool = True
    """Whether there is one."""

    def schedule(self, step, steps):
        return 1 - step / steps


def test_methods_and_modifiers_of_ones_own_are_planned(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", Toy)
    monkeypatch.setitem(MODIFIERS, "falling", Falling)

    def planned(method):
        (row,) = plan_rows([Cell("", "", configure("digits@40", method=method, warmup=0.0))], Speed(1e9))
        assert row["seconds"] > 0
        return row["method"], row["schedule"], row["gamma"], row["beta"]

    assert planned("toy") == ("toy", "cosine", None, None)
    assert planned("toy+falling") == ("toy+falling", "as the method prescribes", 0.5, 0.25)
    off = {"name": "toy+falling+ent", "falling": {"meta": False}}
    assert planned(off) == ("toy+falling+ent", "as the method prescribes", 0.5, None)
