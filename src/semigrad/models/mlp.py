"""A multilayer perceptron for feature arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from semigrad.core import Task
from semigrad.models.network import Model, Network, Normalize
from semigrad.settings.fields import Count, ShareBelowOne, Whole, refuse, value_problems

Activation = Literal["relu", "tanh"]


@dataclass(frozen=True)
class MLP(Model):
    """`depth` layers of linear, BatchNorm, activation and dropout; at depth 0, multinomial logistic regression."""

    width: Count = 256
    """units of each hidden layer"""
    depth: Whole = 2
    """number of hidden layers"""
    drop: ShareBelowOne = 0.0
    """probability of dropout behind each hidden layer"""
    activation: Activation = "relu"
    """nonlinearity of the hidden layers"""
    batch_norm: bool = True
    """BatchNorm before each activation"""

    def __post_init__(self) -> None:
        refuse(value_problems(self))

    def build(self, task: Task) -> Network:
        layers: list[nn.Module] = []
        width = task.shape[0]
        for _ in range(self.depth):
            layers += [
                nn.Linear(width, self.width, bias=not self.batch_norm)
            ]  # torch's initial weights, here and below
            layers += [nn.BatchNorm1d(self.width)] if self.batch_norm else []
            layers += [nn.ReLU() if self.activation == "relu" else nn.Tanh(), nn.Dropout(self.drop)]
            width = self.width
        head = nn.Linear(width, len(task.classes))
        return Network(Normalize(task.mean, task.std, images=False), nn.Sequential(*layers), head)
