"""Entropy minimization, alone and on a host: whose pass is used, and that it is worth one's own."""

import copy
import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock, Method, Modifier, Traits
from semigrad.methods.entropy_minimization import Ent, EntropyMinimization
from semigrad.methods.mean_teacher import MeanTeacher
from semigrad.methods.meta import Meta
from semigrad.methods.supervised import Supervised
from semigrad.methods.tnar import TNAR
from semigrad.methods.vadd import VAdD
from tests.methods.laws import CLOCK, Trial, WithStatistics, batch, doubled

DOUBLE = torch.float64


def given(method, seed=3):
    return doubled(batch(method, seed=seed))


def entropy_by_hand(logits):
    p = logits.softmax(1)
    return -sum(p[i, c] * p[i, c].log() for i in range(p.shape[0]) for c in range(p.shape[1])) / p.shape[0]


@dataclass(frozen=True)
class Host(Method):
    """Looks at its second view in one of several ways; has a term on it only where the pass is differentiable."""

    way: str = "trains"

    @property
    def traits(self):
        return Traits(views=("weak", "strong"), student_view=1)

    def loss(self, net, memory, batch, guess, clock):
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(batch.labeled[0]), batch.labels)
        u = batch.unlabeled[1]
        if self.way == "no_grad":
            with torch.no_grad(), clock.masks("host"):
                net(u)
        if self.way == "copies":
            with clock.masks("host"):
                net(torch.cat([u, u]))
        if self.way != "trains":
            return {"labeled": labeled}
        with clock.masks("host"):
            return {"labeled": labeled, "size": net(u).square().mean()}


@dataclass(frozen=True)
class Idle(Modifier):
    """Changes nothing."""


def test_the_entropy_is_over_classes_and_averaged_over_rows():
    trial = Trial(EntropyMinimization(weight=2.0), dtype=DOUBLE)
    some = given(trial.method)
    with CLOCK.masks("unlabeled"):
        by_hand = 2 * entropy_by_hand(trial.net(some.unlabeled[0]))
    terms = trial.terms(some)
    assert list(terms) == ["labeled", "entropy"]
    assert torch.allclose(terms["entropy"], by_hand, rtol=1e-12)
    with CLOCK.masks("labeled"):
        assert torch.allclose(terms["labeled"], F.cross_entropy(trial.net(some.labeled[0]), some.labels), rtol=1e-12)
    found = trial.gradients({"entropy": terms["entropy"]})
    assert all(torch.allclose(a, b, rtol=1e-9) for a, b in zip(found, trial.gradients({"": by_hand}), strict=True))


def test_the_gradient_is_that_of_the_full_expression():
    trial = Trial(EntropyMinimization(), dtype=DOUBLE)
    some = given(trial.method)
    gradients = trial.gradients({"entropy": trial.terms(some)["entropy"]})
    step = 1e-6
    for p, gradient in zip(trial.net.parameters(), gradients, strict=True):
        flat, expected = p.data.view(-1), torch.zeros(p.numel(), dtype=DOUBLE)
        for k in range(p.numel()):
            old = flat[k].item()
            flat[k] = old + step
            up = trial.terms(some)["entropy"].item()
            flat[k] = old - step
            expected[k] = (up - trial.terms(some)["entropy"].item()) / (2 * step)
            flat[k] = old
        assert torch.allclose(gradient.view(-1), expected, rtol=1e-5, atol=1e-9)


def test_a_step_makes_predictions_more_certain():
    trial = Trial(EntropyMinimization(), drop=0.0, dtype=DOUBLE)
    some = given(trial.method)
    before = trial.terms(some)["entropy"]
    for p, gradient in zip(trial.net.parameters(), trial.gradients({"entropy": before}), strict=True):
        p.data -= 0.1 * gradient
    assert trial.terms(some)["entropy"] < before <= math.log(3)


@pytest.mark.parametrize("method", [EntropyMinimization(ramp=0.5), Ent(Host(), ramp=0.5)])
@pytest.mark.parametrize(("step", "share"), [(0, 0.0), (25, 0.5), (50, 1.0)])
def test_the_weight_rises_linearly_where_asked(method, step, share):
    trial = Trial(method, drop=0.0, dtype=DOUBLE)
    full = trial.terms(given(method), Clock(99, 100, 0.1, 0))["entropy"]
    assert torch.allclose(trial.terms(given(method), Clock(step, 100, 0.1, 0))["entropy"], share * full, rtol=1e-12)
    constant = Trial(Ent(Host()), drop=0.0, dtype=DOUBLE)
    assert constant.terms(given(Host()), Clock(0, 100, 0.1, 0))["entropy"] > 0


