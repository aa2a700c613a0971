"""The check of the meta-gradient while training: it finds what is wrong, and touches nothing."""

import json
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from semigrad.errors import InputError
from semigrad.metagrad import OPERATORS, ForwardMode, Unrolled, pose
from semigrad.metagrad.check import TOLERANCE, compare
from semigrad.metagrad.meta_step import MetaStep
from semigrad.settings import Execution
from tests.metagrad.test_check import doubling
from tests.small_runs import FLAGS, checkpoints, cli, go, metrics, small, stop_after, weights

METHODS = {
    "forward mode": {"name": "meta-gradient"},
    "double backward": {"name": "meta-gradient", "operator": "unrolled", "mode": "train"},
    "differences": {"name": "meta-gradient", "operator": "finite-difference", "meta_layers": 1},
    "lookahead": {"name": "meta-gradient", "operator": "lookahead", "mixup": False},
    "now and then": {"name": "meta-match", "meta_every": 4, "meta_labeled": 0.5},
    "on a host": {"name": "fixmatch+meta+ent", "threshold": 0.0},
    "on a teacher": {"name": "mean-teacher+meta+fast-swa"},
    "weights of rows": {"name": "meta-semi"},
}


def checking(every, **options):
    return Execution(**{"threads": 1, "workers": 0, "check_every": every, "log_every": 3, **options})


@pytest.mark.parametrize("name", METHODS)
def test_it_changes_no_bit_and_stands_in_the_lines(name, tmp_path):
    run = small(method=METHODS[name])
    go(run, tmp_path / "plain", execution=checking(0))
    go(run, tmp_path / "checked", execution=checking(2))
    assert weights(tmp_path / "checked") == weights(tmp_path / "plain")
    lines = metrics(tmp_path / "checked")
    errors = [line.pop("meta_gradient_error") for line in lines]
    assert lines == metrics(tmp_path / "plain")
    exact = METHODS[name].get("operator", "forward-mode") in ("forward-mode", "unrolled")
    assert all(0 < error <= (1e-5 if exact else 0.05) for error in errors)
    assert json.loads((tmp_path / "checked" / "run.json").read_text())["key"] == run.key


def test_steps_that_are_checked_are_multiples_also_after_a_stop(tmp_path):
    run = small()
    for place in ("whole", "stopped"):
        if place == "stopped":
            stop_after(run, tmp_path / place, 5, execution=checking(4, log_every=1))
        go(run, tmp_path / place, execution=checking(4, log_every=1), resume=place == "stopped")
        having = [line["step"] for line in metrics(tmp_path / place) if "meta_gradient_error" in line]
        assert having == [1, 5, 9]  # lines say how many steps are done
    assert metrics(tmp_path / "stopped") == metrics(tmp_path / "whole")
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")


@dataclass(frozen=True)
class Wrong(ForwardMode):
    """A thousandth too long."""

    def labels_and_gradient(self, problem):
        labels, d = super().labels_and_gradient(problem)
        return labels, 1.001 * d


def test_an_operator_that_is_wrong_ends_the_run(tmp_path, monkeypatch, capsys):
    words = ("train", "digits@40", *FLAGS, "--method", "meta-gradient", "--steps", "12", "--checkpoint-every", "1")
    assert cli(*words, "--check-every", "5", "--out", tmp_path / "sound") == 0
    capsys.readouterr()
    monkeypatch.setitem(OPERATORS, "forward-mode", Wrong)
    assert cli(*words, "--check-every", "5", "--out", tmp_path / "wrong") == 2
    (said,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("semigrad:")]
    assert "Step 0: the meta-gradient by forward-mode differs from that by unrolled by 1.0e-03 of its" in said
    assert "No checkpoint was written yet." in said


