"""Where a run under way is kept: in its folder, or in memory. The steps are the same, what outlasts them is not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from semigrad.folder import checkpoint
from semigrad.folder.files import sync
from semigrad.folder.metrics import Line, append_line, events
from semigrad.folder.run_folder import CHECKPOINTS, EVENTS, METRICS, RunFolder


class Keeper(Protocol):
    """What training hands its lines of metrics and its checkpoints to."""

    def write(self, line: Line) -> None:
        """Keep a line of metrics."""

    def save(self, taken: int, state: checkpoint.State) -> None:
        """Keep the state after so many steps, to go on from."""

    def board(self, done: int) -> AbstractContextManager[Callable[[Line], None]]:
        """Around the steps from `done` on: who else hears of the lines."""

    @property
    def last_good(self) -> str:
        """A sentence on what one could go on from, if there is anything to say."""

    @property
    def way_on(self) -> str:
        """How somebody who stops training goes on."""


@dataclass(frozen=True)
class InFolder:
    """Everything in the run's folder, with TensorBoard events where wanted."""

    folder: RunFolder
    key: str  # of the run, which its checkpoints carry
    tensorboard: bool = False

    def write(self, line: Line) -> None:
        append_line(self.folder[METRICS], line)

    def save(self, taken: int, state: checkpoint.State) -> None:
        self.folder.keep_description()
        sync(self.folder[METRICS])  # the lines so far outlast the checkpoint
        checkpoint.save(self.folder[CHECKPOINTS], taken, {**state, "key": self.key})

    def board(self, done: int) -> AbstractContextManager[Callable[[Line], None]]:
        return events(self.folder[EVENTS], self.tensorboard, done)

    @property
    def last_good(self) -> str:
        saved = checkpoint.checkpoints(self.folder[CHECKPOINTS])
        return f"The last good checkpoint is {saved[-1]}." if saved else "No checkpoint was written yet."

    @property
    def way_on(self) -> str:
        return f"everything is saved in {self.folder.path}. Go on with --resume."


@dataclass(frozen=True)
class InMemory:
    """The lines alone, and nothing on disk."""

    lines: list[Line] = field(default_factory=list)

    def write(self, line: Line) -> None:
        self.lines.append(line)

    def save(self, taken: int, state: checkpoint.State) -> None: ...

    def board(self, done: int) -> AbstractContextManager[Callable[[Line], None]]:
        return contextlib.nullcontext(lambda line: None)

    @property
    def last_good(self) -> str:
        return ""

    @property
    def way_on(self) -> str:
        return "nothing is kept."
