"""Divergences against brute force: their derivatives in float64, from logits, at the corners of the simplex."""

import pytest
import torch
from torch.nn import functional as F

from semigrad.core.divergences import (
    CROSS_ENTROPY,
    KL_DIVERGENCE,
    SQUARED_ERROR,
    Custom,
    Weighted,
    as_divergence,
    kl_of_logits,
    log_of,
)  # fmt: skip

WEIGHTS = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0]).double()
OURS = {
    "squared": SQUARED_ERROR,
    "cross-entropy": CROSS_ENTROPY,
    "kl": KL_DIVERGENCE,
    "weighted": Weighted(KL_DIVERGENCE, WEIGHTS),
}
EVERY = pytest.mark.parametrize("divergence", OURS.values(), ids=OURS)


def simplex(seed, rows=5, classes=4):
    return torch.randn(rows, classes, generator=torch.Generator().manual_seed(seed)).double().softmax(1)


def by_hand(kind, p, q):
    """The definition, entry by entry."""
    total = {
        "squared": lambda a, b: (a - b) ** 2,
        "cross-entropy": lambda a, b: -b * torch.log(a),
        "kl": lambda a, b: b * (torch.log(b) - torch.log(a)),
    }[kind]
    return torch.stack([sum(total(p[i, c], q[i, c]) for c in range(p.shape[1])) for i in range(len(p))])


@pytest.mark.parametrize("kind", ["squared", "cross-entropy", "kl"])
def test_it_is_its_definition(kind):
    p, q = simplex(0), simplex(1)
    assert torch.allclose(OURS[kind](p, q), by_hand(kind, p, q), rtol=1e-12)
    assert torch.allclose(Weighted(OURS[kind], WEIGHTS)(p, q), WEIGHTS * by_hand(kind, p, q), rtol=1e-12)


@EVERY
def test_the_pull_and_its_change_are_those_of_brute_force(divergence):
    p, q, tangent, h = simplex(2), simplex(3), simplex(4) - simplex(5), 1e-6
    slope = torch.zeros_like(q)
    for place in range(q.numel()):
        e = torch.zeros_like(q)
        e.view(-1)[place] = h
        slope.view(-1)[place] = (divergence(p, q + e).sum() - divergence(p, q - e).sum()) / (2 * h)
    assert torch.allclose(divergence.pull(p, q), slope, rtol=1e-7, atol=1e-8)
    change = (divergence.pull(p + h * tangent, q) - divergence.pull(p - h * tangent, q)) / (2 * h)
    assert torch.allclose(divergence.pull_along(p, q, tangent), change, rtol=1e-7, atol=1e-8)
    gained = divergence.pull(simplex(6), q) - divergence.pull(p, q)
    assert torch.allclose(divergence.pull_between(p, simplex(6), q), gained, rtol=1e-12, atol=1e-14)


@EVERY
def test_one_has_at_hand_what_differentiation_gives(divergence):
    p, q, tangent = simplex(2), simplex(3), simplex(4) - simplex(5)
    plain = Custom(lambda a, b: divergence(a, b))
    assert torch.allclose(divergence.pull(p, q), plain.pull(p, q), rtol=1e-12, atol=1e-14)
    assert torch.allclose(divergence.pull_along(p, q, tangent), plain.pull_along(p, q, tangent), rtol=1e-10, atol=1e-14)


@EVERY
def test_derivatives_are_finite_at_the_corners(divergence):
    corner, tangent = F.one_hot(torch.arange(5) % 4, 4).double(), simplex(4) - simplex(5)
    plain = Custom(lambda a, b: divergence(a, b))
    for p, q in ((simplex(0), corner), (corner, simplex(0)), (corner, corner.roll(1, 0))):
        for found in (divergence(p, q), divergence.pull(p, q), divergence.pull_along(p, q, tangent)):
            assert found.isfinite().all()
        assert torch.allclose(divergence.pull(p, q), plain.pull(p, q), rtol=1e-12)
        assert torch.allclose(divergence.pull_along(p, q, tangent), plain.pull_along(p, q, tangent), rtol=1e-10)


@EVERY
def test_from_logits_it_is_the_same_and_keeps_its_slope(divergence):
    logits, q = 3 * torch.randn(5, 4, generator=torch.Generator().manual_seed(8)).double(), simplex(1)
    assert torch.allclose(divergence.of_logits(logits, q), divergence(logits.softmax(1), q), rtol=1e-12)


def test_where_a_probability_underflows_logits_keep_the_slope():
    logits = torch.tensor([[200.0, 0.0, 0.0]]).requires_grad_()
    q = torch.tensor([[0.0, 1.0, 0.0]])
    for divergence in (CROSS_ENTROPY, KL_DIVERGENCE):
        (slope,) = torch.autograd.grad(divergence.of_logits(logits, q).sum(), logits)
        assert torch.allclose(slope, torch.tensor([[1.0, -1.0, 0.0]]))


def test_kl_of_logits_is_torchs_and_has_a_slope_on_both_sides():
    first, second = (torch.randn(5, 4, generator=torch.Generator().manual_seed(s)).double() for s in (1, 2))
    expected = F.kl_div(second.log_softmax(1), first.log_softmax(1), log_target=True, reduction="none").sum(1)
    assert torch.allclose(kl_of_logits(first, second), expected, rtol=1e-12)
    first.requires_grad_(), second.requires_grad_()
    assert all(
        slope.abs().sum() > 0 for slope in torch.autograd.grad(kl_of_logits(first, second).sum(), (first, second))
    )


def test_equal_ones_are_equal_and_functions_become_one():
    assert as_divergence(SQUARED_ERROR) is SQUARED_ERROR
    assert type(SQUARED_ERROR)() == SQUARED_ERROR
    assert SQUARED_ERROR != KL_DIVERGENCE
    own = as_divergence(lambda p, q: (p - q).square().sum(1))
    assert own != SQUARED_ERROR
    p, q, tangent = simplex(2), simplex(3), simplex(4)
    assert torch.allclose(own.pull_along(p, q, tangent), -2 * tangent, rtol=1e-12)


def test_the_logarithm_of_nothing_is_that_of_the_smallest_number():
    assert log_of(torch.tensor([0.0])).item() == pytest.approx(
        torch.tensor(torch.finfo(torch.float32).tiny).log().item()
    )
