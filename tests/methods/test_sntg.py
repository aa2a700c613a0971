"""SNTG: the term against a loop over the pairs, its corners, and where the features come from."""

import copy
import dataclasses
import math
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock, Method, Traits
from semigrad.methods.meta import Meta
from semigrad.methods.sntg import SNTG
from semigrad.methods.supervised import Supervised
from semigrad.methods.temporal_ensembling import TemporalEnsembling
from semigrad.methods.vadd import VAdDTerm
from semigrad.methods.vat import VAT
from semigrad.models import SmallConv
from semigrad.run import configure
from tests.methods.laws import CLOCK, Trial, batch, doubled, task


@dataclass(frozen=True)
class Host(Method):
    """Squared error between two views; the target may have a gradient, and the student sees the second view."""

    @property
    def traits(self):
        return Traits(views=("weak", "weak"), student_view=1, guesses=True)

    def guess(self, net, memory, batch, clock):
        with clock.masks("first"):
            return {"targets": net(batch.unlabeled[0]).softmax(1)}

    def loss(self, net, memory, batch, guess, clock):
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(batch.labeled[0]), batch.labels)
        with clock.masks("second"):
            p = net(batch.unlabeled[1]).softmax(1)
        return {"labeled": labeled, "consistency": self.traits.divergence(p, guess["targets"].detach()).mean()}


@dataclass(frozen=True)
class Joint(Host):
    """The same with one pass over all rows, the labeled ones first."""

    def loss(self, net, memory, batch, guess, clock):
        with clock.masks("labeled"):
            logits = net(torch.cat([batch.labeled[0], batch.unlabeled[1]]))
        return {"labeled": F.cross_entropy(logits[: len(batch.labels)], batch.labels)}


@dataclass(frozen=True)
class Other(Host):
    """One pass over all rows in another order, so that what goes through the network is not what is paired."""

    def loss(self, net, memory, batch, guess, clock):
        with clock.masks("labeled"):
            logits = net(torch.cat([batch.unlabeled[1], batch.labeled[0]]))
        return {"labeled": F.cross_entropy(logits[len(batch.unlabeled[1]) :], batch.labels)}


def brute(h, y, clock, margin):
    """The mean over the pairs by a double loop over all rows, in plain Python."""
    order = clock.draw("sntg", lambda rng, rows: rng.permutation(rows), len(h)).tolist()
    partner = {order[place]: place // 2 for place in range(len(order) // 2 * 2)}
    rows, total, pairs = h.tolist(), 0.0, 0
    for i in range(len(rows)):
        for j in range(i + 1, len(rows)):
            if i not in partner or j not in partner or partner[i] != partner[j]:
                continue
            squared = sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True)) / len(rows[i])
            total += squared if y[i] == y[j] else max(0.0, margin - math.sqrt(squared)) ** 2
            pairs += 1
    return total / pairs, pairs


def features(trial, given, clock=CLOCK, names=("labeled", "second")):
    if len(names) == 1:
        with clock.masks(names[0]):
            return trial.net.features(torch.cat([given.labeled[0], given.unlabeled[1]]))
    found = []
    for x, name in zip((given.labeled[0], given.unlabeled[1]), names, strict=True):
        with clock.masks(name):
            found.append(trial.net.features(x))
    return torch.cat(found)


@pytest.mark.parametrize("margin", [0.2, 1.0])
@pytest.mark.parametrize(
    ("host", "names"), [(Host(), ("labeled", "second")), (Joint(), ("labeled",)), (Other(), ("sntg",))]
)
@pytest.mark.parametrize(("labeled", "unlabeled"), [(8, 8), (3, 8), (1, 1), (2, 3)])
def test_the_term_is_the_mean_over_the_pairs(host, names, margin, labeled, unlabeled):
    trial = Trial(SNTG(host, margin=margin, weight=0.7), dtype=torch.float64)
    trial.steps(0, 3)
    given = doubled(batch(trial.method))
    given = dataclasses.replace(
        given, labeled=(given.labeled[0][:labeled],), labels=given.labels[:labeled],
        unlabeled=tuple(u[:unlabeled] for u in given.unlabeled),
    )  # fmt: skip
    with CLOCK.masks("first"):
        guessed = trial.net(given.unlabeled[0]).argmax(1)
    y = torch.cat([given.labels, guessed]).tolist()
    expected, pairs = brute(features(trial, given, names=names), y, CLOCK, margin)
    assert pairs == (labeled + unlabeled) // 2
    assert trial.terms(given)["neighbors"].item() == pytest.approx(0.7 * expected, rel=1e-12)


