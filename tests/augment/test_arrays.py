"""Noise, dropout and masking of feature arrays against plain loops, and what they keep in expectation."""

import numpy as np
import pytest
import torch

from semigrad.augment import Corruption
from semigrad.augment.arrays import dropout, mask, noise

MEAN, STD = torch.tensor([1.0, -2.0, 5.0], dtype=torch.float64), torch.tensor([1.0, 0.5, 3.0], dtype=torch.float64)


def features(rows=5):
    return torch.from_numpy(np.random.default_rng(0).normal(size=(rows, 3)))


def uniform(rows=5, seed=1):
    return torch.from_numpy(np.random.default_rng(seed).random((rows, 3)))


def test_noise_is_in_units_of_each_features_deviation():
    draws = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 3)))
    found = noise(features(), STD, 0.2, draws)
    for i in range(5):
        for j in range(3):
            assert found[i, j] == pytest.approx(float(features()[i, j] + 0.2 * STD[j] * draws[i, j]), rel=1e-12)


def test_dropout_and_mask_replace_by_the_mean_below_the_share():
    x, u = features(), uniform()
    dropped, masked = dropout(x, MEAN, 0.4, u), mask(x, MEAN, 0.4, u)
    assert 0 < int((u < 0.4).sum()) < 15
    for i in range(5):
        for j in range(3):
            gone = u[i, j] < 0.4
            kept = MEAN[j] + (x[i, j] - MEAN[j]) / 0.6
            assert float(dropped[i, j]) == pytest.approx(float(MEAN[j] if gone else kept), rel=1e-12)
            assert masked[i, j] == (MEAN[j] if gone else x[i, j])


def test_dropout_keeps_the_expectation_and_masking_does_not():
    x = features(1).expand(200_000, 3)
    u = uniform(200_000)
    assert torch.allclose(dropout(x, MEAN, 0.3, u).mean(0), x[0], atol=0.05)
    assert not torch.allclose(mask(x, MEAN, 0.3, u).mean(0), x[0], atol=0.3)


def test_nothing_changes_where_every_amount_is_zero():
    assert torch.allclose(Corruption().weak(features(), STD, np.random.default_rng(0)), features(), rtol=1e-12)
    assert torch.allclose(Corruption().strong(features(), MEAN, STD, np.random.default_rng(0)), features(), rtol=1e-12)


def test_weak_views_have_noise_alone_and_strong_ones_all_three():
    x, corruption = features(), Corruption(noise=0.1, dropout=0.3, mask=0.4)
    weak = corruption.weak(x, STD, np.random.default_rng(3))
    strong = corruption.strong(x, MEAN, STD, np.random.default_rng(3))
    draws = np.random.default_rng(3)
    noisy = noise(x, STD, 0.1, torch.from_numpy(draws.standard_normal((5, 3))))
    dropped = dropout(noisy, MEAN, 0.3, torch.from_numpy(draws.random((5, 3))))
    assert torch.equal(weak, noisy)
    assert torch.equal(strong, mask(dropped, MEAN, 0.4, torch.from_numpy(draws.random((5, 3)))))
    assert (strong == MEAN).any()
    assert not (weak == MEAN).any()


def test_views_keep_the_type_of_the_features():
    rows = features().float()
    view = Corruption(0.1, 0.2, 0.3).strong(rows, MEAN.float(), STD.float(), np.random.default_rng(0))
    assert view.dtype == torch.float32
