"""`semigrad download NAME`: CIFAR and SVHN into the data folder, hashes checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import tyro


@dataclass(frozen=True)
class Options:
    """Fetch a data set into the folder that SEMIGRAD_DATA names (default: the user's cache folder)."""

    name: tyro.conf.Positional[Literal["cifar10", "cifar100", "svhn", "svhn-extra"]]
    """Which data set."""


def main(arguments: Sequence[str]) -> int:
    options = tyro.cli(Options, args=list(arguments), prog="semigrad download")

    from semigrad.data import data_root
    from semigrad.data.download import download

    download(options.name, data_root())
    print(data_root())
    return 0
