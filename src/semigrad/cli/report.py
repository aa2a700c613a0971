"""`semigrad report PATH...`: one self-contained HTML page of a run, or of several in comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from semigrad.cli.options import POSITIONAL, parse


@dataclass(frozen=True)
class Options:
    """Make one self-contained HTML page: of one run, or of several in comparison."""

    runs: Annotated[tuple[Path, ...], POSITIONAL]
    """Folders of runs, or folders that hold some. One run gives its page, several a comparison."""
    out: Path | None = None
    """The file to write; none: report.html in the run's folder, or here for a comparison."""
    pictures: Path | None = None
    """A folder for every chart as an SVG and a PNG file of its own."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad report")

    from semigrad.errors import InputError
    from semigrad.report.page import make_report

    if not options.runs:
        raise InputError("Say which runs to report on: semigrad report PATH..., each the folder of a run.")
    path, pictures = make_report(options.runs, options.out, options.pictures)
    print(f"Report: {path}")
    if options.pictures:
        print(f"{len(pictures)} pictures: {options.pictures}")
    return 0
