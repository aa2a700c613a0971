"""`semigrad download NAME`: CIFAR and SVHN into the data folder, hashes checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from semigrad.cli.options import POSITIONAL, parse


@dataclass(frozen=True)
class Options:
    """Fetch a data set into the folder that SEMIGRAD_DATA names (default: the user's cache folder)."""

    name: Annotated[Literal["cifar10", "cifar100", "svhn", "svhn-extra"], POSITIONAL]
    """Which data set."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad download")

    from semigrad.data import data_root
    from semigrad.data.download import download

    download(options.name, data_root())
    print(data_root())
    return 0
