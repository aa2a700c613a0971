"""What runs would take elsewhere: said to be projected, and nothing is trained."""

import json
from typing import get_args

import pytest

from semigrad.experiments.cost import multiplications_of_step
from semigrad.experiments.gpus import GPUS, SECONDS_A_LAYER, projected_seconds
from semigrad.methods import MeanTeacher, Supervised
from semigrad.run import configure
from semigrad.settings.settings import GPUName
from semigrad.training.work import network_size, passes_of_step
from tests.small_runs import cli


def test_every_name_has_its_rates():
    assert set(GPUS) == set(get_args(GPUName))
    assert GPUS["v100"].multiplications == 0.5 * 15.7e12 / 2
    assert GPUS["a100"].multiplications == 0.25 * 156e12 / 2


def test_a_projection_is_arithmetic_and_starting_layers():
    """Of labeled-only training: a pass forward, one to the weights and one to the inputs, for each example."""
    run = configure("cifar10@4000", method="supervised", model="conv-large", batch=100, steps=1000)
    one, layers = network_size(run.model, (3, 32, 32), 10)
    arithmetic = 1000 * 3 * 100 * one / (0.25 * 156e12 / 2)
    assert projected_seconds(run, GPUS["a100"]) == pytest.approx(arithmetic + 1000 * 3 * layers * SECONDS_A_LAYER)
    assert multiplications_of_step(run) == pytest.approx(3 * 100 * one)


def test_parts_cost_a_forward_pass_more_where_there_is_a_way_back():
    assert passes_of_step(Supervised(), 8, 8, 2) == (2 * 4, 8 * 4)
    whole, parted = (passes_of_step(MeanTeacher(), 8, 8, parts).examples for parts in (1, 2))
    assert parted == whole + 8 + 8  # of labeled and of unlabeled examples, not of the teacher's


def test_train_says_what_a_run_would_cost(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["train", "cifar10@4000", "--recipe", "authors-cifar10", "--seeds", "5", "--dry-run"]
    assert cli(*words, "--on", "a100", "--json") == 0
    said = capsys.readouterr().out
    assert "projected, not measured: one NVIDIA A100, 25% of its published 156 TFLOP/s (TF32)" in said
    run = configure("cifar10@4000", recipe="authors-cifar10")
    line = json.loads(said.splitlines()[-1])
    assert line["seconds"] == pytest.approx(5 * projected_seconds(run, GPUS["a100"]), rel=1e-6)
    assert line["projected_on"] == "a100"
    assert not list(tmp_path.iterdir())  # nothing was trained, or written
    assert "blow up" not in said


def test_what_would_blow_up_is_said_before_it_is_paid_for(capsys):
    assert cli("train", "cifar10@4000", "--recipe", "paper-cifar10", "--dry-run", "--on", "a100") == 0
    assert "large networks blow up so" in capsys.readouterr().out


def test_reproduce_says_so_too(capsys, tmp_path):
    words = ["reproduce", "table2", "--scale", "paper", "--dry-run", "--records", tmp_path]
    assert cli(*words, "--seeds", "1", "--on", "t4") == 0
    assert "projected, not measured: one NVIDIA T4" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [("train", "digits@40"), ("reproduce", "table1")], ids=str)
def test_elsewhere_nothing_can_be_trained(verb, capsys):
    assert cli(*verb, "--on", "a100") == 2
    assert "it goes with --dry-run" in capsys.readouterr().err
    assert cli(*verb, "--on", "a1000", "--dry-run") == 2
    assert "Traceback" not in capsys.readouterr().err
