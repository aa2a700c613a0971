"""Writing files so that a reader finds the old content or the new, never a half."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from semigrad.errors import Busy, InputError
from semigrad.reading import TEXT, open_file, parse_json, read_file

PARTIAL = ".partial"


def write_whole(path: Path, content: bytes) -> None:
    """Write to a temporary name beside it, sync, rename, sync the folder; clean up and say so where that fails. The
    name is nobody else's: two processes may write one file at a time. No file takes the place of a device or folder."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"Cannot write {path}: it is a folder, or a device, and no file.")
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def write_json(path: Path, content: Any) -> None:
    write_whole(path, (json.dumps(content, indent=2) + "\n").encode())


def read_json(path: Path) -> dict[str, Any]:
    """The table in a JSON file that we wrote; anything else is the user's problem to know of."""
    content = parse_json(path, read_file(path, TEXT))
    if not isinstance(content, dict):
        raise InputError(f"Cannot read {path}: it does not hold a table of names and values.")
    return content


def check_replaceable(path: Path, start: bytes, kind: str) -> None:
    """Refuse to write where a file stands that begins otherwise than ours do: with one wrong word somebody names the
    data. What is empty may be written, as mktemp leaves it."""
    if not path.exists():
        return
    with open_file(path) as file:
        found = file.read(len(start))
    if found and found.lower() != start.lower():
        raise InputError(f"{path} exists and is no {kind}: it would be lost. Choose another place with --out.")


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error


def check_writable(folders: Sequence[Path]) -> None:
    """All folders that cannot be made or written to, in one message; leaves nothing behind."""
    problems = []
    for folder in folders:
        try:
            place = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(b"-")
        except OSError as error:
            problems += cannot_write(folder, error).problems
    if problems:
        raise InputError(problems)


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Keep this program's other processes out of a folder until the end, or the death, of this one. Only where there
    is `flock`: on Windows it keeps nobody out, and two runs in one folder would overwrite each other's files."""
    if os.name != "posix":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Busy(f"Another process is training in {folder}. Wait for it, or stop it first.") from error
        yield
    finally:
        os.close(handle)


def cannot_write(path: Path, error: OSError) -> InputError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    room = "Make room, then go on with --resume (train) or with the same command (all others)"
    advice = room if full else "Choose another place, or make this one writable"
    reason = error.strerror or str(error)
    if error.errno == errno.ENOENT and not path.parent.exists():
        return InputError(f"Cannot write {path}: its folder is not there any more. Bring it back, or begin anew.")
    return InputError(f"Cannot write {path}: {reason}. {advice}; what was saved before is untouched.")


def sync(path: Path) -> None:
    """Make what was written to a file, or renamed in a folder, last; not every system can open a folder."""
    if os.name == "posix":
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
