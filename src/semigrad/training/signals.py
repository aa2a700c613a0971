"""Being asked to stop: SIGINT (Ctrl-C) and SIGTERM."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType


class Stopped(KeyboardInterrupt):
    """A signal asked to stop, and what had to be saved is saved. No `Exception`: a loop over runs that goes on after
    failures does not take it for one."""

    def __init__(self, signal: int, text: str) -> None:
        super().__init__(signal, text)  # all arguments, so that it can travel from one process to another
        self.signal, self.text = signal, text

    def __str__(self) -> str:
        return self.text


@dataclass
class Stop:
    """The signal that asked to stop, once one has."""

    number: int = 0


@contextlib.contextmanager
def interruptible() -> Iterator[Stop]:
    """Inside, SIGINT and SIGTERM are noted instead of obeyed; a second SIGINT stops at once."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals reach the main thread only
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.number = number

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def deaf_children() -> Iterator[None]:
    """Processes started inside ignore Ctrl-C, which a terminal sends to all: their parent tells them what to do."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
