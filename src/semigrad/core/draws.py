"""What a network draws for some of the rows of a batch, as it would draw it for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

Changed = Mapping[Any, Callable[..., Tensor]]
"""Functions of torch, and what to call instead."""


class DrawsOfAll(TorchFunctionMode):
    """Inside, what is drawn for these rows is drawn for all rows, of which these are used: dropout of all kinds,
    `rand_like`, `randn_like`, `rand` and `randn` with a row for each example, and what draws in the place of a tensor's
    numbers, as timm's DropPath does."""

    def __init__(self, rows: slice, total: int) -> None:
        super().__init__()
        self.rows, self.total = rows, total
        self.count = rows.stop - rows.start

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        change = self.changed.get(function)
        return function(*args, **kwargs or {}) if change is None else change(self, function, *args, **kwargs or {})

    def has_rows(self, shape: Any) -> bool:
        return len(shape) > 0 and shape[0] == self.count

    def empty(self, like: Tensor) -> Tensor:
        """With all rows, laid out in memory like these, because draws follow the memory."""
        lasts = {4: torch.channels_last, 5: torch.channels_last_3d}
        last = lasts.get(like.dim(), torch.contiguous_format)
        layout = last if not like.is_contiguous() and like.is_contiguous(memory_format=last) else None
        shape = (self.total, *like.shape[1:])
        return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=layout or torch.contiguous_format)

    def dropout(self, function: Any, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if not training or not self.has_rows(x.shape):
            return cast("Tensor", function(x, p, training, inplace))
        with torch.no_grad():
            mask: Tensor = function(self.empty(x.detach()).fill_(1), p)[self.rows].clone()
        return x * mask

    def row_by_row(self, function: Any, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Any function that draws for each row, of all rows, the others being zeros."""
        if not self.has_rows(x.shape):
            return cast("Tensor", function(x, *args, **kwargs))
        others = self.empty(x.detach()).fill_(0)
        rows: Tensor = function(torch.cat([others[: self.rows.start], x, others[self.rows.stop :]]), *args, **kwargs)
        return rows[self.rows]

    def draw_like(self, function: Any, x: Tensor, **kwargs: Any) -> Tensor:
        if not self.has_rows(x.shape):
            return cast("Tensor", function(x, **kwargs))
        return cast("Tensor", function(self.empty(x.detach()), **kwargs)[self.rows])

    def draw(self, function: Any, *size: Any, **kwargs: Any) -> Tensor:
        shape = tuple(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
        if not self.has_rows(shape):
            return cast("Tensor", function(*size, **kwargs))
        return cast("Tensor", function(self.total, *shape[1:], **kwargs)[self.rows])

    def draw_into(self, function: Any, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not self.has_rows(x.shape) or any(isinstance(each, Tensor) for each in args):
            return cast("Tensor", function(x, *args, **kwargs))
        return x.copy_(function(self.empty(x.detach()), *args, **kwargs)[self.rows])

    changed: ClassVar[Changed] = {
        **dict.fromkeys((F.dropout, F.dropout1d, F.dropout2d, F.dropout3d), dropout),
        **dict.fromkeys((F.alpha_dropout, F.feature_alpha_dropout), row_by_row),
        **dict.fromkeys((torch.rand_like, torch.randn_like), draw_like),
        **dict.fromkeys((torch.rand, torch.randn), draw),
        **dict.fromkeys((Tensor.bernoulli_, Tensor.exponential_, Tensor.normal_, Tensor.uniform_), draw_into),
    }
    """What is done in the place of torch's functions."""
