"""Losses, the simplex, mixing and averages against brute force and closed forms, in float64."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from torch import nn
from torch.nn import functional as F

from semigrad.core.divergences import CROSS_ENTROPY
from semigrad.core.ops import (
    average_into,
    clip_to_simplex,
    mix,
    one_hot,
    project_to_simplex,
    soft_cross_entropy,
    squared_error,
)  # fmt: skip


def rows(seed: int, count: int = 5, classes: int = 4) -> torch.Tensor:
    return torch.randn(count, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_soft_cross_entropy_of_hard_labels_is_cross_entropy():
    logits, labels = rows(0), torch.tensor([0, 1, 2, 3, 0])
    assert torch.allclose(soft_cross_entropy(logits, one_hot(labels, 4, logits)), F.cross_entropy(logits, labels))


def test_soft_cross_entropy_has_the_gradient_of_kl_and_differs_by_the_entropy():
    logits, targets = rows(0).requires_grad_(), rows(1).softmax(1)
    kl = F.kl_div(logits.log_softmax(1), targets, reduction="batchmean")
    ours = soft_cross_entropy(logits, targets)
    entropy = -(targets * targets.log()).sum(1).mean()
    assert torch.allclose(ours - entropy, kl)
    assert torch.allclose(*(torch.autograd.grad(loss, logits)[0] for loss in (kl, ours)))


def test_the_gradient_off_the_simplex_is_that_of_minus_y_log_f():
    """For rows that sum to one, ∂/∂z of −Σ y log f is (f − y)/B even where y has left the simplex."""
    logits = rows(0).requires_grad_()
    targets = rows(1)
    targets = targets + (1 - targets.sum(1, keepdim=True)) / 4
    assert (targets < 0).any()
    (gradient,) = torch.autograd.grad(soft_cross_entropy(logits, targets), logits)
    assert torch.allclose(gradient, (logits.softmax(1) - targets) / 5)


def test_squared_error_sums_over_classes_and_averages_over_the_batch():
    f, y = rows(0), rows(1)
    by_hand = sum(sum((f[i, c] - y[i, c]) ** 2 for c in range(4)) for i in range(5)) / 5
    assert torch.allclose(squared_error(f, y), by_hand)


@pytest.mark.parametrize("shape", [(3,), (3, 2, 2)])
def test_mix_weighs_each_example_by_its_own_number(shape):
    a, b = torch.randn(4, *shape, dtype=torch.float64), torch.randn(4, *shape, dtype=torch.float64)
    lam = torch.tensor([0.0, 1.0, 0.25, 0.5])
    mixed = mix(lam, a, b)
    for i in range(4):
        assert torch.allclose(mixed[i], lam[i] * a[i] + (1 - lam[i]) * b[i])


@given(st.integers(0, 2**31), st.integers(2, 7), st.floats(0.01, 20))
@settings(max_examples=60, deadline=None)
def test_projections_land_on_the_simplex_and_leave_it_alone(seed, classes, size):
    wild = size * rows(seed, 6, classes)
    wild = wild + (1 - wild.sum(1, keepdim=True)) / classes
    for project in (clip_to_simplex, project_to_simplex):
        tame = project(wild)
        assert (tame >= 0).all()
        assert torch.allclose(tame.sum(1), torch.ones(6, dtype=torch.float64))
        assert torch.allclose(project(tame), tame)


@pytest.mark.parametrize("seed", range(5))
def test_euclidean_projection_is_the_nearest_point(seed):
    point = 2 * rows(seed, 1, 5)[0]
    found = minimize(
        lambda p: ((p - point.numpy()) ** 2).sum(),
        torch.full((5,), 0.2).numpy(),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        tol=1e-12,
    )
    assert torch.allclose(project_to_simplex(point[None])[0], torch.from_numpy(found.x), atol=1e-5)


def test_the_average_covers_parameters_and_buffers():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).double()
    average = copy.deepcopy(net)
    snapshots = [copy.deepcopy(net.state_dict())]
    for n in range(1, 5):
        net(torch.randn(8, 3, dtype=torch.float64)).square().sum().backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
        average_into(average, net, 1 - 1 / (n + 1))  # a running mean
        snapshots.append(copy.deepcopy(net.state_dict()))
    for name, value in average.state_dict().items():
        if value.is_floating_point():
            assert torch.allclose(value, torch.stack([s[name] for s in snapshots]).mean(0)), name
    assert average[1].num_batches_tracked == 4


class Tied(nn.Module):
    """A layer under two names, and two buffers under two names each."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.first = self.second = nn.Linear(3, 3)
        nn.init.constant_(self.first.weight, value)
        self.own = nn.Parameter(torch.full((2,), value))
        self.register_buffer("scale", torch.full((2,), value))
        self.register_buffer("same_scale", self.scale)
        self.register_buffer("count", torch.tensor(int(value)))
        self.register_buffer("same_count", self.count)


def test_the_average_moves_a_tensor_with_two_names_once():
    net = Tied(1.0)
    average = copy.deepcopy(net).requires_grad_(False)
    for value in (average.first.weight, average.own, average.scale, average.count):
        value.zero_()
    average_into(average, net, 0.9)
    for value in (average.first.weight, average.own, average.scale):
        assert torch.allclose(value, torch.full_like(value, 0.1))
    assert average.count == 1
    assert average.first is average.second
    assert average.scale is average.same_scale


def test_the_average_of_a_network_without_shared_weights_is_a_lerp_of_each_entry():
    nets = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)) for _ in range(2)]
    for net in nets:
        net(torch.randn(5, 3))
    average, net = nets
    expected = {
        name: torch.lerp(value, net.state_dict()[name], 1 - 0.95) if value.is_floating_point() else value.clone()
        for name, value in average.state_dict().items()
    }
    average_into(average, net, 0.95)
    assert all(torch.equal(value, expected[name]) for name, value in average.state_dict().items())


def test_rows_of_soft_cross_entropy_are_the_entries_of_torchs_loss():
    logits, targets = rows(0), rows(1).softmax(1)
    expected = F.cross_entropy(logits, targets, reduction="none")
    assert torch.allclose(CROSS_ENTROPY.of_logits(logits, targets), expected, rtol=1e-12)
    assert torch.allclose(soft_cross_entropy(logits, targets), expected.mean(), rtol=1e-12)
