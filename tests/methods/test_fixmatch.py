"""FixMatch against a loop over rows; its mask, its denominator, and what is detached."""

import dataclasses
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods import Meta, Supervised
from semigrad.methods.fixmatch import FixMatch
from tests.methods.laws import CLOCK, Trial, WithStatistics, batch, doubled


def trial(method, drop=0.0):
    """After a little training, so that half of the rows have a confidence of more than 1/2."""
    made = Trial(method, drop=drop, dtype=torch.float64)
    made.method = FixMatch(threshold=0.4)
    made.steps(0, 10)
    made.method = method
    return made


def double(method, seed=5):
    return doubled(batch(method, seed=seed))


def dividing(method):
    """A threshold that half of the rows reach."""
    made, given = trial(method), double(method)
    return made.net(given.unlabeled[0]).softmax(1).amax(1).median().item()


def test_the_loss_is_a_loop_over_the_rows():
    threshold = dividing(FixMatch())
    made = trial(FixMatch(threshold=threshold))
    given = double(made.method)
    weak, strong = (made.net(u).softmax(1) for u in given.unlabeled)
    total, counted = 0.0, 0
    for q, p in zip(weak.tolist(), strong.tolist(), strict=True):
        if max(q) >= threshold:
            counted += 1
            total -= math.log(p[q.index(max(q))])
    assert 0 < counted < 8  # some rows count and some do not
    terms = made.terms(given)
    assert terms["consistency"].item() == pytest.approx(
        total / 8, rel=1e-12
    )  # over all rows, not over those that count
    assert torch.allclose(terms["labeled"], F.cross_entropy(made.net(given.labeled[0]), given.labels), rtol=1e-12)


def test_without_a_threshold_every_row_has_its_pseudo_label():
    made = trial(FixMatch(threshold=0.0))
    given = double(made.method)
    labels = made.net(given.unlabeled[0]).argmax(1)
    expected = F.cross_entropy(made.net(given.unlabeled[1]), labels)
    assert torch.allclose(made.terms(given)["consistency"], expected, rtol=1e-12)


def test_above_one_no_row_counts():
    made = trial(FixMatch(threshold=1.01))
    assert made.terms(double(made.method))["consistency"].item() == 0


@pytest.mark.parametrize("joint", [True, False])
def test_the_weak_pass_gives_no_gradient(joint):
    """The gradient is that of the strong pass alone, with targets and mask held."""
    made = trial(FixMatch(threshold=0.5, joint=joint))
    given = double(made.method)
    with torch.no_grad():
        confidence, labels = made.net(given.unlabeled[0]).softmax(1).max(1)
    held = F.cross_entropy(made.net(given.unlabeled[1]), labels, reduction="none")
    expected = torch.autograd.grad(((confidence >= 0.5) * held).mean(), list(made.net.parameters()))
    found = made.gradients({"consistency": made.terms(given)["consistency"]})
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-15) for a, b in zip(found, expected, strict=True))
    assert sum(g.norm().item() for g in found) > 0


def test_in_two_passes_weight_0_is_supervised_bit_for_bit():
    made = trial(FixMatch(weight=0.0, joint=False, threshold=0.0), drop=0.3)
    given = double(made.method)
    expected = made.gradients(Supervised().loss(made.net, nn.Module(), given, {}, CLOCK))
    found = made.gradients(made.terms(given))
    assert any(g.norm() > 0 for g in expected)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_joint_pass_is_two_passes_where_rows_do_not_meet():
    """Without dropout and batch statistics."""
    one, two = trial(FixMatch(threshold=0.0)), trial(FixMatch(threshold=0.0, joint=False))
    for name, value in one.terms(double(one.method)).items():
        assert torch.allclose(value, two.terms(double(two.method))[name], rtol=1e-10)


@pytest.mark.parametrize("joint", [True, False])
def test_running_statistics_are_those_of_labeled_and_strong_rows(joint):
    torch.manual_seed(0)
    net, method = WithStatistics(momentum=1.0).double(), FixMatch(joint=joint)
    given = double(method)
    guess = method.guess(net, nn.Module(), given, CLOCK)
    assert net.norm.num_batches_tracked == 0  # the weak pass moves nothing
    with CLOCK.masks("weak"):
        other = WithStatistics(momentum=1.0).double()
        other.load_state_dict(net.state_dict())
        normed = other(given.unlabeled[0]).softmax(1)
    assert torch.equal(guess["targets"].argmax(1), normed.argmax(1))  # it is in train mode: statistics of the batch
    method.loss(net, nn.Module(), given, guess, CLOCK)
    (x,), (_, strong) = given.labeled, given.unlabeled
    expected = torch.cat([x, strong]) if joint else strong  # the last pass, at momentum 1
    assert torch.allclose(net.norm.running_mean, expected.mean(0), rtol=1e-12)
    assert net.norm.num_batches_tracked == (1 if joint else 2)


def test_adapted_targets_are_soft_and_the_mask_stays():
    method = Meta(FixMatch(threshold=dividing(FixMatch())), beta=0.5)
    made = trial(method)
    given = double(method)
    guess = method.guess(made.net, made.memory, given, CLOCK)
    plain = method.host.guess(made.net, nn.Module(), given, CLOCK)
    assert torch.equal(guess["weights"], plain["weights"])
    counted = plain["weights"] > 0
    assert 0 < int(counted.sum()) < 8
    assert torch.equal(guess["targets"][~counted], plain["targets"][~counted])  # no loss, no gradient
    assert not torch.equal(guess["targets"][counted], plain["targets"][counted])
    terms = method.loss(made.net, made.memory, given, guess, CLOCK)
    p = made.net(given.unlabeled[1]).softmax(1)
    expected = (guess["weights"] * method.traits.divergence(p, guess["targets"])).mean()
    assert torch.allclose(terms["consistency"], expected, rtol=1e-12)


def test_the_divergence_is_finite_where_a_probability_vanishes():
    p = torch.tensor([[0.0, 1.0], [0.3, 0.7]], requires_grad=True)
    found = FixMatch().traits.divergence(p, torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    assert found.isfinite().all()
    assert found[1].item() == pytest.approx(-0.5 * math.log(0.3) - 0.5 * math.log(0.7), rel=1e-6)


def test_the_ramp_is_linear():
    made = trial(FixMatch(threshold=0.0, ramp=0.5, weight=3.0))
    given = double(made.method)
    values = [made.terms(given, Clock(step, 100, 0.1, 0))["consistency"].item() for step in (0, 25, 50, 90)]
    assert values[0] == 0
    assert values[1] == pytest.approx(values[3] / 2, rel=1e-9)
    assert values[2] == pytest.approx(values[3], rel=1e-9)
    made.method = FixMatch(threshold=0.0)
    assert values[3] == pytest.approx(3 * made.terms(given)["consistency"].item(), rel=1e-9)


@pytest.mark.parametrize("fields", [{"threshold": -0.1}, {"weight": -1.0}, {"weight": math.inf}, {"ramp": math.nan}])
def test_bad_values_are_refused(fields):
    assert len(FixMatch(**fields).problems(8, 8)) == 1


def test_any_batch_sizes_go_together():
    method = FixMatch(threshold=0.0)
    assert method.problems(8, 56) == []
    made = trial(method)
    given = double(method)
    given = dataclasses.replace(given, unlabeled=tuple(torch.cat([u] * 7) for u in given.unlabeled))
    assert all(value.isfinite() for value in made.terms(given).values())
