"""VAdD: the mask against an enumeration of all masks, the gradient of both branches, the term on a host."""

import copy
import dataclasses
import itertools
from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock, Method, Traits
from semigrad.core.divergences import kl_of_logits as divergence
from semigrad.core.ops import entropy, squared_error
from semigrad.methods.supervised import Supervised
from semigrad.methods.vadd import VAdD, VAdDTerm, _adversarial_mask, _distance
from semigrad.methods.vat import VAT
from semigrad.models import SmallConv
from tests.methods.laws import CLOCK, Trial, batch, doubled, task

TERM, SECOND = "adversarial_dropout", "adversarial dropout"  # the term, and the masks of the pass over x₂


class Head(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.head = nn.Linear(width, 3).double()


def scene(width=8, rows=6):
    random = torch.Generator().manual_seed(1)
    h = torch.rand(rows, width, dtype=torch.float64, generator=random) - 0.3
    return Head(width), h, torch.randn(rows, 3, dtype=torch.float64, generator=random)


def searched(net, h, target, distance):
    """D as the search sees it, one number for each row: KL(f(x₂, m) ‖ f(x₁)), or the squared error."""
    logits = net.head(h)
    if distance == "kl":
        return divergence(logits, target)
    return (logits.softmax(1) - target.softmax(1)).square().sum(1)


@pytest.mark.parametrize("distance", ["kl", "squared"])
@pytest.mark.parametrize("delta", [0.0, 0.13, 0.25, 0.5, 0.9])
def test_the_mask_is_the_best_of_all_masks_for_the_linearized_distance(delta, distance):
    """Every mask within k flips of ones; the slope ∂D/∂m by central differences in m, not by J = h ⊙ ∂D/∂h."""
    net, h, target = scene()
    limit = int(delta * 8)
    with torch.no_grad():
        columns = []
        for place in range(8):
            e = torch.zeros(8, dtype=torch.float64)
            e[place] = 1e-6
            above, below = (searched(net, h * (1 + sign * e), target, distance) for sign in (1, -1))
            columns.append((above - below) / 2e-6)
    slope = torch.stack(columns, 1)
    mask = _adversarial_mask(net, h, target, delta, distance)
    for row in range(len(h)):
        best, gain = None, -1.0
        for count in range(limit + 1):
            for chosen in itertools.combinations(range(8), count):
                rise = -sum(slope[row, place].item() for place in chosen)
                if rise > gain:
                    best, gain = chosen, rise
        assert set((mask[row] == 0).nonzero().flatten().tolist()) == set(best)
        assert len(best) <= limit
    assert torch.allclose(mask.sum(1), torch.full((6,), 8.0, dtype=torch.float64), rtol=1e-14)
    if limit:
        assert (mask == 0).any()  # the comparison was about something


@pytest.mark.parametrize("distance", ["kl", "squared"])
def test_dropping_raises_the_distance_where_the_flips_are_small(distance):
    net, h, target = scene()
    h = h * 0.01  # the first order decides
    mask = _adversarial_mask(net, h, target, 0.5, distance)
    before, after = searched(net, h, target, distance), searched(net, h * (mask > 0), target, distance)
    changed = (mask == 0).any(1)
    assert changed.any()
    assert (after[changed] > before[changed]).all()


def test_equal_influences_are_dropped_up_to_the_limit_the_first_ones():
    net = Head(6)
    with torch.no_grad():
        net.head.weight.copy_(torch.tensor([1.0, -1.0, 0.0])[:, None].expand(3, 6))
    h, target = torch.ones(2, 6, dtype=torch.float64), torch.tensor([[9.0, 0, 0], [0, 9.0, 0]], dtype=torch.float64)
    mask = _adversarial_mask(net, h, target, 0.5, "kl")
    assert torch.equal(mask[0], torch.tensor([0.0, 0, 0, 2, 2, 2], dtype=torch.float64))
    assert torch.equal(mask[1], torch.ones(6, dtype=torch.float64))  # here dropping brings the two closer


def test_the_limit_is_the_floor_of_the_share():
    net, h, target = scene(100, 40)
    for delta, limit in ((0.05, 5), (0.29, 29), (0.299, 29), (0.009, 0)):
        assert (_adversarial_mask(net, h, target, delta, "kl") == 0).sum(1).max() == limit


def test_nothing_is_dropped_at_zero_features_and_where_the_two_agree():
    net, h, _ = scene()
    h[:, :3] = 0
    mask = _adversarial_mask(net, h, torch.randn(6, 3, dtype=torch.float64), 0.9, "kl")
    assert (mask[:, :3] > 0).all()
    same = _adversarial_mask(net, h, net.head(h), 0.9, "squared")
    assert torch.equal(same, torch.ones_like(h))


def passes(trial, given, names, clock=CLOCK):
    """Features of each unlabeled view under the masks of the method."""
    found = []
    for x, name in zip(given.unlabeled, names, strict=True):
        with clock.masks(name):
            found.append(trial.net.features(x))
    return found


@pytest.mark.parametrize("distance", ["kl", "squared"])
def test_without_dropping_it_is_the_term_of_a_pi_model(distance):
    trial = Trial(VAdD(delta=0.0, distance=distance), dtype=torch.float64)
    given = doubled(batch(trial.method))
    first, second = (trial.net.head(h) for h in passes(trial, given, ("first", SECOND)))
    expected = {"kl": divergence(first, second).mean(), "squared": squared_error(first.softmax(1), second.softmax(1))}
    assert torch.allclose(trial.terms(given)[TERM], expected[distance], rtol=1e-12)
    assert expected["kl"] > 0


@pytest.mark.parametrize("distance", ["kl", "squared"])
def test_the_gradient_flows_into_both_branches_and_not_through_the_mask(distance):
    """Finite differences of the whole expression along a random direction of the weights, the mask held fixed."""
    trial = Trial(VAdD(delta=0.3, distance=distance), dtype=torch.float64)
    trial.steps(0, 5)
    given = doubled(batch(trial.method))
    parameters = list(trial.net.parameters())
    found = torch.autograd.grad(trial.terms(given)[TERM], parameters)
    h1, h2 = passes(trial, given, ("first", SECOND))
    mask = _adversarial_mask(trial.net, h2, trial.net.head(h1), 0.3, distance)
    assert (mask == 0).any()
    random = torch.Generator().manual_seed(7)
    directions = [torch.randn(p.shape, dtype=p.dtype, generator=random) for p in parameters]

    @torch.no_grad()
    def value(step):
        for p, d in zip(parameters, directions, strict=True):
            p += step * d
        h1, h2 = passes(trial, given, ("first", SECOND))
        p, q = trial.net.head(h1).softmax(1), trial.net.head(h2 * mask).softmax(1)
        total = (p * (p / q).log()).sum(1).mean() if distance == "kl" else (p - q).square().sum(1).mean()
        for weight, d in zip(parameters, directions, strict=True):
            weight -= step * d
        return total

    expected = (value(1e-6) - value(-1e-6)) / 2e-6
    slope = sum((g * d).sum() for g, d in zip(found, directions, strict=True))
    assert torch.allclose(slope, expected, rtol=1e-6)
    detached = torch.autograd.grad(
        _distance(distance, trial.net.head(h1).detach(), trial.net.head(h2 * mask)), parameters
    )
    assert not torch.allclose(
        sum((g * d).sum() for g, d in zip(detached, directions, strict=True)), expected, rtol=1e-2
    )


def test_targets_are_the_detached_prediction_of_the_first_view():
    trial = Trial(VAdD(), dtype=torch.float64)
    given = doubled(batch(trial.method))
    guess = trial.method.guess(trial.net, trial.memory, given, CLOCK)
    with CLOCK.masks("first"):
        assert torch.equal(guess["targets"], trial.net(given.unlabeled[0]).softmax(1))
    assert not guess["targets"].requires_grad
    assert guess["first"].requires_grad


def test_entropy_has_the_weight_but_no_ramp():
    trial = Trial(VAdD(entropy=0.5, weight=3.0, ramp=0.5), dtype=torch.float64)
    given = doubled(batch(trial.method))
    plain = Trial(VAdD(ramp=0.0), dtype=torch.float64)
    for step, rise in ((0, 0.006737946999085467), (25, 0.2865047968601901), (50, 1.0), (99, 1.0)):
        clock = Clock(step, 100, 0.1, 0)
        terms = trial.terms(given, clock)
        assert torch.allclose(terms[TERM], 3 * rise * plain.terms(given, clock)[TERM], rtol=1e-12)
        with clock.masks("first"):
            assert torch.allclose(terms["entropy"], 1.5 * entropy(trial.net(given.unlabeled[0])).mean(), rtol=1e-12)
    assert "entropy" not in plain.terms(given)


def test_without_weight_it_is_supervised_bit_for_bit():
    ours, plain = Trial(VAdD(weight=0.0, entropy=1.0, delta=0.3)), Trial(Supervised())
    for step in range(3):
        clock, given = Clock(step, 100, 0.1, 0), batch(VAdD(), seed=step)
        mine = torch.autograd.grad(sum(ours.terms(given, clock).values()), list(ours.net.parameters()))
        theirs = torch.autograd.grad(plain.terms(given, clock)["labeled"], list(plain.net.parameters()))
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))