@pytest.mark.parametrize(
    ("way", "masks"), [("trains", "host"), ("no_grad", "entropy"), ("copies", "entropy"), ("passes by", "entropy")]
)
def test_ent_is_the_entropy_on_the_hosts_view_under_the_masks_of_its_pass_or_its_own(way, masks):
    host = Host(way=way)
    trial = Trial(Ent(host, weight=2.0), dtype=DOUBLE)
    some = given(host)
    calls = []
    counting = trial.net.register_forward_hook(lambda *_: calls.append(1))
    terms = trial.terms(some)
    counting.remove()
    assert len(calls) == {"trains": 2, "no_grad": 3, "copies": 3, "passes by": 2}[way]  # the labeled one is the first
    with CLOCK.masks(masks):
        by_hand = 2 * entropy_by_hand(trial.net(some.unlabeled[1]))
    assert torch.allclose(terms["entropy"], by_hand, rtol=1e-12)
    found = trial.gradients({"entropy": terms["entropy"]})
    for a, b in zip(found, trial.gradients({"": by_hand}), strict=True):
        assert torch.allclose(a, b, rtol=1e-9)
        assert a.norm() > 0


def test_everything_else_is_the_hosts():
    plain, trial = Trial(MeanTeacher()), Trial(Ent(MeanTeacher(), weight=0.0))
    plain.steps(0, 6)
    trial.steps(0, 6)
    assert all(torch.equal(v, trial.state()[k.replace("memory.", "memory.host.")]) for k, v in plain.state().items())
    some = given(MeanTeacher())
    mine = Trial(Ent(MeanTeacher()), dtype=DOUBLE).terms(some)
    theirs = Trial(MeanTeacher(), dtype=DOUBLE).terms(some)
    assert list(mine) == ["labeled", "consistency", "entropy"]
    assert all(torch.equal(mine[name], theirs[name]) for name in theirs)


@pytest.mark.parametrize("host", [TNAR(), VAdD(entropy=0.3)])
def test_a_host_with_an_entropy_of_its_own_is_refused(host):
    assert any("already" in problem for problem in Ent(host).problems(8, 8))
    without = replace(host, entropy=0.0)
    assert Ent(without).problems(8, 8) == []


@pytest.mark.parametrize("way", ["trains", "no_grad", "passes by"])
def test_ent_leaves_the_running_statistics_to_the_host(way):
    host, net = Host(way=way), WithStatistics().double()
    alone = copy.deepcopy(net)
    memory = nn.Module()
    memory.host = nn.Module()
    Ent(host).loss(net, memory, given(host), {}, CLOCK)
    host.loss(alone, nn.Module(), given(host), {}, CLOCK)
    assert all(torch.equal(value, alone.state_dict()[name]) for name, value in net.state_dict().items())
    assert net.norm.num_batches_tracked > 0


def test_nothing_of_the_watching_stays():
    trial = Trial(Ent(Host()))
    trial.steps(0, 2)
    assert not trial.net._forward_pre_hooks
    assert not trial.net.head._forward_pre_hooks


@pytest.mark.parametrize("method", [EntropyMinimization(weight=0.0), Ent(Host(way="passes by"), weight=0.0)])
def test_without_weight_it_is_supervised_bit_for_bit(method):
    trial, some = Trial(method), batch(method)
    expected = trial.gradients(Supervised().loss(trial.net, nn.Module(), some, {}, CLOCK))
    assert all(torch.equal(a, b) for a, b in zip(trial.gradients(trial.terms(some)), expected, strict=True))


@pytest.mark.parametrize("method", [EntropyMinimization(), Ent(MeanTeacher())])
def test_the_term_reaches_the_weights_after_some_steps(method):
    trial = Trial(method)
    trial.steps(0, 20)
    gradients = trial.gradients({"entropy": trial.terms(batch(method))["entropy"]})
    assert all(gradient.norm() > 0 for gradient in gradients)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (Supervised(), "looks at none"), (EntropyMinimization(), "already"), (Ent(MeanTeacher()), "already"),
        (Meta(Ent(MeanTeacher())), "already"), (Idle(EntropyMinimization()), "already"),
    ],
)  # fmt: skip
def test_hosts_that_make_no_sense_are_refused(host, words):
    assert any(words in problem for problem in Ent(host).problems(8, 8))


@pytest.mark.parametrize("fields", [{"weight": -1.0}, {"weight": math.nan}, {"ramp": -0.1}, {"ramp": math.inf}])
def test_bad_values_are_refused(fields):
    (name,) = fields
    (problem,) = EntropyMinimization(**fields).problems(8, 8)
    assert problem.startswith(f"{name} must be finite")
    (problem,) = Ent(MeanTeacher(), **fields).problems(8, 8)
    assert problem.startswith(f"{name} of Ent must be finite")


def test_sound_values_are_not_refused_and_the_hosts_problems_are_passed_on():
    assert EntropyMinimization().problems(1, 3) == Ent(MeanTeacher()).problems(1, 3) == []
    assert any("horizon" in problem for problem in Ent(MeanTeacher(horizon=0.0)).problems(8, 8))
