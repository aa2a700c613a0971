"""`semigrad add-labels RUN ANSWERS ...`: answers on sheets of `label-next` put back into the labels of a run's data."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from semigrad.cli.options import POSITIONAL, parse


@dataclass(frozen=True)
class Options:
    """The labels of a run's data with the answers of a sheet, as a new file or folder; the old one stays as it is."""

    run: Annotated[Path, POSITIONAL]
    """The folder of the run that the sheet was made for."""
    answers: Annotated[Path, POSITIONAL]
    """The sheet (CSV) with answers."""
    more: tuple[Path, ...] = ()
    """Further sheets."""
    out: Path | None = None
    """Where to write; none: beside the old labels, under a new name."""
    replace: bool = False
    """Move the old labels aside (NAME.before-1) and the new ones into their place."""
    new_classes: bool = False
    """Allow answers that are no class of the run."""
    json: bool = False
    """End stdout with one line of JSON."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad add-labels")

    from semigrad.labeling.exchange import take_place
    from semigrad.labeling.merging import merge

    merged = merge(options.run, [options.answers, *options.more], options.out, options.new_classes)
    known = f", {merged.known:,} were there already" if merged.known else ""
    new = Path(os.path.relpath(merged.new)) if merged.new.is_relative_to(Path.cwd()) else merged.new
    print(f"{merged.added:,} labels added{known}: {new}")
    aside = None
    if options.replace:
        aside = take_place(merged)
        print(f"It is in the place of {merged.old} now, which is kept as {aside}.")
    else:
        print(f"{merged.old} is as it was; --replace puts the new labels into its place and keeps the old ones.")
    if aside or new.is_dir():
        place = merged.old if aside else new
        command = f"semigrad fit {shlex.quote(str(place))}" if place.is_dir() else "the command that made the run"
        print(f"To train with them: {command}, with another --out.")
    if options.json:
        labels = merged.old if aside else merged.new
        print(json.dumps({"added": merged.added, "known": merged.known, "labels": str(labels),
                          "kept": str(aside or merged.old)}))  # fmt: skip
    return 0
