"""Where the named data sets lie on this machine, and what to say when they do not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from semigrad.errors import InputError


def data_root() -> Path:
    """The folder SEMIGRAD_DATA names; without it, `semigrad` in the user's cache folder."""
    if given := os.environ.get("SEMIGRAD_DATA"):
        return Path(given).expanduser()
    return _cache_folder() / "semigrad"


def features_root() -> Path:
    """Where features of frozen networks are kept."""
    return _cache_folder() / "semigrad" / "features"


def _cache_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def missing(name: str, root: Path, files: Iterable[Path]) -> InputError:
    """The error for a named data set whose files are not there."""
    places = ", ".join(file.relative_to(root).as_posix() for file in files)
    return InputError(
        f"The data set {name!r} is not complete under {root}; missing: {places}. `semigrad download {name}` fetches "
        "it; or put the files there yourself, or let the environment variable SEMIGRAD_DATA name the folder that "
        "has them."
    )
