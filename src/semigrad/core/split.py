"""A network whose rows are divided among processes, and which otherwise is what it was.

Called with a batch, it takes its own rows of it, runs on them, and gives the answers for all rows, gathered from all
processes. So whoever calls it sees a network that answers the whole batch: methods mix rows, pair them, average over
them and remember them without knowing that others computed most of the answers, and every number they get is that of
one process, to rounding. Four maps and their derivatives are all it takes:

    own      all rows -> own rows          backwards: the gradients of all rows, gathered
    whole    own rows -> all rows          backwards: the gradient of the own rows
    shared   weights -> the same           backwards: the sum over all processes
    summed   parts -> their sum            backwards: the same

Each is the derivative of another, in forward mode each is itself, so derivatives of any order are whole too: a labeled
gradient inside a meta step, an adversarial direction, a double backward.

Inside, what depends on more than a row is that of the whole batch: dropout and noise are drawn for all rows, of which
the own ones are used, and batch statistics are of all rows. `_WholeBatch` sees to it, and says what it knows."""

from __future__ import annotations

import contextlib
import contextvars
import math
import operator
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn import functional as F

from semigrad.core.draws import Changed, DrawsOfAll
from semigrad.core.processes import ALONE, Processes

Net = TypeVar("Net", bound=nn.Module)
Map = Callable[[Tensor], Tensor]
Slot = tuple[nn.Module, str]

# --- the four maps ---


class _Own(Function):
    @staticmethod
    def forward(x: Tensor, processes: Processes) -> Tensor:
        return x[processes.rows(len(x))]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Processes], output: Tensor) -> None:
        ctx.total, ctx.processes = len(inputs[0]), inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return whole_rows(gradient, ctx.total, ctx.processes), None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return own_rows(tangent, ctx.processes)


class _Whole(Function):
    @staticmethod
    def forward(own: Tensor, total: int, processes: Processes) -> Tensor:
        return processes.gather(own, total)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int, Processes], output: Tensor) -> None:
        ctx.total, ctx.processes = inputs[1:]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return own_rows(gradient, ctx.processes), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        return whole_rows(tangent, ctx.total, ctx.processes)


class _Shared(Function):
    @staticmethod
    def forward(processes: Processes, *weights: Tensor) -> tuple[Tensor, ...]:
        return tuple(weight.detach() for weight in weights)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.processes = inputs[0]
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        sums = iter(summed([gradient for gradient in gradients if gradient is not None], ctx.processes))
        return None, *(None if gradient is None else next(sums) for gradient in gradients)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor | None) -> tuple[Tensor | None, ...]:
        return tangents


class _Summed(Function):
    @staticmethod
    def forward(processes: Processes, *parts: Tensor) -> tuple[Tensor, ...]:
        return tuple(processes.sum(parts))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.processes = inputs[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, *shared(gradients, ctx.processes)

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor) -> tuple[Tensor, ...]:
        return summed(tangents, ctx.processes)


def own_rows(x: Tensor, processes: Processes) -> Tensor:
    rows: Tensor = _Own.apply(x, processes)  # type: ignore[no-untyped-call]
    return rows


def whole_rows(own: Tensor, total: int, processes: Processes) -> Tensor:
    rows: Tensor = _Whole.apply(own, total, processes)  # type: ignore[no-untyped-call]
    return rows


def shared(weights: Any, processes: Processes) -> tuple[Tensor, ...]:
    same: tuple[Tensor, ...] = _Shared.apply(processes, *weights)  # type: ignore[no-untyped-call]
    return same


def summed(parts: Any, processes: Processes) -> tuple[Tensor, ...]:
    sums: tuple[Tensor, ...] = _Summed.apply(processes, *parts) if len(parts) else ()  # type: ignore[no-untyped-call]
    return sums


# --- networks ---


