"""Memory that one step frees and the next one takes again.

The C library of Linux (glibc) gives blocks above 32 MB back to the system as soon as they are freed, and what is free
at the end of its heap. Their pages are zeroed and mapped anew when they are taken again: a fourth of the processor time
of a step of Conv-Large with a batch of 128."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from typing import Any

TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4  # names of glibc's malloc.h
KEPT = {MMAP_MAX: 0, TRIM_THRESHOLD: -1}
"""No block has a mapping of its own, and the heap does not shrink."""
USUAL = {MMAP_MAX: 65_536, MMAP_THRESHOLD: 32 * 2**20, TRIM_THRESHOLD: 64 * 2**20}
"""Where glibc's own thresholds come to rest once blocks of many megabytes have been freed."""


@contextlib.contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Inside, what is freed stays with this process; afterwards it goes back to the system. Elsewhere than on Linux
    with glibc nothing changes."""
    library: Any = ctypes.CDLL(None) if sys.platform == "linux" else None
    if not hasattr(library, "mallopt"):
        yield
        return
    _say(library, KEPT)
    try:
        yield
    finally:
        _say(library, USUAL)
        library.malloc_trim(0)


def _say(library: Any, settings: dict[int, int]) -> None:
    for name, value in settings.items():
        library.mallopt(name, value)