def original(network, second_branch, given, order, consistency, coefficient):
    """The training loss of Luo et al.'s code on one mixed batch, pair by pair: cross-entropy over all rows, squared
    error averaged over classes too, and the halves of the batch paired, a true label before a guessed one; one weight
    for both terms. Only the squared error is of the unlabeled rows alone, as with all hosts here."""
    y, (x,), (u, other) = given.labels.tolist(), given.labeled, given.unlabeled
    h, p = network(torch.cat([x, u]))
    guessed = second_branch(other)
    total = -sum(p[row, label].log() for row, label in enumerate(y)) / len(p)
    total = total + consistency * (p[len(y) :] - guessed).square().mean()
    y = [*y, *guessed.argmax(1).tolist()]
    half = len(h) // 2
    for i, j in zip(order[:half], order[half:], strict=True):
        squared = ((h[i] - h[j]) ** 2).mean()
        cost = squared if y[i] == y[j] else torch.relu(1.0 - squared.sqrt()) ** 2
        total = total + consistency * coefficient * cost / half
    return total


@pytest.mark.parametrize(
    ("source", "consistency"), [("cifar10@4000", 100 * 4000 / 50_000), ("svhn@1000", 100 * 1 / 100)]
)
def test_the_loss_of_the_recipes_is_that_of_the_originals_code(source, consistency):
    """Value and gradient behind all ramps: features of the same pass, means over pairs and over features."""
    method = configure(source, recipe=f"sntg-{source.partition('@')[0]}").method
    trial, clock = Trial(method, classes=10, dtype=torch.float64), Clock(95, 100, 0.1, 0)
    given = doubled(batch(method, classes=10))

    def network(rows):
        with clock.masks("labeled"):
            h = trial.net.features(rows)
        return h, trial.net.head(h).softmax(1)

    def second_branch(rows):
        with clock.masks("second branch"):
            return trial.net(rows).softmax(1)

    order = clock.draw("sntg", lambda rng, rows: rng.permutation(rows), 16)
    expected = original(network, second_branch, given, [*order[::2], *order[1::2]], consistency, 0.4)
    found = sum(trial.terms(given, clock).values())
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    parameters = list(trial.net.parameters())
    ours, theirs = (torch.autograd.grad(total, parameters) for total in (found, expected))
    for mine, his in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, his, rtol=1e-10, atol=1e-14)


@dataclass(frozen=True)
class Doubtful(Host):
    """Every third target does not count."""

    def guess(self, net, memory, batch, clock):
        weights = (torch.arange(len(batch.unlabeled[0])) % 3 > 0).to(batch.unlabeled[0])
        return {**super().guess(net, memory, batch, clock), "weights": weights}


def test_a_target_without_weight_is_in_no_pair():
    trial = Trial(SNTG(Doubtful(), weight=1.0), dtype=torch.float64)
    given = doubled(batch(trial.method))
    with CLOCK.masks("first"):
        y = [*given.labels.tolist(), *trial.net(given.unlabeled[0]).argmax(1).tolist()]
    counts = [True] * 8 + [row % 3 > 0 for row in range(8)]
    h = features(trial, given).tolist()
    order = CLOCK.draw("sntg", lambda rng, rows: rng.permutation(rows), 16).tolist()
    costs = []
    for i, j in zip(order[::2], order[1::2], strict=True):
        squared = sum((a - b) ** 2 for a, b in zip(h[i], h[j], strict=True)) / len(h[i])
        if counts[i] and counts[j]:
            costs.append(squared if y[i] == y[j] else max(0.0, 1.0 - math.sqrt(squared)) ** 2)
    assert 0 < len(costs) < 8
    assert trial.terms(given)["neighbors"].item() == pytest.approx(sum(costs) / len(costs), rel=1e-12)


def test_before_temporal_ensembling_has_seen_anything_only_labeled_rows_are_paired():
    trial = Trial(SNTG(TemporalEnsembling(), weight=1.0), dtype=torch.float64)
    given = doubled(batch(trial.method))
    trial.net.zero_grad()
    terms = trial.terms(given)
    (gradient,) = torch.autograd.grad(terms["neighbors"], trial.net.body[1].weight)
    moved = dataclasses.replace(given, unlabeled=(1 - given.unlabeled[0],))
    other = Trial(SNTG(TemporalEnsembling(), weight=1.0), dtype=torch.float64)
    (again,) = torch.autograd.grad(other.terms(moved)["neighbors"], other.net.body[1].weight)
    assert torch.equal(gradient, again)


