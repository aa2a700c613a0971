"""Labels of the labeled batch as cross entropy takes them beside the network's logits; a sentence for all others."""

from __future__ import annotations

import functools
from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from semigrad.errors import InputError, kind_of

Loss = Callable[[Tensor, Tensor], Tensor]


def fitting(logits: Tensor, y: Tensor, loss: Loss, look: bool) -> Tensor:
    """Class numbers of any whole type, or soft rows; a loss of somebody's own knows its labels itself. `look`: also at
    the numbers, for which a device has to be waited for."""
    ignored = _ignored(loss)
    if ignored is None:
        return y
    if y.shape == logits.shape and not y.is_complex():
        return y if y.is_floating_point() else y.to(logits.dtype)  # one row of zeros and a one for each example
    numbers, classes = (len(logits), *logits.shape[2:]), logits.shape[1]
    if y.shape != numbers:
        raise InputError(
            f"y has the shape {tuple(y.shape)}, and the network gives logits {tuple(logits.shape)} for x: class "
            f"numbers are {numbers}, and soft labels {tuple(logits.shape)}."
        )
    if y.is_floating_point() or y.is_complex():
        raise InputError(f"y holds {y.dtype} numbers, and numbers of classes are whole, as y.long() has them.")
    y = y.long()
    if look:
        _check_numbers(y, classes, ignored)
    return y


def _ignored(loss: Loss) -> int | None:
    """The number that cross entropy passes over; None for another loss."""
    if isinstance(loss, nn.CrossEntropyLoss):
        return loss.ignore_index
    said = loss.keywords if isinstance(loss, functools.partial) else {}
    plain = loss.func if isinstance(loss, functools.partial) else loss
    return int(said.get("ignore_index", -100)) if plain is F.cross_entropy else None


def _check_numbers(y: Tensor, classes: int, ignored: int) -> None:
    wrong = y[((y < 0) | (y >= classes)) & (y != ignored)]
    if len(wrong):
        meant = "x and y are labeled examples; those without a label are u"
        known = meant if wrong[0] == -1 else f"the network has {classes}, numbered from 0"
        raise InputError(f"y holds {wrong[0]}, which is no class: {known}.")


def check_logits(given: object) -> None:
    """Refuse what a network gives where it gives no logits."""
    what = f"the shape {tuple(given.shape)}" if isinstance(given, Tensor) else kind_of(given)
    if not isinstance(given, Tensor) or given.ndim < 2:
        raise InputError(f"The network must give logits, (rows, classes); it gives {what}.")
