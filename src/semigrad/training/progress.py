"""How a run shows that it is alive: a bar on a terminal, a line now and then elsewhere; always on stderr."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from semigrad.folder.metrics import ACCURACY, ERRORS, terms_in
from semigrad.training.plan import duration

TWINKLE = 0.1
"""Seconds between two looks of a bar: an eye sees no more, and a figure that is looked at is waited for."""


class Progress(Protocol):
    """Who is told how a run goes. This is where one's own logging gets in: give `train` an object with these five
    functions, such as a `Quiet` with some of them replaced.

    >>> import csv
    >>> class Table(Quiet):
    ...     def begin(self, plan, steps, done):
    ...         self.file = open(folder / "losses.csv", "a", newline="")  # a run that is resumed goes on
    ...         self.table = csv.writer(self.file)
    ...     def step(self, done, figures):  # or: wandb.log(dict(figures), step=done)
    ...         self.table.writerow([done, figures["loss"]])
    ...     def end(self):
    ...         self.file.close()
    >>> run = configure("digits@40", method="supervised", steps=5)
    >>> result = train(run, folder / "logged", progress=Table())
    >>> len((folder / "losses.csv").read_text().splitlines())
    5
    """

    def note(self, text: str) -> None:
        """Something worth knowing that is no error."""

    def begin(self, plan: list[str], steps: int, done: int) -> None:
        """Training starts: what it will do, in sentences; steps in all, and how many were done before."""

    def step(self, done: int, figures: Mapping[str, float]) -> None:
        """A step was taken: how many were, those of the prologue included, and the loss, terms and pseudo-labels of
        this one, for which a device is waited for when they are looked at; `dict(figures)` are plain numbers."""

    def line(self, figures: Mapping[str, float]) -> None:
        """A line went to metrics.jsonl: means since the last one, the learning rate, and the errors that were due."""

    def end(self) -> None:
        """Training is over, one way or another."""


class Quiet:
    """Tells nobody; notes are kept for whoever asks."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def begin(self, plan: list[str], steps: int, done: int) -> None: ...
    def step(self, done: int, figures: Mapping[str, float]) -> None: ...
    def line(self, figures: Mapping[str, float]) -> None: ...
    def end(self) -> None: ...


class Lines:
    """A line at the start, then one every few seconds: for logs and pipes."""

    def __init__(self, every: float = 10.0) -> None:
        self.every = every
        self.last: Mapping[str, float] = {}

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def begin(self, plan: list[str], steps: int, done: int) -> None:
        for line in plan:
            self.note(line)
        self.steps, self.told = steps, done
        self.spoke = time.monotonic()

    def step(self, done: int, figures: Mapping[str, float]) -> None:
        now = time.monotonic()
        if now - self.spoke < self.every and done != self.steps:
            return
        rate = (done - self.told) / max(now - self.spoke, 1e-9)  # since the last line: other work comes and goes
        self.told, self.spoke = done, now
        left = duration((self.steps - done) / rate) if done < self.steps else "0 s"
        self.note(f"step {done:,}/{self.steps:,}  {rate:.1f} steps/s  {left} left  {in_short(self.last or figures)}")

    def line(self, figures: Mapping[str, float]) -> None:
        self.last = figures

    def end(self) -> None: ...


class Bar:
    """A progress bar with rate, time left and figures; where the terminal is narrow, the last figures are cut off."""

    def __init__(self) -> None:
        self.bar = RichProgress(
            BarColumn(16),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[rate]}", markup=False, table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            TextColumn(
                "{task.fields[figures]}",
                markup=False,  # a term may be called anything
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            console=Console(stderr=True),
            expand=True,
        )
        self.last: Mapping[str, float] = {}

    def note(self, text: str) -> None:
        self.bar.console.print(text, highlight=False, markup=False)

    def begin(self, plan: list[str], steps: int, done: int) -> None:
        for line in plan:
            self.note(line)
        self.steps, self.first, self.done = steps, done, done
        self.started = self.shown = time.monotonic()
        self.task = self.bar.add_task("", total=steps, completed=done, rate="", figures="")
        self.bar.start()

    def step(self, done: int, figures: Mapping[str, float]) -> None:
        now, self.done = time.monotonic(), done
        if now - self.shown < TWINKLE and done not in (self.first + 1, self.steps):
            return
        self.shown = now
        rate = (done - self.first) / max(now - self.started, 1e-9)
        self.bar.update(self.task, completed=done, rate=f"{rate:.1f}/s", figures=in_short(self.last or figures))

    def line(self, figures: Mapping[str, float]) -> None:
        self.last = figures

    def end(self) -> None:
        self.bar.update(self.task, completed=self.done)
        self.bar.stop()


def in_short(figures: Mapping[str, float]) -> str:
    """The most telling figures first: the loss, the pseudo-labels, measured errors, the loss terms if several."""
    words = [f"loss {figures['loss']:.3g}"] if "loss" in figures else []
    if (right := figures.get(ACCURACY)) is not None:
        words.append(f"pseudo-labels {100 * right:.0f} % right")
    words += [f"{name.replace('_', ' ')} {figures[name]:.2f} %" for name in ERRORS if name in figures]
    terms = terms_in([figures])
    words += [f"{name} {figures[name]:.3g}" for name in terms] if len(terms) > 1 else []
    return "  ".join(words)


class Ticker:
    """What is under way elsewhere: on a terminal a line that is written over, else a line now and then."""

    def __init__(self) -> None:
        self.over = sys.stderr.isatty()
        self.every = 1.0 if self.over else 10.0
        """Seconds between two lines."""

    def tick(self, text: str) -> None:
        if not self.over:
            print(text, file=sys.stderr, flush=True)
            return
        width = shutil.get_terminal_size().columns - 1
        print(f"\r{text[:width].ljust(width)}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Make room for what stays."""
        if self.over:
            print(f"\r{' ' * (shutil.get_terminal_size().columns - 1)}\r", end="", file=sys.stderr, flush=True)


def for_this_terminal() -> Progress:
    return Bar() if sys.stderr.isatty() else Lines()
