"""Temporal ensembling: the closed form of the corrected average, visits counted by example, targets from before."""

import copy
import dataclasses
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.meta import Meta
from semigrad.methods.supervised import Supervised
from semigrad.methods.temporal_ensembling import TemporalEnsembling
from tests.methods.laws import CLOCK, Trial, batch

DOUBLE = torch.float64


def visit(trial, index, seed=0, clock=CLOCK):
    """One step's guess and terms for these examples; with the prediction that the step is about."""
    given = batch(trial.method, rows=len(index), seed=seed).map(lambda x: x.to(trial.dtype))
    given = dataclasses.replace(given, unlabeled_index=torch.tensor(index))
    with clock.masks("unlabeled"):
        p = trial.net(given.unlabeled[0]).softmax(1).detach()
    guess = trial.method.guess(trial.net, trial.memory, given, clock)
    return p, guess, trial.method.loss(trial.net, trial.memory, given, guess, clock)


def target(trial, index):
    given = dataclasses.replace(batch(trial.method), unlabeled_index=torch.tensor(index))
    return trial.method.guess(trial.net, trial.memory, given, CLOCK)["targets"]


@pytest.mark.parametrize("keep", [0.0, 0.6, 0.99])
def test_a_constant_prediction_is_its_own_target_at_every_visit(keep):
    trial = Trial(TemporalEnsembling(keep=keep), drop=0.0, dtype=DOUBLE)
    for number in range(1, 8):
        p, _, _ = visit(trial, [5, 9, 14])
        assert torch.allclose(target(trial, [5, 9, 14]), p, rtol=1e-12)
        assert trial.memory.visits[[5, 9, 14]].tolist() == [number] * 3


@pytest.mark.parametrize("keep", [0.0, 0.6, 0.9])
def test_targets_have_the_closed_form_whatever_the_order_of_visits(keep):
    """z̃_T = (1 − α) Σ_t α^(T − t) z_t / (1 − α^T) over the visits of each example, which differ in number."""
    trial = Trial(TemporalEnsembling(keep=keep), dtype=DOUBLE)
    history = {}
    for step, index in enumerate([[0, 1, 2], [2, 1, 7], [59, 2, 0], [2, 7, 3]]):
        p, _, _ = visit(trial, index, seed=step, clock=Clock(step, 100, 0.1, 0))
        for row, example in enumerate(index):
            history.setdefault(example, []).append(p[row])
    for example, z in history.items():
        count = len(z)
        expected = sum((1 - keep) * keep ** (count - 1 - t) * z[t] for t in range(count)) / (1 - keep**count)
        found = target(trial, [example])[0]
        assert torch.allclose(found, expected, rtol=1e-12)
        assert math.isclose(found.sum(), 1, rel_tol=1e-12)
    counts = [len(history.get(example, [])) for example in range(60)]
    assert trial.memory.visits.tolist() == counts
    assert max(counts) == 4


def test_an_example_that_stands_twice_makes_one_visit_with_the_mean():
    trial = Trial(TemporalEnsembling(keep=0.6), dtype=DOUBLE)
    p, _, _ = visit(trial, [4, 8, 4, 4, 8, 1], seed=1)
    again, guess, _ = visit(trial, [1, 4, 1], seed=2)
    assert torch.allclose(guess["targets"][1], p[[0, 2, 3]].mean(0), rtol=1e-12)
    assert torch.equal(guess["targets"][0], guess["targets"][2])
    assert trial.memory.visits[[1, 4, 8]].tolist() == [2, 2, 1]
    expected = (0.6 * 0.4 * p[5] + 0.4 * again[[0, 2]].mean(0)) / (1 - 0.6**2)
    assert torch.allclose(target(trial, [1])[0], expected, rtol=1e-12)
    assert trial.memory.visits.sum() == 5


def test_rows_count_from_their_second_visit_on_and_the_mean_is_over_all():
    """The target is from before this step's own write, and unvisited rows add 0 to a mean over the whole batch."""
    trial = Trial(TemporalEnsembling(weight=2.0), dtype=DOUBLE)
    first, guess, terms = visit(trial, [10, 11], seed=0)
    assert guess["weights"].tolist() == [0, 0]
    assert terms["consistency"] == 0
    p, guess, terms = visit(trial, [10, 20, 11, 21, 22], seed=1)
    assert guess["weights"].tolist() == [1, 0, 1, 0, 0]
    assert torch.allclose(guess["targets"][[0, 2]], first, rtol=1e-12)
    expected = 2 * ((p[0] - first[0]).square().sum() + (p[2] - first[1]).square().sum()) / 5
    assert torch.allclose(terms["consistency"], expected, rtol=1e-12)
    assert terms["consistency"] > 0


