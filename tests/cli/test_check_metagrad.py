"""`semigrad check-metagrad`: on fresh weights, and on those of a run as it was trained."""

import re

import pytest
import torch

from semigrad.cli.check_metagrad import Options, run_to_check
from semigrad.folder.saved import load_model
from semigrad.training.setup import set_up
from tests.small_runs import cli, go, small


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    go(small(method="fixmatch", steps=30), folder)
    return folder


def forward_mode_error(out):
    return float(re.search(r"^ForwardMode +(\S+)", out, re.MULTILINE)[1])


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_fresh_and_trained_weights(trained, mode, capsys):
    for data in ("digits@40", trained):
        assert cli("check-metagrad", data, "--double", "--mode", mode) == 0
        assert forward_mode_error(capsys.readouterr().out) < 1e-10


def test_the_weights_of_a_run_are_those_that_are_checked(trained):
    checked = set_up(run_to_check(Options(str(trained))), "cpu").net.state_dict()
    saved = load_model(trained)[0].state_dict()
    assert checked.keys() == saved.keys()
    assert all(torch.equal(checked[name], saved[name]) for name in saved)


def test_what_is_refused(trained, tmp_path, capsys):
    assert cli("check-metagrad", trained, "--model", "mlp") == 2
    assert "leave out --model" in capsys.readouterr().err
    assert cli("check-metagrad", tmp_path) == 2
    assert "There is no data set" in capsys.readouterr().err