@pytest.fixture
def network():
    torch.manual_seed(0)
    described = dataclasses.replace(task(3, (3, 16, 16)), mean=(0.5,) * 3, std=(0.25,) * 3)
    return SmallConv().build(described).train()


def test_every_pass_moves_the_running_statistics_in_the_order_first_labeled_second(network):
    method = VAdD()
    given = batch(method, shape=(3, 16, 16))
    other = copy.deepcopy(network)
    guess = method.guess(network, nn.Module(), given, CLOCK)
    method.loss(network, nn.Module(), given, guess, CLOCK)
    for x, name in ((given.unlabeled[0], "first"), (given.labeled[0], "labeled"), (given.unlabeled[1], SECOND)):
        with CLOCK.masks(name):
            other(x)
    theirs = dict(other.named_buffers())
    assert all(torch.equal(value, theirs[name]) for name, value in network.named_buffers())


def test_on_a_host_the_statistics_are_the_hosts(network):
    method = VAdDTerm(VAT())
    given = batch(method, shape=(3, 16, 16))
    other = copy.deepcopy(network)
    for net, each in ((network, method), (other, method.host)):
        seen = dataclasses.replace(given, unlabeled=given.unlabeled[: len(each.traits.views)])
        memory = each.init(net, task(3, (3, 16, 16)))
        each.loss(net, memory, seen, each.guess(net, memory, seen, CLOCK), CLOCK)
    theirs = dict(other.named_buffers())
    assert all(torch.equal(value, theirs[name]) for name, value in network.named_buffers())