def test_pairs_are_drawn_afresh_in_every_step_and_mix_the_two_batches():
    mixed = []
    for step in range(50):
        order = Clock(step, 100, 0.1, 0).draw("sntg", lambda rng, rows: rng.permutation(rows), 16)
        mixed.append(((order[::2] < 8) != (order[1::2] < 8)).sum().item())
    assert len(set(mixed)) > 1
    assert 3.5 < sum(mixed) / 50 < 5.0  # 8 · 8/15 = 4.27 in the mean

    trial = Trial(SNTG(Host()), drop=0.0, dtype=torch.float64)
    values = [trial.terms(batch(trial.method), Clock(step, 100, 0.1, 0))["neighbors"].item() for step in (60, 61)]
    assert values[0] != values[1]


def test_a_pair_of_one_class_costs_its_squared_distance():
    h = torch.tensor([[1.0, 2.0], [0.0, 4.0]], dtype=torch.float64, requires_grad=True)
    value = SNTG(Host()).pull_or_push(h[:1], h[1:], torch.tensor([True]))
    assert value.item() == 2.5
    (gradient,) = torch.autograd.grad(value.sum(), h)
    assert torch.equal(gradient, torch.tensor([[1.0, -2.0], [-1.0, 2.0]], dtype=torch.float64))


@pytest.mark.parametrize("apart", [1.0, 1.5])
def test_a_pair_of_two_classes_beyond_the_margin_is_left_alone(apart):
    h = torch.tensor([[0.0, 0.0], [apart, apart]], dtype=torch.float64, requires_grad=True)
    value = SNTG(Host()).pull_or_push(h[:1], h[1:], torch.tensor([False]))
    (gradient,) = torch.autograd.grad(value.sum(), h)
    assert value.item() == 0.0
    assert torch.equal(gradient, torch.zeros_like(h))


