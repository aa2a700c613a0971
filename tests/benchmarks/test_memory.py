"""The peak of memory, where it is known."""

import copy

import torch
from benchmarks.memory import Options, peak_of, peak_of_step
from torch import nn

from semigrad.core.economy import Economy, economize

MIB = 2**20


def numbers(mib: int) -> torch.Tensor:
    return torch.ones(mib * MIB // 4)


def test_what_is_freed_makes_room_for_what_follows():
    def work():
        first = numbers(10)
        second = numbers(5)
        del first
        third = numbers(3)
        return second, third

    before = numbers(7)
    for _ in range(2):  # the second time as much as the first
        assert peak_of(work) == 15 * MIB
    assert len(before) == 7 * MIB // 4


def test_a_way_back_keeps_every_layers_output_or_a_part_of_it():
    """Ten layers of tanh on 1 MiB: their outputs, and two gradients on the way back."""
    net = nn.Sequential(nn.Flatten(), *(nn.Tanh() for _ in range(10)))
    x = torch.ones(64, MIB // 256).requires_grad_()

    def peak(economy: Economy) -> float:
        trial = economize(copy.deepcopy(net), economy)
        return peak_of(lambda: torch.autograd.grad(trial(x).sum(), x)) / MIB

    assert 10 <= peak(Economy()) <= 13
    assert peak(Economy(recompute=True)) <= 8.1  # 4 segments' inputs, 3 outputs in one, a gradient
    assert peak(Economy(parts=8)) <= 4.5  # an eighth of ten, what came out and gradients of all rows


def test_a_step_takes_less_where_memory_is_saved_and_least_with_both():
    options = Options(batch=16, width=8)
    whole, parts, again = (peak_of_step(options, *saving) for saving in ((1, False), (4, False), (1, True)))
    both = peak_of_step(options, 4, True)
    assert whole > 2 * parts > 2 * both
    assert whole > 1.5 * again > 1.5 * both
