"""Processes that read ahead. Each has a pipe of its own, so that one that dies takes no lock with it: whoever waits for
it learns so at once, and the others end with their parent."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

import torch
import torch.multiprocessing as multiprocessing

from semigrad.errors import InputError

AHEAD = 2
"""Items that each process is asked for at a time."""
FOR_THE_PARENT = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""Signals that often go to a whole process group. The parent acts on them, and may still want an item before it
stops."""


class Items(Protocol):
    """What is read, by its number."""

    def __getitem__(self, number: int) -> Any: ...


@dataclass(frozen=True)
class Reader:
    """A process that answers every number it is sent with that item."""

    process: BaseProcess
    pipe: Connection

    @classmethod
    def start(cls, items: Items) -> Reader:
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.Process(target=_answer, args=(items, theirs), daemon=True)
        with signals_held_back():
            process.start()
        theirs.close()  # else the pipe would stay open when the process dies
        return cls(process, ours)

    def ask(self, numbers: Iterable[int]) -> None:
        with died_where_it_fails():
            for number in numbers:
                self.pipe.send(number)

    def next(self) -> Any:
        with died_where_it_fails():
            item = self.pipe.recv()
        if isinstance(item, Exception):
            raise item
        return item

    def end(self) -> None:
        """At once: it only reads, and may be in no state to listen."""
        self.pipe.close()
        self.process.kill()
        self.process.join()


@contextlib.contextmanager
def died_where_it_fails() -> Iterator[None]:
    """Around talking to a process, which fails where that is gone."""
    try:
        yield
    except (EOFError, OSError) as error:
        raise InputError(
            "A process that reads examples died, for lack of memory perhaps, or because somebody ended it. What was "
            "saved before is kept; fewer of them (--workers) need less memory."
        ) from error


def read_ahead(items: Items, numbers: range, workers: int) -> Iterator[Any]:
    """The items of these numbers in order, read by so many processes, or by this one where there are none."""
    if not workers:
        yield from (items[number] for number in numbers)
        return
    workers = min(workers, len(numbers))
    with started(items, workers) as readers:
        for place, reader in enumerate(readers):
            reader.ask(numbers[place : AHEAD * workers : workers])
        following = iter(numbers[AHEAD * workers :])
        for _, reader in zip(numbers, itertools.cycle(readers), strict=False):
            item = reader.next()
            reader.ask(itertools.islice(following, 1))
            yield item


@contextlib.contextmanager
def started(items: Items, count: int) -> Iterator[list[Reader]]:
    """So many processes, which are gone afterwards whatever happens, also where this process ends in between."""
    readers: list[Reader] = []

    def end() -> None:
        for reader in readers:
            reader.end()

    atexit.register(end)
    try:
        for _ in range(count):
            readers.append(Reader.start(items))
        yield readers
    finally:
        atexit.unregister(end)
        end()


@contextlib.contextmanager
def signals_held_back() -> Iterator[None]:
    """A process that starts inside holds them back too, from its first instruction on until it ignores them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, FOR_THE_PARENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _answer(items: Items, pipe: Connection) -> None:
    """What a reading process does until its parent is gone."""
    for number in FOR_THE_PARENT:
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    assert parent is not None
    with contextlib.suppress(EOFError, OSError):
        while wait([pipe, parent.sentinel]) == [pipe]:
            pipe.send_bytes(_packed(items, pipe.recv()))


def _packed(items: Items, number: int) -> memoryview:
    """An item, its tensors in shared memory, or what went wrong with it, for the parent to raise."""
    try:
        packed: memoryview = ForkingPickler.dumps(items[number])
    except Exception as error:
        packed = ForkingPickler.dumps(error)
    return packed
