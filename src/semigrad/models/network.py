"""What all networks share: normalization first, then features, then a linear head; and the frame for describing one."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from semigrad.core import Task
from semigrad.errors import InputError


class Normalize(nn.Module):
    """(x − mean) / std per channel or feature, held in buffers: networks take images as they are, in [0, 1]."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float], images: bool) -> None:
        super().__init__()
        shape = (1, -1, 1, 1) if images else (1, -1)
        self.register_buffer("mean", torch.tensor(mean).reshape(shape))
        self.register_buffer("std", torch.tensor(std).reshape(shape))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


class Network(nn.Module):
    """logits = head(features(x)), features = body(normalize(x))."""

    def __init__(self, normalize: Normalize, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.normalize = normalize
        self.body = body
        self.head = head
        # about 1.5 x faster convolutions and pools on a processor; whatever goes in comes out in this format
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def width(self) -> int:
        """Of the features."""
        assert isinstance(self.head, nn.Linear)
        return self.head.in_features

    def features(self, x: Tensor) -> Tensor:
        """(B, *shape) -> (B, width), what the head sees."""
        features: Tensor = self.body(self.normalize(x))
        return features

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))
        return logits


@dataclass(frozen=True)
class Model(abc.ABC):
    """The description of a network: a frozen dataclass whose fields are its variants."""

    smallest: ClassVar[int | None] = None  # smallest height and width it takes; None: it takes feature arrays
    channels: ClassVar[tuple[int, ...] | None] = None  # numbers of channels it takes; None: any

    def misfit(self, shape: tuple[int, ...]) -> str | None:
        """Why this network cannot take such examples; None where it can."""
        if (self.smallest is None) != (len(shape) == 1):
            return "it takes images" if self.smallest else "it takes feature arrays"
        if self.smallest is not None and min(shape[1:]) < self.smallest:
            return f"it needs images of at least {self.smallest} x {self.smallest}"
        if self.channels is not None and shape[0] not in self.channels:
            return f"it takes {' or '.join(map(str, self.channels))} channels"
        return None

    @abc.abstractmethod
    def build(self, task: Task) -> Network:
        """A newly initialized network for this task."""

    def translated(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Weights as others name them, under the names that they have here."""
        return dict(tensors)

    def from_hub(self) -> Path:
        """The file of weights that a hub has for this network."""
        raise InputError(
            "Only networks of timm (--model timm:NAME) have weights on a hub. Give a file: --pretrained FILE."
        )
