"""A method: what it is, what it needs, and the functions that a step calls."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from semigrad.core.batch import Batch, Task
from semigrad.core.clock import Clock
from semigrad.core.divergences import SQUARED_ERROR, Divergence
from semigrad.settings import Settings
from semigrad.settings.fields import value_problems

Terms = dict[str, Tensor]
"""Named loss terms, scalars; their sum is minimized."""

Guess = Mapping[str, Any]
"""What `Method.guess` hands to `Method.loss`: "targets" are soft labels (B_u, classes); "weights" say how much each of
these rows counts (B_u,), 1 where there are none; "meta step" is what a meta-gradient was taken of, as a value; other
keys are private."""


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What a method is and needs, for whoever feeds it, combines it with others or reports on it."""

    views: tuple[str, ...] = ("weak",)  # of unlabeled examples, by their names in `data.views`; names may repeat
    labeled_views: tuple[str, ...] = ("weak",)
    needs_images: bool = False  # it cannot train on feature arrays
    guesses: bool = False  # `guess` gives "targets"
    soft_targets: bool = False  # and the loss trains on them as they are, so that they can be adapted
    adapts_targets: bool = False  # and already does so by the meta-gradient
    meta_gradient: bool = False  # it takes one, and its guess says of what
    student_view: int = 0  # which of `views` the network is trained on towards the targets
    divergence: Divergence = SQUARED_ERROR  # Φ, the loss towards these targets
    mixes_batches: bool = False  # labeled rows with unlabeled ones, one by one
    more_every: int = 1  # at multiples of so many steps it does more than at the others
    answers: str | None = None  # who `predictor` is, in words, where it is not the network after the last step

    def mean_over_steps(self, cost: Callable[[int], float]) -> float:
        """Of what a step costs: step 0 does all that is done now and then, step 1 nothing of it."""
        share = 1 / self.more_every
        return cost(0) if share == 1 else share * cost(0) + (1 - share) * cost(1)


@dataclass(frozen=True)
class Method(abc.ABC):
    """A semi-supervised algorithm: a frozen dataclass whose fields are its hyper-parameters.

    All state that changes lives in the network and in the memory that `init` makes, both modules.
    """

    paper: ClassVar[str] = ""  # authors, title, year

    @property
    def traits(self) -> Traits:
        """What this method is, with the fields that it has."""
        return Traits()

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        """Sentences for settings that cannot work, alone or with these batch sizes."""
        found = value_problems(self)
        if not found and self.traits.mixes_batches and batch != unlabeled_batch:
            found.append(
                f"{type(self).__name__} mixes labeled with unlabeled rows, so both batches must be of one size; given: "
                f"batch {batch} and unlabeled_batch {unlabeled_batch}. Make them equal."
            )
        return found

    def cautions(self, settings: Settings) -> list[str]:
        """Sentences for settings that are possible and known to go wrong."""
        return []

    def init(self, net: nn.Module, task: Task) -> nn.Module:
        """The memory: teacher, second student, discriminator, ensemble."""
        return nn.Module()

    def prologue(self) -> float:
        """How long `prepare` is minimized before step 0: a share of the run up to 1, above that steps."""
        return 0.0

    def prepare(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Terms:
        """Named terms of a step of the prologue, which the clock calls `preparing`."""
        return {}

    def guess(self, net: nn.Module, memory: nn.Module, batch: Batch, clock: Clock) -> Guess:
        """Targets for the unlabeled rows, before any loss is computed."""
        return {}

    @abc.abstractmethod
    def loss(self, net: nn.Module, memory: nn.Module, batch: Batch, guess: Guess, clock: Clock) -> Terms:
        """Named terms, labeled pass first; their sum is minimized."""

    def update(self, net: nn.Module, memory: nn.Module, clock: Clock) -> None:  # noqa: B027 (most need none)
        """After the optimizer's step: averages."""

    def schedule(self, step: int, steps: int) -> float | None:
        """The learning rate as a share of its peak, where the method prescribes it; None: as the run says."""
        return None

    def schedule_words(self, steps: int) -> str:
        """The same in words, where the method prescribes it."""
        return "as the method prescribes"

    def predictor(self, net: nn.Module, memory: nn.Module, batches: Iterable[Batch]) -> nn.Module:
        """Who answers after training; `batches` are fresh ones, to re-estimate statistics."""
        return net