def split(net: Net, processes: Processes) -> Net:
    """The network itself, which from now on divides its rows among the processes; so do its copies. It changes its
    class, as torch's sharded modules do, so that its weights keep their names.

    A recurrent layer holds its weights in a second place, where a share of their gradient would get lost: a network
    with one is left as it is, and every process computes all rows."""
    recurrent = any(isinstance(layer, nn.RNNBase) for layer in net.modules())
    if processes.count > 1 and not recurrent and not isinstance(net, _Split):
        net.__class__ = cast("type[Net]", _split_class(type(net), processes))  # type: ignore[arg-type]
    return net


def join(net: nn.Module) -> None:
    """A network as it was before `split`."""
    if isinstance(net, _Split):
        net.__class__ = type(net).__bases__[1]


def processes_of(net: nn.Module) -> Processes:
    """Those that a network divides its rows among."""
    return net.processes if isinstance(net, _Split) else ALONE


def used_whole(module: nn.Module) -> list[nn.Parameter]:
    """The trained weights that every process may use on all rows: those outside networks that are split, and heads,
    which methods call by themselves. Their gradients are whole everywhere, and equal but for rounding."""
    divided = [part for part in module.modules() if isinstance(part, _Split)]
    heads = [head for part in divided if isinstance(head := getattr(part, "head", None), nn.Module)]
    inside = {p for part in divided for p in part.parameters()} - {p for head in heads for p in head.parameters()}
    return [p for p in module.parameters() if p.requires_grad and p not in inside]


@cache
def _split_class(kind: type[nn.Module], processes: Processes) -> type[nn.Module]:
    mixin = _SplitNetwork if hasattr(kind, "features") else _Split
    same = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    return type(kind.__name__, (mixin, kind), {"processes": processes, **same})


class _Split:
    """In front of a module's class."""

    processes: Processes

    def forward(self, x: Tensor) -> Tensor:
        return _by_rows(cast("nn.Module", self), self.processes, super().forward, x)  # type: ignore[misc]


class _SplitNetwork(_Split):
    """In front of a network's class."""

    def features(self, x: Tensor) -> Tensor:
        return _by_rows(cast("nn.Module", self), self.processes, super().features, x)  # type: ignore[misc]


_inside = contextvars.ContextVar("inside", default=False)


def _by_rows(module: nn.Module, processes: Processes, function: Map, x: Tensor) -> Tensor:
    """The function, one of the module's, for all rows of x."""
    total = len(x)
    if _inside.get() or not processes.divide(total):
        return function(x)
    with _overheard(module) as overheard, _with_shared_weights(module, processes), _WholeBatch(processes, total):
        token = _inside.set(True)
        try:
            own = function(own_rows(x, processes))
        finally:
            _inside.reset(token)
    overheard(lambda h: whole_rows(h, total, processes))
    return whole_rows(own, total, processes)


@contextlib.contextmanager
def _overheard(module: nn.Module) -> Iterator[Callable[[Map], None]]:
    """Whoever watches the head of a network (`passes.watch`) is told afterwards, of all rows."""
    head: Any = getattr(module, "head", None)
    watchers: dict[int, Any] = head._forward_pre_hooks if isinstance(head, nn.Module) else {}
    seen: list[Tensor] = []

    def tell(complete: Map) -> None:
        for h in map(complete, seen):
            for watcher in list(watchers.values()):
                watcher(head, (h,))

    if not watchers:
        yield tell
        return
    head._forward_pre_hooks = OrderedDict()
    head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        yield tell
    finally:
        head._forward_pre_hooks = watchers


_latest: weakref.WeakKeyDictionary[nn.Module, tuple[list[Tensor], list[int], tuple[Tensor, ...]]]
_latest = weakref.WeakKeyDictionary()
"""What was made of a module's weights last: passes with the same weights go on from there, so that the gradients of a
whole step are summed at once."""


