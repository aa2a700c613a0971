"""Meta-Semi: the products against gradients of single examples, the weights, and what they are for."""

import copy
import dataclasses
import math

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.meta import Meta
from semigrad.methods.meta_semi import MetaSemi
from semigrad.methods.supervised import Supervised
from tests.methods.laws import CLOCK, Trial, batch, doubled


def products(net, given, targets):
    """⟨g, ∇ℓ_j⟩ with a gradient for each example."""
    net = copy.deepcopy(net).eval()
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def row_loss(parameters, u, q):
        return -(q * functional_call(net, parameters, (u[None],)).log_softmax(1)[0]).sum()

    def labeled_loss(parameters):
        return F.cross_entropy(functional_call(net, parameters, (given.labeled[0],)), given.labels)

    g = grad(labeled_loss)(parameters)
    rows = vmap(grad(row_loss), in_dims=(None, 0, 0))(parameters, given.unlabeled[0], targets)
    return sum((rows[name].flatten(1) * g[name].flatten()).sum(1) for name in g)


@pytest.fixture
def trial():
    trial = Trial(MetaSemi(), dtype=torch.float64)
    trial.steps(0, 20)
    return trial


@pytest.mark.parametrize("rule", ["sign", "proportional"])
def test_weights_from_gradients_of_single_examples(trial, rule):
    seen = set()
    for seed in range(6):
        given = doubled(batch(trial.method, seed=seed))
        guess = MetaSemi(rule=rule).guess(trial.net, trial.memory, given, CLOCK)
        expected = products(trial.net, given, guess["targets"])
        weights = (expected > 0).double()
        if rule == "proportional":
            weights = 8 * expected.clamp(min=0) / expected.clamp(min=0).sum().clamp(min=1e-300)
        assert torch.allclose(guess["weights"], weights, rtol=1e-9, atol=1e-15)
        seen |= set((expected > 0).tolist())
    assert seen == {True, False}


def test_targets_are_the_teachers_on_the_other_view_in_eval_mode(trial):
    given = doubled(batch(trial.method))
    targets = trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]
    teacher = copy.deepcopy(trial.memory.teacher).eval()
    assert torch.equal(targets, teacher(given.unlabeled[1]).softmax(1))
    assert not targets.requires_grad
    assert trial.memory.teacher.training  # as it was


@pytest.mark.parametrize(("rule", "denominator"), [("sign", 8), ("proportional", 1)])
def test_the_term_is_a_mean_over_all_rows_or_a_weighted_sum(trial, rule, denominator):
    method = MetaSemi(rule=rule, weight=3.0)
    given, net = doubled(batch(method)), copy.deepcopy(trial.net)
    guess = method.guess(net, trial.memory, given, CLOCK)
    inner = products(net, given, guess["targets"])
    w = (inner > 0).double() if rule == "sign" else inner.clamp(min=0) / inner.clamp(min=0).sum()
    assert 0 < w.count_nonzero() < 8
    with CLOCK.masks("unlabeled"):
        logits = net(given.unlabeled[0])
    losses = -(guess["targets"] * logits.log_softmax(1)).sum(1)
    term = method.loss(net, trial.memory, given, guess, CLOCK)["weighted"]
    assert torch.allclose(term, 3 * (w * losses).sum() / denominator, rtol=1e-12)
    ramped = method.loss(net, trial.memory, given, guess, Clock(10, 100, 0.1, 0))["weighted"]
    with Clock(10, 100, 0.1, 0).masks("unlabeled"):
        logits = net(given.unlabeled[0])
    losses = -(guess["targets"] * logits.log_softmax(1)).sum(1)
    assert torch.allclose(ramped, 3 * math.exp(-1.25) * (w * losses).sum() / denominator, rtol=1e-12)


@pytest.mark.parametrize("rule", ["sign", "proportional"])
def test_a_small_step_on_the_weighted_loss_lowers_the_labeled_loss(trial, rule):
    given = doubled(batch(trial.method, seed=3))
    net = copy.deepcopy(trial.net).eval()
    method = MetaSemi(rule=rule)
    guess = method.guess(net, trial.memory, given, CLOCK)
    parameters = list(net.parameters())
    before = F.cross_entropy(net(given.labeled[0]), given.labels)
    losses = method.traits.divergence(net(given.unlabeled[0]).softmax(1), guess["targets"])
    step = torch.autograd.grad((guess["weights"] * losses).mean(), parameters)
    with torch.no_grad():
        for p, s in zip(parameters, step, strict=True):
            p -= 1e-3 * s
    assert F.cross_entropy(net(given.labeled[0]), given.labels) < before