def test_what_has_no_weight_is_on_the_simplex_nevertheless():
    trial = Trial(TemporalEnsembling(), dtype=DOUBLE)
    visit(trial, [1, 2])
    found = target(trial, [1, 30, 2, 31])
    assert torch.allclose(found.sum(1), torch.ones(4, dtype=DOUBLE), rtol=1e-12)
    adapted = Trial(Meta(TemporalEnsembling()), dtype=DOUBLE)
    terms = adapted.terms(batch(TemporalEnsembling()))  # nobody was visited
    assert terms["consistency"] == 0
    assert all(gradient.isfinite().all() for gradient in adapted.gradients(terms))


def test_gradients_reach_the_prediction_alone_and_survive_the_write():
    trial = Trial(TemporalEnsembling(), dtype=DOUBLE)
    first, _, _ = visit(trial, [3, 4], seed=0)
    _, guess, terms = visit(trial, [3, 4], seed=1)
    assert not guess["targets"].requires_grad
    assert not any(buffer.requires_grad for buffer in trial.memory.buffers())
    assert not list(trial.memory.parameters())
    gradients = trial.gradients({"consistency": terms["consistency"]})
    u = batch(TemporalEnsembling(), rows=2, seed=1).unlabeled[0].double()
    with CLOCK.masks("unlabeled"):
        expected = trial.gradients({"by hand": (trial.net(u).softmax(1) - first).square().sum() / 2})
    assert all(torch.allclose(a, b, rtol=1e-10) and a.norm() > 0 for a, b in zip(gradients, expected, strict=True))


def test_the_noisy_prediction_just_trained_on_is_what_is_remembered():
    trial = Trial(TemporalEnsembling(), dtype=DOUBLE)
    p, _, _ = visit(trial, [3, 4])
    clean = copy.deepcopy(trial.net).eval()(batch(TemporalEnsembling(), rows=2).unlabeled[0].double()).softmax(1)
    assert torch.allclose(target(trial, [3, 4]), p, rtol=1e-12)
    assert not torch.allclose(p, clean, rtol=1e-2)


def test_state_is_whole_after_every_step():
    whole, first, second = (Trial(TemporalEnsembling()) for _ in range(3))
    whole.steps(0, 9)
    first.steps(0, 4)
    second.net.load_state_dict(first.net.state_dict())
    second.memory.load_state_dict(first.memory.state_dict())
    second.steps(4, 9)
    assert whole.memory.visits.max() == 9
    assert all(torch.equal(value, second.state()[name]) for name, value in whole.state().items())


def test_the_weight_rises_as_a_gaussian():
    values = []
    for step in (0, 10, 20, 50):
        trial = Trial(TemporalEnsembling(ramp=0.2), drop=0.0, dtype=DOUBLE)
        visit(trial, [3, 4], seed=0)
        values.append(visit(trial, [3, 4], seed=1, clock=Clock(step, 100, 0.1, 0))[2]["consistency"].item())
    assert values[0] == pytest.approx(math.exp(-5) * values[3], rel=1e-12)
    assert values[1] == pytest.approx(math.exp(-1.25) * values[3], rel=1e-12)
    assert values[2] == values[3] > 0


def test_the_whole_batch_divides_the_labeled_loss():
    given = batch(TemporalEnsembling())
    given = dataclasses.replace(given, labeled=(given.labeled[0][:2],), labels=given.labels[:2])
    trial = Trial(TemporalEnsembling(whole_batch=True), drop=0.0, dtype=DOUBLE)
    expected = F.cross_entropy(trial.net(given.labeled[0].double()), given.labels) * 2 / 10
    assert torch.allclose(trial.terms(given)["labeled"], expected, rtol=1e-12)


def test_without_weight_it_is_supervised_bit_for_bit():
    trial, given = Trial(TemporalEnsembling(weight=0.0)), batch(TemporalEnsembling())
    trial.steps(0, 2)
    expected = trial.gradients(Supervised().loss(trial.net, nn.Module(), given, {}, CLOCK))
    assert all(torch.equal(a, b) for a, b in zip(trial.gradients(trial.terms(given)), expected, strict=True))


def test_the_term_reaches_the_weights_after_some_steps():
    trial = Trial(TemporalEnsembling())
    trial.steps(0, 20)
    gradients = trial.gradients({"consistency": trial.terms(batch(TemporalEnsembling()))["consistency"]})
    assert all(gradient.norm() > 0 for gradient in gradients)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"keep": 1.0}, "keep"), ({"keep": -0.1}, "keep"), ({"keep": math.nan}, "keep"),
        ({"weight": -1.0}, "weight"), ({"ramp": math.inf}, "ramp"),
    ],
)  # fmt: skip
def test_bad_values_are_refused(fields, words):
    assert any(words in problem for problem in TemporalEnsembling(**fields).problems(8, 8))
    assert TemporalEnsembling().problems(1, 3) == []
