"""Room for many pictures outside of the memory of a process: a file without a name, which the system maps into it,
holds in memory as far as there is some to spare, and forgets when the process ends, however that happens."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from semigrad.errors import InputError

MAPPED_FROM = 500 * 10**6
"""Bytes above which an array is mapped."""
MEMORY_LIMIT = 4 * 10**9
"""Bytes up to which one may stand in memory where it cannot be mapped."""
MOST_OF_DISK = 0.5
"""Share of what is free that one array may take."""


def room_for(shape: tuple[int, ...], root: Path) -> np.ndarray:
    """An array of bytes, still to be filled: in memory, or above a size in a file below `root`. The values are the
    same wherever they stand."""
    size = math.prod(shape)
    if size <= MAPPED_FROM:
        return np.empty(shape, np.uint8)
    try:
        return _mapped(shape, root)
    except OSError as error:
        if size <= MEMORY_LIMIT:
            return np.empty(shape, np.uint8)
        raise InputError(
            f"{size / 1e9:,.1f} GB of pictures do not fit into {root} ({error.strerror or error}). Give a smaller "
            "image size, let SEMIGRAD_DATA name a folder on a larger disk, or use imagenet:PATH, which reads pictures "
            "while it trains."
        ) from error


def _mapped(shape: tuple[int, ...], root: Path) -> np.ndarray:
    root.mkdir(parents=True, exist_ok=True)
    size, free = math.prod(shape), shutil.disk_usage(root).free
    if size > MOST_OF_DISK * free:
        raise OSError(f"{free / 1e9:,.1f} GB are free there, of which one data set may take half")
    with tempfile.TemporaryFile(dir=root) as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)  # a disk that is full says so now, not by ending the process
        return np.memmap(file, np.uint8, "r+", shape=shape)
