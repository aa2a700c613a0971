"""Being asked to stop: SIGINT (Ctrl-C), SIGTERM, and SIGHUP (a terminal that was closed)."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

ASKING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


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
    """Inside, signals that ask to stop are noted instead of obeyed; a second SIGINT stops at once. One that is ignored,
    as SIGHUP is under `nohup`, stays so."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals reach the main thread only
        return

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.number and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.number = number

    heard = [number for number in ASKING if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGINT]
    before = {number: signal.signal(number, ask) for number in heard}
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
