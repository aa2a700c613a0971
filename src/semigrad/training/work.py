"""How much work there is in a network and in a step of a method, counted and not timed.

A pass of an example through the network counts 1 forward, 1 back to the weights and 1 back to the input. They are
counted on one small step, which two networks take that differ by one convolution: what the deeper one has to do more
are the step's passes through that convolution. Heads, discriminators and autoencoders are the same in both and cancel,
and so do first layers, which need no gradient for their input. So a method of one's own has a cost without a word about
it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from semigrad.core import CPU, Batch, Clock, Method, Task, random_state_kept, seed_network
from semigrad.core.economy import AS_IT_IS, Economy, economize
from semigrad.errors import InputError
from semigrad.models import Model, SmallConv
from semigrad.settings.fields import refuse
from semigrad.training.threads import processor_threads
from semigrad.training.training import Step

SHAPE, CLASSES = (3, 8, 8), 10  # images, which every method takes, and square, so that they can be turned
DEPTH = 12  # so that one layer more is far from the end, where a method may do more than elsewhere
SHALLOW, DEEP = SmallConv(widths=(4,) * DEPTH, drop=0.0), SmallConv(widths=(4,) * (DEPTH + 1), drop=0.0)
CLOCK = Clock(step=720_720, steps=800_000, lr=0.1, seed=0)
"""Past every ramp, also where its length is in steps, and a step at which whatever happens every few steps happens."""


class Passes(NamedTuple):
    """Through the network in one step, forward and back; the mean over steps where some do more than others."""

    calls: float  # whatever the number of examples
    examples: float  # in all of these calls together


class Work(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the convolutions and matrix products that are computed inside, at any order of differentiation.

    Torch's own counter uses the same formulas, but also follows modules, which fails where a step takes gradients."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.products = 0
        self.multiplications = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch loads its compiler, which takes a second, only to keep it out of here

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Sequence[Any] = (), options: Mapping[str, Any] | None = None
    ) -> Any:
        options = options or {}
        out = function(*arguments, **options)
        operator = function.overloadpacket
        if count := flop_registry.get(operator):
            self.multiplications += count(*arguments, **options, out_val=out) // 2  # torch counts additions too
            both = operator is torch.ops.aten.convolution_backward  # to the input and to the weights, where wanted
            self.products += sum(arguments[-1][:2]) if both else 1
        return out


@cache
def passes_of_step(method: Method, batch: int, unlabeled_batch: int, parts: int = 1) -> Passes:
    """Of one step of the method with so many labeled and unlabeled examples, which go through the network in so many
    parts; not of its prologue."""
    refuse(method.problems(batch, unlabeled_batch))

    @cache
    def at(number: int) -> Passes:
        clock = replace(CLOCK, step=CLOCK.step + number)
        return _passes_at(clock, method, batch, unlabeled_batch, parts)

    mean = method.traits.mean_over_steps
    return Passes(mean(lambda number: at(number).calls), mean(lambda number: at(number).examples))


def _passes_at(clock: Clock, method: Method, batch: int, unlabeled_batch: int, parts: int) -> Passes:
    try:
        shallow, deep = (
            _work_of_step(clock, method, model, batch, unlabeled_batch, parts) for model in (SHALLOW, DEEP)
        )
    except InputError:
        raise
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        reason, shape = str(error).partition("\n")[0], " x ".join(map(str, SHAPE))
        name = type(method).__name__
        raise InputError(f"What a step of {name} costs is counted on images of {shape}: {reason}") from error
    example = network_size(DEEP, SHAPE, CLASSES)[0] - network_size(SHALLOW, SHAPE, CLASSES)[0]
    return Passes(deep.products - shallow.products, (deep.multiplications - shallow.multiplications) / example)


def _work_of_step(clock: Clock, method: Method, model: Model, batch: int, unlabeled_batch: int, parts: int) -> Work:
    """Of a whole step, as training takes it, but for the optimizer's."""
    economy = Economy(parts)
    work, task = Work(), _task(model, SHAPE, CLASSES, batch, unlabeled_batch, economy)
    with random_state_kept(CPU), processor_threads(1):  # on so little, more would only wait for each other
        seed_network(0, CPU)
        net = economize(model.build(task), economy)
        memory = method.init(net, task)
        step, examples = Step(method, net, memory).train(), _batch(method, batch, unlabeled_batch)
        with work:
            terms, _ = step(examples, clock)
            torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
            method.update(net, memory, clock)
    return work


def _batch(method: Method, batch: int, unlabeled_batch: int) -> Batch:
    """Noise in the views that the method asks for."""
    traits = method.traits
    return Batch(
        tuple(torch.rand(batch, *SHAPE) for _ in traits.labeled_views),
        torch.randint(CLASSES, (batch,)),
        tuple(torch.rand(unlabeled_batch, *SHAPE) for _ in traits.views),
        torch.arange(batch),
        batch + torch.arange(unlabeled_batch if traits.views else 0),
    )


def _task(
    model: Model, shape: tuple[int, ...], classes: int, labeled: int, unlabeled: int, economy: Economy = AS_IT_IS
) -> Task:
    def fresh() -> nn.Module:
        return economize(model.build(task), economy)

    names, ones, shares = tuple(map(str, range(classes))), (1.0,) * shape[0], (1 / classes,) * classes
    task = Task(names, shape, ones, ones, labeled, unlabeled, labeled + unlabeled, shares, fresh)
    return task


@cache
def network_size(model: Model, shape: tuple[int, ...], classes: int) -> tuple[int, int]:
    """Multiplications of convolutions and matrices for one example, and how many layers there are of all kinds.

    One example is run: on torch's device `meta`, which computes shapes only, torch would load its compiler first."""
    with random_state_kept(CPU):
        network = model.build(_task(model, shape, classes, 1, 1))
    layers = [layer for layer in network.modules() if not list(layer.children())]
    return multiplications(network, shape), len(layers)


@cache
def numbers_put_out(model: Model, shape: tuple[int, ...], classes: int) -> int:
    """By all layers of a network, for one example: they go through memory."""
    with random_state_kept(CPU):
        return numbers_of(model.build(_task(model, shape, classes, 1, 1)), shape)


def numbers_of(network: nn.Module, shape: tuple[int, ...]) -> int:
    """That its layers put out for one example, on a copy."""
    trial, found = copy.deepcopy(network).cpu().eval(), 0

    def noted(_: nn.Module, __: object, out: Any) -> None:
        nonlocal found
        found += sum(each.numel() for each in (out if isinstance(out, tuple) else (out,)))

    for layer in trial.modules():
        if not list(layer.children()):
            layer.register_forward_hook(noted)
    with random_state_kept(CPU), processor_threads(1), torch.no_grad():
        trial(torch.zeros(1, *shape))
    return found


def multiplications(network: nn.Module, shape: tuple[int, ...]) -> int:
    """Of convolutions and matrices for one example, on a copy."""
    trial = copy.deepcopy(network).cpu().eval()
    with random_state_kept(CPU), processor_threads(1), torch.no_grad(), Work() as work:
        trial(torch.zeros(1, *shape))
    return int(work.multiplications)
