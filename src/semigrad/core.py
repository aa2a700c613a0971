"""The words every other module speaks: Batch, Clock, Task, Method; and where every random draw comes from."""

from __future__ import annotations

import abc
import contextlib
import contextvars
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

CPU = torch.device("cpu")

Terms = dict[str, Tensor]
"""Named loss terms, scalars; their sum is minimized."""


def derive_seed(*parts: object) -> int:
    """A 63-bit seed that depends on every part, the same in every process and on every platform."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(*parts: object) -> np.random.Generator:
    """A fresh random generator that is a pure function of `parts`."""
    return np.random.Generator(np.random.Philox(key=derive_seed(*parts)))


def seed_network(seed: int, device: torch.device) -> None:
    """Seed what dropout and gates draw from. `torch.manual_seed` does the same for every kind of device there is, and
    takes a tenth of a millisecond for it."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


@contextlib.contextmanager
def random_state_kept(device: torch.device) -> Iterator[None]:
    """Whatever is drawn inside, the random state is as before afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield


_exact_gradients = contextvars.ContextVar("exact_gradients", default=False)


@contextlib.contextmanager
def exact_gradients() -> Iterator[None]:
    """Layers that declare a gradient which is not that of their function (shake-shake in train mode) use the true one
    inside, so that derivatives of the network mean what they say."""
    token = _exact_gradients.set(True)
    try:
        yield
    finally:
        _exact_gradients.reset(token)


def exact_gradients_wanted() -> bool:
    return _exact_gradients.get()


def length(value: float, steps: int) -> float:
    """A length in steps: values up to 1 are a share of the run, larger ones are steps already."""
    return value * steps if value <= 1 else value


@dataclass(frozen=True)
class Batch:
    """What one step sees. Images are in [0, 1]; features are as they came."""

    labeled: tuple[Tensor, ...]  # one (B_l, *shape) for each of the method's labeled views
    labels: Tensor  # (B_l,) class numbers
    unlabeled: tuple[Tensor, ...]  # one (B_u, *shape) for each of the method's views
    labeled_index: Tensor  # (B_l,) positions in the training part
    unlabeled_index: Tensor  # (B_u,) positions in the training part

    def map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The same batch with every tensor of examples changed (moved, converted)."""
        return Batch(
            tuple(change(x) for x in self.labeled),
            self.labels,
            tuple(change(x) for x in self.unlabeled),
            self.labeled_index,
            self.unlabeled_index,
        )


@dataclass(frozen=True)
class Clock:
    """Where training stands, and the source of every random draw a method makes."""

    step: int
    steps: int
    lr: float
    seed: int
    device: torch.device = CPU

    def draw(self, name: str, sample: Callable[[np.random.Generator, int], np.ndarray], rows: int) -> Tensor:
        """`sample(generator, rows)` for this seed, step and name, one row for each place in the batch."""
        drawn = sample(generator(self.seed, self.step, "draw", name), rows)
        return torch.from_numpy(np.asarray(drawn)).to(self.device)

    @contextlib.contextmanager
    def masks(self, name: str) -> Iterator[None]:
        """Dropout masks and gates drawn inside depend on (seed, step, name) only: two passes under one name share
        them. The random state outside is untouched."""
        with random_state_kept(self.device):
            seed_network(derive_seed(self.seed, self.step, "masks", name), self.device)
            yield

    def ramp(self, over: float) -> float:
        """Linear from 0 to 1 over a length (a share of the run, or steps); 1 where there is no ramp."""
        end = length(over, self.steps)
        return 1.0 if end <= 0 else min(self.step / end, 1.0)


@dataclass(frozen=True)
class Task:
    """What the data are."""

    classes: tuple[str, ...]
    shape: tuple[int, ...]  # of one example: (channels, height, width), or (features,)
    mean: tuple[float, ...]  # per channel or feature, over the training part
    std: tuple[float, ...]
    labeled: int  # number of labeled examples
    unlabeled: int  # number of examples in the unlabeled pool
    marginal: tuple[float, ...]  # share of each class among the labeled examples
    fresh: Callable[[], nn.Module]  # another network of the same kind, newly initialized

    @property
    def images(self) -> bool:
        return len(self.shape) == 3


Guess = Mapping[str, Any]
"""What `Method.guess` hands to `Method.loss`: "targets" are soft labels (B_u, classes); other keys are private."""


@dataclass(frozen=True)
class Method(abc.ABC):
    """A semi-supervised algorithm: a frozen dataclass whose fields are its hyper-parameters.

    All state that changes lives in the network and in the memory that `init` makes, both modules.
    """

    views: ClassVar[tuple[str, ...]] = ("weak",)  # unlabeled views: "raw" or "weak"; names may repeat
    labeled_views: ClassVar[tuple[str, ...]] = ("weak",)
    soft_targets: ClassVar[bool] = False  # the loss trains on guess["targets"], so that they can be adapted
    adapts_targets: ClassVar[bool] = False  # and already does so by the meta-gradient
    student_view: ClassVar[int] = 0  # which of `views` the network is trained on towards the targets

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        """Sentences for settings that cannot work, alone or with these batch sizes."""
        return []

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        """The memory: teacher, second student, discriminator, ensemble."""
        return nn.Module()

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        """Targets for the unlabeled rows, before any loss is computed."""
        return {}

    @abc.abstractmethod
    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        """Named terms, labeled pass first; their sum is minimized."""

    def divergence(self, p: Tensor, targets: Tensor) -> Tensor:
        """Φ, the loss towards soft targets, one number for each row: ‖p − q‖² unless a method says otherwise."""
        return (p - targets).square().sum(1)

    def update(self, net: nn.Module, memory: nn.Module, clock: Clock) -> None:  # noqa: B027 (most need none)
        """After the optimizer's step: averages."""

    def predictor(self, net: nn.Module, memory: nn.Module, batches: Iterable[Batch]) -> nn.Module:
        """Who answers after training; `batches` are fresh ones, to re-estimate statistics."""
        return net
