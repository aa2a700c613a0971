"""Writing files so that a reader finds the old content or the new, never a half."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from semigrad.errors import InputError


def write_whole(path: Path, content: bytes) -> None:
    """Write to a temporary name beside it, sync, rename, sync the folder; clean up and say so where that fails."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True) if path.parent.is_dir() else None
        raise InputError(cannot_write(path, error)) from error


def write_json(path: Path, content: Any) -> None:
    write_whole(path, (json.dumps(content, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """The content of a JSON file that we wrote; anything else is the user's problem to know of."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {path}: {error}.") from error


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(cannot_write(path, error)) from error


def cannot_write(path: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"Cannot write {path}: {reason}. Make room or choose another place; what was saved before is untouched."


def sync_folder(path: Path) -> None:
    """Make a rename in this folder last; not every system can open a folder."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