@contextlib.contextmanager
def _with_shared_weights(module: nn.Module, processes: Processes) -> Iterator[None]:
    """The gradient of every weight used inside is summed over all processes."""
    slots = [(layer, name) for layer in module.modules() for name, p in layer._parameters.items() if _trained(p)]
    if not slots or not torch.is_grad_enabled():
        yield
        return
    given = [cast("Tensor", layer._parameters[name]) for layer, name in slots]
    versions = [weight._version for weight in given]
    before = _latest.get(module)
    if before is not None and before[1] == versions and all(map(operator.is_, before[0], given)):
        inside = before[2]
    else:
        inside = shared(given, processes)
        _latest[module] = given, versions, inside
    try:
        for (layer, name), weight in zip(slots, inside, strict=True):
            layer._parameters[name] = weight  # type: ignore[assignment]
        yield
    finally:
        for (layer, name), weight in zip(slots, given, strict=True):
            layer._parameters[name] = weight  # type: ignore[assignment]


def _trained(weight: Tensor | None) -> bool:
    return weight is not None and weight.requires_grad


# --- what depends on more than a row ---


class _WholeBatch(DrawsOfAll):
    """Inside, draws and batch statistics are those of the whole batch: BatchNorm and means over the batch too. Whatever
    else mixes rows, mixes those of this process."""

    def __init__(self, processes: Processes, total: int) -> None:
        super().__init__(processes.rows(total), total)
        self.processes = processes

    def mean(self, function: Any, x: Tensor, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Tensor:
        over = range(x.dim()) if dim is None else [d % x.dim() for d in ([dim] if isinstance(dim, int) else dim)]
        if 0 not in over or not self.has_rows(x.shape):
            return cast("Tensor", function(x, *([] if dim is None else [dim, keepdim]), **kwargs))
        numbers = self.total * math.prod(x.shape[d] for d in over if d > 0)
        return self.of_all(x.sum(list(over), keepdim, **kwargs)) / numbers

    def of_all(self, part: Tensor) -> Tensor:
        """The sum over all processes, which every one goes on with for its own rows."""
        return shared(summed([part], self.processes), self.processes)[0]

    def batch_norm(
        self, function: Any, x: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
        weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False, momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:  # fmt: skip
        """With the mean and variance of all rows: from those of every process, which loses no digits."""
        if not training:
            return cast("Tensor", function(x, running_mean, running_var, weight, bias, False, momentum, eps))
        dims, wide = [0, *range(2, x.dim())], (1, -1, *[1] * (x.dim() - 2))
        kept = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
        own = x.to(kept)
        mean = own.mean(dims)
        var = (own - mean.reshape(wide)).square().mean(dims)  # as exact as torch.var, which is many times slower
        number = x.numel() // x.shape[1]
        parts = torch.cat([mean, var, mean.new_tensor([number])])[None]
        parts = shared([whole_rows(parts, self.processes.count, self.processes)], self.processes)[0]
        means, variances, numbers = torch.split(parts, [x.shape[1], x.shape[1], 1], 1)
        shares = numbers / numbers.sum()
        mean = (shares * means).sum(0)
        var = (shares * (variances + (means - mean).square())).sum(0)
        if running_mean is not None and running_var is not None:
            with torch.no_grad():
                size = numbers.detach().sum()
                running_mean.mul_(1 - momentum).add_(mean.detach().to(running_mean), alpha=momentum)
                unbiased = var.detach() * (size / (size - 1))
                running_var.mul_(1 - momentum).add_(unbiased.to(running_var), alpha=momentum)
        scale = (var + eps).rsqrt() if weight is None else weight.to(kept) * (var + eps).rsqrt()
        centered = (x - mean.reshape(wide)) * scale.reshape(wide)
        return (centered if bias is None else centered + bias.to(kept).reshape(wide)).to(x.dtype)

    changed: ClassVar[Changed] = {
        **DrawsOfAll.changed,
        **dict.fromkeys((torch.mean, Tensor.mean), mean),
        F.batch_norm: batch_norm,
    }