def test_a_pair_of_two_classes_within_the_margin_is_pushed_apart():
    h = torch.tensor([[0.1, 0.2], [0.4, -0.3]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda h: SNTG(Host()).pull_or_push(h[:1], h[1:], torch.tensor([False])), (h,), atol=1e-7
    )
    value = SNTG(Host()).pull_or_push(h[:1], h[1:], torch.tensor([False]))
    (gradient,) = torch.autograd.grad(value.sum(), h)
    assert ((h[1] - h[0]) * (gradient[0] - gradient[1])).sum() > 0  # going down takes them apart


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("same", [True, False])
def test_the_gradient_is_finite_for_equal_features(dtype, same):
    h = torch.full((2, 4), 0.5, dtype=dtype, requires_grad=True)
    value = SNTG(Host(), margin=1.0).pull_or_push(h[:1], h[1:], torch.tensor([same]))
    (gradient,) = torch.autograd.grad(value.sum(), h)
    assert value.item() == pytest.approx(0.0 if same else 1.0, abs=3e-3)
    assert torch.equal(gradient, torch.zeros_like(h))


def test_there_is_no_gradient_to_the_targets_and_one_to_all_features():
    trial = Trial(SNTG(Host()), dtype=torch.float64)
    given = doubled(batch(trial.method))
    guess = trial.method.guess(trial.net, trial.memory, given, CLOCK)
    assert guess["targets"].requires_grad  # this host would let a gradient through
    inputs = [x.requires_grad_() for x in (given.labeled[0], given.unlabeled[0], given.unlabeled[1])]
    guess = trial.method.guess(trial.net, trial.memory, given, CLOCK)
    term = trial.method.loss(trial.net, trial.memory, given, guess, CLOCK)["neighbors"]
    to_labeled, to_first, to_second, to_targets = torch.autograd.grad(
        term, [*inputs, guess["targets"]], allow_unused=True
    )
    assert to_targets is None
    assert to_first is None
    assert to_labeled.norm() > 0
    assert to_second.norm() > 0


def test_the_gradient_in_the_weights_is_that_of_the_term():
    """Finite differences along a random direction; classes and pairs do not change on so small a step."""
    trial = Trial(SNTG(Host()), dtype=torch.float64)
    given = doubled(batch(trial.method))
    parameters = list(trial.net.body.parameters())
    found = torch.autograd.grad(trial.terms(given)["neighbors"], parameters)
    random = torch.Generator().manual_seed(7)
    directions = [torch.randn(p.shape, dtype=p.dtype, generator=random) for p in parameters]

    def value(step):  # with gradients on: a pass without is none to learn from, and would not be used
        for p, d in zip(parameters, directions, strict=True):
            p.data += step * d
        total = trial.terms(given)["neighbors"].detach()
        for p, d in zip(parameters, directions, strict=True):
            p.data -= step * d
        return total

    slope = sum((g * d).sum() for g, d in zip(found, directions, strict=True))
    assert torch.allclose(slope, (value(1e-6) - value(-1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize(("host", "count"), [(Host(), 3), (Joint(), 2), (Other(), 3), (VAT(), 5)])
def test_the_hosts_own_passes_are_used_where_there_are_some(host, count):
    """Host: first, labeled, second. Joint: first, all. Other: first, all, and ours. VAT: clean, labeled, two, ours."""
    trial = Trial(SNTG(host))
    seen, inner = [], trial.net.features
    trial.net.features = lambda x: (seen.append(x), inner(x))[1]
    assert trial.terms(batch(trial.method))["neighbors"] > 0
    assert len(seen) == count


def test_passes_of_its_own_leave_the_running_statistics_to_the_host():
    torch.manual_seed(0)
    described = dataclasses.replace(task(3, (3, 16, 16)), mean=(0.5,) * 3, std=(0.25,) * 3)
    net = SmallConv().build(described).train()
    other, host = copy.deepcopy(net), Other()
    given = batch(host, shape=(3, 16, 16))
    before = {name: value.clone() for name, value in net.named_buffers()}
    host.loss(other, nn.Module(), given, host.guess(other, nn.Module(), given, CLOCK), CLOCK)
    method = SNTG(host)
    memory = method.init(net, described)
    method.loss(net, memory, given, method.guess(net, memory, given, CLOCK), CLOCK)
    theirs = dict(other.named_buffers())
    assert all(torch.equal(value, theirs[name]) for name, value in net.named_buffers())
    assert any(not torch.equal(value, before[name]) for name, value in net.named_buffers())


def test_everything_else_is_the_hosts():
    method, host = SNTG(Host()), Host()
    assert method.traits == host.traits
    trial, plain = Trial(SNTG(host, weight=0.0)), Trial(host)
    for step in range(3):
        given, clock = batch(host, seed=step), Clock(step, 100, 0.1, 0)
        ours, theirs = trial.terms(given, clock), plain.terms(given, clock)
        assert list(ours) == ["labeled", "consistency", "neighbors"]
        mine = torch.autograd.grad(sum(ours.values()), list(trial.net.parameters()))
        his = torch.autograd.grad(sum(theirs.values()), list(plain.net.parameters()))
        assert all(torch.equal(a, b) for a, b in zip(mine, his, strict=True))


def test_the_ramp_is_gaussian():
    trial, plain = (Trial(SNTG(Host(), ramp=ramp), dtype=torch.float64) for ramp in (0.5, 0.0))
    given = batch(trial.method)
    for step, rise in ((0, 0.006737946999085467), (25, 0.2865047968601901), (50, 1.0), (99, 1.0)):
        clock = Clock(step, 100, 0.1, 0)
        expected = rise * plain.terms(given, clock)["neighbors"]
        assert torch.allclose(trial.terms(given, clock)["neighbors"], expected, rtol=1e-12)


@pytest.mark.parametrize("host", [Host(), Joint(), Other(), VAT(), VAdDTerm(VAT())])
def test_the_term_reaches_the_body_after_some_steps(host):
    trial = Trial(SNTG(host))
    trial.steps(0, 20)
    gradients = torch.autograd.grad(trial.terms(batch(trial.method))["neighbors"], list(trial.net.body.parameters()))
    assert all(gradient.norm() > 0 for gradient in gradients)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (Supervised(), "has none"),
        (SNTG(Host()), "already"),
        (VAdDTerm(SNTG(VAT())), "already"),
        (VAT(xi=0.0), "xi"),
    ],
)
def test_hosts_that_make_no_sense_are_refused(host, words):
    (problem,) = SNTG(host).problems(8, 8)
    assert words in problem


def test_sound_hosts_are_not_refused():
    assert SNTG(Host()).problems(8, 8) == SNTG(VAdDTerm(VAT())).problems(7, 9) == []
    assert not any("sntg" in problem for problem in SNTG(Meta(Host())).problems(8, 8))


@pytest.mark.parametrize("changes", [{"weight": -1.0}, {"margin": 0.0}, {"ramp": float("inf")}])
def test_impossible_values_are_refused(changes):
    (problem,) = SNTG(Host(), **changes).problems(8, 8)
    assert str(*changes.values()) in problem
