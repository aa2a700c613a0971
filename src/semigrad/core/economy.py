"""A network that needs less memory or time for what it computes, and which otherwise is what it was.

    parts        the rows of a batch go through it one part after the other, on the way back too
    recompute    of each segment only what goes in is kept; the rest is computed again on the way back
    precision    in train mode it computes in half the bits, and is given and gives whole ones
    compiled     torch compiles it

Whoever calls it sees a network that answers the whole batch: methods mix rows, pair them, average over them and
remember them as always, so that parts are right for every method. What makes it possible is a pass without a graph,
which is run again, with one, when its derivative is wanted (`_Again`): with the weights, buffers, modes and draws that
it had. Parts and segments differ in what is run again at a time. Weights and examples enter as arguments, so that
derivatives of any order are right; where nothing is differentiated backwards, in forward mode too, there is nothing to
run again.

What depends on more than a row is drawn for all rows (`core.draws`); only batch statistics are those of a part."""

from __future__ import annotations

import contextlib
import contextvars
import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.modules.batchnorm import _BatchNorm
from torch.overrides import _get_current_function_mode_stack

from semigrad.core.draws import DrawsOfAll
from semigrad.core.passes import exact_gradients_wanted
from semigrad.core.processes import Processes
from semigrad.core.randomness import random_state, random_state_kept, restore_random_state
from semigrad.errors import InputError
from semigrad.settings import Precision

Net = TypeVar("Net", bound=nn.Module)
Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Economy:
    """What a network saves, and how; by default nothing."""

    parts: int = 1  # in which the rows of a batch go through
    recompute: bool = False  # instead of keeping what is between layers
    precision: Precision = "float32"
    compiled: bool = False

    @property
    def of_passes(self) -> bool:
        """Whether passes are run otherwise; segments are a matter of the layers inside."""
        return self.parts > 1 or self.precision != "float32" or self.compiled


AS_IT_IS = Economy()


def economize(net: Net, economy: Economy) -> Net:
    """The network itself, which from now on saves what it is told; so do its copies. It changes its class, so that its
    weights keep their names."""
    if economy == AS_IT_IS or any(isinstance(module, _InFront) for module in net.modules()):
        return net
    if any(isinstance(layer, nn.RNNBase) for layer in net.modules()):  # they hold their weights in a second place
        raise InputError(
            "A network with a recurrent layer can be trained as it is only: leave accumulate, checkpoint_activations, "
            "precision and compile out."
        )
    if economy.recompute:
        head = getattr(net, "head", None)
        found = chains(net, head)
        if not found:
            raise InputError(
                "The network has no nn.Sequential of two layers or more, its head not counted, that could be cut into "
                "segments. Leave checkpoint_activations out, or build it with one."
            )
        for chain in found:
            cut = _segments_class(type(chain), _layers_before(chain, head))  # type: ignore[arg-type]
            chain.__class__ = cast("type[nn.Sequential]", cut)
    if economy.of_passes:
        net.__class__ = cast("type[Net]", _economical_class(type(net), economy))  # type: ignore[arg-type]
    return net


def as_it_was(net: Net) -> Net:
    """The network before `economize`."""
    for module in net.modules():
        while isinstance(module, _InFront):
            module.__class__ = type(module).__bases__[1]
    return net


def chains(net: nn.Module, head: nn.Module | None = None) -> list[nn.Sequential]:
    """The outermost sequences of layers, in front of the head, that can be cut into segments."""
    sequence = isinstance(net, nn.Sequential) and type(net).forward is nn.Sequential.forward
    if sequence and _layers_before(cast("nn.Sequential", net), head) > 1:
        return [cast("nn.Sequential", net)]
    return [chain for child in net.children() for chain in chains(child, head)]


def _layers_before(chain: nn.Sequential, head: nn.Module | None) -> int:
    """How many stand in front of the one that holds the head: what the head is given must be there, with its graph, for
    whoever asks for it."""
    holds = (number for number, layer in enumerate(chain) if head is not None and head in layer.modules())
    return next(holds, len(chain))


# --- classes in front of a module's own ---


class _InFront:
    """What is put in front of a module's class."""


def _named_like(kind: type[nn.Module], front: type, **more: Any) -> type[nn.Module]:
    same = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    return type(kind.__name__, (front, kind), {**more, **same})


@cache
def _segments_class(kind: type[nn.Module], count: int) -> type[nn.Module]:
    return _named_like(kind, _InSegments, count=count)


@cache
def _economical_class(kind: type[nn.Module], economy: Economy) -> type[nn.Module]:
    has_head = hasattr(kind, "features")
    front, name = (_EconomicalNetwork, "features") if has_head else (_Economical, "forward")
    return _named_like(kind, front, economy=economy, function=getattr(kind, name))


