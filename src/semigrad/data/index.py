"""What a folder of pictures in class folders holds, found out once and kept.

A walk over a million files takes minutes, on a network many. So each class folder is walked once, several side by side,
and leaves a shard: the names and sizes of its pictures, and when each folder in it last changed. A walk that is
interrupted goes on where it was, and later only folders that changed are walked again. All names stand in one file,
which is mapped into memory and not read, and so are all sizes: what is not looked at takes no memory, and processes
share what is.

A picture that is written over in place changes no folder: `Index.fits` looks at the sizes of some."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from rich.console import Console
from rich.progress import track

from semigrad.data.pictures import subfolders, walk
from semigrad.reading import TEXT, read_file

FOLDER = "indexes"
"""Below the folder of data sets."""
SETTLED = 2 * 10**9
"""Nanoseconds after which no change of a folder can be missed: file systems tell time in steps of up to two seconds."""
SIDE_BY_SIDE = 16
"""Folders that are walked at a time: most of it is waiting."""
WORTH_A_BAR = 50
"""Folders."""


@dataclass(frozen=True)
class Shard:
    """The pictures of one class folder."""

    names: np.ndarray  # (n,) bytes, relative to the folder of class folders
    sizes: np.ndarray  # (n,) int64, in bytes
    folders: np.ndarray  # (m,) bytes, all that were walked
    times: np.ndarray  # (m,) int64, when they last changed
    settled: bool = True  # long enough ago when they were walked


@dataclass(frozen=True)
class Index:
    """The pictures of all class folders, in the order of their names."""

    folder: str
    classes: tuple[str, ...]
    counts: tuple[int, ...]  # pictures of each class
    names: np.ndarray  # (N,) bytes, relative to the folder
    sizes: np.ndarray  # (N,) int64, in bytes
    stamp: str  # a hash of names and sizes

    def __len__(self) -> int:
        return len(self.names)

    def fits(self, positions: Sequence[int]) -> bool:
        """Whether the files at these positions have the sizes that they had."""
        paths = [os.path.join(self.folder, os.fsdecode(self.names[position])) for position in positions]
        return [_size(path) for path in paths] == [int(self.sizes[position]) for position in positions]


def index_of(folder: Path, root: Path, anew: bool = False) -> Index:
    """The index of a folder of class folders: the one that is kept below `root` where nothing changed since, else made
    now and kept there, if that can be written to. `anew`: whatever is kept counts for nothing."""
    place = place_of(folder, root)
    members = subfolders(folder)
    if not anew and (kept := _kept(place, folder, members)) is not None:
        return kept
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        console = Console(stderr=True)
        hidden = len(members) < WORTH_A_BAR or not console.is_terminal
        made = pool.map(lambda member: _shard(place, folder, member, anew), members)
        title = f"Looking through {folder}"
        shards = list(track(made, title, len(members), console=console, transient=True, disable=hidden))
    index = assemble(folder, [member.name for member in members], shards)
    if all(shard.settled for shard in shards):
        with contextlib.suppress(OSError, ValueError):  # no place to keep it is no reason not to train
            keep(place, index, shards)
            return _kept(place, folder, members) or index
    return index


def place_of(folder: Path, root: Path) -> Path:
    """Where the index of a folder is kept."""
    return root / FOLDER / hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]


def keep(place: Path, index: Index, shards: Sequence[Shard]) -> None:
    """For the next time."""
    for name, values in (("names", index.names), ("sizes", index.sizes)):
        with _written(place / f"{name}-{index.stamp}.npy") as out:
            np.save(out, values)
    folders = {os.fsdecode(path): int(then) for s in shards for path, then in zip(s.folders, s.times, strict=True)}
    content = {"classes": index.classes, "counts": index.counts, "stamp": index.stamp, "folders": folders}
    with _written(place / "index.json") as out:
        out.write(json.dumps(content).encode())
    for old in (*place.glob("names-*.npy"), *place.glob("sizes-*.npy")):
        if not old.name.endswith(f"-{index.stamp}.npy"):
            old.unlink()


def assemble(folder: Path, classes: Sequence[str], shards: Sequence[Shard]) -> Index:
    """All shards as one."""
    names = np.concatenate([np.empty(0, "S1"), *(shard.names for shard in shards)])
    sizes = np.concatenate([np.empty(0, np.int64), *(shard.sizes for shard in shards)])
    stamp = hashlib.sha256(names.dtype.str.encode() + names.tobytes() + sizes.tobytes()).hexdigest()[:16]
    return Index(str(folder), tuple(classes), tuple(len(shard.names) for shard in shards), names, sizes, stamp)


# --- one class folder ---


def _shard(place: Path, folder: Path, member: Path, anew: bool) -> Shard:
    file = place / "shards" / f"{hashlib.sha256(os.fsencode(member.name)).hexdigest()[:16]}.npz"
    if not anew and (kept := _read_shard(file)) is not None and _unchanged(kept.folders, kept.times):
        return kept
    shard = _walked(folder, member)
    if shard.settled:
        with contextlib.suppress(OSError), _written(file) as out:
            np.savez(out, names=shard.names, sizes=shard.sizes, folders=shard.folders, times=shard.times)
    return shard


def _walked(folder: Path, member: Path) -> Shard:
    start = len(os.path.join(folder, ""))  # of the names relative to the folder
    now = time.time_ns()
    pictures, _, folders = walk(member)
    times = np.array([_changed(path) for path in folders], np.int64)
    names = np.array([os.fsencode(path[start:]) for path in pictures] or np.empty(0, "S1"))
    sizes = np.array([_size(path) for path in pictures], np.int64)
    settled = bool((times < now - SETTLED).all())
    return Shard(names, sizes, np.array([os.fsencode(path) for path in folders]), times, settled)


def _read_shard(file: Path) -> Shard | None:
    try:
        with np.load(file, allow_pickle=False) as kept:
            return Shard(kept["names"], kept["sizes"], kept["folders"], kept["times"])
    except Exception:  # not there, or damaged in whatever way: it is made again
        return None


def _unchanged(folders: Iterable[Any], times: Iterable[Any]) -> bool:
    return all(_changed(os.fsdecode(path)) == int(then) for path, then in zip(folders, times, strict=True))


def _changed(folder: str) -> int:
    """When a folder last changed; -1 where it is gone."""
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return -1


def _size(path: str) -> int:
    """Of a file; -1 where it is gone, or leads nowhere."""
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


# --- all of them, kept ---


def _kept(place: Path, folder: Path, members: Sequence[Path]) -> Index | None:
    """What is kept, where it is whole and no folder changed."""
    try:
        content = json.loads(read_file(place / "index.json", TEXT))
        stamp, counts = content["stamp"], tuple(content["counts"])
        if content["classes"] != [member.name for member in members] or not _unchanged(
            content["folders"].keys(), content["folders"].values()
        ):
            return None
        names, sizes = (np.load(place / f"{name}-{stamp}.npy", mmap_mode="r") for name in ("names", "sizes"))
        if not len(names) == len(sizes) == sum(counts):
            return None
        return Index(str(folder), tuple(content["classes"]), counts, names, sizes, stamp)
    except Exception:  # not there, or damaged in whatever way: it is made again
        return None


@contextlib.contextmanager
def _written(file: Path) -> Iterator[IO[bytes]]:
    """A file that is there whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            yield out
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
