"""Gradient reversal, the two objectives written out, and their reductions."""

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.ada_net import AdaNet, reverse_gradient
from semigrad.methods.meta import Meta
from semigrad.methods.supervised import Supervised
from tests.methods.laws import CLOCK, WIDTH, Trial, batch, doubled, network, task

SMALL = AdaNet(hidden=12)


def drawn(rows, gamma=1.0, clock=CLOCK):
    return clock.draw("mixup", lambda rng, count: rng.beta(gamma, gamma, count), rows)


@dataclass(frozen=True)
class Constant(Clock):
    """A clock that draws one number everywhere."""

    value: float = 1.0

    def draw(self, name, sample, rows):
        return torch.from_numpy(np.full(rows, self.value))


def test_reversal_passes_values_and_turns_gradients():
    torch.manual_seed(0)
    h = torch.rand(4, 5, dtype=torch.float64, requires_grad=True)
    layer = nn.Linear(5, 2).double()
    passed = reverse_gradient(h, 0.3)
    assert torch.equal(passed, h)
    reversed_gradients = torch.autograd.grad(layer(passed).square().sum(), [h, *layer.parameters()])
    plain = torch.autograd.grad(layer(h).square().sum(), [h, *layer.parameters()])
    assert torch.allclose(reversed_gradients[0], -0.3 * plain[0], rtol=1e-14)
    assert all(torch.equal(a, b) for a, b in zip(reversed_gradients[1:], plain[1:], strict=True))


def test_reversal_leaves_other_ways_to_the_same_features_alone():
    h = torch.rand(4, 5, dtype=torch.float64, requires_grad=True)
    through = h * 2
    (gradient,) = torch.autograd.grad(through.sum() + 3 * reverse_gradient(through, 0.5).sum(), h)
    assert torch.allclose(gradient, torch.full_like(h, 2 - 2 * 3 * 0.5))


def domain_by_hand(net, memory, h, shares):
    """The domain loss without reversal: Σ over rows and both sides, written out."""
    logs = memory.discriminator(h).log_softmax(1)
    return -sum(s * row[0] + (1 - s) * row[1] for s, row in zip(shares, logs, strict=True)) / len(h)


@pytest.mark.parametrize("mixup", [True, False])
@pytest.mark.parametrize(("step", "factor"), [(0, 0.0), (10, 0.462117157260), (90, 0.999753210848)])
def test_the_network_gets_the_reversed_gradient_and_the_discriminator_the_plain_one(mixup, step, factor):
    clock = Clock(step, 100, 0.1, 0)
    trial = Trial(replace(SMALL, mixup=mixup, weight=0.6), drop=0.0, dtype=torch.float64)
    given = doubled(batch(SMALL))
    (x,), (u,) = given.labeled, given.unlabeled
    if mixup:
        lam = drawn(8, clock=clock)
        inputs, shares = lam[:, None] * x + (1 - lam[:, None]) * u, lam
    else:
        inputs, shares = torch.cat([x, u]), torch.tensor([1.0] * 8 + [0.0] * 8).double()
    plain = 0.6 * domain_by_hand(trial.net, trial.memory, trial.net.features(inputs), shares)
    found = trial.terms(given, clock)["domain"]
    assert torch.allclose(found, plain, rtol=1e-12)
    body, judge = list(trial.net.body.parameters()), list(trial.memory.parameters())
    ours, theirs = (torch.autograd.grad(v, [*body, *judge]) for v in (found, plain))
    for a, b in zip(ours[: len(body)], theirs[: len(body)], strict=True):
        assert torch.allclose(a, -factor * b, rtol=1e-9, atol=1e-15)
        assert b.norm() > 0
    for a, b in zip(ours[len(body) :], theirs[len(body) :], strict=True):
        assert torch.allclose(a, b, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("weighed", [True, False])
def test_the_mixed_term_is_the_formula_row_by_row(weighed):
    method = replace(SMALL, weigh_by_lambda=weighed, gamma=0.4)
    trial = Trial(method, drop=0.0, dtype=torch.float64)
    given = doubled(batch(SMALL))
    (x,), (u,) = given.labeled, given.unlabeled
    lam = drawn(8, 0.4)
    targets = copy.deepcopy(trial.net).eval()(u).softmax(1).detach()
    total = 0.0
    for i, share in enumerate(lam.tolist()):
        log = trial.net((share * x[i] + (1 - share) * u[i])[None]).log_softmax(1)[0]
        wanted = (1 - share) * targets[i]
        wanted[given.labels[i]] += share
        total = total - (share if weighed else 1.0) * (wanted * log).sum()
    found = trial.terms(given)["mixed"]
    assert torch.allclose(found, total / 8, rtol=1e-12)
    gradients = [torch.autograd.grad(v, list(trial.net.parameters())) for v in (found, total / 8)]
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-15) for a, b in zip(*gradients, strict=True))