class _InSegments(_InFront):
    """A sequence whose first n layers go in about √n segments: what is kept between them and what is computed again
    within one are then equally much."""

    count: int  # n

    def forward(self, x: Tensor) -> Tensor:
        every = list(cast("nn.Sequential", self))
        layers, others = every[: self.count], every[self.count :]
        length = math.ceil(math.sqrt(len(layers)))
        for start in range(0, len(layers), length):
            segment = layers[start : start + length]
            x = _Pass(_chained(segment), segment, 1, x)(x)
        return _chained(others)(x)


class _Economical(_InFront):
    """A module without a head."""

    economy: Economy
    function: Callable[[Any, Tensor], Tensor]  # of the module's own class

    def forward(self, x: Tensor) -> Tensor:
        return _economically(cast("nn.Module", self), self.economy, type(self).function, x)


class _EconomicalNetwork(_Economical):
    """A network: its head sees all rows at once."""

    def features(self, x: Tensor) -> Tensor:
        with _unwatched(self.head):  # type: ignore[attr-defined]
            return _economically(cast("nn.Module", self), self.economy, type(self).function, x)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.features(x))  # type: ignore[attr-defined]
        return logits


def _economically(module: nn.Module, economy: Economy, function: Callable[[Any, Tensor], Tensor], x: Tensor) -> Tensor:
    exact = exact_gradients_wanted()
    if economy.compiled and not exact and module.training and torch.is_grad_enabled():
        function = _compiled(function)
    once: Map = lambda rows: function(module, rows)  # noqa: E731
    if economy.precision != "float32" and not exact and module.training:
        once = _in_precision(once, economy.precision)
    if economy.parts == 1:
        return once(x)
    return _Pass(once, [module], economy.parts, x)(x)


def _chained(layers: Sequence[nn.Module]) -> Map:
    def run(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x)
        return x

    return run


def _in_precision(function: Map, precision: Precision) -> Map:
    def run(x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, getattr(torch, precision), cache_enabled=False):
            return function(x).to(x.dtype)

    return run


@cache
def _compiled(function: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """By torch's compiler, with the draws that there are without it."""
    compiled = torch.compile(function, options={"fallback_random": True})

    def run(module: nn.Module, x: Tensor) -> Tensor:
        try:
            return compiled(module, x)
        except torch._dynamo.exc.TorchDynamoException as error:
            reason = str(error).strip().partition("\n")[0]
            raise InputError(f"Torch cannot compile the network here ({reason}). Leave compile out.") from error

    return run


@contextlib.contextmanager
def _unwatched(head: nn.Module) -> Iterator[None]:
    """Whoever watches the head is told when it sees all rows."""
    watchers, head._forward_pre_hooks = head._forward_pre_hooks, OrderedDict()
    try:
        yield
    finally:
        head._forward_pre_hooks = watchers


# --- one pass, which can be run again ---


class _Pass:
    """A function of layers as it is called here and now: their weights, buffers and modes, the random state, and
    whatever else is in force."""

    def __init__(self, function: Map, modules: Sequence[nn.Module], parts: int, x: Tensor) -> None:
        self.function, self.device, self.total = function, x.device, len(x)
        shares = Processes(0, min(parts, max(len(x), 1)))
        self.rows = [shares.rows(len(x), part) for part in range(shares.count)]
        self.layers = [layer for module in modules for layer in module.modules()]
        self.slots = [(layer, name) for layer in self.layers for name, p in layer._parameters.items() if p is not None]
        self.held = [cast("Tensor", layer._parameters[name]) for layer, name in self.slots]
        self.weights = list({id(weight): weight for weight in self.held}.values())  # one may be in several places
        self.draws = random_state(self.device)

    def __call__(self, x: Tensor) -> Tensor:
        if not torch.is_grad_enabled() or not any(given.requires_grad for given in (x, *self.weights)):
            return self.in_parts(x)
        self.remember()
        version = x._version
        out: Tensor = _Again.apply(self, x, *self.weights)  # type: ignore[no-untyped-call]
        if x._version != version:
            raise InputError(
                "A layer of the network changes what it is given in place, so that it cannot be computed again. Give "
                "it inplace=False."
            )
        return out

    def in_parts(self, x: Tensor) -> Tensor:
        if len(self.rows) == 1:
            return self.function(x)
        with _slower_statistics(self.layers, len(self.rows)):
            return torch.cat([self.part(x[rows], rows) for rows in self.rows])

    def part(self, x: Tensor, rows: slice) -> Tensor:
        """Of these rows, with the draws of all."""
        if len(self.rows) == 1:
            return self.function(x)
        restore_random_state(self.draws, self.device)
        with DrawsOfAll(rows, self.total):
            return self.function(x)

    def remember(self) -> None:
        """All that may be otherwise when the pass is run again."""
        named = [(layer, name, b) for layer in self.layers for name, b in layer._buffers.items() if b is not None]
        self.buffers = [(layer, name, b.clone()) for layer, name, b in named]
        self.training = [layer.training for layer in self.layers]
        self.context = contextvars.copy_context()
        self.modes = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        kind = self.device.type
        self.autocast = torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind)

    def gradients(self, x: Tensor, weights: Sequence[Tensor], wanted: Sequence[bool], gradient: Tensor) -> list[Any]:
        """Of x and of the weights, where they are wanted: the pass is run again, a part at a time."""
        higher = torch.is_grad_enabled()  # the gradient will be differentiated itself
        if not higher:
            x, weights = x.detach(), [weight.detach().requires_grad_(weight.requires_grad) for weight in weights]
        of_x: list[Tensor] = []
        sums: list[Tensor | None] = [None] * len(weights)
        with random_state_kept(self.device), self.as_then(weights):
            for rows in self.rows:
                with torch.enable_grad():
                    some = x if len(self.rows) == 1 else x[rows]
                    some = some if higher else some.detach().requires_grad_(wanted[0])
                    found = _gradients(self.again(some, rows), [some, *weights], wanted, gradient[rows], higher)
                if wanted[0]:
                    of_x.append(torch.zeros_like(some) if found[0] is None else found[0])
                sums = [_sum(total, more) for total, more in zip(sums, found[1:], strict=True)]
        return [torch.cat(of_x) if len(of_x) > 1 else of_x[0] if of_x else None, *sums]

    def again(self, x: Tensor, rows: slice) -> Tensor:
        with contextlib.ExitStack() as stack:
            for mode in self.modes:
                stack.enter_context(mode)
            stack.enter_context(torch.autocast(self.device.type, *self.autocast, cache_enabled=False))
            return self.context.run(self.part, x, rows)

    @contextlib.contextmanager
    def as_then(self, weights: Sequence[Tensor]) -> Iterator[None]:
        """Layers as they were when the pass was run, with these weights; running statistics move in copies."""
        by_id = {id(weight): given for weight, given in zip(self.weights, weights, strict=True)}
        with _kept(self.layers):
            for layer, training in zip(self.layers, self.training, strict=True):
                layer.training = training
            for (layer, name), weight in zip(self.slots, self.held, strict=True):
                layer._parameters[name] = by_id[id(weight)]  # type: ignore[assignment]
            for layer, name, buffer in self.buffers:
                layer._buffers[name] = buffer.clone()
            restore_random_state(self.draws, self.device)
            yield


