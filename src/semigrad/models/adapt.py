"""Somebody's own network, given the `features` and `head` that methods ask for."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from semigrad.core.randomness import random_state, random_state_kept, restore_random_state
from semigrad.errors import InputError

CURE = (
    "Return the logits as the last nn.Linear gives them, or give the network a method `features(x)` and a module `head`"
    " so that head(features(x)) are its logits."
)


class Adapted(nn.Module):
    """The network itself; its head is its last linear layer, its features are what that layer is given.

    It sees examples as they are, images in [0, 1]: normalizing them is its own affair.
    """

    def __init__(self, network: nn.Module, head_name: str) -> None:
        super().__init__()
        self.network = network
        self.head_name = head_name

    @property
    def head(self) -> nn.Module:
        """Found by name, not held: it stands in the state dict once."""
        return self.network.get_submodule(self.head_name)

    def features(self, x: Tensor) -> Tensor:
        """(B, *shape) -> (B, width), what the head sees."""
        seen: list[Tensor] = []
        hook = self.head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        try:
            self.network(x)
        finally:
            hook.remove()
        return seen[0]

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)
        return logits


@dataclass(frozen=True)
class Call:
    """One call of a linear layer."""

    name: str
    given: Tensor
    gave: Tensor
    version: int  # autograd's count of in-place changes to `gave`


def adapt(net: nn.Module, example: Tensor) -> nn.Module:
    """`net` if it has `features` and `head` already, else a wrapper that finds them; the parameters stay `net`'s own.

    example (rows, *shape), two rows or more: they are run through copies of the network, so nothing in it moves.
    """
    if any(is_lazy(weight) for weight in (*net.parameters(), *net.buffers())):
        raise InputError("The network has lazy layers, whose size is not known yet. Run it once on a few examples.")
    if hasattr(net, "_orig_mod"):  # as torch.compile calls it, whose own modules take a second to import
        raise InputError("The network is what torch.compile gave, which hides its layers. Give the module itself.")
    try:
        copy.deepcopy(net)
    except (RuntimeError, ValueError, TypeError) as error:
        raise InputError(
            f"The network cannot be copied ({str(error).splitlines()[0]}). Use weight_norm of "
            "torch.nn.utils.parametrizations instead of torch.nn.utils."
        ) from error
    if all(_composes(net, example, training) for training in (False, True)):
        return net
    names = {_head_name(net, example, training) for training in (False, True)}
    if len(names) > 1:
        raise InputError(f"The network's last nn.Linear is not the same in train mode and in eval mode. {CURE}")
    return Adapted(net, names.pop())


def _composes(net: nn.Module, example: Tensor, training: bool) -> bool:
    """Whether head(features(x)) are the logits; some networks have parts of these names that are something else, or
    drop features out between them."""
    trial = copy.deepcopy(net).train(training)
    features, head = getattr(trial, "features", None), getattr(trial, "head", None)
    if not (callable(features) and isinstance(head, nn.Module)):
        return False
    with torch.no_grad(), random_state_kept(example.device):
        try:
            draws = random_state(example.device)
            logits = trial(example)
            restore_random_state(draws, example.device)
            composed = head(features(example))
        except (RuntimeError, TypeError, ValueError):
            return False
    return isinstance(composed, Tensor) and composed.shape == logits.shape and torch.allclose(composed, logits)


def _head_name(net: nn.Module, example: Tensor, training: bool) -> str:
    """The name of the linear layer that gives the logits and nothing else."""
    logits, calls = _trace(net, example, training)
    mode = "train" if training else "eval"
    if not isinstance(logits, Tensor) or logits.dim() != 2 or len(logits) != len(example):
        what = f"shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else f"a {type(logits).__name__}"
        raise InputError(
            f"For {len(example)} examples the network gives {what} in {mode} mode, not logits (batch, classes)."
            " Let it return one row of logits for each example, and nothing beside them."
        )
    if not calls:
        raise InputError(f"The network calls no nn.Linear, so its head is unknown. {CURE}")
    last = calls[-1]
    same = last.gave.data_ptr() == logits.data_ptr() and last.gave.numel() == logits.numel()
    if not same or last.gave._version != last.version:
        raise InputError(
            f"Something follows the network's last nn.Linear, {last.name!r}, in {mode} mode: a softmax? {CURE}"
        )
    times = sum(call.name == last.name for call in calls)
    if times > 1:
        raise InputError(f"The network calls its last nn.Linear, {last.name!r}, {times} times in one pass. {CURE}")
    if last.given.dim() != 2:
        raise InputError(
            f"The network's last nn.Linear, {last.name!r}, is given shape {tuple(last.given.shape)} instead of"
            " (batch, width). Flatten or average before it."
        )
    return last.name


def _trace(net: nn.Module, example: Tensor, training: bool) -> tuple[object, list[Call]]:
    """What a copy of the network gives, and every call of a linear layer on the way."""
    trial = copy.deepcopy(net).train(training)
    names: dict[nn.Module, str] = {layer: name for name, layer in trial.named_modules() if isinstance(layer, nn.Linear)}
    calls: list[Call] = []

    def record(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        calls.append(Call(names[layer], inputs[0], output, output._version))

    for layer in names:
        layer.register_forward_hook(record)
    with torch.no_grad(), torch.random.fork_rng(devices=[example.device] if example.is_cuda else []):
        try:
            return trial(example), calls
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"The network cannot take examples of shape {tuple(example.shape[1:])}: {error}"
            ) from error
