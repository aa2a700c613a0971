"""Margins, entropies and meta-gradient scores against closed forms and double backward; what is chosen by them."""

import math
from typing import get_args

import numpy as np
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional as F

from semigrad.cli.label_next import Strategy
from semigrad.core import CPU
from semigrad.data.split import DataSpec, make_split
from semigrad.labeling.candidates import candidates_of
from semigrad.labeling.choosing import STRATEGIES, choose, default_strategy, spread
from semigrad.labeling.influence import influences
from semigrad.labeling.uncertain import entropies, margins
from semigrad.training.setup import set_up
from tests.small_runs import digits, small


def test_margin_and_entropy_in_closed_form():
    rows = [[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.45, 0.45]]
    assert np.allclose(margins(np.array(rows)), [0.2, 1.0, 0.0, 0.0])
    expected = [-sum(p * math.log(p) for p in row if p) for row in rows]
    assert np.allclose(entropies(np.array(rows)), expected)
    assert math.isclose(entropies(np.array(rows))[2], math.log(3))


def explicit_score(net, x, y, u, lr=1e-2):
    """Through the training step itself: the labeled loss after a step towards q, differentiated by q at q = f(u)."""
    parameters = {name: p.detach().requires_grad_() for name, p in net.named_parameters()}
    p = functional_call(net, parameters, (u[None],)).softmax(1)[0]
    q = p.detach().clone().requires_grad_()
    inner = torch.autograd.grad((p - q).square().sum(), list(parameters.values()), create_graph=True)
    moved = {name: value - lr * step for (name, value), step in zip(parameters.items(), inner, strict=True)}
    (slope,) = torch.autograd.grad(F.cross_entropy(functional_call(net, moved, (x,)), y), q)
    slope = slope / lr
    return sum(p[c].item() * abs((slope @ (F.one_hot(torch.tensor(c), len(p)) - p.detach())).item()) for c in range(4))


def test_the_meta_gradient_score_is_that_of_an_explicit_training_step():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 9), nn.Tanh(), nn.Linear(9, 4)).double()
    x, y, u = torch.randn(12, 5).double(), torch.arange(12) % 4, torch.randn(7, 5).double()
    found = influences(net, x, y, [u[:3], u[3:]])
    expected = torch.tensor([explicit_score(net, x, y, each) for each in u]).double()
    assert torch.allclose(found, expected, rtol=1e-9)
    assert found.min() > 0


def test_the_command_offers_every_strategy():
    assert get_args(Strategy) == ("auto", *STRATEGIES)


def test_of_every_answer_at_most_two_equal_shares_while_others_are_left():
    order, proposed = np.arange(20), np.array([0] * 10 + [1] * 5 + [2] * 5)
    assert spread(order, proposed, 6, 3) == [0, 1, 2, 3, 10, 11]
    assert spread(order, np.zeros(20, int), 6, 3) == [0, 1, 2, 3, 4, 5]  # nothing else to take
    assert spread(order, proposed, 50, 3) == sorted(
        spread(order, proposed, 50, 3), key=spread(order, proposed, 50, 3).index
    )
    assert len(spread(order, proposed, 50, 3)) == 20


def test_the_default_goes_by_labels_of_a_class():
    assert [default_strategy(labels, 10) for labels in (10, 99, 100, 5000)] == [
        "typical",
        "typical",
        "margin",
        "margin",
    ]


def test_every_strategy_chooses_different_unlabeled_examples_and_says_why():
    dataset, run = digits(), small()
    setup = set_up(run, "cpu")
    split = make_split(dataset, DataSpec("digits", labels=40), 0)
    candidates = candidates_of(setup.net, dataset, split, CPU)
    answers = candidates.sight.probabilities
    for strategy in STRATEGIES:
        chosen = choose(candidates, 25, strategy)
        positions = [each.position for each in chosen]
        assert len({*positions}) == 25
        assert {*positions} <= {*split.unlabeled.tolist()}
        assert all(each.reason for each in chosen)
        rows = answers[np.searchsorted(candidates.unlabeled, positions)]
        assert [each.proposed for each in chosen] == [dataset.classes[number] for number in rows.argmax(1)]
        assert np.allclose([each.confidence for each in chosen], rows.max(1))
        assert choose(candidates, 25, strategy) == chosen
    first = choose(candidates, 1, "margin")[0]
    assert candidates.unlabeled[margins(answers).argmin()] == first.position
    assert candidates.unlabeled[entropies(answers).argmax()] == choose(candidates, 1, "entropy")[0].position


def test_of_many_some_are_drawn():
    dataset = digits()
    split = make_split(dataset, DataSpec("digits", labels=40), 0)
    candidates = candidates_of(nn.Identity(), dataset, split, CPU, most=100)
    assert (len(candidates.unlabeled), candidates.total) == (100, 1257)
