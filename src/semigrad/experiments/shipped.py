"""The records that come with this package: in the checkout that it runs from, or packed into what was installed."""

from __future__ import annotations

import contextlib
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import semigrad
from semigrad.experiments.store import DEFAULT_STORE, Shipped

PACKED = Path("experiments/records.tar.xz")
"""Below the package; `setup.py` writes it where the package is built."""


@contextlib.contextmanager
def shipped_records() -> Iterator[Shipped | None]:
    """A folder of them, as long as it is needed; None where there are none, or they are those of this folder."""
    package = Path(semigrad.__file__).resolve().parent
    checkout, packed = package.parents[1] / DEFAULT_STORE, package / PACKED
    if checkout.is_dir():
        yield None if checkout == DEFAULT_STORE.resolve() else Shipped(checkout, str(checkout))
    elif packed.is_file():
        with tempfile.TemporaryDirectory(prefix="semigrad-records-") as folder:
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="data")
            yield Shipped(Path(folder), str(packed))
    else:
        yield None
