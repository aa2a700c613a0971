"""The words every other module speaks: Batch, Clock, Task, Method; and where every random draw comes from."""

from __future__ import annotations

import abc
import contextlib
import contextvars
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from semigrad.fields import value_problems

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


def on_device(numbers: np.ndarray, device: torch.device) -> Tensor:
    """An array of draws as a tensor there; in single precision where a device knows no other."""
    drawn = torch.from_numpy(numbers)
    return drawn.float().to(device) if device.type == "mps" and drawn.is_floating_point() else drawn.to(device)


def seed_network(seed: int, device: torch.device) -> None:
    """Seed what dropout and gates draw from. `torch.manual_seed` does the same for every kind of device there is, and
    takes a tenth of a millisecond for it."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):  # which need not be the current one
            torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


@contextlib.contextmanager
def random_state_kept(device: torch.device) -> Iterator[None]:
    """Whatever is drawn inside, the random state is as before afterwards."""
    apple = torch.mps.get_rng_state() if device.type == "mps" else None
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            if apple is not None:
                torch.mps.set_rng_state(apple)


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
        return on_device(np.asarray(sample(generator(self.seed, self.step, "draw", name), rows)), self.device)

    @contextlib.contextmanager
    def masks(self, name: str) -> Iterator[None]:
        """Dropout masks and gates drawn inside depend on (seed, step, name) only: two passes under one name share
        them. The random state outside is untouched."""
        with random_state_kept(self.device):
            seed_network(derive_seed(self.seed, self.step, "masks", name), self.device)
            yield

    def ramp(self, over: float) -> float:
        """Linear from 0 to 1 over a length (a share of the run, or steps), 0 before; 1 where there is no ramp."""
        end = length(over, self.steps)
        return 1.0 if end <= 0 else min(max(self.step / end, 0.0), 1.0)

    def gaussian_ramp(self, over: float) -> float:
        """exp(−5 (1 − t)²), t linear from 0 to 1 over a length: from 0.0067 to 1 (Laine & Aila, 2017)."""
        return math.exp(-5 * (1 - self.ramp(over)) ** 2)


@dataclass(frozen=True)
class Task:
    """What the data are."""

    classes: tuple[str, ...]
    shape: tuple[int, ...]  # of one example: (channels, height, width), or (features,)
    mean: tuple[float, ...]  # per channel or feature, over the training part
    std: tuple[float, ...]
    labeled: int  # number of labeled examples
    unlabeled: int  # number of examples in the unlabeled pool
    examples: int  # number of examples in the training part, to which positions in a batch refer
    marginal: tuple[float, ...]  # share of each class among the labeled examples
    fresh: Callable[[], nn.Module]  # another network of the same kind, newly initialized
    mirrored: bool = False  # a mirrored image keeps its class (not so for digits)

    @property
    def images(self) -> bool:
        return len(self.shape) == 3


Guess = Mapping[str, Any]
"""What `Method.guess` hands to `Method.loss`: "targets" are soft labels (B_u, classes); "weights" say how much each of
these rows counts (B_u,), 1 where there are none; other keys are private."""


@dataclass(frozen=True)
class Method(abc.ABC):
    """A semi-supervised algorithm: a frozen dataclass whose fields are its hyper-parameters.

    All state that changes lives in the network and in the memory that `init` makes, both modules.
    """

    paper: ClassVar[str] = ""  # authors, title, year
    views: ClassVar[tuple[str, ...]] = ("weak",)  # unlabeled views: "raw", "weak" or "strong"; names may repeat
    labeled_views: ClassVar[tuple[str, ...]] = ("weak",)
    needs_images: ClassVar[bool] = False  # it cannot train on feature arrays
    guesses: ClassVar[bool] = False  # `guess` gives "targets"
    soft_targets: ClassVar[bool] = False  # and the loss trains on them as they are, so that they can be adapted
    adapts_targets: ClassVar[bool] = False  # and already does so by the meta-gradient
    mixes_batches: ClassVar[bool] = False  # labeled rows with unlabeled ones, one by one
    student_view: ClassVar[int] = 0  # which of `views` the network is trained on towards the targets
    answers: ClassVar[str] = "weights of the last step"  # who `predictor` is, for the record

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        """Sentences for settings that cannot work, alone or with these batch sizes."""
        found = value_problems(self)
        if self.mixes_batches and batch != unlabeled_batch:
            found.append(
                f"{type(self).__name__} mixes labeled with unlabeled rows, so both batches must be of one size; given: "
                f"batch {batch} and unlabeled_batch {unlabeled_batch}. Make them equal."
            )
        return found

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        """The memory: teacher, second student, discriminator, ensemble."""
        return nn.Module()

    def prologue(self) -> float:
        """How long `prepare` is minimized before step 0: a share of the run up to 1, above that steps."""
        return 0.0

    def prepare(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Terms:
        """Named terms of a step of the prologue, where `clock.step` is below 0."""
        return {}

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

    def schedule(self, step: int, steps: int) -> float | None:
        """The learning rate as a share of its peak, where the method prescribes it; None: as the run says."""
        return None

    def predictor(self, net: nn.Module, memory: nn.Module, batches: Iterable[Batch]) -> nn.Module:
        """Who answers after training; `batches` are fresh ones, to re-estimate statistics."""
        return net


@dataclass(frozen=True)
class Modifier(Method):
    """A method that holds another, the host, and passes everything on but what it changes.

    Its memory has the host's memory as `memory.host`, and its own state beside that. Views of its own stand behind the
    host's, which does not see them."""

    own_views: ClassVar[tuple[str, ...]] = ()

    host: Method
    """The method that is modified."""

    @property
    def views(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.host.views, *self.own_views)

    @property
    def labeled_views(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.host.labeled_views

    @property
    def needs_images(self) -> bool:  # type: ignore[override]
        return self.host.needs_images

    @property
    def guesses(self) -> bool:  # type: ignore[override]
        return self.host.guesses

    @property
    def soft_targets(self) -> bool:  # type: ignore[override]
        return self.host.soft_targets

    @property
    def adapts_targets(self) -> bool:  # type: ignore[override]
        return self.host.adapts_targets

    @property
    def student_view(self) -> int:  # type: ignore[override]
        return self.host.student_view

    @property
    def answers(self) -> str:  # type: ignore[override]
        return self.host.answers

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        return self.host.problems(batch, unlabeled_batch) + value_problems(self, f" of {type(self).__name__}")

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        memory = nn.Module()
        memory.host = self.host.init(net, task)
        return memory

    def prologue(self) -> float:
        return self.host.prologue()

    def prepare(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Terms:
        return self.host.prepare(net, _host(memory), self.for_host(batch), clock)

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        return self.host.guess(net, _host(memory), self.for_host(batch), clock)

    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        return self.host.loss(net, _host(memory), self.for_host(batch), guess, clock)

    def divergence(self, p: Tensor, targets: Tensor) -> Tensor:
        return self.host.divergence(p, targets)

    def update(self, net: nn.Module, memory: nn.Module, clock: Clock) -> None:
        self.host.update(net, _host(memory), clock)

    def schedule(self, step: int, steps: int) -> float | None:
        return self.host.schedule(step, steps)

    def predictor(self, net: nn.Module, memory: nn.Module, batches: Iterable[Batch]) -> nn.Module:
        return self.host.predictor(net, _host(memory), (self.for_host(batch) for batch in batches))

    def hosts(self) -> list[Method]:
        """The host, its host where it is a modifier too, and so on."""
        return [self.host, *(self.host.hosts() if isinstance(self.host, Modifier) else [])]

    def for_host(self, batch: Batch) -> Batch:
        """The batch with the host's views alone."""
        return replace(batch, unlabeled=batch.unlabeled[: len(self.host.views)])


def _host(memory: nn.Module) -> nn.Module:
    return memory.get_submodule("host")
