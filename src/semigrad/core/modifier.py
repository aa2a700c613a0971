"""A method on top of another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from torch import nn

from semigrad.core.batch import Batch, Task
from semigrad.core.clock import Clock
from semigrad.core.method import Guess, Method, Terms, Traits
from semigrad.settings import Settings
from semigrad.settings.fields import value_problems


@dataclass(frozen=True)
class Modifier(Method):
    """A method that holds another, the host, and passes everything on but what it changes.

    Its memory has the host's memory as `memory.host`, and its own state beside that. Views of its own stand behind the
    host's, which does not see them."""

    host: Method
    """The method that is modified."""

    @property
    def traits(self) -> Traits:
        """The host's; a modifier says what it changes: `replace(self.host.traits, ...)`."""
        return self.host.traits

    def problems(self, batch: int, unlabeled_batch: int) -> list[str]:
        return self.host.problems(batch, unlabeled_batch) + value_problems(self, f" of {type(self).__name__}")

    def cautions(self, settings: Settings) -> list[str]:
        return self.host.cautions(settings)

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

    def update(self, net: nn.Module, memory: nn.Module, clock: Clock) -> None:
        self.host.update(net, _host(memory), clock)

    def schedule(self, step: int, steps: int) -> float | None:
        return self.host.schedule(step, steps)

    def schedule_words(self, steps: int) -> str:
        return self.host.schedule_words(steps)

    def predictor(self, net: nn.Module, memory: nn.Module, batches: Iterable[Batch]) -> nn.Module:
        return self.host.predictor(net, _host(memory), (self.for_host(batch) for batch in batches))

    def hosts(self) -> list[Method]:
        """The host, its host where it is a modifier too, and so on."""
        return [self.host, *(self.host.hosts() if isinstance(self.host, Modifier) else [])]

    def for_host(self, batch: Batch) -> Batch:
        """The batch with the host's views alone."""
        return replace(batch, unlabeled=batch.unlabeled[: len(self.host.traits.views)])


def _host(memory: nn.Module) -> nn.Module:
    return memory.get_submodule("host")
