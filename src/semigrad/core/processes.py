"""The processes that carry out one run together, and what they can say to each other.

They are copies of each other: every one knows the whole batch, takes the same decisions and holds the same weights,
and only the rows that go through a network are divided among them (`core.split`). What can differ from process to
process (the time, signals, what a disk holds) is said by the first one, or agreed on, before anybody acts on it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, distributed

from semigrad.errors import InputError

LOST = "Another process of this run is lost, or does not answer ({reason}). What was saved before is kept: {way_on}."


class Lost(InputError):
    """Another process is gone, or silent for too long."""


@dataclass(frozen=True)
class Processes:
    """How many there are, and which one this is. One alone says nothing to anybody."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the one that writes and speaks."""
        return self.rank == 0

    def divide(self, total: int) -> bool:
        """Whether so many rows are divided at all: not where some process would get none."""
        return 1 < self.count <= total

    def rows(self, total: int, rank: int | None = None) -> slice:
        """The rows of a batch that a process takes, this one unless another is named: shares differ by one at most."""
        rank = self.rank if rank is None else rank
        return slice(total * rank // self.count, total * (rank + 1) // self.count)

    def gather(self, own: Tensor, total: int) -> Tensor:
        """(own rows, ...) of every process -> (total, ...), in order; what was not divided is whole."""
        if not self.divide(total):
            return own
        if own.dim() == 4 and not own.is_contiguous() and own.is_contiguous(memory_format=torch.channels_last):
            return self.gather(own.permute(0, 2, 3, 1), total).permute(0, 3, 1, 2)  # draws follow the memory
        shares = [self.rows(total, rank) for rank in range(self.count)]
        sizes = [share.stop - share.start for share in shares]
        largest = max(sizes)
        sent = own.new_zeros(largest, *own.shape[1:])
        sent[: len(own)] = own
        received = own.new_empty(self.count * largest, *own.shape[1:])
        with lost_where_it_fails():
            distributed.all_gather(list(received.chunk(self.count)), sent)
        if largest == min(sizes):
            return received
        return torch.cat([received[rank * largest :][:size] for rank, size in enumerate(sizes)])

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Each summed over all processes, in one message for each kind of number."""
        if self.count == 1:
            return list(tensors)
        sums: dict[int, Tensor] = {}
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors):
            places = [place for place, tensor in enumerate(tensors) if tensor.dtype == dtype]
            flat = torch.cat([tensors[place].reshape(-1) for place in places])
            with lost_where_it_fails():
                distributed.all_reduce(flat)
            parts = torch.split(flat, [tensors[place].numel() for place in places])
            sums |= {place: part.view_as(tensors[place]) for place, part in zip(places, parts, strict=True)}
        return [sums[place] for place in range(len(tensors))]

    def agree(self, tensors: Sequence[Tensor]) -> None:
        """What is equal but for rounding becomes equal: rounding differs between machines, and training amplifies
        it."""
        if self.count > 1 and tensors:
            for tensor, total in zip(tensors, self.sum(tensors), strict=True):
                tensor.copy_(total / self.count)

    def largest(self, number: int) -> int:
        """The largest of the numbers that the processes give."""
        if self.count == 1:
            return number
        given = torch.tensor(number)
        with lost_where_it_fails():
            distributed.all_reduce(given, distributed.ReduceOp.MAX)
        return int(given)

    def from_first(self, content: bytes = b"") -> bytes:
        """What the first process gives; what the others give counts for nothing."""
        if self.count == 1:
            return content
        size = torch.tensor(len(content))
        with lost_where_it_fails():
            distributed.broadcast(size, 0)
        sent = torch.frombuffer(bytearray(content), dtype=torch.uint8) if self.first and content else None
        sent = torch.empty(int(size), dtype=torch.uint8) if sent is None else sent
        with lost_where_it_fails():
            distributed.broadcast(sent, 0)
        return sent.numpy().tobytes()

    def first_says(self, holds: bool) -> bool:
        """Whether something holds for the first process."""
        return holds if self.count == 1 else self.from_first(b"1" if holds else b"") == b"1"


ALONE = Processes()


@contextlib.contextmanager
def lost_where_it_fails() -> Iterator[None]:
    """Around talking to other processes, which fails where one of them is gone or silent for too long."""
    try:
        yield
    except RuntimeError as error:
        raise Lost(LOST.format(reason=reason_of(error), way_on=way_on())) from error


def reason_of(error: RuntimeError) -> str:
    """The first sentence of torch's, behind a file of its own; advice on torch follows."""
    return str(error).partition("\n")[0].rpartition("] ")[2].partition(". ")[0][:200].rstrip(".")


def way_on() -> str:
    """How a run that lost a process goes on: by itself where torchrun will start all of them again."""
    most, so_far = (int(os.environ.get(f"TORCHELASTIC_{name}", "0")) for name in ("MAX_RESTARTS", "RESTART_COUNT"))
    if so_far < most:
        return "torchrun starts all of them again, and they go on from there"
    if most:
        return f"torchrun has started them again as often as --max-restarts={most} allows; start all of them once more"
    return "start all of them again with --resume, or let torchrun do so (--max-restarts=1)"
