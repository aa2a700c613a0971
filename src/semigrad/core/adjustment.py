"""Logit adjustment: a trained network answers as if the classes were divided otherwise than the labels it learned from.

    f_y(x) − τ log π_y                                          π: shares of the classes among the labels

A network that learned from labels with these shares answers with P(y | x) ∝ P(x | y) π_y. With τ = 1 that becomes
P(x | y), up to what all classes have in common: the answer where all classes are equally common. τ in between goes part
of the way. The logits come out of a linear layer, and its bias takes up the difference: no other number changes, and
whoever is given the network is given the adjusted one.

Menon, Jayasumana, Rawat, Jain, Veit, Kumar: Long-Tail Learning via Logit Adjustment, ICLR 2021 (the post-hoc form).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import nn

from semigrad.core.passes import eval_mode
from semigrad.errors import InputError


def adjustment(shares: Sequence[float], strength: float) -> tuple[float, ...]:
    """−τ log π_y, what each logit becomes larger by."""
    return tuple((-strength * torch.tensor(shares, dtype=torch.float64).log()).tolist())


def adjusted(net: nn.Module, by: Sequence[float]) -> nn.Module:
    """A copy of the network, whose logits are larger by so much for each class."""
    answering = copy.deepcopy(net)
    shift(answering, by)
    return answering


@torch.no_grad()
def shift(net: nn.Module, by: Sequence[float]) -> None:
    """Make the logits of the network itself larger by so much."""
    biases = [p for name, p in getattr(net, "head", net).named_parameters() if name.rpartition(".")[2] == "bias"]
    if not biases or biases[-1].shape != (len(by),):
        raise InputError(
            "adjust moves the bias of the layer that gives the logits, and this network has none there. Give that "
            "layer a bias, or leave adjust out."
        )
    biases[-1].add_(biases[-1].new_tensor(by))  # BatchNorm behind the layer has the last word, and a bias too


@torch.no_grad()
def check_adjustable(net: nn.Module, shape: tuple[int, ...], classes: int) -> None:
    """Refuse a network whose logits do not move as they are told to."""
    by, examples = [(-1.0) ** number for number in range(classes)], torch.zeros(1, *shape)
    moved = adjusted(net, by)
    with eval_mode(net), eval_mode(moved):
        before, after = net(examples), moved(examples)
    if not torch.allclose(after, before + before.new_tensor(by), rtol=0.01, atol=0.1):
        raise InputError(
            "adjust moves the bias of the layer that gives the logits, and the logits of this network do not follow "
            "it. Let its last layer be a linear one with a bias of its own, or leave adjust out."
        )
