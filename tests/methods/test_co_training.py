"""The divergence between networks, the attack in closed form, the objective written out, pairs of many networks."""

import copy
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.co_training import CoTraining, attack, jensen_shannon
from semigrad.methods.supervised import Supervised
from tests.methods.laws import CLOCK, WIDTH, Trial, batch, doubled, network, task


class Calm(Trial):
    """A trial without dropout."""

    def __init__(self, method):
        super().__init__(method, drop=0.0, dtype=torch.float64)

    @property
    def nets(self):
        return [self.net, *self.memory.others]


def rows(seed, scale=1.0):
    return scale * torch.randn(20, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_divergence_is_the_mean_kl_to_the_mixture_symmetric_and_bounded():
    a, b = rows(0, 2.0), rows(1, 2.0)
    p, q = a.softmax(1), b.softmax(1)
    mixture = (p + q) / 2
    expected = [
        (sum(x * math.log(x / m) for x, m in zip(r, n, strict=True))
         + sum(x * math.log(x / m) for x, m in zip(s, n, strict=True))) / 2
        for r, s, n in zip(p.tolist(), q.tolist(), mixture.tolist(), strict=True)
    ]  # fmt: skip
    found = jensen_shannon(a, b)
    assert torch.allclose(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-10)
    assert torch.allclose(found, jensen_shannon(b, a), rtol=1e-12)
    assert (found > 1e-3).all()
    assert (found < math.log(2)).all()


def test_the_divergence_is_zero_for_equal_rows_and_ln_2_for_disjoint_ones():
    a = rows(0)
    assert torch.allclose(jensen_shannon(a, a + 3), torch.zeros(20).double(), atol=1e-15)  # logits up to a constant
    far = torch.tensor([[500.0, 0.0]]), torch.tensor([[0.0, 500.0]])
    assert torch.allclose(jensen_shannon(*far), torch.tensor([math.log(2)]))


def test_the_gradient_of_the_divergence_equals_finite_differences_on_both_sides():
    a, b = rows(0).requires_grad_(), rows(1).requires_grad_()
    assert torch.autograd.gradcheck(jensen_shannon, (a, b))


@pytest.mark.parametrize("size", [200.0, 1e4])
def test_gradients_are_finite_where_probabilities_underflow(size):
    a = torch.tensor([[size, 0.0, 0.0], [size, 0.0, -size]], requires_grad=True)
    b = torch.tensor([[size, 0.0, 0.0], [0.0, size, -size]], requires_grad=True)
    assert (a.softmax(1) == 0).any()
    gradients = torch.autograd.grad(jensen_shannon(a, b).sum(), [a, b])
    assert all(g.isfinite().all() for g in gradients)


def test_the_attack_on_a_linear_network_is_the_closed_form():
    """∇_z CE = Wᵀ (p − e_label), so the change is ε times its sign."""
    torch.manual_seed(0)
    net = nn.Linear(6, 3).double()
    x, u, y = torch.rand(5, 6).double(), torch.rand(7, 6).double(), torch.tensor([0, 1, 2, 0, 1])
    z = torch.cat([x, u])
    labels = torch.cat([y, net(u).argmax(1)])
    expected = 0.03 * ((net(z).softmax(1) - F.one_hot(labels, 3)) @ net.weight).sign()
    found = attack(net, x, y, u, torch.tensor(0.03))
    assert torch.allclose(found - z, expected, atol=1e-14)
    assert torch.allclose((found - z).abs(), torch.full_like(z, 0.03), atol=1e-14)  # not clamped either
    assert not found.requires_grad


def test_the_attack_raises_the_loss_and_touches_neither_parameters_nor_statistics():
    net = network(drop=0.5).double()
    net.body.insert(2, nn.BatchNorm1d(WIDTH).double())
    before = copy.deepcopy(net.state_dict())
    x, u = torch.rand(8, 6).double(), torch.rand(8, 6).double()
    y = torch.randint(3, (8,), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        moved = attack(net, x, y, u, torch.tensor(0.01))
    assert net.training
    assert all(p.grad is None for p in net.parameters())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    net.eval()
    clean, attacked = (F.cross_entropy(net(z), y, reduction="none") for z in (x, moved[:8]))
    assert (attacked > clean).all()


def by_hand(method, trial, given, pairs):
    """Labeled sum, agreement and difference, an example at a time."""
    nets, (u,), y = trial.nets, given.unlabeled, given.labels.tolist()
    p = [lambda z, n=n: n(z[None]).softmax(1)[0] for n in nets]

    def attacked(k, z, label):
        z = z.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(-p[k](z)[label].log(), z)
        return (z + method.epsilon * gradient.sign()).detach()

    labeled = [
        -sum(p[k](z)[c].log() for z, c in zip(given.labeled[k], y, strict=True)) / len(y) for k in range(len(nets))
    ]
    agreement, difference = 0.0, 0.0
    for i, j in pairs:
        for z in u:
            mixture = (p[i](z) + p[j](z)) / 2
            for q in (p[i](z), p[j](z)):
                agreement = agreement + (q * (q / mixture).log()).sum() / 2 / len(u)
        for first, second in ((i, j), (j, i)):
            examples = [*zip(given.labeled[first], y, strict=True), *((z, p[first](z).argmax().item()) for z in u)]
            for z, label in examples:
                cross = -(p[first](z) * p[second](attacked(first, z, label)).log()).sum()
                difference = difference + cross / (len(u) + len(y))
    return labeled, agreement, difference


def pairs_of(networks, clock=CLOCK):
    order = clock.draw("pairs", lambda rng, count: rng.permutation(count), networks).tolist()
    return [(order[k], order[k + 1]) for k in range(0, networks - 1, 2)]


@pytest.mark.parametrize("networks", [2, 3, 4])
def test_terms_and_gradients_equal_the_formula_example_by_example(networks):
    method = CoTraining(networks=networks, agreement=3.0, difference=0.4, epsilon=0.05, weight=0.7)
    trial = Calm(method)
    given = doubled(batch(method, rows=5))
    given = replace(given, unlabeled=(given.unlabeled[0][:4],), unlabeled_index=given.unlabeled_index[:4])
    labeled, agreement, difference = by_hand(method, trial, given, pairs_of(networks))
    expected = {
        "labeled": labeled[0],
        "others labeled": sum(labeled[1:]),
        "agreement": 0.7 * 3.0 * agreement,
        "difference": 0.7 * 0.4 * difference,
    }
    found = trial.terms(given)
    assert list(found) == list(expected)
    for name, value in expected.items():
        assert torch.allclose(found[name], value, rtol=1e-10)
        sides = [
            torch.autograd.grad(v, trial.parameters(), allow_unused=True, retain_graph=True)
            for v in (found[name], value)
        ]
        for a, b in zip(*sides, strict=True):
            assert (a is None) == (b is None)
            assert a is None or torch.allclose(a, b, rtol=1e-8, atol=1e-13)


def test_both_networks_get_a_gradient_from_either_shared_term():
    trial = Calm(CoTraining())
    terms = trial.terms(doubled(batch(trial.method)))
    for name in ("agreement", "difference"):
        gradients = torch.autograd.grad(terms[name], trial.parameters(), retain_graph=True)
        assert all(g.norm() > 0 for g in gradients)


def test_the_target_of_the_difference_is_not_detached():
    """Two equal networks and ε = 0: each is pulled through p_1(z), the target, and through p_1(g_2(z)), the answer."""
    trial = Calm(CoTraining(epsilon=0.0, agreement=0.0))
    given = doubled(batch(trial.method))
    given = replace(given, labeled=(given.labeled[0], given.labeled[0]))
    trial.memory.others[0].load_state_dict(trial.net.state_dict())
    found = torch.autograd.grad(trial.terms(given)["difference"], list(trial.net.parameters()))
    z = torch.cat([given.labeled[0], *given.unlabeled])
    p, fixed = trial.net(z).softmax(1), trial.net(z).softmax(1).detach()
    both = -(p * fixed.log()).sum(1).mean() - (fixed * p.log()).sum(1).mean()
    expected = torch.autograd.grad(0.5 * both, list(trial.net.parameters()))
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-14) for a, b in zip(found, expected, strict=True))


