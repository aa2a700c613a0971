"""Checkpoints: everything a run needs to go on, bit for bit.

A file is named by its step and the hash of its content (`000100-3f9a1c….pt`), so one rename makes a checkpoint and its
checksum appear together, and a damaged file is known by its name."""

from __future__ import annotations

import hashlib
import io
import pickle
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from semigrad.files import make_folder, write_whole

_NAME = re.compile(r"(?P<step>\d+)-(?P<digest>[0-9a-f]{16})\.pt")
State = dict[str, Any]


def save(folder: Path, step: int, state: State, keep: int = 3) -> Path:
    """Write the state after `step` steps, then drop all but the newest `keep`."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getvalue()
    make_folder(folder)
    path = folder / f"{step:06d}-{_digest(content)}.pt"
    write_whole(path, content)
    for old in checkpoints(folder)[:-keep]:
        old.unlink(missing_ok=True)
    return path


def load_newest(folder: Path, damaged: Callable[[str], None]) -> State | None:
    """The newest sound checkpoint; every damaged one on the way is named."""
    for path in reversed(checkpoints(folder)):
        try:
            content = path.read_bytes()
            if _digest(content) != _NAME.fullmatch(path.name)["digest"]:  # type: ignore[index]
                raise ValueError("its content does not match its checksum")
            state: State = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
            return state
        except (OSError, ValueError, RuntimeError, pickle.UnpicklingError) as error:
            damaged(f"Checkpoint {path} is damaged ({error}); using the one before it.")
    return None


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoint files, oldest first."""
    found = [path for path in folder.glob("*.pt") if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: (int(path.name.split("-")[0]), path.stat().st_mtime_ns))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


@dataclass
class Pace:
    """When the next checkpoint is due: every `every` steps, later only where writing would take more than 2 % of the
    time."""

    every: int
    share: float = 0.02
    _written_at: float = field(default_factory=time.monotonic)
    _cost: float = 0.0

    def due(self, step: int) -> bool:
        elapsed = time.monotonic() - self._written_at
        return step % self.every == 0 and elapsed * self.share >= self._cost

    def written(self, seconds: float) -> None:
        self._cost, self._written_at = seconds, time.monotonic()
