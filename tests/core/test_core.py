"""Seeds, draws, masks and ramps: pure functions of what they are given."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from semigrad.core import Batch, Clock, derive_seed, generator, length


def test_seeds_are_the_same_in_every_process_and_release():
    # Golden values: if one changes, every published split and run changes with it.
    assert derive_seed(0, 1, "draw", "mixup") == 3717569781919034544
    code = "from semigrad.core import derive_seed; print(derive_seed(3, 'a', 7))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(other.stdout) == derive_seed(3, "a", 7)


def test_seeds_depend_on_every_part_and_on_their_order():
    seeds = {derive_seed(*parts) for parts in [(1, 2), (2, 1), (12,), ("1", 2), (1, 2, "x"), (1, "2")]}
    assert len(seeds) == 6
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_draw_depends_on_seed_step_and_name_only():
    def draw(seed=0, step=5, name="mixup"):
        return Clock(step, 100, 0.1, seed).draw(name, lambda rng, rows: rng.beta(1.0, 1.0, rows), 8)

    torch.rand(3)  # the global state plays no part
    assert torch.equal(draw(), draw())
    for other in (draw(seed=1), draw(step=6), draw(name="crop")):
        assert not torch.equal(draw(), other)


def test_draws_have_the_asked_distribution():
    lam = generator("beta").beta(0.1, 0.1, 200_000)
    assert lam.mean() == pytest.approx(0.5, abs=0.005)
    assert lam.var() == pytest.approx(1 / (4 * (2 * 0.1 + 1)), abs=0.003)  # variance of Beta(γ, γ)


def test_masks_of_one_name_are_shared_and_leave_the_random_state_alone():
    clock, dropout = Clock(3, 10, 0.1, 0), torch.nn.Dropout(0.5)
    ones, before = torch.ones(1000), torch.get_rng_state()
    with clock.masks("a"):
        first = dropout(ones)
    with clock.masks("a"):
        again = dropout(ones)
    with clock.masks("b"):
        other = dropout(ones)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.get_rng_state())


def test_lengths_are_shares_of_the_run_or_steps():
    assert length(0.25, 800) == 200
    assert length(1, 800) == 800
    assert length(60, 800) == 60


@pytest.mark.parametrize(
    ("step", "over", "expected"), [(0, 0, 1), (0, 100, 0), (50, 100, 0.5), (500, 0.5, 1), (25, 0.5, 0.05), (-9, 100, 0)]
)
def test_the_ramp_is_linear(step, over, expected):
    assert Clock(step, 1000, 0.1, 0).ramp(over) == pytest.approx(expected)


def test_mapping_a_batch_changes_the_examples_alone():
    views = (torch.ones(4, 3), torch.ones(4, 3))
    batch = Batch((torch.ones(2, 3),), torch.tensor([0, 1]), views, torch.arange(2), torch.arange(4))
    doubled = batch.map(lambda x: 2 * x)
    assert all((x == 2).all() for x in (*doubled.labeled, *doubled.unlabeled))
    assert torch.equal(doubled.labels, batch.labels)
    assert np.array_equal(doubled.unlabeled_index, batch.unlabeled_index)