def test_many_networks_are_paired_at_random_with_one_left_over_where_they_are_odd():
    seen = Counter(frozenset(pair) for step in range(60) for pair in pairs_of(4, Clock(step, 60, 0.1, 0)))
    assert len(seen) == 6  # every pair of four occurs
    trial = Calm(CoTraining(networks=3))
    given, idle = doubled(batch(trial.method)), set()
    for step in range(20):
        terms = trial.terms(given, Clock(step, 20, 0.1, 0))
        heads = [net.head.weight for net in trial.nets]
        gradients = torch.autograd.grad(terms["agreement"] + terms["difference"], heads, allow_unused=True)
        (left_over,) = [k for k, g in enumerate(gradients) if g is None]
        idle.add(left_over)
    assert idle == {0, 1, 2}


def test_each_network_has_its_own_labeled_view_and_weights():
    method = CoTraining(networks=5)
    assert method.traits.labeled_views == ("weak",) * 5
    assert method.traits.views == ("weak",)
    trial = Trial(method)
    heads = {tuple(net.head.weight.flatten().tolist()) for net in (trial.net, *trial.memory.others)}
    assert len(heads) == 5
    assert method.predictor(trial.net, trial.memory, []) is trial.net


@pytest.mark.parametrize("networks", [2, 3])
def test_weight_zero_is_supervised_bit_for_bit(networks):
    ours, plain = Trial(CoTraining(networks=networks, weight=0.0)), Trial(Supervised())
    given = batch(ours.method)
    sides = [
        torch.autograd.grad(sum(ours.terms(given).values()), list(ours.net.parameters())),
        torch.autograd.grad(
            plain.terms(replace(given, labeled=given.labeled[:1]))["labeled"], list(plain.net.parameters())
        ),
    ]
    assert all(torch.equal(a, b) for a, b in zip(*sides, strict=True))


