"""Who teaches whom, enumerated; the objective against a loop over the examples; nothing leaks between the students."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.dual_student import DualStudent, who_learns
from semigrad.methods.supervised import Supervised
from tests.methods.laws import CLOCK, WIDTH, Trial, batch, doubled, network, task

A, B = torch.tensor([0.9, 0.1]).double(), torch.tensor([0.1, 0.9]).double()


class Pair(Trial):
    """A trial whose two students are rather sure: large weights give confident answers."""

    def __init__(self, method, drop=0.3):
        super().__init__(method, drop=drop, dtype=torch.float64)
        with torch.no_grad():
            for student in (self.net, self.memory.second):
                student.head.weight *= 4


# Cases of one student: (its two predictions), whether it is stable at ξ = 0.8, and how far its predictions are apart.
CASES = {
    "sure, steady": (A, torch.tensor([0.85, 0.15]), True, 2 * 0.05**2),
    "sure in its own view": (A, torch.tensor([0.7, 0.3]), True, 2 * 0.2**2),
    "sure in the other view": (torch.tensor([0.7, 0.3]), A, True, 2 * 0.2**2),
    "unsure, steady": (torch.tensor([0.7, 0.3]), torch.tensor([0.7, 0.3]), False, 0.0),
    "exactly at the threshold": (torch.tensor([0.75, 0.25]), torch.tensor([0.75, 0.25]), False, 0.0),
    "changes its mind": (A, B, False, 2 * 0.8**2),
    "changes its mind, unsure": (torch.tensor([0.6, 0.4]), torch.tensor([0.4, 0.6]), False, 2 * 0.2**2),
}


@pytest.mark.parametrize(("first", "second"), list(itertools.product(CASES, repeat=2)))
def test_the_truth_table_with_ties(first, second):
    threshold = 0.75 if "exactly" in first + second else 0.8
    (p_l, other_l, l_stable, l_error), (p_r, other_r, r_stable, r_error) = CASES[first], CASES[second]
    rows = [row[None].double() for row in (p_l, other_l, p_r, other_r)]
    l_learns, r_learns = who_learns(*rows, threshold)
    if l_stable and r_stable:
        tie = math.isclose(l_error, r_error)
        expected = (tie or r_error < l_error, tie or l_error < r_error)
    else:
        expected = (r_stable, l_stable)  # only the stable one teaches; nobody where there is none
    assert (l_learns.item(), r_learns.item()) == expected


def loop(method, trial, given, weight):
    """Both unlabeled terms of the first and of the second student, an example at a time. No dropout."""
    (a, b), l, r = given.unlabeled, trial.net, trial.memory.second  # noqa: E741
    own, learned = [0.0, 0.0], [0.0, 0.0]
    taught = set()
    for i in range(len(a)):
        views = [[s(v[i : i + 1]).softmax(1)[0] for v in (a, b)] for s in (l, r)]
        mine = [views[0][0], views[1][1]]
        other = [views[0][1].detach(), views[1][0].detach()]
        error = [(mine[s] - other[s]).square().sum() for s in (0, 1)]
        stable = [
            mine[s].argmax() == other[s].argmax() and max(mine[s].max(), other[s].max()) > method.threshold
            for s in (0, 1)
        ]
        for s in (0, 1):
            own[s] = own[s] + error[s]
            if stable[1 - s] and (not stable[s] or error[1 - s] <= error[s]):
                learned[s] = learned[s] + (mine[s] - mine[1 - s].detach()).square().sum()
                taught.add(s)
    assert taught == {0, 1}, "the case is empty"
    return [weight * method.stability * o / len(a) for o in own], [
        weight * method.stabilization * v / len(a) for v in learned
    ]


def test_terms_and_gradients_equal_a_loop_and_nothing_leaks():
    method = DualStudent(stability=0.7, stabilization=1.9, threshold=0.5, weight=0.3)
    trial = Pair(method, drop=0.0)
    given = doubled(batch(method, rows=40))
    own, learned = loop(method, trial, given, 0.3)
    found = trial.terms(given)
    assert list(found) == ["labeled", "second labeled", "consistency", "stabilization"]
    assert torch.allclose(found["consistency"], sum(own), rtol=1e-12)
    assert torch.allclose(found["stabilization"], sum(learned), rtol=1e-12)
    total = sum(found.values())
    sides = [(trial.net, given.labeled[0]), (trial.memory.second, given.labeled[1])]
    for number, (student, x) in enumerate(sides):
        # each student's gradient is that of its own three losses alone
        alone = F.cross_entropy(student(x), given.labels) + own[number] + learned[number]
        parameters = list(student.parameters())
        ours = torch.autograd.grad(total, parameters, retain_graph=True)
        theirs = torch.autograd.grad(alone, parameters, retain_graph=True)
        assert all(torch.allclose(p, q, rtol=1e-9, atol=1e-14) for p, q in zip(ours, theirs, strict=True))
        stabilization = torch.autograd.grad(found["stabilization"], parameters, retain_graph=True)
        assert all(g.norm() > 0 for g in stabilization)


def test_labeled_losses_reach_one_student_each():
    trial = Pair(DualStudent())
    terms = trial.terms(doubled(batch(trial.method)))
    both = [list(trial.net.parameters()), list(trial.memory.second.parameters())]
    for name, reached in (("labeled", 0), ("second labeled", 1)):
        for number, parameters in enumerate(both):
            gradients = torch.autograd.grad(terms[name], parameters, allow_unused=True, retain_graph=True)
            assert all((g is not None) == (number == reached) for g in gradients)


def test_targets_are_the_first_student_on_the_second_view_in_train_mode_and_detached():
    trial = Pair(DualStudent(), drop=0.0)
    given = doubled(batch(trial.method))
    guess = trial.method.guess(trial.net, trial.memory, given, CLOCK)
    assert torch.equal(guess["targets"], trial.net(given.unlabeled[1]).softmax(1))
    assert torch.equal(guess["second targets"], trial.memory.second(given.unlabeled[0]).softmax(1))
    assert not guess["targets"].requires_grad
    assert not guess["second targets"].requires_grad
    noisy = Pair(DualStudent(), drop=0.5)
    one, other = (noisy.method.guess(noisy.net, noisy.memory, given, Clock(s, 9, 0.1, 0))["targets"] for s in (1, 2))
    assert not torch.allclose(one, other)


def test_the_second_student_is_another_network_and_is_trained():
    trial = Trial(DualStudent())
    second = trial.memory.second
    assert not torch.equal(second.head.weight, trial.net.head.weight)
    before = second.head.weight.clone()
    trial.steps(0, 2)
    assert not torch.equal(before, second.head.weight)
    assert trial.method.predictor(trial.net, trial.memory, []) is trial.net


@pytest.mark.parametrize("weight", [{"weight": 0.0}, {"stability": 0.0, "stabilization": 0.0}])
def test_weight_zero_is_supervised_bit_for_bit(weight):
    ours, plain = Trial(DualStudent(**weight)), Trial(Supervised())
    given = batch(ours.method)
    sides = [
        torch.autograd.grad(sum(ours.terms(given).values()), list(ours.net.parameters())),
        torch.autograd.grad(
            plain.terms(replace(given, labeled=given.labeled[:1]))["labeled"], list(plain.net.parameters())
        ),
    ]
    assert all(torch.equal(a, b) for a, b in zip(*sides, strict=True))


def test_whole_batch_divides_by_labeled_and_unlabeled_rows():
    given = doubled(batch(DualStudent()))
    given = replace(given, unlabeled=tuple(u[:4] for u in given.unlabeled))
    own, whole = (Trial(DualStudent(whole_batch=w), dtype=torch.float64).terms(given) for w in (False, True))
    for name in ("labeled", "second labeled"):
        assert torch.allclose(whole[name], own[name] * 8 / 12, rtol=1e-14)
    assert torch.equal(whole["consistency"], own["consistency"])


def test_the_ramp_is_gaussian_on_both_unlabeled_terms():
    trial = Pair(DualStudent(threshold=0.3))
    given = batch(trial.method)

    def at(step):
        terms = trial.method.loss(trial.net, trial.memory, doubled(given), guess, Clock(step, 100, 0.1, 0))
        return torch.stack([terms["consistency"], terms["stabilization"]])

    trial.net.eval()
    trial.memory.eval()  # no masks, so that only the ramp differs between steps
    guess = trial.method.guess(trial.net, trial.memory, doubled(given), CLOCK)
    full = at(20)
    assert (full > 0).all()
    assert torch.allclose(at(0), math.exp(-5) * full, rtol=1e-12)
    assert torch.allclose(at(10), math.exp(-1.25) * full, rtol=1e-12)
    assert torch.equal(at(90), full)


def test_every_pass_moves_batch_statistics():
    def normalized():
        net = network(drop=0.0)
        net.body.insert(2, nn.BatchNorm1d(WIDTH))
        return net

    method, net = DualStudent(), normalized()
    memory = method.init(net, replace(task(), fresh=normalized))
    given = batch(method)
    guess = method.guess(net, memory, given, CLOCK)
    assert net.body[2].num_batches_tracked == memory.second.body[2].num_batches_tracked == 1
    method.loss(net, memory, given, guess, CLOCK)
    assert net.body[2].num_batches_tracked == memory.second.body[2].num_batches_tracked == 3


def test_twenty_steps_then_the_unlabeled_terms_reach_both_students():
    trial = Trial(DualStudent(threshold=0.3))
    trial.steps(0, 20)
    terms = trial.terms(batch(trial.method))
    for name in ("consistency", "stabilization"):
        gradients = torch.autograd.grad(terms[name], trial.parameters(), retain_graph=True)
        assert all(g.norm() > 0 for g in gradients)


@pytest.mark.parametrize(
    "bad",
    [
        {"threshold": 1.5}, {"threshold": -0.1}, {"stability": -1.0}, {"stabilization": math.inf}, {"weight": -1.0},
        {"ramp": math.nan},
    ],
)  # fmt: skip
def test_bad_values_are_refused(bad):
    (problem,) = DualStudent(**bad).problems(8, 5)
    assert next(iter(bad)) in problem


def test_defaults_and_unequal_batches_are_not_refused():
    assert DualStudent().problems(8, 5) == []