def test_pseudo_labels_are_eval_mode_detached_and_leave_the_network():
    trial = Trial(SMALL, drop=0.5, dtype=torch.float64)
    trial.net.body.insert(2, nn.BatchNorm1d(WIDTH).double())
    given = doubled(batch(SMALL))
    before = copy.deepcopy(trial.net.state_dict())
    targets = trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]
    assert not targets.requires_grad
    assert trial.net.training
    assert all(torch.equal(value, before[name]) for name, value in trial.net.state_dict().items())
    assert torch.equal(targets, copy.deepcopy(trial.net).eval()(given.unlabeled[0]).softmax(1))


def test_with_lambda_one_it_is_plain_cross_entropy_and_the_domain_is_the_labeled_one():
    trial = Trial(SMALL, dtype=torch.float64)
    given = doubled(batch(SMALL))
    clock = Constant(90, 100, 0.1, 0)
    terms = trial.terms(given, clock)
    with clock.masks("labeled"):
        h = trial.net.features(given.labeled[0])
        expected = F.cross_entropy(trial.net.head(h), given.labels)
    assert torch.allclose(terms["mixed"], expected, rtol=1e-14)
    ones = torch.zeros(8, dtype=torch.long)  # class 0 of the discriminator is "labeled"
    assert torch.allclose(terms["domain"], F.cross_entropy(trial.memory.discriminator(h), ones), rtol=1e-14)


def test_without_mixup_each_batch_counts_half_whatever_its_size():
    trial = Trial(replace(SMALL, mixup=False), drop=0.0, dtype=torch.float64)
    given = doubled(batch(SMALL))
    given = replace(given, unlabeled=(given.unlabeled[0][:3],), unlabeled_index=given.unlabeled_index[:3])
    logs = [
        trial.memory.discriminator(trial.net.features(z)).log_softmax(1) for z in (*given.labeled, *given.unlabeled)
    ]
    expected = -(logs[0][:, 0].mean() + logs[1][:, 1].mean()) / 2
    assert torch.allclose(trial.terms(given)["domain"], expected, rtol=1e-12)


def test_weight_zero_without_mixup_is_supervised_bit_for_bit():
    ours, plain = Trial(replace(SMALL, mixup=False, weight=0.0)), Trial(Supervised())
    given = batch(SMALL)
    sides = [
        torch.autograd.grad(sum(trial.terms(given).values()), list(trial.net.parameters())) for trial in (ours, plain)
    ]
    assert all(torch.equal(a, b) for a, b in zip(*sides, strict=True))


@pytest.mark.parametrize(("mixup", "passes"), [(True, 1), (False, 2)])
def test_batch_statistics_move_once_a_training_pass(mixup, passes):
    net = network()
    net.body.insert(2, nn.BatchNorm1d(WIDTH))
    method = replace(SMALL, mixup=mixup)
    memory = method.init(net, task())
    assert net.body[2].num_batches_tracked == 0
    method.loss(net, memory, batch(method), method.guess(net, memory, batch(method), CLOCK), CLOCK)
    assert net.body[2].num_batches_tracked == passes


def test_the_divergence_is_cross_entropy_and_defined_where_a_class_is_impossible():
    p = torch.tensor([[0.25, 0.75], [0.0, 1.0]]).double()
    targets = torch.tensor([[0.5, 0.5], [0.0, 1.0]]).double()
    expected = torch.tensor([-0.5 * math.log(0.25) - 0.5 * math.log(0.75), 0.0]).double()
    assert torch.allclose(SMALL.traits.divergence(p, targets), expected)


def test_meta_can_adapt_the_targets_with_mixup_and_is_refused_without():
    assert Meta(SMALL).problems(8, 8) == []
    assert any("trains on none" in problem for problem in Meta(replace(SMALL, mixup=False)).problems(8, 8))
    trial = Trial(Meta(SMALL, beta=5.0), dtype=torch.float64)
    given = doubled(batch(SMALL))
    adapted = trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]
    own = SMALL.guess(trial.net, trial.memory.host, given, CLOCK)["targets"]
    assert torch.allclose(adapted.sum(1), torch.ones(8).double())
    assert not torch.allclose(adapted, own, rtol=1e-4)


@pytest.mark.parametrize("mixup", [True, False])
def test_twenty_steps_then_the_unlabeled_terms_reach_the_weights(mixup):
    trial = Trial(replace(SMALL, mixup=mixup))
    trial.steps(0, 20)
    terms = trial.terms(batch(SMALL))
    assert list(terms) == (["mixed", "domain"] if mixup else ["labeled", "domain"])
    assert all(g.norm() > 0 for g in torch.autograd.grad(terms["domain"], list(trial.net.body.parameters())))


@pytest.mark.parametrize(
    "bad", [{"gamma": 0.0}, {"gamma": math.inf}, {"hidden": 0}, {"weight": -1.0}, {"weight": math.nan}]
)
def test_bad_values_are_refused(bad):
    (problem,) = AdaNet(**bad).problems(8, 8)
    assert next(iter(bad)) in problem


def test_unequal_batches_are_refused_with_mixup_only():
    assert len(AdaNet().problems(8, 9)) == 1
    assert AdaNet(mixup=False).problems(8, 9) == []
    assert AdaNet().problems(8, 8) == []
