"""Mean Teacher: the closed form of the average, a teacher in train mode with its own statistics and no gradient."""

import copy
import dataclasses
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.mean_teacher import MeanTeacher
from semigrad.methods.meta import Meta
from semigrad.methods.supervised import Supervised
from tests.methods.laws import CLOCK, Trial, WithStatistics, batch, doubled, task

DOUBLE = torch.float64


def both(seed=3):
    return doubled(batch(MeanTeacher(), seed=seed))


def scripted(method, steps, count):
    """The teacher's weights after `count` steps of a student whose weights are drawn anew in each; with these."""
    trial = Trial(method, dtype=DOUBLE)
    weights = [torch.cat([p.detach().view(-1) for p in trial.net.parameters()])]
    for step in range(count):
        weights.append(torch.randn(len(weights[0]), dtype=DOUBLE, generator=torch.Generator().manual_seed(step)))
        nn.utils.vector_to_parameters(weights[-1].clone(), trial.net.parameters())
        method.update(trial.net, trial.memory, Clock(step, steps, 0.1, 0))
    assert torch.equal(nn.utils.parameters_to_vector(trial.net.parameters()), weights[-1])  # the student is not touched
    return nn.utils.parameters_to_vector(trial.memory.teacher.parameters()), weights


@pytest.mark.parametrize("count", [1, 2, 9, 19])
def test_at_first_the_teacher_is_the_mean_of_all_weights_so_far(count):
    """α = 1 − 1/20 binds from 1 − 1/(t + 1) = 0.95 on, which is t = 19."""
    found, weights = scripted(MeanTeacher(horizon=20), 1000, count)
    assert torch.allclose(found, torch.stack(weights).mean(0), rtol=1e-10, atol=1e-12)


def test_then_it_is_the_exponential_average():
    """θ'_T = α^(T − s) θ'_s + (1 − α) Σ_(t > s) α^(T − t) θ_t, where α binds from s on."""
    found, weights = scripted(MeanTeacher(horizon=20), 1000, 60)
    alpha, bound, last = 0.95, 19, 60
    start = torch.stack(weights[: bound + 1]).mean(0)
    rest = sum((1 - alpha) * alpha ** (last - t) * weights[t] for t in range(bound + 1, last + 1))
    assert torch.allclose(found, alpha ** (last - bound) * start + rest, rtol=1e-10, atol=1e-12)


