"""SWA and fastSWA: moments, means, statistics and learning rates, against lists, torch's own averages and data."""

import copy
import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from semigrad.core import Clock, Modifier, Traits
from semigrad.methods.meta_gradient import MetaGradient
from semigrad.methods.supervised import Supervised
from semigrad.methods.swa import SWA, FastSWA
from tests.methods.laws import Trial, WithStatistics, batch, doubled, task

BOTH = pytest.mark.parametrize("kind", [SWA, FastSWA])


def original(kind, steps):
    """The original's numbers for a run of `steps` epochs: ℓ = 180, ℓ₀ = 210, c = 30, k = 3."""
    shares = {"start": 180 / steps, "period": 210 / steps, "cycle": 30 / steps}
    return kind(Supervised(), **shares, **({"every": 3 / steps} if kind is FastSWA else {}))


def moments(method, steps):
    return [step + 1 for step in range(steps) if method.averages_after(step + 1, steps)]


def after_one_moment(method, net):
    memory = method.init(net, task())
    (first, *_) = moments(method, 30)
    method.update(net, memory, Clock(first - 1, 30, 0.1, 0))
    assert memory.count == 1
    return memory


def test_moments_of_the_original():
    assert moments(original(SWA, 300), 300) == [180, 210, 240, 270, 300]
    assert moments(original(FastSWA, 300), 300) == list(range(150, 301, 3))
    assert moments(SWA(Supervised()), 30) == [18, 21, 24, 27, 30]
    assert moments(FastSWA(Supervised(), every=0.05), 40) == list(range(20, 41, 2))


@BOTH
@pytest.mark.parametrize("shares", [{}, {"start": 1.0, "period": 1.0, "cycle": 1.0}, {"start": 0.1, "cycle": 0.1}])
def test_every_run_has_a_moment(kind, shares):
    widest = {"every": shares["cycle"]} if kind is FastSWA and shares else {}
    method = kind(Supervised(), **shares, **widest)
    assert method.problems(8, 8) == []
    assert all(moments(method, steps) for steps in range(1, 60))


@BOTH
def test_learning_rates_of_the_original(kind):
    method = original(kind, 300)
    rates = [method.schedule(epoch, 300) for epoch in range(300)]
    assert rates[:180] == pytest.approx([0.5 * (1 + math.cos(math.pi * e / 210)) for e in range(180)])
    assert rates[180:210] == pytest.approx(rates[150:180])
    assert rates[180] == rates[210] == rates[240] == pytest.approx(0.188, abs=5e-4)
    fine = [method.schedule(step, 30_000) for step in (18_000, 20_999, 21_000)]  # a hundred steps an epoch
    assert fine == pytest.approx([0.1883, 0.0495, 0.1883], abs=1e-4)


@BOTH
def test_the_mean_of_snapshots_and_torchs_average(kind):
    method = replace(kind(Supervised()), start=0.5, cycle=0.2)
    trial = Trial(method, dtype=torch.float64)
    torchs, snapshots, initial = None, [], copy.deepcopy(trial.memory.average.state_dict())
    for step in range(100):
        trial.steps(step, step + 1)
        if step + 1 in moments(method, 100):
            torchs = torchs or AveragedModel(trial.net)
            torchs.update_parameters(trial.net)
            snapshots.append(copy.deepcopy(trial.net.state_dict()))
        elif not snapshots:
            assert all(torch.equal(value, initial[name]) for name, value in trial.memory.average.state_dict().items())
    assert len(snapshots) == trial.memory.count == {SWA: 3, FastSWA: 71}[kind]
    for name, p in trial.memory.average.named_parameters():
        assert torch.allclose(p, torch.stack([s[name] for s in snapshots]).mean(0), rtol=1e-12)
        assert torch.allclose(p, torchs.module.get_parameter(name), rtol=1e-12)
        assert not p.requires_grad


def test_the_host_is_trained_as_ever():
    ours, plain = Trial(FastSWA(MetaGradient())), Trial(MetaGradient())
    ours.steps(0, 70)
    plain.steps(0, 70)
    assert ours.memory.count > 0
    assert all(torch.equal(a, b) for a, b in zip(ours.net.parameters(), plain.net.parameters(), strict=True))


