"""Files that may come from anybody: only regular ones are read, no more than they may hold, and whatever is wrong with
them is one sentence."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from semigrad.errors import InputError, kind_of

TEXT = 256 * 2**20
"""Bytes of the largest file of settings, figures or labels that is read."""


def as_path(given: object, meaning: str) -> Path:
    """The path that is given from Python, where anything may stand in its place; Path("") would be this folder."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or not path:
        what = "an empty text" if path == "" else kind_of(given)
        raise InputError(f"{meaning} is given by its path, a text or a Path; given: {what}.")
    return Path(path)


def open_file(path: Path | str) -> BinaryIO:
    """A regular file, open for reading. A pipe would keep its reader waiting for ever, and /dev/zero never ends."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {path}: {getattr(error, 'strerror', None) or error}.") from error
    kind = os.fstat(handle).st_mode
    if not stat.S_ISREG(kind):
        os.close(handle)
        raise InputError(f"Cannot read {path}: it is {'a folder' if stat.S_ISDIR(kind) else 'no regular file'}.")
    return os.fdopen(handle, "rb")


def read_file(path: Path | str, most: int | None = None) -> bytes:
    """The content of a regular file of at most `most` bytes; none: of half of the memory here. A file may say that it
    is large and take no room on the disk."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise InputError(f"Cannot read {path}: it has {size:,} bytes, more than the {most:,} that it may have.")
        if size > (room := memory() // 2):
            raise too_large(path, size, room)
        try:
            return file.read()
        except OSError as error:
            raise InputError(f"Cannot read {path}: {error.strerror}.") from error
        except MemoryError as error:
            raise too_large(path, size, room) from error


def too_large(path: Path | str, size: int, room: int) -> InputError:
    return InputError(
        f"Cannot read {path}: it is too large, {size / 1e9:,.1f} GB where half of the memory here is {room / 1e9:,.1f} "
        "GB. See whether it is the file that you mean, or read it on a larger machine."
    )


def memory() -> int:
    """Bytes that this machine has; where it does not say, 16 GB."""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 16 * 10**9


def parse_json(path: Path | str, content: bytes) -> Any:
    """The value that a JSON file holds."""
    try:
        return json.loads(content)
    except ValueError as error:
        raise InputError(f"Cannot read {path}: it is no JSON ({error}).") from error
    except RecursionError as error:
        raise InputError(f"Cannot read {path}: its tables are nested too deeply.") from error
