"""The memory against plain loops over rows and classes; what is detached, and what is not."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.ma_dnn import MemoryAssisted
from semigrad.methods.supervised import Supervised
from tests.methods.laws import CLOCK, WIDTH, Trial, batch, doubled, network, task


def warm(method, **options):
    """A trial whose memory has seen a few batches."""
    trial = Trial(method, dtype=torch.float64, **options)
    trial.steps(0, 4)
    return trial


def brute_force(method, net, keys, values, given):
    """New keys, new values and the memory term, one number at a time. No dropout."""
    classes, (x,), (u,), y = len(keys), given.labeled, given.unlabeled, given.labels.tolist()
    h_x, h_u = net.features(x), net.features(u)
    f_x, f_u = net(x).softmax(1), net(u).softmax(1)
    keys, values = keys.clone(), values.clone()
    for c in range(classes):
        members = [i for i, label in enumerate(y) if label == c]
        key_step = sum((keys[c] - h_x[i].detach() for i in members), torch.zeros_like(keys[c]))
        value_step = sum((values[c] - f_x[i].detach() for i in members), torch.zeros_like(values[c]))
        keys[c] = keys[c] - method.eta * key_step / (1 + len(members))
        values[c] = values[c] - method.eta * value_step / (1 + len(members))
    total = 0.0
    for row, f in enumerate([*f_x, *f_u]):
        if row < len(y):
            p = [values[y[row], j] for j in range(classes)]
        else:
            gaps = [h_u[row - len(y)] - keys[c] for c in range(classes)]
            far = [g.square().sum().sqrt() if method.distance == "euclidean" else g.abs().sum() for g in gaps]
            shares = [(-d).exp() / sum((-e).exp() for e in far) for d in far]
            p = [sum(shares[c] * values[c, j] for c in range(classes)) for j in range(classes)]
        uncertainty = -sum(q * q.log() for q in p)
        divergence = sum(f[j] * (f[j].log() - p[j].log()) for j in range(classes))
        total = total + uncertainty + max(p, key=lambda q: q.item()) * divergence
    return keys, values, total / len([*f_x, *f_u])


@pytest.mark.parametrize("distance", ["euclidean", "l1"])
@pytest.mark.parametrize("classes", [2, 5])
def test_memory_loss_and_gradient_equal_plain_loops(distance, classes):
    method = MemoryAssisted(distance=distance, eta=0.3, weight=0.7)
    trial = warm(method, classes=classes, drop=0.0)
    given = doubled(batch(method, classes=classes, seed=11))
    keys, values, expected = brute_force(method, trial.net, trial.memory.keys, trial.memory.values, given)
    found = trial.terms(given)
    assert list(found) == ["labeled", "memory"]
    assert torch.allclose(trial.memory.keys, keys, rtol=1e-12)
    assert torch.allclose(trial.memory.values, values, rtol=1e-12)
    assert torch.allclose(found["memory"], 0.7 * expected, rtol=1e-12)
    parameters = list(trial.net.parameters())
    ours, theirs = (torch.autograd.grad(v, parameters) for v in (found["memory"], 0.7 * expected))
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-14) for a, b in zip(ours, theirs, strict=True))


def test_the_mean_is_over_both_batches_also_of_different_sizes():
    method = MemoryAssisted()
    trial = warm(method, drop=0.0)
    given = doubled(batch(method, seed=3))
    given = replace(given, unlabeled=(given.unlabeled[0][:3],), unlabeled_index=given.unlabeled_index[:3])
    *_, expected = brute_force(method, trial.net, trial.memory.keys, trial.memory.values, given)
    assert torch.allclose(trial.terms(given)["memory"], expected, rtol=1e-12)


def test_one_example_of_a_class_moves_a_quarter_of_the_way_and_absent_classes_stay():
    method = MemoryAssisted()
    trial = warm(method, drop=0.0)
    given = doubled(batch(method, rows=1))
    (c,) = given.labels.tolist()
    before = copy.deepcopy(trial.memory)
    trial.terms(given)
    (h,), (f,) = trial.net.features(given.labeled[0]), trial.net(given.labeled[0]).softmax(1)
    assert torch.allclose(trial.memory.keys[c], 0.75 * before.keys[c] + 0.25 * h, rtol=1e-12)
    assert torch.allclose(trial.memory.values[c], 0.75 * before.values[c] + 0.25 * f, rtol=1e-12)
    others = [k for k in range(3) if k != c]
    assert torch.equal(trial.memory.keys[others], before.keys[others])


def test_at_first_keys_are_zero_and_values_uniform_and_values_stay_on_the_simplex():
    trial = Trial(MemoryAssisted(), dtype=torch.float64)
    assert torch.equal(trial.memory.keys, torch.zeros(3, WIDTH).double())
    assert torch.allclose(trial.memory.values, torch.full((3, 3), 1 / 3).double())
    trial.steps(0, 30)
    assert torch.allclose(trial.memory.values.sum(1), torch.ones(3).double(), atol=1e-7)
    assert not torch.allclose(trial.memory.values, torch.full((3, 3), 1 / 3).double(), atol=1e-2)


def test_the_target_of_an_unlabeled_row_is_not_detached():
    """A head that is constant gives f no gradient; what is left reaches the features through the address alone."""
    trial = warm(MemoryAssisted(), drop=0.0)
    given = doubled(batch(trial.method))
    nn.init.zeros_(trial.net.head.weight)
    gradient = torch.autograd.grad(trial.terms(given)["memory"], trial.net.body[1].weight)[0]
    assert gradient.norm() > 1e-6


def test_the_memory_is_no_way_for_gradients_and_terms_outlive_later_writes():
    trial = warm(MemoryAssisted())
    first = trial.terms(batch(trial.method, seed=1))
    trial.terms(batch(trial.method, seed=2))
    assert not trial.memory.keys.requires_grad
    assert not trial.memory.values.requires_grad
    gradients = torch.autograd.grad(sum(first.values()), list(trial.net.parameters()))
    assert all(g.isfinite().all() and g.norm() > 0 for g in gradients)


@pytest.mark.parametrize("distance", ["euclidean", "l1"])
def test_features_on_a_key_and_values_that_underflowed_give_finite_gradients(distance):
    trial = Trial(MemoryAssisted(distance=distance), drop=0.0)
    with torch.no_grad():
        trial.net.body[1].weight.zero_()
        trial.net.body[1].bias.zero_()  # every feature is 0, as are the keys
        trial.memory.values.copy_(torch.eye(3))
        trial.net.head.bias.copy_(torch.tensor([0.0, 200.0, 0.0]))
    given = replace(batch(trial.method), labels=torch.ones(8, dtype=torch.long))
    terms = trial.terms(given)
    assert (trial.memory.values == 0).any()
    gradients = torch.autograd.grad(sum(terms.values()), list(trial.net.parameters()))
    assert terms["memory"].isfinite()
    assert all(g.isfinite().all() for g in gradients)


def test_weight_zero_is_supervised_bit_for_bit():
    ours, plain = Trial(MemoryAssisted(weight=0.0)), Trial(Supervised())
    given = batch(ours.method)
    sides = [
        torch.autograd.grad(sum(trial.terms(given).values()), list(trial.net.parameters())) for trial in (ours, plain)
    ]
    assert all(torch.equal(a, b) for a, b in zip(*sides, strict=True))


def test_the_ramp_is_linear():
    values = []
    for step in (0, 10, 20, 90):
        trial = warm(MemoryAssisted(ramp=0.2), drop=0.0)
        values.append(trial.terms(batch(trial.method), Clock(step, 100, 0.1, 0))["memory"].item())
    assert values[0] == 0
    assert math.isclose(values[1], values[3] / 2, rel_tol=1e-12)
    assert values[2] == values[3] != 0


def test_making_the_memory_leaves_the_network_as_it_was():
    net = network()
    net.body.insert(2, nn.BatchNorm1d(WIDTH))
    before = copy.deepcopy(net.state_dict())
    memory = MemoryAssisted().init(net, task())
    assert memory.keys.shape == (3, WIDTH)
    assert memory.values.shape == (3, 3)
    assert net.training
    assert net.body[2].training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_both_passes_move_batch_statistics():
    net = network(drop=0.0)
    net.body.insert(2, nn.BatchNorm1d(WIDTH))
    method = MemoryAssisted()
    method.loss(net, method.init(net, task()), batch(method), {}, CLOCK)
    assert net.body[2].num_batches_tracked == 2


def test_twenty_steps_then_the_memory_term_reaches_every_weight():
    trial = Trial(MemoryAssisted())
    trial.steps(0, 20)
    terms = trial.terms(batch(trial.method))
    assert torch.allclose(terms["labeled"], F.cross_entropy(logits(trial), batch(trial.method).labels))
    assert all(g.norm() > 0 for g in torch.autograd.grad(terms["memory"], list(trial.net.parameters())))


def logits(trial):
    with CLOCK.masks("labeled"):
        return trial.net(batch(trial.method).labeled[0])


@pytest.mark.parametrize(
    "bad", [{"eta": 0.0}, {"eta": 1.5}, {"eta": math.nan}, {"weight": -1.0}, {"weight": math.inf}, {"ramp": -0.1}]
)
def test_bad_values_are_refused(bad):
    (problem,) = MemoryAssisted(**bad).problems(8, 5)
    assert next(iter(bad)) in problem


def test_defaults_and_unequal_batches_are_not_refused():
    assert MemoryAssisted().problems(8, 5) == []