class Turning(nn.Module):
    """A layer whose declared gradient is right until it has seen so many batches in training."""

    def __init__(self, sound):
        super().__init__()
        self.sound = sound
        self.register_buffer("seen", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        if self.training:
            self.seen += 1
        return doubling(2 if self.seen < self.sound else 3).apply(x)


def test_a_declared_gradient_that_turns_wrong_ends_the_run_with_the_last_good_checkpoint(tmp_path):
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 9), Turning(13), nn.Tanh(), nn.Linear(9, 10))
    run = small(method={"name": "meta-gradient"}, steps=30)
    with pytest.raises(InputError, match=r"Step \d+: the meta-gradient by forward-mode differs") as caught:
        go(run, tmp_path, network=network, execution=checking(3, checkpoint_every=1))
    step = int(str(caught.value).split("Step ")[1].split(":")[0])
    assert step % 3 == 0
    assert step > 3
    assert f"The last good checkpoint is {checkpoints(tmp_path)[-1]}." in str(caught.value)
    assert 0 < int(checkpoints(tmp_path)[-1].name[:6]) <= step
    assert not (tmp_path / "result.json").exists()


def net(last=()):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 9), *last, nn.Tanh(), nn.Linear(9, 4))


def step_of(net, operator, **options):
    torch.manual_seed(1)
    x, y, u = torch.randn(8, 6), torch.arange(8) % 4, torch.randn(12, 6)
    return MetaStep(net, x, y, u, operator, 0.1, options)


def test_a_meta_step_in_double_is_the_same_one():
    plain = net()
    target = torch.rand(12, 4).softmax(1)
    step = step_of(plain, Unrolled(), target=target, parameters=list(plain[2].parameters()))
    with step.posed() as single, step.in_double().posed() as double:
        found, exact = Unrolled().gradient(single), Unrolled().gradient(double)
    assert exact.dtype == torch.float64
    assert torch.allclose(found.double(), exact, rtol=1e-4, atol=1e-6)
    assert plain[0].weight.dtype == torch.float32


@pytest.mark.parametrize("operator", [OPERATORS[name]() for name in OPERATORS])
def test_rounding_is_no_mistake(operator):
    """Where the labels are learned nearly perfectly, ∇ỹ is so small that rounding is most of it."""
    solved = net()
    step = step_of(solved, operator)
    optimizer = torch.optim.Adam(solved.parameters(), lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        nn.functional.cross_entropy(solved(step.x), step.y).backward()
        optimizer.step()
    with pose(solved, step.x, step.y, step.u) as problem:
        assert Unrolled().gradient(problem).norm() < 1e-2
    assert compare(step).agrees


class WithoutRule(torch.autograd.Function):
    """No forward-mode rule, and a slope that is said to be another than it is."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 3 * gradient


class Layer(nn.Module):
    def forward(self, x):
        return WithoutRule.apply(x)


def test_a_way_that_falls_back_is_not_compared_with_itself():
    """Without a forward-mode rule ForwardMode is the double backward, and only differences can find it out."""
    compared = compare(step_of(net([Layer()]), ForwardMode()))
    assert (compared.operator, compared.other, compared.allowed) == ("unrolled", "finite-difference", 0.05)
    assert not compared.agrees
    sound = compare(step_of(net(), ForwardMode()))
    assert (sound.operator, sound.other, sound.allowed) == ("forward-mode", "unrolled", TOLERANCE[torch.float32])


def test_a_gradient_that_is_not_finite_is_called_so(tmp_path):
    with pytest.raises(InputError, match=r"Step \d+ is not finite: "):
        go(small(warmup=0.0, lr=1e15), tmp_path, execution=checking(1))


@pytest.mark.parametrize("method", ["fixmatch", {"name": "meta-gradient", "meta": False}])
def test_methods_without_a_meta_gradient_refuse(method, tmp_path):
    with pytest.raises(InputError, match=r"check_every checks the meta-gradient, and .* takes none here") as caught:
        go(small(method=method), tmp_path / "run", execution=checking(5))
    assert len(caught.value.problems) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("value", [-1, 0.5, float("nan"), "often", True])
def test_odd_numbers_are_one_sentence(value, tmp_path):
    with pytest.raises(InputError, match=r"check_every (takes a whole number|must be at least 0); given: ") as caught:
        go(small(method="fixmatch"), tmp_path / "run", execution=checking(value))
    assert len(caught.value.problems) == 1
