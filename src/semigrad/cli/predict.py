"""`semigrad predict RUN PATH`: what a trained model says of pictures, or of the rows of an array."""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

from semigrad.cli.options import POSITIONAL, parse
from semigrad.errors import InputError
from semigrad.names import printable
from semigrad.settings.fields import Threads

if TYPE_CHECKING:
    from semigrad.classifier.classifier import Classifier

HEADER = ("example", "class", "confidence")
MOST_NAMED = 10  # unreadable files that are named one by one


@dataclass(frozen=True)
class Options:
    """Class, confidence and probabilities for each picture or row, as CSV."""

    run: Annotated[Path, POSITIONAL]
    """The run's folder, or one that `semigrad export` made."""
    path: Annotated[Path, POSITIONAL]
    """A picture, a folder of pictures, an array (.npy, or .npz with x), or for a model of a table another table."""
    out: Path | None = None
    """The CSV file; none: stdout."""
    device: str = "auto"
    """Where to compute."""
    threads: Threads | None = None
    """Threads of the processor; none: torch's own choice."""


@dataclass
class Tally:
    """What was answered so far."""

    classes: Counter[str]
    lost: dict[str, str]
    notes: list[str]


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad predict")

    import torch

    from semigrad.classifier.classifier import is_model, load
    from semigrad.folder.files import check_replaceable, check_writable, make_folder, write_whole

    if options.threads:
        torch.set_num_threads(options.threads)
    if not is_model(options.run) and is_model(options.path):
        raise InputError(f"The run comes first: semigrad predict {options.path} {options.run}.")
    model = load(options.run, options.device)
    if options.out is None:
        tally = write_answers(model, options.path, sys.stdout)
    else:
        if options.out.exists() and options.path.exists() and options.out.samefile(options.path):
            raise InputError(f"{options.out} is what is asked about. Choose another place for the answers.")
        if options.out.is_dir():
            raise InputError(f"{options.out} is a folder. Give the file for the answers, {options.out}/answers.csv.")
        check_replaceable(options.out, ",".join(HEADER).encode(), "file of answers")
        check_writable([options.out.parent])
        answers = io.StringIO(newline="")  # a file from before stays until there are all answers
        tally = write_answers(model, options.path, answers)
        make_folder(options.out.parent)
        write_whole(options.out, answers.getvalue().encode())
        counts = ", ".join(f"{name} {count:,}" for name, count in tally.classes.most_common())
        print(printable(f"{sum(tally.classes.values()):,} answers in {options.out}: {counts}"))
    if not model.calibrated:
        print(f"semigrad: {model.confidence}", file=sys.stderr)
    for note in tally.notes:
        print(printable(f"semigrad: {note}."), file=sys.stderr)
    return tell_lost(tally)


def write_answers(model: Classifier, path: Path, file: IO[str]) -> Tally:
    """A line for each example that can be read."""
    tally, writer = Tally(Counter(), {}, []), csv.writer(file, lineterminator="\n")
    for number, part in enumerate(model.parts(path)):
        if number == 0:
            writer.writerow([*HEADER, *(f"p_{name}" for name in model.classes)])
        tally.lost |= part.lost
        tally.notes += part.notes
        for name, row in zip(part.names, model.answer(part), strict=True):
            answer = model.classes[row.argmax()]
            tally.classes[answer] += 1
            writer.writerow([name, answer, f"{row.max():.4f}", *(f"{value:.6f}" for value in row)])
    return tally


def tell_lost(tally: Tally) -> int:
    """Names what could not be read; 1 where that was something."""
    for name, reason in list(tally.lost.items())[:MOST_NAMED]:
        print(printable(f"semigrad: {name} cannot be read: {reason}."), file=sys.stderr)
    if len(tally.lost) > MOST_NAMED:
        print(f"semigrad: {len(tally.lost) - MOST_NAMED:,} more cannot be read.", file=sys.stderr)
    if tally.lost and not tally.classes:
        raise InputError("None of them can be read.")
    return 1 if tally.lost else 0