def test_the_ramp_is_gaussian_on_both_shared_terms():
    trial = Calm(CoTraining())
    given = doubled(batch(trial.method))

    def at(step):
        terms = trial.terms(given, Clock(step, 100, 0.1, 0))
        return torch.stack([terms["agreement"], terms["difference"]])

    full = at(20)
    assert (full > 0).all()
    assert torch.allclose(at(0), math.exp(-5) * full, rtol=1e-12)
    assert torch.allclose(at(10), math.exp(-1.25) * full, rtol=1e-12)
    assert torch.allclose(at(90), full, rtol=1e-12)


def test_labeled_unlabeled_and_adversarial_passes_move_statistics_and_the_attack_does_not():
    def normalized():
        net = network(drop=0.0)
        net.body.insert(2, nn.BatchNorm1d(WIDTH))
        return net

    method, net = CoTraining(), normalized()
    memory = method.init(net, replace(task(), fresh=normalized))
    method.loss(net, memory, batch(method), {}, CLOCK)
    assert [n.body[2].num_batches_tracked.item() for n in (net, *memory.others)] == [3, 3]


def test_twenty_steps_then_the_shared_terms_reach_the_weights():
    trial = Trial(CoTraining())
    trial.steps(0, 20)
    terms = trial.terms(batch(trial.method))
    for name in ("agreement", "difference"):
        gradients = torch.autograd.grad(terms[name], trial.parameters(), retain_graph=True)
        assert all(g.isfinite().all() and g.norm() > 0 for g in gradients)


@pytest.mark.parametrize(
    "bad",
    [
        {"networks": 1}, {"agreement": -1.0}, {"difference": math.inf}, {"epsilon": -0.1}, {"weight": math.nan},
        {"ramp": -1.0},
    ],
)  # fmt: skip
def test_bad_values_are_refused(bad):
    (problem,) = CoTraining(**bad).problems(8, 5)
    assert next(iter(bad)) in problem


def test_defaults_and_unequal_batches_are_not_refused():
    assert CoTraining().problems(8, 5) == []