def test_the_horizon_is_a_share_of_the_run():
    share, _ = scripted(MeanTeacher(horizon=0.25), 16, 12)
    steps, weights = scripted(MeanTeacher(horizon=4), 16, 12)
    assert torch.equal(share, steps)
    whole, _ = scripted(MeanTeacher(horizon=1.0), 16, 12)
    assert torch.allclose(whole, torch.stack(weights).mean(0), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("steps", [1, 10, 20])
def test_a_memory_of_up_to_one_step_makes_the_teacher_the_student(steps):
    found, weights = scripted(MeanTeacher(horizon=0.05), steps, 5)
    assert torch.equal(found, weights[-1])


def test_the_teacher_starts_as_a_copy_and_no_gradient_reaches_it():
    trial, given = Trial(MeanTeacher(), dtype=DOUBLE), both()
    ours, theirs = list(trial.net.parameters()), list(trial.memory.teacher.parameters())
    assert all(torch.equal(a, b) and a is not b for a, b in zip(ours, theirs, strict=True))
    assert not any(p.requires_grad for p in theirs)
    trial.steps(0, 3)
    guess = trial.method.guess(trial.net, trial.memory, given, CLOCK)
    assert not guess["targets"].requires_grad
    sum(trial.terms(given).values()).backward()
    assert all(p.grad is None for p in theirs)
    assert all(p.grad.norm() > 0 for p in ours)


def test_identical_networks_without_noise_agree():
    given = both()
    given = dataclasses.replace(given, unlabeled=(given.unlabeled[0],) * 2)
    for distance in ("squared", "kl"):
        quiet = Trial(MeanTeacher(distance=distance), drop=0.0, dtype=DOUBLE).terms(given)["consistency"]
        noisy = Trial(MeanTeacher(distance=distance), drop=0.3, dtype=DOUBLE).terms(given)["consistency"]
        assert abs(quiet) < 1e-15
        assert noisy > 1e-4


@pytest.mark.parametrize("distance", ["squared", "kl"])
def test_the_loss_by_hand(distance):
    trial, given = Trial(MeanTeacher(distance=distance, weight=3.0), drop=0.0, dtype=DOUBLE), both()
    trial.steps(0, 5)
    p, q = trial.net(given.unlabeled[0]).softmax(1), trial.memory.teacher(given.unlabeled[1]).softmax(1)
    assert not torch.allclose(trial.net.head.weight, trial.memory.teacher.head.weight, rtol=1e-3)
    if distance == "squared":
        rows = [sum((p[i, c] - q[i, c]) ** 2 for c in range(3)) for i in range(8)]
    else:
        rows = [sum(q[i, c] * (q[i, c] / p[i, c]).log() for c in range(3)) for i in range(8)]
    terms = trial.terms(given)
    assert list(terms) == ["labeled", "consistency"]
    assert torch.allclose(terms["consistency"], 3 * sum(rows) / 8, rtol=1e-10)
    assert torch.allclose(terms["labeled"], F.cross_entropy(trial.net(given.labeled[0]), given.labels), rtol=1e-12)
    expected = trial.gradients({"by hand": 3 * sum(rows) / 8})
    found = trial.gradients({"consistency": terms["consistency"]})
    assert all(torch.allclose(a, b, rtol=1e-8, atol=1e-14) for a, b in zip(found, expected, strict=True))


def test_kl_is_finite_where_a_probability_has_become_zero():
    p = torch.tensor([[1.0, 0.0], [0.5, 0.5]], requires_grad=True)
    found = MeanTeacher(distance="kl").traits.divergence(p, torch.tensor([[0.5, 0.5], [1.0, 0.0]]))
    (gradient,) = torch.autograd.grad(found.sum(), p)
    assert found.isfinite().all()
    assert gradient.isfinite().all()
    assert found[1].item() == pytest.approx(math.log(2))


def test_the_teacher_runs_in_train_mode_with_statistics_of_its_own():
    torch.manual_seed(0)
    net, given, method = WithStatistics(drop=0.5).double(), both(), MeanTeacher()
    memory = method.init(net, task()).double()
    student, teacher = copy.deepcopy(net), copy.deepcopy(memory.teacher)
    guess = method.guess(net, memory, given, CLOCK)
    with CLOCK.masks("teacher"):
        expected = teacher(given.unlabeled[1]).softmax(1)  # train mode: dropout and batch statistics
    assert torch.equal(guess["targets"], expected)
    assert not torch.allclose(expected, copy.deepcopy(teacher).eval()(given.unlabeled[1]).softmax(1), rtol=1e-2)
    assert net.norm.num_batches_tracked == 0
    method.loss(net, memory, given, guess, CLOCK)
    student(given.labeled[0])
    student(given.unlabeled[0])
    assert torch.equal(net.norm.running_mean, student.norm.running_mean)
    method.update(net, memory, CLOCK)
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        assert torch.equal(getattr(memory.teacher.norm, name), getattr(teacher.norm, name))
    assert not torch.allclose(memory.teacher.norm.running_mean, net.norm.running_mean, rtol=1e-3)
    assert method.predictor(net, memory, ()) is memory.teacher


def test_the_masks_of_teacher_and_student_differ():
    given = both()
    given = dataclasses.replace(given, unlabeled=(given.unlabeled[0],) * 2)
    trial = Trial(MeanTeacher(), dtype=DOUBLE)
    targets = trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]
    with CLOCK.masks("unlabeled"):
        p = trial.net(given.unlabeled[0]).softmax(1)
    assert not torch.allclose(p, targets, rtol=1e-2)


def test_the_weight_rises_as_a_gaussian():
    values = [
        Trial(MeanTeacher(), drop=0.0, dtype=DOUBLE).terms(both(), Clock(step, 100, 0.1, 0))["consistency"].item()
        for step in (0, 10, 20, 99)
    ]
    assert values[0] == pytest.approx(math.exp(-5) * values[3], rel=1e-12)
    assert values[1] == pytest.approx(math.exp(-1.25) * values[3], rel=1e-12)
    assert values[2] == values[3] > 0


def test_the_whole_batch_divides_the_labeled_loss():
    given = dataclasses.replace(both(), labeled=(both().labeled[0][:2],), labels=both().labels[:2])
    whole = Trial(MeanTeacher(whole_batch=True), dtype=DOUBLE).terms(given)
    own = Trial(MeanTeacher(), dtype=DOUBLE).terms(given)
    assert torch.allclose(whole["labeled"], own["labeled"] * 2 / 10, rtol=1e-12)
    assert torch.equal(whole["consistency"], own["consistency"])


def test_without_weight_it_is_supervised_bit_for_bit():
    trial, given = Trial(MeanTeacher(weight=0.0)), batch(MeanTeacher())
    expected = trial.gradients(Supervised().loss(trial.net, nn.Module(), given, {}, CLOCK))
    assert all(torch.equal(a, b) for a, b in zip(trial.gradients(trial.terms(given)), expected, strict=True))


@pytest.mark.parametrize("method", [MeanTeacher(), MeanTeacher(distance="kl"), Meta(MeanTeacher(distance="kl"))])
def test_the_term_reaches_the_weights_after_some_steps(method):
    trial = Trial(method)
    trial.steps(0, 20)
    gradients = trial.gradients({"consistency": trial.terms(batch(method))["consistency"]})
    assert all(gradient.norm() > 0 and gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"horizon": 0.0}, "horizon"), ({"horizon": math.inf}, "horizon"), ({"horizon": math.nan}, "horizon"),
        ({"distance": "cosine"}, "distance"), ({"weight": -1.0}, "weight"), ({"ramp": -1.0}, "ramp"),
    ],
)  # fmt: skip
def test_bad_values_are_refused(fields, words):
    assert any(words in problem for problem in MeanTeacher(**fields).problems(8, 8))
    assert MeanTeacher().problems(1, 3) == []
