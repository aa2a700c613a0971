"""The map of a page: a gradient that is one, and neighbors that stay as near as on scikit-learn's."""

import math

import numpy as np
import torch
from sklearn.manifold import TSNE, trustworthiness

from semigrad.data.digits import read
from semigrad.report.parts.neighbors import PERPLEXITY, _gradient, affinities, neighbor_map


def test_every_point_has_as_many_neighbors_as_asked_for():
    x = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)).double() * 7
    near = affinities(x)
    assert torch.allclose(near, near.T)
    assert math.isclose(near.sum(), 1, rel_tol=1e-12)
    circle = torch.arange(200).double()[:, None] * (2 * math.pi / 200)
    near = affinities(torch.cat([circle.cos(), circle.sin()], 1))  # every point is as every other
    given = near[0] / near[0].sum()
    assert math.isclose(torch.exp(-torch.xlogy(given, given).sum()), PERPLEXITY, rel_tol=1e-6)


def test_the_gradient_is_that_of_the_divergence():
    torch.manual_seed(0)
    y, near = torch.randn(12, 2).double().requires_grad_(), affinities(torch.randn(12, 4).double())
    i, j = torch.triu_indices(12, 12, 1)
    kernel = 1 / (1 + (y[i] - y[j]).square().sum(1))
    divergence = 2 * (near[i, j] * (near[i, j] / (kernel / (2 * kernel.sum()))).log()).sum()  # of pairs both ways
    (expected,) = torch.autograd.grad(divergence, y)
    assert torch.allclose(_gradient(y.detach(), near), expected, atol=1e-10)


def test_neighbors_are_as_near_as_on_scikit_learns_map():
    pixels, labels = read()
    some = np.random.default_rng(0).permutation(len(pixels))[:250]
    x = pixels[some]
    ours, again = neighbor_map(x), neighbor_map(x)
    assert np.array_equal(ours, again)
    theirs = TSNE(perplexity=30, init="pca", random_state=0).fit_transform(x)
    assert trustworthiness(x, ours, n_neighbors=10) > trustworthiness(x, theirs, n_neighbors=10) - 0.01
    nearest = np.argsort(np.linalg.norm(ours[:, None] - ours[None], axis=2) + 1e9 * np.eye(len(ours)), 1)[:, 0]
    assert (labels[some][nearest] == labels[some]).mean() > 0.9


def test_a_handful_of_points_and_equal_ones_have_a_map():
    for x in (np.arange(12.0).reshape(6, 2), np.arange(8.0)[:, None], np.repeat(np.eye(3), 4, axis=0)):
        assert np.isfinite(neighbor_map(x)).all()