@BOTH
def test_statistics_are_those_of_fresh_batches(kind):
    torch.manual_seed(0)
    method, net = kind(MetaGradient(), batches=5), WithStatistics().double()
    memory = after_one_moment(method, net)
    net(torch.full((4, 6), 9.0).double() + torch.randn(4, 6))  # the student's statistics are others
    fresh = [doubled(batch(method, seed=seed)) for seed in range(7)]
    before = copy.deepcopy((net.state_dict(), memory.state_dict()))
    answer = method.predictor(net, memory, fresh)
    seen = torch.stack([given.unlabeled[0] for given in fresh[:5]])  # five batches and no more
    assert torch.allclose(answer.norm.running_mean, seen.flatten(0, 1).mean(0), rtol=1e-12)
    assert torch.allclose(answer.norm.running_var, seen.var(1).mean(0), rtol=1e-12)
    for old, new in zip(before, (net.state_dict(), memory.state_dict()), strict=True):
        assert all(torch.equal(value, new[name]) for name, value in old.items())


def test_labeled_batches_where_the_host_sees_no_others():
    method, net = SWA(Supervised()), WithStatistics().double()
    fresh = [doubled(batch(method))]
    answer = method.predictor(net, after_one_moment(method, net), fresh)
    assert torch.allclose(answer.norm.running_mean, fresh[0].labeled[0].mean(0), rtol=1e-12)


class Deep(WithStatistics):
    """Dropout before BatchNorm, so that masks show in the statistics."""

    def features(self, x):
        return self.norm(self.drop(x))


def test_the_answer_is_a_pure_function():
    method, net = FastSWA(MetaGradient()), Deep(drop=0.5)
    memory = after_one_moment(method, net)
    fresh = [batch(method, seed=seed) for seed in range(3)]
    torch.manual_seed(1)
    first = method.predictor(net, memory, fresh)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = method.predictor(net, memory, fresh)
    assert torch.equal(torch.get_rng_state(), state)
    assert first is not second
    assert torch.equal(first.norm.running_mean, second.norm.running_mean)
    assert torch.equal(first.norm.running_var, second.norm.running_var)
    dropped = torch.cat([given.unlabeled[0] for given in fresh]).var(0)
    assert (first.norm.running_var > 1.5 * dropped).all()  # dropout is on


def test_networks_without_batch_statistics_need_no_batch():
    def none():
        raise AssertionError("a batch was asked for")
        yield

    method = SWA(Supervised())
    trial = Trial(method)
    memory = after_one_moment(method, trial.net)
    answer = method.predictor(trial.net, memory, none())
    assert answer is not memory.average
    assert all(torch.equal(a, b) for a, b in zip(answer.parameters(), trial.net.parameters(), strict=True))


@dataclass(frozen=True)
class Answering(Supervised):
    """A host with somebody else who answers."""

    @property
    def traits(self):
        return Traits(views=(), answers="another")

    def init(self, net, task):
        memory = nn.Module()
        memory.other = nn.Linear(6, 3)
        return memory

    def predictor(self, net, memory, batches):
        return memory.other


@BOTH
def test_who_answers(kind):
    method = kind(Answering())
    trial = Trial(method)
    assert method.predictor(trial.net, trial.memory, []) is trial.memory.host.other  # nothing averaged yet
    trial.steps(0, 70)
    answer = method.predictor(trial.net, trial.memory, [])
    assert all(torch.equal(a, b) for a, b in zip(answer.parameters(), trial.memory.average.parameters(), strict=True))
    assert "average" in method.traits.answers


@pytest.mark.parametrize("outer", [SWA, FastSWA])
@pytest.mark.parametrize("inner", [SWA, FastSWA])
def test_averages_of_averages_are_refused(outer, inner):
    for host in (inner(Supervised()), Modifier(inner(Supervised())), Modifier(Modifier(inner(Supervised())))):
        (problem,) = outer(host).problems(8, 8)
        assert "once is enough" in problem
    assert outer(Modifier(Supervised())).problems(8, 8) == []


def test_the_hosts_problems_are_passed_on():
    (problem,) = SWA(MetaGradient(gamma=-1.0)).problems(8, 8)
    assert "gamma" in problem


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (SWA(Supervised(), start=1.1, period=1.2), "start"), (SWA(Supervised(), start=0.0, cycle=0.0), "start"),
        (SWA(Supervised(), period=0.5), "period"), (SWA(Supervised(), period=math.inf), "period"),
        (SWA(Supervised(), cycle=0.0), "cycle"), (SWA(Supervised(), cycle=0.65), "cycle"),
        (SWA(Supervised(), batches=0), "batches"),
        (FastSWA(Supervised(), every=0.0), "every"), (FastSWA(Supervised(), every=0.2), "every"),
    ],
)  # fmt: skip
def test_shares_that_make_no_sense_are_refused(method, words):
    assert any(problem.startswith(words) for problem in method.problems(8, 8))
