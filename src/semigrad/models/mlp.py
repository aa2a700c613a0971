"""A multilayer perceptron for feature arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import nn

from semigrad.core import Task
from semigrad.models import settings
from semigrad.models.network import Model, Network, Normalize

Activation = Literal["relu", "tanh"]


@dataclass(frozen=True)
class MLP(Model):
    """`depth` layers of linear, BatchNorm, activation and dropout; at depth 0, multinomial logistic regression."""

    width: int = 256
    """units of each hidden layer"""
    depth: int = 2
    """number of hidden layers"""
    drop: float = 0.0
    """probability of dropout behind each hidden layer"""
    activation: Activation = "relu"
    """nonlinearity of the hidden layers"""
    norm: bool = True
    """BatchNorm before each activation"""

    def __post_init__(self) -> None:
        settings.refuse(
            settings.at_least(1, "width", self.width),
            settings.at_least(0, "depth", self.depth),
            settings.share("drop", self.drop),
            settings.choice("activation", self.activation, get_args(Activation)),
        )

    def build(self, task: Task) -> Network:
        layers: list[nn.Module] = []
        width = task.shape[0]
        for _ in range(self.depth):
            layers += [nn.Linear(width, self.width, bias=not self.norm)]  # torch's initial weights, here and below
            layers += [nn.BatchNorm1d(self.width)] if self.norm else []
            layers += [nn.ReLU() if self.activation == "relu" else nn.Tanh(), nn.Dropout(self.drop)]
            width = self.width
        head = nn.Linear(width, len(task.classes))
        return Network(Normalize(task.mean, task.std, images=False), nn.Sequential(*layers), head)
