"""On a problem made for it, no method is worse than training on the labels alone.

Two moons: 6 labels, 500 unlabeled points, noise 0.1, an MLP, 300 steps, 5 seeds; methods that need images tell 2 from 7
among handwritten digits instead. Default settings, nothing tuned."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_moons

from semigrad.methods import METHODS
from semigrad.run import configure
from tests.small_runs import go
from tests.test_laws import COMPOSITIONS

SEEDS = range(5)
NAMES = [name for name in METHODS if name != "supervised"] + list(COMPOSITIONS)

WORSE: dict[str, str] = {}
"""Methods that are worse than labeled-only here, and why."""

pytestmark = pytest.mark.slow


def moons(path, seed):
    x, y = make_moons(1506, noise=0.1, random_state=seed)
    x = x.astype(np.float32)
    np.savez(path, x=x[:506], y=y[:506], x_test=x[506:], y_test=y[506:])


def two_digits(path, seed):
    images, y = load_digits(return_X_y=True)
    chosen = np.random.default_rng(seed).permutation(np.flatnonzero(np.isin(y, (2, 7))))
    images = (images[chosen].reshape(-1, 8, 8) / 16 * 255).round().astype(np.uint8)
    np.savez(path, x=images[:206], y=y[chosen[:206]], x_test=images[206:], y_test=y[chosen[206:]])


def mean_error(folder, method, images):
    errors = []
    for seed in SEEDS:
        path = folder / f"{seed}.npz"
        (two_digits if images else moons)(path, seed)
        model = {"name": "small-conv"} if images else {"name": "mlp", "width": 64}
        run = configure(f"npz:{path}@6", method=method, model=model, steps=300, batch=32, seed=seed)
        errors.append(go(run, folder / f"{method}-{seed}")["error"])
    return np.mean(errors)


@pytest.fixture(scope="module")
def labeled_only(tmp_path_factory):
    torch.manual_seed(0)
    folders = {images: tmp_path_factory.mktemp("labeled-only") for images in (False, True)}
    return {images: mean_error(folder, "supervised", images) for images, folder in folders.items()}


@pytest.mark.parametrize("name", NAMES)
def test_not_worse_than_labeled_only(name, labeled_only, tmp_path):
    images = METHODS[name.partition("+")[0]].needs_images
    error = mean_error(tmp_path, name, images)
    assert (error > labeled_only[images]) == (name in WORSE), f"{error:.2f} % against {labeled_only[images]:.2f} %"
