"""CTAugment: the policy's bins against their probabilities, the update against a loop."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from semigrad.augment import CTA_DRAWS, CTAugment, match_score
from semigrad.augment.ctaugment import POOL


def draws(rows, depth=2, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).random((rows, depth, CTA_DRAWS)))


def learned(channels=3, seed=1, dtype=torch.float64):
    """With rates of every size."""
    module = CTAugment(channels).to(dtype)
    module.rates.copy_(torch.from_numpy(np.random.default_rng(seed).uniform(0.5, 1, tuple(module.rates.shape))))
    return module


def test_color_is_for_color():
    assert CTAugment(1).rates.shape == (len(POOL) - 1, 17)
    assert CTAugment(3).rates.shape == (len(POOL), 17)


def test_bins_come_as_often_as_their_rates_say_and_weak_ones_never():
    module = learned()
    policy = module.policy(draws(400_000, 1), 0.8)
    which, bins = policy.which[:, 0], policy.bins[:, 0]
    rates = module.rates[4].numpy()
    expected = np.where(rates >= 0.8 * rates.max(), rates, 0)
    assert 0 < (expected == 0).sum() < 17
    counts = np.bincount(bins[which == 4], minlength=17)
    assert (counts[expected == 0] == 0).all()
    assert np.allclose(counts / counts.sum(), expected / expected.sum(), atol=0.01)
    operations = np.bincount(which, minlength=len(POOL))
    assert operations.min() > 0.95 * 400_000 / len(POOL)


def test_probes_use_every_bin_alike():
    policy = learned().probe(draws(100_000))
    counts = np.bincount(policy.bins.flatten(), minlength=17)
    assert counts.min() > 0.95 * 200_000 / 17


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_strength_lies_inside_its_bin_even_for_the_largest_draw(dtype):
    module = learned(dtype=dtype)
    module.rates[:, -3:] = 0.0  # the last bins are never used
    last = torch.full((1, 2, CTA_DRAWS), np.nextafter(1.0, 0.0), dtype=torch.float64)
    policy = module.policy(torch.cat([draws(500), last]), 0.8)
    assert int(policy.bins.max()) <= 13
    inside = policy.strength * 17 - policy.bins
    assert float(inside.min()) >= -1e-5
    assert float(inside.max()) <= 1 + 1e-5
    assert 0.45 < float(inside.mean()) < 0.55


def test_a_policy_applies_its_operations_in_turn():
    module, x = learned(), torch.rand(30, 3, 9, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    policy = module.policy(draws(30), 0.8)
    found = module.apply_policy(x, policy)
    pool = list(POOL.values())
    for i in range(30):
        one = x[i : i + 1]
        for turn in range(2):
            one = pool[policy.which[i, turn]](one, policy.strength[i : i + 1, turn], policy.place[i : i + 1, turn])
        assert torch.allclose(found[i : i + 1], one, atol=1e-12)
    assert 0 <= float(found.min()) <= float(found.max()) <= 1
    assert not torch.allclose(found, x, atol=0.1)


def test_an_example_does_not_depend_on_its_batch():
    module, x = learned(1), torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    together = module.apply_policy(x, module.policy(draws(20), 0.8))
    for i in range(20):
        assert torch.equal(module.apply_policy(x[i : i + 1], module.policy(draws(20)[i : i + 1], 0.8))[0], together[i])


def test_operations_without_a_strength_come_by_degrees():
    x = 0.2 + 0.5 * torch.rand(1, 3, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for name in ("autocontrast", "equalize", "invert", "blur", "smooth"):
        changes = [
            POOL[name](x, torch.tensor([s], dtype=torch.float64), torch.zeros(1, 2)) - x for s in (0.0, 0.5, 1.0)
        ]
        assert changes[0].abs().max() < 1e-12
        assert torch.allclose(2 * changes[1], changes[2], atol=1e-12)
        assert changes[2].abs().max() > 0.01


def test_the_score_is_one_minus_half_the_distance():
    p = torch.randn(9, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).softmax(1)
    labels = torch.arange(9) % 5
    expected = 1 - 0.5 * (p - F.one_hot(labels, 5)).abs().sum(1)
    assert torch.allclose(match_score(p, labels), expected, rtol=1e-12)


def test_rates_move_towards_the_mean_score_of_their_rows():
    """Against a loop; 500 rows of 2 operations in 323 bins, so that many bins have several rows and some none."""
    module = learned()
    before = module.rates.clone()
    policy = module.probe(draws(500, seed=3))
    scores = torch.from_numpy(np.random.default_rng(4).random(500))
    module.update(policy, scores, 0.9)
    seen = {}
    for i in range(500):
        for turn in range(2):
            seen.setdefault((int(policy.which[i, turn]), int(policy.bins[i, turn])), []).append(float(scores[i]))
    assert max(map(len, seen.values())) > 3
    assert len(seen) < before.numel()
    for operation in range(len(POOL)):
        for cell in range(17):
            old = float(before[operation, cell])
            rows = seen.get((operation, cell))
            expected = 0.9 * old + 0.1 * float(np.mean(rows)) if rows else old
            assert float(module.rates[operation, cell]) == pytest.approx(expected, rel=1e-12)


def test_strengths_that_hurt_go_out_of_use():
    """Probes above half strength always fail, so policies end up below."""
    module = CTAugment(1)
    for step in range(300):
        probe = module.probe(draws(32, seed=step))
        bad = (probe.bins > 8).any(1)
        module.update(probe, (~bad).double(), 0.9)
    assert int(module.policy(draws(2000), 0.8).bins.max()) <= 8
