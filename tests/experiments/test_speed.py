"""What this machine does in a second: arithmetic on made-up times, and that there is something to measure."""

from __future__ import annotations

import pytest
import torch

from semigrad.experiments import speed
from semigrad.experiments.speed import CALLS, MEMORY, PRODUCT, SIZE, Speed, matrix_products, speed_here, speed_of, turn


def test_the_quicker_way_to_multiply_counts():
    """On processors of AMD torch's library for matrices knows half of what its convolutions reach."""
    seconds = {f"{PRODUCT}, way 0": 2e-3, f"{PRODUCT}, way 1": 1e-3, MEMORY: 1.0, CALLS: 1.0}
    assert speed_of(seconds).multiplications == pytest.approx(SIZE**3 / 1e-3)


def test_numbers_and_calls_are_those_of_the_layers_that_were_timed():
    """BatchNorm and leaky ReLU put out as many numbers as they take, pooling a quarter; all three ways, and of the few
    images a convolution is a fourth layer."""
    found = speed_of({f"{PRODUCT}, way 0": 1.0, MEMORY: 1.0, CALLS: 1.0})
    assert found.number == pytest.approx(speed.SHARE / (3 * 64 * 32 * 16 * 16 * 2.25))
    assert found.layer == pytest.approx(speed.BESIDE / (3 * 4))


def test_all_ways_multiply():
    ways = matrix_products(3)
    assert len(ways) == 1 + torch.backends.mkldnn.is_available()
    for way in ways:
        product = way()
        assert torch.equal(product.to_dense() if product.is_mkldnn else product, torch.full((3, 3), 3.0))


def test_a_turn_takes_the_best_of_some_times():
    ticks = iter(tick for taken in (5.0, 2.0, *[7.0] * (speed.TIMES - 2)) for tick in (0.0, taken))
    assert turn({"work": lambda: None}, lambda: next(ticks)) == {"work": 2.0}


def test_this_machine_is_measured_and_nothing_else_changes():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    found = speed_here(0.1)
    assert 1e8 < found.multiplications < 1e13
    assert 1e-12 < found.number < 1e-6
    assert 1e-8 < found.layer < 1e-1
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def test_a_step_takes_what_its_parts_take():
    from semigrad.experiments.cost import StepWork

    assert StepWork(6e9, 1e6, 10).seconds(Speed(2e9, 1e-6, 0.5)) == pytest.approx(3 + 1 + 5)
