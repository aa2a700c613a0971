"""How the processes of a run find each other, and which of them says why it ends.

torchrun starts them and tells each one, in its environment, how many there are and where they meet."""

from __future__ import annotations

import atexit
import contextlib
import datetime
import os
import secrets
import time
from typing import Any

import torch
from torch import distributed

from semigrad.core.processes import ALONE, Lost, Processes, lost_where_it_fails
from semigrad.errors import InputError

HEAD_START = 2.0
"""Seconds that the first process gets to say why all of them end, before another one does."""
PARTING = 5.0
"""Seconds that the first process waits at its end for the others to end too: more than a head start. Who was killed
never says goodbye."""


def started_together() -> Processes:
    """How many processes the environment says there are, and which one this is; one alone where it says nothing."""
    count, rank = os.environ.get("WORLD_SIZE", "1"), os.environ.get("RANK")
    if rank is None or count == "1":
        return ALONE
    if not (count.isdecimal() and rank.isdecimal() and int(rank) < int(count)):
        raise InputError(f"The environment says RANK={rank} and WORLD_SIZE={count}. Let torchrun set both.")
    return Processes(int(rank), int(count))


def meet(patience: float) -> Processes:
    """The same, once they have all met. Each waits for the others so many seconds, now and whenever it hears nothing
    from them."""
    processes = started_together()
    if processes.count > 1 and not distributed.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        timeout = datetime.timedelta(seconds=patience)
        with lost_where_it_fails():
            try:
                store, rank, count = next(distributed.rendezvous("env://", timeout=timeout))  # type: ignore[attr-defined]
            except ValueError as error:
                raise InputError(f"The processes cannot meet: {error}. Start them with torchrun.") from error
            store.set_timeout(timeout)
            word = word_of_this_start(store, processes, patience)
            store = distributed.PrefixStore(word, store)  # type: ignore[attr-defined]
            distributed.init_process_group(backend, store=store, rank=rank, world_size=count, timeout=timeout)
        atexit.register(part, store, processes)
    return processes


def part(store: Any, processes: Processes) -> None:
    """The end of talking to each other. Where the first process keeps what they tell each other, it ends last if it
    can: one that still asks would hear from torch, at length, that nobody is there. torchrun keeps it itself."""
    distributed.destroy_process_group()
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        return
    with contextlib.suppress(RuntimeError, KeyboardInterrupt):  # the first is gone; somebody is tired of waiting
        if not processes.first:
            store.set(f"goodbye {processes.rank}", "said")
            return
        goodbyes, deadline = [f"goodbye {rank}" for rank in range(1, processes.count)], time.monotonic() + PARTING
        while not store.check(goodbyes) and time.monotonic() < deadline:
            time.sleep(0.02)


def word_of_this_start(store: Any, processes: Processes, patience: float) -> str:
    """A word that only those know who are started now. torchrun keeps what processes told each other before it started
    them again, and addresses of lost ones must not be taken for new ones: so every process greets the first with a word
    of its own and heeds the answer to that word alone."""
    own, deadline = secrets.token_hex(8), time.monotonic() + patience

    def wait() -> None:
        if time.monotonic() > deadline:
            raise RuntimeError(f"they did not all come within {patience:g} seconds")
        time.sleep(0.02)

    if not processes.first:
        store.set(f"greeting {processes.rank}", own)
        while (answer := said(store, f"answer {processes.rank}").split())[:1] != [own]:
            wait()
        store.set(f"{answer[1]} {processes.rank}", "here")
        return answer[1]
    missing, answered = set(range(1, processes.count)), dict[int, str]()
    while missing := {rank for rank in missing if not said(store, f"{own} {rank}")}:
        for rank in missing:
            if (greeting := said(store, f"greeting {rank}")) not in ("", answered.get(rank)):
                store.set(f"answer {rank}", f"{greeting} {own}")
                answered[rank] = greeting
        wait()
    return own


def said(store: Any, key: str) -> str:
    """What stands under a key, nothing where there is none."""
    return str(store.get(key).decode()) if store.check([key]) else ""


def restarts() -> bool:
    """Whether torchrun was told to start the processes again where one is lost: then a run that was begun goes on. How
    often it has started them, it does not tell all of them rightly where there are several machines."""
    return os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0") != "0"


def own_device(name: str, processes: Processes) -> str:
    """`cuda` is a device of its own for each process of a machine."""
    several = processes.count > 1 and torch.cuda.is_available() and name in ("auto", "cuda")
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if several else name


def speaks(error: BaseException) -> bool:
    """Whether this process is the one that says why it ends, which the error is. Where one fails, all do: the others
    because they lost it, or for the same reason at the same time."""
    processes = started_together()
    if processes.count == 1 or not distributed.is_initialized():
        return processes.first
    store = distributed.distributed_c10d._get_default_store()
    try:
        if not processes.first:
            deadline = time.monotonic() + HEAD_START
            while time.monotonic() < deadline and not store.check(["spoken for"]):
                time.sleep(0.05)
        return bool(store.compare_set("spoken for", "", str(processes.rank)) == str(processes.rank).encode())
    except RuntimeError:  # who kept it is gone, and said why if it could
        return isinstance(error, Lost)
