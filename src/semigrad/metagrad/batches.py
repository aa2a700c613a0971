"""Batches as somebody gives them: tensors stay as they are, arrays and lists become tensors that the network takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from semigrad.errors import InputError, kind_of

Rows = Tensor | np.ndarray | Sequence[Any]
Name = Literal["x", "y", "u", "target"]


def as_batch(net: nn.Module, name: Name, given: Any) -> Tensor:
    """Examples, labels or targets with a row for each example."""
    demand(isinstance(net, nn.Module), "net", net, "a torch module that gives logits")
    batch = given if isinstance(given, Tensor) else _tensor(net, name, given)
    if batch.ndim == 0:
        raise InputError(f"{name} must have a row for each example; given: the single number {batch.item()}.")
    return batch


def demand(holds: bool, name: str, given: object, wanted: str) -> None:
    if not holds:
        raise InputError(f"{name} takes {wanted}; given: {kind_of(given)}.")


def _tensor(net: nn.Module, name: Name, given: Any) -> Tensor:
    """Of the type and on the device of the network's parameters; class numbers stay whole."""
    try:
        values = np.asarray(given)
    except (ValueError, TypeError, RuntimeError):  # rows of different lengths; tensors that have a gradient
        values = np.asarray(None)
    if values.dtype.kind not in "biuf":
        kind = "texts" if values.dtype.kind in "US" else type(given).__name__
        raise InputError(f"{name} must be a tensor, or an array or a list of numbers in equal rows; given: {kind}.")
    like = next((p for p in net.parameters() if p.is_floating_point()), torch.empty(0))
    whole = values.dtype.kind in "biu" and (name == "y" or (name != "target" and _looks_up(net)))
    values = values.astype(np.int64 if whole else np.float64)  # a copy, of a byte order that torch has
    return torch.from_numpy(values).to(like.device, torch.long if whole else like.dtype)


def _looks_up(net: nn.Module) -> bool:
    """Whether inputs may be positions in a table instead of quantities."""
    return any(isinstance(module, nn.Embedding | nn.EmbeddingBag) for module in net.modules())
