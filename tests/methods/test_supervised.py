"""Labeled-only: cross-entropy on the labeled rows, weakly or strongly augmented, and nothing else."""

import torch
from torch.nn import functional as F

from semigrad.augment import STRONG_DRAWS, strong
from semigrad.core import generator
from semigrad.data.dataset import DRAWS, ready
from semigrad.methods import Supervised
from semigrad.training.setup import set_up
from tests.methods.laws import CLOCK, Trial, batch
from tests.small_runs import go, small


def test_the_loss_is_the_cross_entropy_of_the_labeled_rows():
    trial, given = Trial(Supervised(), drop=0.0), batch(Supervised())
    terms = trial.terms(given, CLOCK)
    assert list(terms) == ["labeled"]
    assert torch.equal(terms["labeled"], F.cross_entropy(trial.net(given.labeled[0]), given.labels))


def test_with_strong_views_the_labeled_rows_are_augmented_by_hand():
    run = small(method={"name": "supervised", "strong": True})
    stream = set_up(run, "cpu").stream
    given = stream[4]
    draws = generator(run.seed, 4, "view", "labeled", "strong", 0)
    positions = given.labeled_index.numpy()
    weak = stream.dataset.train.weak(positions, draws.random((len(positions), DRAWS)))
    expected = strong(ready(weak, weak.device), draws.random((len(positions), STRONG_DRAWS)))
    assert torch.equal(given.labeled[0], expected)
    assert given.unlabeled == ()
    assert not torch.equal(given.labeled[0], ready(weak, weak.device))


def test_both_train_and_differ(tmp_path):
    plain = go(small(method="supervised", steps=120), tmp_path / "plain")
    hard = go(small(method={"name": "supervised", "strong": True}, steps=120), tmp_path / "strong")
    assert plain["error"] < 85
    assert hard["error"] < 85
    assert plain["test"]["confusion"] != hard["test"]["confusion"]


def test_smoothed_labels_share_what_they_lose_among_all_classes():
    method = Supervised(smoothing=0.2)
    trial, given = Trial(method, drop=0.0, dtype=torch.float64), batch(method)
    targets = 0.8 * F.one_hot(given.labels, 3).double() + 0.2 / 3
    log_probabilities = trial.net(given.labeled[0].double()).log_softmax(1)
    expected = -(targets * log_probabilities).sum(1).mean()
    assert torch.allclose(trial.terms(given, CLOCK)["labeled"], expected, rtol=1e-12)
