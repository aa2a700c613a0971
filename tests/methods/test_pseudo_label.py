"""Pseudo-labels: the network's answer in eval mode, a linear rise, a mask in a mean over all rows."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from semigrad.core import Clock
from semigrad.methods.meta import Meta
from semigrad.methods.pseudo_label import PseudoLabel
from semigrad.methods.supervised import Supervised
from tests.methods.laws import CLOCK, Trial, WithStatistics, batch, doubled

DOUBLE = torch.float64


def given(seed=3):
    return doubled(batch(PseudoLabel(), seed=seed))


def test_without_dropout_it_is_cross_entropy_to_the_argmax():
    trial = Trial(PseudoLabel(weight=3.0), drop=0.0, dtype=DOUBLE)
    logits = trial.net(given().unlabeled[0])
    terms = trial.terms(given())
    assert list(terms) == ["labeled", "pseudo-label"]
    assert torch.allclose(terms["pseudo-label"], 3 * F.cross_entropy(logits, logits.argmax(1)), rtol=1e-12)
    expected = trial.gradients({"by hand": 3 * F.cross_entropy(logits, logits.argmax(1))})
    found = trial.gradients({"pseudo-label": terms["pseudo-label"]})
    assert all(torch.allclose(a, b, rtol=1e-10, atol=1e-15) for a, b in zip(found, expected, strict=True))
    assert torch.allclose(terms["labeled"], F.cross_entropy(trial.net(given().labeled[0]), given().labels), rtol=1e-12)


def test_labels_are_of_eval_mode_and_training_is_under_dropout():
    trial = Trial(PseudoLabel(), drop=0.5, dtype=DOUBLE)
    trial.steps(0, 5)
    answer = copy.deepcopy(trial.net).eval()(given().unlabeled[0]).argmax(1)
    guess = trial.method.guess(trial.net, trial.memory, given(), CLOCK)
    assert torch.equal(guess["targets"], F.one_hot(answer, 3).double())
    assert not guess["targets"].requires_grad
    assert trial.net.training
    assert trial.net.body[3].training
    with CLOCK.masks("unlabeled"):
        noisy = trial.net(given().unlabeled[0])
    assert not torch.equal(noisy.argmax(1), answer)  # else the modes could not be told apart
    assert torch.allclose(trial.terms(given())["pseudo-label"], F.cross_entropy(noisy, answer), rtol=1e-12)


def test_rows_below_the_threshold_do_not_count_but_stay_in_the_mean():
    trial = Trial(PseudoLabel(), drop=0.0, dtype=DOUBLE)
    p = trial.net(given().unlabeled[0]).softmax(1)
    confidence = p.max(1).values
    threshold = confidence.sort(descending=True).values[2].item()  # three rows reach it, one of them exactly
    chosen = Trial(PseudoLabel(threshold=threshold), drop=0.0, dtype=DOUBLE)
    guess = chosen.method.guess(chosen.net, chosen.memory, given(), CLOCK)
    assert torch.equal(guess["weights"], (confidence >= threshold).double())
    assert guess["weights"].sum() == 3
    expected = -sum(confidence[i].log() for i in range(8) if confidence[i] >= threshold) / 8
    assert torch.allclose(chosen.terms(given())["pseudo-label"], expected, rtol=1e-12)
    nobody = Trial(PseudoLabel(threshold=1.0), drop=0.0, dtype=DOUBLE)
    assert nobody.terms(given())["pseudo-label"] == 0
    assert trial.method.guess(trial.net, trial.memory, given(), CLOCK)["weights"].tolist() == [1] * 8


@pytest.mark.parametrize(("step", "share"), [(0, 0.0), (10, 0.25), (40, 1.0), (99, 1.0)])
def test_the_weight_rises_linearly(step, share):
    full = Trial(PseudoLabel(ramp=0.0), drop=0.0, dtype=DOUBLE).terms(given())["pseudo-label"]
    found = Trial(PseudoLabel(), drop=0.0, dtype=DOUBLE).terms(given(), Clock(step, 100, 0.1, 0))["pseudo-label"]
    assert torch.allclose(found, share * full, rtol=1e-12)
    assert full > 0


def test_making_the_labels_moves_no_statistics():
    net, method = WithStatistics().double(), PseudoLabel()
    before = copy.deepcopy(net.state_dict())
    guess = method.guess(net, nn.Module(), given(), CLOCK)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    method.loss(net, nn.Module(), given(), guess, CLOCK)
    assert net.norm.num_batches_tracked == 2


def test_the_loss_towards_soft_targets_is_cross_entropy_and_finite():
    p = torch.tensor([[1.0, 0.0], [0.25, 0.75]], requires_grad=True)
    found = PseudoLabel().traits.divergence(p, torch.tensor([[0.0, 1.0], [0.5, 0.5]]))
    (gradient,) = torch.autograd.grad(found.sum(), p)
    assert found[1].item() == pytest.approx(-0.5 * math.log(0.25) - 0.5 * math.log(0.75))
    assert found.isfinite().all()
    assert gradient.isfinite().all()


def test_meta_adapts_the_labels_of_rows_that_count():
    confidence = Trial(PseudoLabel(), dtype=DOUBLE).net.eval()(given().unlabeled[0]).softmax(1).amax(1)
    host = PseudoLabel(threshold=confidence.median().item())
    trial = Trial(Meta(host, beta=0.5), dtype=DOUBLE)
    own = host.guess(trial.net, nn.Module(), given(), CLOCK)
    assert 0 < own["weights"].sum() < 8
    adapted = trial.method.guess(trial.net, trial.memory, given(), CLOCK)
    moved = (adapted["targets"] - own["targets"]).abs().amax(1) > 1e-6
    assert moved.any()
    assert not moved[own["weights"] == 0].any()
    assert torch.allclose(adapted["targets"].sum(1), torch.ones(8, dtype=DOUBLE))


def test_without_weight_it_is_supervised_bit_for_bit():
    trial, some = Trial(PseudoLabel(weight=0.0)), batch(PseudoLabel())
    expected = trial.gradients(Supervised().loss(trial.net, nn.Module(), some, {}, CLOCK))
    assert all(torch.equal(a, b) for a, b in zip(trial.gradients(trial.terms(some)), expected, strict=True))


def test_the_term_reaches_the_weights_after_some_steps():
    trial = Trial(PseudoLabel())
    trial.steps(0, 20)
    gradients = trial.gradients({"pseudo-label": trial.terms(batch(PseudoLabel()))["pseudo-label"]})
    assert all(gradient.norm() > 0 for gradient in gradients)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"threshold": 1.1}, "threshold"), ({"threshold": -0.1}, "threshold"), ({"threshold": math.nan}, "threshold"),
        ({"weight": math.nan}, "weight"), ({"ramp": -1.0}, "ramp"),
    ],
)  # fmt: skip
def test_bad_values_are_refused(fields, words):
    assert any(words in problem for problem in PseudoLabel(**fields).problems(8, 8))
    assert PseudoLabel().problems(1, 3) == []