@dataclass(frozen=True)
class Pass(Method):
    """A host with a differentiable pass of its own over its second view, and no pass over the first."""

    @property
    def traits(self):
        return Traits(views=("weak", "strong"), student_view=1)

    def loss(self, net, memory, batch, guess, clock):
        with clock.masks("labeled"):
            labeled = F.cross_entropy(net(batch.labeled[0]), batch.labels)
        with clock.masks("own"):
            return {"labeled": labeled, "own": entropy(net(batch.unlabeled[1])).mean()}


def calls(net):
    """How often the features are computed."""
    counted, features = [], net.features
    net.features = lambda x: (counted.append(x), features(x))[1]
    return counted


def test_on_a_host_with_a_pass_of_its_own_that_pass_is_the_first_branch():
    trial = Trial(VAdDTerm(Pass(), delta=0.3), dtype=torch.float64)
    assert trial.method.traits.views == ("weak", "strong", "weak")
    given = doubled(batch(trial.method))
    with CLOCK.masks("own"):
        target = trial.net(given.unlabeled[1])
    with CLOCK.masks(SECOND):
        h = trial.net.features(given.unlabeled[2])
    mask = _adversarial_mask(trial.net, h, target, 0.3, "kl")
    expected = divergence(target, trial.net.head(h * mask)).mean()
    seen = calls(trial.net)
    terms = trial.terms(given)
    assert len(seen) == 3  # labeled, the host's, the second view
    assert torch.allclose(terms[TERM], expected, rtol=1e-12)
    parameters = list(trial.net.parameters())
    pairs = zip(torch.autograd.grad(terms[TERM], parameters), torch.autograd.grad(expected, parameters), strict=True)
    assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-15) for a, b in pairs)
    assert list(terms) == ["labeled", "own", TERM]


def test_on_a_host_without_such_a_pass_it_is_the_term_of_the_method():
    on_host = Trial(VAdDTerm(VAT(), delta=0.3, distance="squared", weight=2.0), dtype=torch.float64)
    alone = Trial(VAdD(delta=0.3, distance="squared", weight=2.0), dtype=torch.float64)
    given = batch(VAdD())
    ours, theirs = on_host.terms(given, Clock(5, 100, 0.1, 0)), alone.terms(given, Clock(5, 100, 0.1, 0))
    assert torch.equal(ours[TERM], theirs[TERM])
    assert ours["adversarial"] > 0
    assert on_host.method.traits.views == ("weak", "weak")


@pytest.mark.parametrize("method", [VAdD(delta=0.3), VAdD(), VAdDTerm(VAT(), delta=0.3), VAdDTerm(Pass())])
def test_the_term_reaches_every_weight_after_some_steps(method):
    trial = Trial(method)
    trial.steps(0, 20)
    gradients = torch.autograd.grad(trial.terms(batch(method))[TERM], list(trial.net.parameters()))
    assert all(gradient.norm() > 0 for gradient in gradients)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"weight": -1.0}, "weight"),
        ({"ramp": float("nan")}, "ramp"),
    ],
)
def test_impossible_values_are_refused(changes, word):
    assert VAdD().problems(8, 8) == VAdDTerm(VAT()).problems(8, 8) == []
    for method in (VAdD(**changes), VAdDTerm(VAT(), **changes)):
        (problem,) = method.problems(8, 8)
        assert word in problem
    assert "entropy" in VAdD(entropy=-1.0).problems(8, 8)[0]


@pytest.mark.parametrize(
    ("host", "words"),
    [(Supervised(), "looks at none"), (VAdD(), "already"), (VAdDTerm(VAT()), "already"), (VAT(xi=0.0), "xi")],
)
def test_hosts_that_make_no_sense_are_refused(host, words):
    (problem,) = VAdDTerm(host).problems(8, 8)
    assert words in problem
