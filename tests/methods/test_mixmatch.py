"""MixMatch against a loop over rows; its reductions, and which pass moves the running statistics."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.core.ops import interleave, sharpen
from semigrad.methods import Meta
from semigrad.methods.mixmatch import MixMatch
from tests.methods.laws import CLOCK, Trial, WithStatistics, batch, doubled


def trial(method, drop=0.0):
    made = Trial(method, drop=drop, dtype=torch.float64)
    made.steps(0, 10)
    return made


def double(method, rows=8, seed=5):
    return doubled(batch(method, rows, seed=seed))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [1, 2, 7, 8])
def test_interleaving_twice_changes_nothing_and_once_mixes(count, rows):
    batches = [torch.arange(rows) + 100 * k for k in range(count)]
    once = interleave(batches)
    assert all(torch.equal(a, b) for a, b in zip(interleave(once), batches, strict=True))
    assert sorted(torch.cat(once).tolist()) == sorted(torch.cat(batches).tolist())
    if rows >= count:
        assert {int(value) // 100 for value in once[0]} == set(range(count))  # the first holds rows of every batch
        assert all((own < 100).any() for own in once)  # and every batch rows of the first


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_the_loss_is_a_loop_over_the_rows(copies):
    method = MixMatch(copies=copies, ramp=0.0, weight=2.0)
    made, given = trial(method), double(method)
    (x,), views, net = given.labeled, given.unlabeled, made.net
    assert len(views) == copies

    with torch.no_grad():
        mean = sum(net(view).softmax(1) for view in views) / copies
    squares = mean**2  # T = 1/2
    targets = squares / squares.sum(1, keepdim=True)
    assert torch.allclose(method.guess(net, made.memory, given, CLOCK)["targets"], targets, rtol=1e-12)

    pool = [(x[i], F.one_hot(given.labels[i], 3).double()) for i in range(8)]
    pool += [(view[i], targets[i]) for view in views for i in range(8)]
    order = CLOCK.draw("shuffle", lambda rng, rows: rng.permutation(rows), len(pool)).tolist()
    draws = CLOCK.draw("mixup", lambda rng, rows: rng.beta(0.75, 0.75, rows), len(pool)).tolist()
    labeled, unlabeled = 0.0, 0.0
    for i, (input_, label) in enumerate(pool):
        lam = max(draws[i], 1 - draws[i])
        assert lam >= 0.5
        other_input, other_label = pool[order[i]]
        f = net((lam * input_ + (1 - lam) * other_input)[None]).softmax(1)[0]
        wanted = lam * label + (1 - lam) * other_label
        if i < 8:
            labeled -= (wanted * f.log()).sum() / 8
        else:
            unlabeled += (wanted - f).square().sum() / (8 * copies)
    terms = made.terms(given)
    assert torch.allclose(terms["labeled"], labeled, rtol=1e-10)
    assert torch.allclose(terms["consistency"], 2 * unlabeled, rtol=1e-10)
    assert unlabeled > 0


def test_without_mixing_and_weight_it_is_the_cross_entropy_of_the_labeled_rows():
    made = trial(MixMatch(alpha=1e-5, weight=0.0))
    given = double(made.method)
    lam = CLOCK.draw("mixup", lambda rng, rows: rng.beta(1e-5, 1e-5, rows), 24)
    assert torch.equal(torch.maximum(lam, 1 - lam), torch.ones_like(lam))
    terms = made.terms(given)
    plain = F.cross_entropy(made.net(given.labeled[0]), given.labels)
    assert torch.allclose(sum(terms.values()), plain, rtol=1e-12)
    found, expected = made.gradients(terms), made.gradients({"labeled": plain})
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-15) for a, b in zip(found, expected, strict=True))
    assert any(g.norm() > 0 for g in expected)


def test_targets_are_sharpened_and_detached():
    made = trial(MixMatch())
    given = double(made.method)
    targets = made.method.guess(made.net, made.memory, given, CLOCK)["targets"]
    assert not targets.requires_grad
    assert torch.allclose(targets.sum(1), torch.ones(8, dtype=torch.float64), rtol=1e-12)
    mean = torch.stack([made.net(view).softmax(1) for view in given.unlabeled]).mean(0).detach()
    assert torch.allclose(sharpen(mean, 1.0), mean, rtol=1e-12)
    assert torch.allclose(sharpen(mean, 1e-3), F.one_hot(mean.argmax(1), 3).double(), atol=1e-6)

    def entropy(p):
        return -(p * p.log()).sum(1)

    assert (entropy(targets) < entropy(mean)).all()


def test_only_the_first_of_the_interleaved_passes_moves_the_running_statistics():
    torch.manual_seed(0)
    net, method = WithStatistics(momentum=1.0).double(), MixMatch(alpha=1e-5)
    given = double(method, rows=9)
    guess = method.guess(net, nn.Module(), given, CLOCK)
    assert net.norm.num_batches_tracked == 0
    inputs = []
    net.norm.register_forward_pre_hook(lambda layer, given: inputs.append(given[0].detach()))
    method.loss(net, nn.Module(), given, guess, CLOCK)
    assert net.norm.num_batches_tracked == 1
    assert len(inputs) == 3
    assert torch.allclose(net.norm.running_mean, inputs[0].mean(0), rtol=1e-12)
    lam = CLOCK.draw("mixup", lambda rng, rows: rng.beta(1e-5, 1e-5, rows), 27)
    assert ((lam == 0) | (lam == 1)).all()
    (x,), views = given.labeled, given.unlabeled
    assert torch.allclose(inputs[0], torch.cat([x[:3], views[0][3:6], views[1][6:]]), rtol=1e-12)  # a third of each


def test_dropout_masks_differ_between_passes():
    """The same rows in every view: predictions, and so the guess, are then of several masks."""
    made = trial(MixMatch(temperature=1.0), drop=0.5)
    given = double(made.method)
    given = dataclasses.replace(given, unlabeled=(given.unlabeled[0],) * 2)
    with CLOCK.masks("guess 0"):
        first = made.net(given.unlabeled[0]).softmax(1)
    with CLOCK.masks("guess 1"):
        second = made.net(given.unlabeled[0]).softmax(1)
    assert not torch.allclose(first, second)
    assert torch.allclose(made.method.guess(made.net, made.memory, given, CLOCK)["targets"], (first + second) / 2)


def test_adapted_targets_are_what_is_mixed():
    method = Meta(MixMatch(ramp=0.0, alpha=1e-5, weight=1.0), beta=0.5)
    made = Trial(method, drop=0.0, dtype=torch.float64)
    made.steps(0, 5)
    given = double(method)
    guess = method.guess(made.net, made.memory, given, CLOCK)
    plain = method.host.guess(made.net, nn.Module(), given, CLOCK)
    assert not torch.allclose(guess["targets"], plain["targets"], rtol=1e-4)
    terms = method.loss(made.net, made.memory, given, guess, CLOCK)
    errors = [(made.net(view).softmax(1) - guess["targets"]).square().sum(1).mean() for view in given.unlabeled]
    assert torch.allclose(terms["consistency"], sum(errors) / 2, rtol=1e-9)


def test_the_ramp_is_linear():
    made = trial(MixMatch(alpha=1e-5))
    given = double(made.method)
    values = [made.terms(given, Clock(step, 100, 0.1, 0))["consistency"].item() for step in (0, 10, 20, 90)]
    assert values[0] == 0
    assert np.allclose(np.array(values) / values[3], [0, 0.5, 1, 1], rtol=1e-9)


@pytest.mark.parametrize(
    "fields",
    [{"copies": 0}, {"temperature": 0.0}, {"alpha": 0.0}, {"alpha": math.inf}, {"weight": -1.0}, {"ramp": math.nan}],
)
def test_bad_values_are_refused(fields):
    assert len(MixMatch(**fields).problems(8, 8)) == 1


def test_batches_of_different_sizes_are_refused():
    assert MixMatch().problems(8, 8) == []
    assert "one size" in MixMatch().problems(8, 16)[0]
