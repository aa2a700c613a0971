"""The Π-model: gradients through both branches, noise in each, one update of the running statistics."""

import copy
import dataclasses
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.meta import Meta
from semigrad.methods.pi_model import PiModel
from semigrad.methods.supervised import Supervised
from tests.methods.laws import CLOCK, Trial, WithStatistics, batch, doubled

DOUBLE = torch.float64


def both(method=None, seed=3):
    return doubled(batch(method or PiModel(), seed=seed))


def same_views(given):
    return dataclasses.replace(given, unlabeled=(given.unlabeled[0], given.unlabeled[0]))


def test_the_loss_is_the_squared_distance_of_two_predictions():
    trial, given = Trial(PiModel(weight=3.0), drop=0.0, dtype=DOUBLE), both()
    first, second = (trial.net(u).softmax(1) for u in given.unlabeled)
    rows = [sum((first[i, c] - second[i, c]) ** 2 for c in range(3)) for i in range(8)]
    terms = trial.terms(given)
    assert list(terms) == ["labeled", "consistency"]
    assert torch.allclose(terms["consistency"], 3 * sum(rows) / 8, rtol=1e-12)
    assert torch.allclose(terms["labeled"], F.cross_entropy(trial.net(given.labeled[0]), given.labels), rtol=1e-12)


def test_a_deterministic_network_agrees_with_itself_and_a_noisy_one_does_not():
    given = same_views(both())
    assert Trial(PiModel(), drop=0.0, dtype=DOUBLE).terms(given)["consistency"] == 0
    assert Trial(PiModel(), drop=0.3, dtype=DOUBLE).terms(given)["consistency"] > 1e-4


@pytest.mark.parametrize("detach", [False, True])
def test_the_gradient_is_that_of_the_full_expression_through_both_branches(detach):
    """Against difference quotients of the loss; with `detach` the first branch alone moves, so they differ."""
    trial, given = Trial(PiModel(detach=detach), dtype=DOUBLE), both()
    parameters = list(trial.net.parameters())
    gradients = torch.autograd.grad(trial.terms(given)["consistency"], parameters)
    fixed = trial.method.guess(trial.net, trial.memory, given, CLOCK)

    def value():
        if detach:
            return trial.method.loss(trial.net, trial.memory, given, fixed, CLOCK)["consistency"].item()
        return trial.terms(given)["consistency"].item()

    step = 1e-6
    for p, gradient in zip(parameters, gradients, strict=True):
        flat, expected = p.data.view(-1), torch.zeros(p.numel(), dtype=DOUBLE)
        for k in range(p.numel()):
            old = flat[k].item()
            flat[k] = old + step
            up = value()
            flat[k] = old - step
            expected[k] = (up - value()) / (2 * step)
            flat[k] = old
        assert torch.allclose(gradient.view(-1), expected, rtol=1e-5, atol=1e-9)


def test_the_detached_gradient_is_another_one():
    given = both()
    one, other = (Trial(PiModel(detach=detach), dtype=DOUBLE) for detach in (False, True))
    assert torch.equal(one.terms(given)["consistency"], other.terms(given)["consistency"])
    for a, b in zip(one.gradients(one.terms(given)), other.gradients(other.terms(given)), strict=True):
        assert not torch.allclose(a, b, rtol=1e-2)


def test_both_branches_together_are_twice_one_on_average_over_the_order_of_views():
    given = both()
    swapped = dataclasses.replace(given, unlabeled=given.unlabeled[::-1])

    def gradients(method, given):
        trial = Trial(method, drop=0.0, dtype=DOUBLE)
        return trial.gradients({"consistency": trial.terms(given)["consistency"]})

    full = gradients(PiModel(), given)
    halves = (gradients(PiModel(detach=True), given), gradients(PiModel(detach=True), swapped))
    for whole, first, second in zip(full, *halves, strict=True):
        assert torch.allclose(whole, first + second, rtol=1e-10, atol=1e-14)


def test_targets_can_be_adapted_only_where_they_are_detached():
    assert not PiModel().traits.soft_targets
    assert PiModel(detach=True).traits.soft_targets
    assert any("trains on none" in problem for problem in Meta(PiModel()).problems(8, 8))
    assert Meta(PiModel(detach=True)).problems(8, 8) == []
    given = both()
    for detach in (False, True):
        trial = Trial(PiModel(detach=detach), dtype=DOUBLE)
        targets = trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]
        assert targets.requires_grad != detach


def test_the_second_branch_leaves_the_running_statistics_alone():
    net, given = WithStatistics().double(), both()
    expected = copy.deepcopy(net)
    method = PiModel()
    guess = method.guess(net, nn.Module(), given, CLOCK)
    assert net.norm.num_batches_tracked == 0
    assert torch.allclose(guess["targets"], copy.deepcopy(net)(given.unlabeled[1]).softmax(1), rtol=1e-12)  # train mode
    method.loss(net, nn.Module(), given, guess, CLOCK)
    expected(given.labeled[0])
    expected(given.unlabeled[0])
    assert net.norm.num_batches_tracked == 2
    assert torch.equal(net.norm.running_mean, expected.norm.running_mean)


@pytest.mark.parametrize(("step", "share"), [(0, math.exp(-5)), (10, math.exp(-1.25)), (20, 1.0), (99, 1.0)])
def test_the_weight_rises_as_a_gaussian(step, share):
    trial, given = Trial(PiModel(ramp=0.2), drop=0.0, dtype=DOUBLE), both()
    full = Trial(PiModel(ramp=0.0), drop=0.0, dtype=DOUBLE).terms(given)["consistency"]
    found = trial.terms(given, Clock(step, 100, 0.1, 0))["consistency"]
    assert torch.allclose(found, share * full, rtol=1e-12)


def test_the_whole_batch_divides_the_labeled_loss():
    given = both()
    small = dataclasses.replace(given, labeled=(given.labeled[0][:2],), labels=given.labels[:2])
    whole = Trial(PiModel(whole_batch=True), dtype=DOUBLE).terms(small)
    own = Trial(PiModel(), dtype=DOUBLE).terms(small)
    assert torch.allclose(whole["labeled"], own["labeled"] * 2 / 10, rtol=1e-12)
    assert torch.equal(whole["consistency"], own["consistency"])


def test_without_weight_it_is_supervised_bit_for_bit():
    trial, given = Trial(PiModel(weight=0.0)), batch(PiModel())
    expected = trial.gradients(Supervised().loss(trial.net, nn.Module(), given, {}, CLOCK))
    assert all(torch.equal(a, b) for a, b in zip(trial.gradients(trial.terms(given)), expected, strict=True))


def test_the_term_reaches_the_weights_after_some_steps():
    trial = Trial(PiModel())
    trial.steps(0, 20)
    gradients = trial.gradients({"consistency": trial.terms(batch(PiModel()))["consistency"]})
    assert all(gradient.norm() > 0 for gradient in gradients)


@pytest.mark.parametrize("fields", [{"weight": -1.0}, {"weight": math.inf}, {"weight": math.nan}, {"ramp": -0.1}])
def test_bad_values_are_refused(fields):
    assert any(f"{name} must be finite" in problem for name in fields for problem in PiModel(**fields).problems(8, 8))
    assert PiModel().problems(1, 3) == []