class _Again(Function):
    """A pass without a graph, which is run again with one when its derivative is wanted."""

    @staticmethod
    def forward(once: _Pass, x: Tensor, *weights: Tensor) -> Tensor:
        return once.in_parts(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.once = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *weights = ctx.saved_tensors
        return None, *ctx.once.gradients(x, weights, ctx.needs_input_grad[1:], gradient)


def _gradients(
    out: Tensor, given: Sequence[Tensor], wanted: Sequence[bool], gradient: Tensor, higher: bool
) -> list[Tensor | None]:
    """Of all that is given, where it is wanted and plays a part."""
    if not out.requires_grad:
        return [None] * len(given)
    asked = [tensor for tensor, wants in zip(given, wanted, strict=True) if wants]
    found = iter(torch.autograd.grad(out, asked, gradient, create_graph=higher, allow_unused=True))
    return [next(found) if wants else None for wants in wanted]


def _sum(total: Tensor | None, more: Tensor | None) -> Tensor | None:
    return total if more is None else more if total is None else total + more


@contextlib.contextmanager
def _kept(layers: Sequence[nn.Module]) -> Iterator[None]:
    """Whatever their mode is inside, and stands in the place of weights and buffers, is as before afterwards."""
    training = [layer.training for layer in layers]
    tables: list[dict[str, Any]] = [table for layer in layers for table in (layer._parameters, layer._buffers)]
    before = [dict(table) for table in tables]
    try:
        yield
    finally:
        for layer, was in zip(layers, training, strict=True):
            layer.training = was
        for table, held in zip(tables, before, strict=True):
            table.update(held)


@contextlib.contextmanager
def _slower_statistics(layers: Sequence[nn.Module], parts: int) -> Iterator[None]:
    """All parts together move running statistics as far as the whole batch would."""
    kept = [(layer, layer.momentum) for layer in layers if isinstance(layer, _BatchNorm) and layer.momentum is not None]
    for layer, momentum in kept:
        layer.momentum = 1 - (1 - momentum) ** (1 / parts)
    try:
        yield
    finally:
        for layer, momentum in kept:
            layer.momentum = momentum
