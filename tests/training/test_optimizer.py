"""Optimizers by name: each as torch has it, and one that is added with a line."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from semigrad.errors import InputError
from semigrad.run import configure
from semigrad.settings.optimizers import OPTIMIZERS, Optimizer
from semigrad.training.optimizer import make_optimizer, set_rates
from tests.small_runs import FLAGS, cli, go, small

THEIRS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.03, momentum=0.8, nesterov=True, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, lr=0.03, betas=(0.8, 0.999), weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.03, betas=(0.8, 0.999), weight_decay=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_it_takes_the_steps_of_torchs(name):
    torch.manual_seed(0)
    ours, theirs = nn.Linear(4, 3).double(), nn.Linear(4, 3).double()
    theirs.load_state_dict(ours.state_dict())
    settings = {"optimizer": name, "lr": 0.03, "momentum": 0.8, "weight_decay": 0.01, "nesterov": name == "sgd"}
    one, other = make_optimizer(configure("digits@40", **settings), ours), THEIRS[name](theirs.parameters())
    for step in range(5):
        x = torch.randn(6, 4).double()
        for net, optimizer in ((ours, one), (theirs, other)):
            optimizer.zero_grad()
            net(x).square().sum().backward()
            optimizer.step()
        assert torch.allclose(ours.weight, theirs.weight, rtol=0, atol=1e-15), step  # in another order of products


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_rates_of_a_step_are_set(name):
    optimizer = make_optimizer(configure("digits@40", optimizer=name), nn.Linear(4, 3))
    set_rates(optimizer, 0.5, 0.25)
    (group,) = optimizer.param_groups
    assert group["lr"] == 0.5
    assert (group["betas"] if "betas" in group else (group["momentum"],))[0] == 0.25


def test_one_more_is_one_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(OPTIMIZERS, "rmsprop", Optimizer("RMSprop", lambda s: {"momentum": s.momentum}))
    assert go(small(optimizer="rmsprop", lr=0.001, steps=3), tmp_path / "run")["steps"] == 3
    assert cli("train", "--help") == 0
    assert "rmsprop" in capsys.readouterr().out


def test_an_unknown_one_is_refused():
    with pytest.raises(InputError, match="optimizer takes 'sgd' or 'adam' or 'adamw'; given: 'lion'"):
        configure("digits@40", optimizer="lion")


def test_a_run_loads_neither_a_compiler_nor_what_fits_temperatures(tmp_path):
    """Which take a second and a fifth of one: neither the optimizer nor anything else that a plain run needs."""
    words = ["train", "digits@40", *FLAGS, "--steps", "3", "--out", str(tmp_path)]
    code = f"import sys; from semigrad.cli import main; main({words!r})"
    code += "; print({'torch._dynamo', 'scipy.optimize'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines()[-1] == "set()", done.stderr
