"""The remarks, the parts of the consistency gradient, and the command."""

import copy
import math

import pytest
import torch
from torch import nn

from semigrad.cli import main
from semigrad.core import Batch
from semigrad.metagrad import undisturbed
from semigrad.report.theory_text import claim_line, verdict
from semigrad.run import configure
from semigrad.theory import remarks
from semigrad.theory.claim import Claim
from semigrad.theory.consistency import take_apart
from semigrad.theory.constants import Constants, jacobian_norms
from semigrad.theory.scene import CPU
from semigrad.theory.watching import as_features, watch
from semigrad.training.loop import train


def batch_of(rows: int, *shape: int) -> Batch:
    x, u = torch.rand(rows, *shape, dtype=torch.float64), torch.rand(rows + 2, *shape, dtype=torch.float64)
    nothing = torch.empty(0, dtype=torch.long)
    return Batch((x,), torch.arange(rows) % 4, (u,), nothing, nothing)


def network(norm: bool, drop: float) -> nn.Sequential:
    layers = [nn.Flatten(), nn.Linear(18, 9), nn.BatchNorm1d(9) if norm else nn.Identity(), nn.Tanh(), nn.Dropout(drop)]
    return nn.Sequential(*layers, nn.Linear(9, 4)).double()


@pytest.mark.parametrize(
    ("norm", "drop", "project"), [(True, 0.5, "clip"), (False, 0.5, "none"), (True, 0.0, "euclidean")]
)
def test_the_parts_add_up_to_the_consistency_gradient(norm, drop, project):
    torch.manual_seed(0)
    parts = take_apart(network(norm, drop), batch_of(6, 2, 3, 3), 30.0, project)
    assert parts.residual < 1e-12
    assert parts.modes.norm() > 1e-4
    assert (parts.projection.norm() > 1e-4) == (project != "none")


def test_in_one_mode_and_unprojected_only_the_gauss_newton_part_is_left():
    """(4s/B)·JᵀJ·g, with J written out."""
    torch.manual_seed(0)
    net, batch, step = network(norm=False, drop=0.0), batch_of(6, 2, 3, 3), 0.3
    parts = take_apart(net, batch, step, "none")
    assert parts.modes.norm() == 0
    assert parts.projection.norm() == 0
    f = net(batch.unlabeled[0]).softmax(1).flatten()
    rows = [torch.autograd.grad(v, list(net.parameters()), retain_graph=True) for v in f]
    j = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
    exact = 4 * step / len(batch.unlabeled[0]) * j.T @ (j @ parts.labeled)
    assert torch.allclose(parts.total, exact, atol=1e-14)
    assert torch.allclose(parts.meta, exact, atol=1e-14)


def test_before_batch_norm_smaller_weights_mean_a_larger_jacobian():
    """Why remark (i) fails for networks with BatchNorm: w and w/2 are the same function, with twice the derivative."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 9, bias=False), nn.BatchNorm1d(9, eps=1e-30), nn.Tanh(), nn.Linear(9, 4)).double()
    net(torch.randn(32, 6, dtype=torch.float64))
    half = copy.deepcopy(net)
    with torch.no_grad():
        half[0].weight.mul_(0.5)
        half[1].running_mean.mul_(0.5)
        half[1].running_var.mul_(0.25)
    inputs = torch.randn(5, 6, dtype=torch.float64)
    net.eval(), half.eval()
    assert torch.allclose(net(inputs), half(inputs))
    first, second = ({"0.weight": n[0].weight} for n in (net, half))
    assert torch.allclose(jacobian_norms(half, inputs, second), 2 * jacobian_norms(net, inputs, first))


def test_a_watched_run_is_the_run(tmp_path):
    run = configure("digits@40", steps=6, batch=16, model={"name": "small-conv", "widths": (4,)})
    looks = []
    for training, _ in watch(run, 2):
        looks.append(training.done)
        with undisturbed(training.step.net, "eval", CPU):
            training.step.net(torch.rand(3, 1, 8, 8))
        last = training
    assert looks == [0, 2, 4, 6]
    train(run, tmp_path / "run")
    from safetensors.torch import load_file

    saved = load_file(tmp_path / "run" / "model.safetensors")
    ours = last.step.net.state_dict()
    assert saved.keys() == ours.keys()
    assert all(torch.equal(saved[name], value) for name, value in ours.items())


def test_digits_as_features():
    data = as_features(configure("digits@40"))
    assert data.train.shape == (64,)
    assert len(data.train) == 1297
    assert len(data.mean) == 64


def test_following_a_run_measures_at_every_look():
    course = remarks.follow("tanh MLP (no norm)", 1e-4, steps=4, every=2, sample=3)
    assert course.steps == (0, 2, 4)
    assert all(value > 0 for value in course.jacobian + course.lipschitz + course.weights)
    assert course.constants.jacobian == max(course.jacobian)


def test_schedules_of_the_paper():
    """0.1, 0.01, 0.001 with M²L0 = 1: D1 is at the last rate, D2 is that rate; a warm-up from 0 leaves nothing."""
    paper, as_run, warm, cosine = remarks.schedules(Constants(1.0, 1.0, "certified"))
    assert paper.d2 == pytest.approx(1e-3)
    assert paper.d1 == pytest.approx(1e-3 - 4e-12)
    assert paper.applies
    assert as_run.d1 == pytest.approx(128 - 4 * 0.01 * 128**2)
    assert not as_run.applies
    assert warm.d2 == 0
    assert math.isinf(warm.guarantee)
    assert cosine.guarantee > 1e6 * paper.guarantee
    assert remarks.largest_rate(Constants(1.0, 2.0, "certified")) == pytest.approx(0.5)


def test_the_verdict_counts_what_fails_and_marks_what_is_loose():
    good, loose, bad = (Claim(name, m, b, "certified") for name, m, b in (("a", 1, 2), ("b", 1, 5000), ("c", 3, 2)))
    assert "2 of 3 claims hold" in verdict([good, loose, bad])
    assert claim_line(bad).split()[0] == "FAILS"
    assert "×*" in claim_line(loose)
    assert "*" not in claim_line(good)
    assert not Claim("d", 1.0, 1.0, "exact", strict=True).holds


def test_the_command_refuses_no_seeds(tmp_path, capsys):
    assert main(["theory", "--seeds", "0", "--out", str(tmp_path)]) == 2
    assert "seeds must be at least 1" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command(tmp_path, capsys):
    assert main(["theory", "--quick", "--seeds", "2", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "FAILS" not in out
    assert "claims hold" in out
    pictures = {path.name for path in tmp_path.iterdir()}
    assert pictures == {"lemma1.png", "theorem1.png", "theorem2.png", "remarks.png", "consistency.png"}