def test_an_example_that_opposes_the_labels_counts_nothing(trial):
    """The labeled examples themselves as unlabeled ones, one of them with a wrong label."""
    net = nn.Linear(4, 2, bias=False).double()
    nn.init.zeros_(net.weight)
    x = torch.eye(4, dtype=torch.float64)
    y = torch.tensor([0, 1, 0, 1])

    class Labels(nn.Module):
        def forward(self, u):
            wrong = torch.tensor([0, 1, 1, 1])  # the third is flipped
            return 50.0 * F.one_hot(wrong, 2).double()

    given = dataclasses.replace(doubled(batch(MetaSemi())), labeled=(x,), labels=y, unlabeled=(x, x))
    memory = nn.Module()
    memory.teacher = Labels()
    assert MetaSemi().guess(net, memory, given, CLOCK)["weights"].tolist() == [1, 1, 0, 1]
    share = MetaSemi(rule="proportional").guess(net, memory, given, CLOCK)["weights"] / 4
    assert torch.allclose(share, torch.tensor([1, 1, 0, 1]).double() / 3)


def test_nothing_counts_where_the_labeled_gradient_is_zero(trial):
    net = nn.Linear(6, 3).double()
    nn.init.zeros_(net.weight)
    with torch.no_grad():
        net.bias.copy_(torch.tensor([2000.0, 0.0, 0.0]))
    given = dataclasses.replace(doubled(batch(MetaSemi())), labels=torch.zeros(8, dtype=torch.long))
    memory = nn.Module()
    memory.teacher = nn.Linear(6, 3).double()
    for rule in ("sign", "proportional"):
        assert MetaSemi(rule=rule).guess(net, memory, given, CLOCK)["weights"].tolist() == [0.0] * 8


def test_the_average_is_the_arithmetic_mean_until_its_memory_is_full():
    method, net = MetaSemi(horizon=5.0), nn.Linear(2, 2).double()
    memory = method.init(net, None)
    weights = [net.weight.detach().clone()]
    expected = weights[0]
    for step in range(20):
        with torch.no_grad():
            net.weight += torch.randn(2, 2, generator=torch.Generator().manual_seed(step)).double()
        method.update(net, memory, Clock(step, 100, 0.1, 0))
        weights.append(net.weight.detach().clone())
        keep = min(1 - 1 / (step + 2), 0.8)
        expected = keep * expected + (1 - keep) * weights[-1]
        if step == 3:
            assert torch.allclose(memory.teacher.weight, torch.stack(weights).mean(0), rtol=1e-12)
    assert torch.allclose(memory.teacher.weight, expected, rtol=1e-12)
    assert method.predictor(net, memory, []) is memory.teacher
    short = MetaSemi(horizon=0.05)
    short.update(net, memory, Clock(3, 10, 0.1, 0))  # half a step of memory: none
    assert torch.equal(memory.teacher.weight, net.weight)


def test_statistics_move_by_the_trained_passes_only():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.norm, self.head = nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)

        def forward(self, x):
            return self.head(self.norm(self.body(x)).tanh())

    method, net = MetaSemi(), Normed().double()
    memory = method.init(net, None)
    given = doubled(batch(method))
    before = copy.deepcopy((net.state_dict(), memory.state_dict()))
    guess = method.guess(net, memory, given, CLOCK)
    for old, new in zip(before, (net.state_dict(), memory.state_dict()), strict=True):
        assert all(torch.equal(value, new[name]) for name, value in old.items())
    method.loss(net, memory, given, guess, CLOCK)
    assert net.norm.num_batches_tracked == 2


def test_weight_zero_is_supervised_to_the_bit():
    ours, plain = Trial(MetaSemi(weight=0.0)), Trial(Supervised())
    given = batch(MetaSemi())
    gradients = [
        torch.autograd.grad(sum(t.terms(given).values()), list(t.net.parameters()))
        for t in (ours, plain)
    ]  # fmt: skip
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))


def test_the_term_reaches_every_weight(trial):
    term = trial.terms(batch(trial.method))["weighted"]
    assert all(g.norm() > 0 for g in torch.autograd.grad(term, list(trial.net.parameters())))


def test_the_meta_gradient_can_adapt_its_targets(trial):
    method = Meta(MetaSemi(), beta=0.5)
    assert method.problems(8, 8) == []
    memory = nn.Module()
    memory.host = trial.memory
    given = doubled(batch(method))
    host = MetaSemi().guess(trial.net, trial.memory, given, CLOCK)
    guess = method.guess(trial.net, memory, given, CLOCK)
    assert torch.equal(guess["weights"], host["weights"])
    assert not torch.allclose(guess["targets"], host["targets"], rtol=1e-3)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"horizon": 0.0}, "horizon"), ({"horizon": math.inf}, "horizon"),
        ({"weight": -1.0}, "weight"), ({"ramp": math.nan}, "ramp"),
    ],
)  # fmt: skip
def test_bad_values_are_refused(change, words):
    (problem,) = MetaSemi(**change).problems(8, 8)
    assert words in problem
    assert MetaSemi().problems(8, 8) == []
