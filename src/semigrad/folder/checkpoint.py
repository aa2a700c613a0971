"""Checkpoints: everything a run needs to go on, bit for bit.

A file is named by its step and the hash of its content (`000100-3f9a1c….pt`), so one rename makes a checkpoint and its
checksum appear together, and a damaged file is known by its name."""

from __future__ import annotations

import contextlib
import hashlib
import io
import math
import pickle
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from semigrad.core.tensor_files import from_archive
from semigrad.errors import InputError
from semigrad.folder.files import PARTIAL, make_folder, write_whole
from semigrad.reading import read_file

_NAME = re.compile(r"(?P<step>\d+)-(?P<digest>[0-9a-f]{16})\.pt")
State = dict[str, Any]


def save(folder: Path, step: int, state: State, keep: int = 3) -> Path:
    """Write the state after `step` steps, then drop all but the newest `keep` and what killed processes left."""
    content = packed(state)
    make_folder(folder)
    path = folder / f"{step:06d}-{_digest(content)}.pt"
    write_whole(path, content)
    for old in [*checkpoints(folder)[:-keep], *folder.glob(f".*{PARTIAL}")]:
        with contextlib.suppress(OSError):
            old.unlink()
    return path


def packed(state: State) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def unpacked(content: bytes) -> State:
    """The state, on the processor; raises where there is something else in it than tensors and plain values."""
    state = from_archive(content)
    if not isinstance(state, dict):
        raise ValueError("it holds no state of a run")
    return state


def load_newest(folder: Path, tell: Callable[[str], None]) -> State | None:
    """The newest sound checkpoint. Every damaged one on the way is named and renamed, so that it does not count among
    the newest any more; one that cannot be read just now, for lack of memory or of a network disk, may be sound."""
    for path in reversed(checkpoints(folder)):
        try:
            return _load(path)
        except (InputError, MemoryError):
            raise
        except Exception as error:  # whatever torch makes of a file that is not ours
            with contextlib.suppress(OSError):
                path.rename(path.with_name(f"{path.name}.damaged"))
            tell(f"Checkpoint {path} is damaged ({_reason(error)}); looking for the one before it.")
    return None


def _load(path: Path) -> State:
    try:
        content = read_file(path)
    except InputError as error:
        reason = str(error).replace("Cannot read", "Cannot read the checkpoint", 1)
        raise InputError(f"{reason} Nothing was changed.") from error
    if not path.name.endswith(f"-{_digest(content)}.pt"):
        raise ValueError("its content does not match its checksum")
    return unpacked(content)


def check_key(state: State, key: str) -> None:
    """Raise where a state was written by another run than the one with this key."""
    if state.get("key", key) != key:
        raise ValueError(f"it was written by a run with the key {state['key']!r}, and this one has {key!r}.")


def check_progress(state: State, first: int, last: int) -> None:
    """Raise where a state is not between the first and the last step of a run."""
    done, seconds = state["done"], state["seconds"]
    if type(done) is not int or not first <= done <= last:
        raise ValueError(f"it stands at step {done!r}, and the run goes from {first} to {last}.")
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        raise ValueError(f"it took {seconds!r} seconds.")


def _reason(error: Exception) -> str:
    if isinstance(error, pickle.UnpicklingError):  # torch's own words advise to run what is inside
        return "it holds something else than tensors and plain values, which is not loaded"
    return str(error).partition("\n")[0]


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoint files, oldest first."""
    found = [path for path in folder.glob("*.pt") if _NAME.fullmatch(path.name) and path.is_file()]
    return sorted(found, key=lambda path: (int(path.name.split("-")[0]), path.stat().st_mtime_ns))


def find_not_finite(state: Any, name: str = "") -> str | None:
    """The name of a tensor with values that are not finite, anywhere in nested tables."""
    if isinstance(state, Tensor):
        return None if state.isfinite().all() else name
    below = state.items() if isinstance(state, dict) else ()
    return next((found for key, value in below if (found := find_not_finite(value, f"{name} {key}".strip()))), None)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


@dataclass
class Pace:
    """When the next checkpoint is due: every `every` steps, later only where writing would take more than 2 % of the
    time."""

    every: int
    share: float = 0.02
    ended: float = field(default_factory=time.monotonic)  # when the last one was written
    cost: float = 0.0  # seconds that took

    def due(self, step: int) -> bool:
        return step % self.every == 0 and (time.monotonic() - self.ended) * self.share >= self.cost

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Around writing a checkpoint."""
        started = time.monotonic()
        yield
        self.ended = time.monotonic()
        self.cost = self.ended - started
