"""Strong views: the operations that the draws name, one example like another whatever batch it is in."""

import numpy as np
import pytest
import torch

from semigrad.augment import STRONG_DRAWS, strong
from semigrad.augment import operations as o
from semigrad.augment.strong import POOL


def images(count=40, channels=3, size=16, dtype=torch.float32):
    return torch.rand(count, channels, size, size, generator=torch.Generator().manual_seed(0)).to(dtype)


def draws(count=40, seed=0):
    return np.random.default_rng(seed).random((count, STRONG_DRAWS))


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 16)])
def test_an_example_does_not_depend_on_its_batch(channels, size):
    x, d = images(channels=channels, size=size), draws()
    together = strong(x, d)
    alone = torch.cat([strong(x[i : i + 1], d[i : i + 1]) for i in range(40)])
    assert torch.equal(together, alone)
    order = np.random.default_rng(5).permutation(40)
    assert torch.equal(strong(x[order], d[order]), together[order])


@pytest.mark.parametrize("channels", [1, 3])
def test_it_is_two_drawn_operations_and_a_cutout(channels):
    x, d = images(channels=channels, dtype=torch.float64), draws(seed=1)
    pool = POOL if channels == 1 else (*POOL, o.color)
    found = strong(x, d)
    for i in range(40):
        first, second = (pool[int(d[i, k] * len(pool))] for k in range(2))
        one = x[i : i + 1]
        numbers = torch.from_numpy(d[i : i + 1, 2:])
        one = second(first(one, numbers[:, 0]), numbers[:, 1])
        assert torch.allclose(found[i : i + 1], o.cutout(one, numbers[:, 2], numbers[:, 3:]), atol=1e-12)


def test_nothing_is_mirrored_and_nothing_turned_over():
    names = {operation.__name__ for operation in POOL}
    assert names == {
        "identity", "autocontrast", "equalize", "brightness", "contrast", "sharpness", "posterize", "solarize",
        "rotate", "shear_x", "shear_y", "translate_x", "translate_y",
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("channels", "size"), [(1, 8), (3, 32), (4, 5)])
def test_views_stay_in_the_unit_interval(channels, size, dtype):
    x = images(200, channels, size, dtype)
    found = strong(x, draws(200))
    assert found.shape == x.shape
    assert found.dtype == dtype
    assert 0 <= float(found.min()) <= float(found.max()) <= 1
    assert torch.equal(x, images(200, channels, size, dtype))  # not written to
    assert not torch.allclose(found, x, atol=0.1)
