"""Fetches the official data sets: continues broken downloads, checks hashes, leaves nothing half-done to be found."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import tarfile
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TimeRemainingColumn, TransferSpeedColumn

from semigrad.errors import InputError, unknown

TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 20
LARGEST = 4 * 10**9  # bytes; the largest official file has a third of that
NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


@dataclass(frozen=True)
class Remote:
    """One file of an official host. The hash is the official one: it guards against damage on the way."""

    base: str
    name: str
    md5: str
    place: str  # below the data folder: the file itself, or the folder that the archive holds


TORONTO = "https://www.cs.toronto.edu/~kriz/"
STANFORD = "http://ufldl.stanford.edu/housenumbers/"
SVHN = (
    Remote(STANFORD, "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", "svhn/train_32x32.mat"),
    Remote(STANFORD, "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", "svhn/test_32x32.mat"),
)
FILES: Mapping[str, tuple[Remote, ...]] = {
    "cifar10": (Remote(TORONTO, "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", "cifar-10-batches-bin"),),
    "cifar100": (Remote(TORONTO, "cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", "cifar-100-binary"),),
    "svhn": SVHN,
    "svhn-extra": (
        *SVHN,
        Remote(STANFORD, "extra_32x32.mat", "a93ce644f1a588dc4d68dda5feec44a7", "svhn/extra_32x32.mat"),
    ),
}


def download(name: str, root: Path, *, base_urls: Mapping[str, str] | None = None) -> None:
    """Brings the data set `name` under `root`; what is there already is left as it is.

    `base_urls` may name another host for a data set, for example a mirror: {"cifar10": "https://mirror/data/"}."""
    if name not in FILES:
        raise InputError(unknown("data set to download", name, FILES))
    console = Console(stderr=True, markup=False, highlight=False)  # names of folders are no markup
    for remote in FILES[name]:
        place = root / remote.place
        if place.is_file() or (place.is_dir() and any(place.iterdir())):
            console.print(f"{place} is there already; remove it to fetch it again.", soft_wrap=True)
            continue
        base = (base_urls or {}).get(name, remote.base)
        url = f"{base.rstrip('/')}/{remote.name}"
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            fetched = _fetch(url, place.parent / f"{remote.name}.partial", remote, console)
            _settle(fetched, place)
        except NETWORK_ERRORS as problem:
            raise _unreachable(name, root, url, problem) from None
        except OSError as problem:
            raise InputError(f"Cannot write to {place.parent} ({problem}); free or choose another place.") from None
        console.print(f"{place} is complete.", soft_wrap=True)


def _unreachable(name: str, root: Path, url: str, problem: Exception) -> InputError:
    needed = "; ".join(
        f"{remote.base}{remote.name} " + ("unpacked to " if _is_archive(remote) else "as ") + remote.place
        for remote in FILES[name]
    )
    return InputError(
        f"{url} cannot be fetched ({problem}). Try again, what has come so far is kept; or get the files elsewhere "
        f"and put them under {root} (the environment variable SEMIGRAD_DATA chooses this folder): {needed}."
    )


def _is_archive(remote: Remote) -> bool:
    return remote.name.endswith(".tar.gz")


def _fetch(url: str, partial: Path, remote: Remote, console: Console) -> Path:
    """The complete file, its hash checked. A broken connection is taken up again as long as each try brings bytes."""
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    console.print(f"Fetching {url}", soft_wrap=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(remote.name, total=None)
        while True:
            before = _size(partial)
            try:
                _continue(url, partial, progress, task)
                break
            except NETWORK_ERRORS as problem:
                refused = isinstance(problem, urllib.error.HTTPError)
                if refused or _size(partial) <= before:
                    raise
    with partial.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != remote.md5:
        partial.unlink()
        raise InputError(
            f"{url} gave a file with the md5 hash {found}, expected {remote.md5}. It was deleted; try again, or get "
            "it elsewhere."
        )
    return partial


def _size(partial: Path) -> int:
    return partial.stat().st_size if partial.exists() else 0


def _continue(url: str, partial: Path, progress: Progress, task: TaskID) -> None:
    """Asks for what is missing; a server that cannot give a part sends the whole, which replaces what was there."""
    have = _size(partial)
    headers = {"User-Agent": "semigrad"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except (OverflowError, ValueError) as problem:  # it sends us on to an address that is none
        raise http.client.HTTPException(f"the server's answer makes no sense: {problem}") from None
    except urllib.error.HTTPError as problem:
        if have and problem.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing is missing; the hash will tell
        raise
    with response:
        continued = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        start = have if response.status == http.HTTPStatus.PARTIAL_CONTENT and continued else 0
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if re.fullmatch("[0-9]{1,15}", length) else None
        progress.update(task, completed=start, total=total)
        with partial.open("ab" if start else "wb") as file:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                progress.advance(task, len(chunk))
                if file.tell() > LARGEST:
                    raise InputError(f"{url} gives more than {LARGEST:,} bytes, which no official file has.")
    if total is not None and _size(partial) < total:
        raise ConnectionError(f"the connection ended after {_size(partial):,} of {total:,} bytes")


def _settle(fetched: Path, place: Path) -> None:
    """Puts the file, or the folder in the archive, where readers look: whole, by one rename."""
    if not fetched.name.endswith(".tar.gz.partial"):
        os.replace(fetched, place)
        return
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".unpacking-") as folder:
        try:
            with tarfile.open(fetched) as archive:
                archive.extractall(folder, filter="data")  # no links, no paths that lead out, no devices
        except (tarfile.TarError, EOFError, ValueError, zlib.error) as problem:
            raise InputError(f"{fetched} cannot be unpacked ({problem}); remove it and try again.") from None
        os.replace(Path(folder) / place.name, place)
    fetched.unlink()
