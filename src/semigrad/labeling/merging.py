"""Answers put back into somebody's labels: always as something new beside the old, which is never written to.

`merge` writes a new file or folder; `exchange.take_place` moves the old one aside and the new one into its place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from semigrad.data import folder as pictures
from semigrad.data import given_arrays, table_labels
from semigrad.data.split import DataSpec
from semigrad.errors import InputError, nearest
from semigrad.folder.saved import load_form, load_run, open_again
from semigrad.labeling import merge_arrays, merge_pictures, merge_tables
from semigrad.labeling.exchange import Answers, Merged
from semigrad.labeling.sheet import read_answers
from semigrad.names import composed
from semigrad.run import Run

MERGERS: dict[str, Callable[[Path, Answers, Path | None, str | None], Merged]] = {
    "folder": merge_pictures.merge,
    "csv": merge_tables.merge_csv,
    "parquet": merge_tables.merge_parquet,
    "npz": merge_arrays.merge,
}

NO_LABEL: dict[str, Collection[str]] = {
    "folder": pictures.UNLABELED,
    "csv": table_labels.UNLABELED,
    "parquet": table_labels.UNLABELED,
    "npz": given_arrays.UNLABELED,
}
"""What means that there is none, in small letters: a class of pictures may be called none, one of a table may not."""
BY_ROW = ("csv", "parquet", "npz")
"""Sources whose examples have no names, only places."""


def takes_answers(run: Run) -> bool:
    """Whether the labels that a run was trained on are somebody's own, into which answers can go."""
    spec = DataSpec.parse(run.data)
    return spec.path is not None and spec.name in MERGERS


def merge(folder: Path, answers: Sequence[Path], out: Path | None = None, new_classes: bool = False) -> Merged:
    """The labels of the data that a run was trained on with these answers, as something new at `out` (none: beside
    the old). Examples that nobody knows, classes that are new and labels that say something else are refused."""
    run, classes = load_run(folder), load_form(folder).classes
    spec = DataSpec.parse(run.data)
    if spec.path is None or not takes_answers(run):
        raise InputError(
            f"{run.data} has no labels of yours to add to. It can be done for a folder of pictures with unlabeled "
            "ones, a table (.csv, .tsv, .parquet) and arrays (.npz)."
        )
    if not spec.path.exists():
        raise InputError(f"{spec.path}, which the run was trained on, does not exist any more.")
    if spec.name in BY_ROW and open_again(folder, run)[1]:
        raise InputError(
            f"{spec.path} is not what it was when the run was trained, so that nobody knows which rows were meant. "
            "Bring back what it was, and give all answers at once."
        )
    spelled = {composed(name): name for name in classes}  # an answer is typed on another machine than the class was
    given = {example: spelled.get(composed(answer), answer) for example, answer in _joined(answers).items()}
    if not new_classes:
        _known(given, classes)
    if none := [answer for answer in given.values() if answer.lower() in NO_LABEL[spec.name]]:
        raise InputError(f"{none[0]!r} means that there is no label. Leave the answer empty where you do not know.")
    return MERGERS[spec.name](spec.path, given, out, run.label)


def _joined(files: Sequence[Path]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for file in files:
        for example, answer in read_answers(file).items():
            if joined.setdefault(example, answer) != answer:
                raise InputError(
                    f"There are two answers for {example!r}: {joined[example]!r}, and {answer!r} in {file}. Keep one."
                )
    return joined


def _known(answers: Mapping[str, str], classes: Sequence[str]) -> None:
    strange = [(example, answer) for example, answer in answers.items() if answer not in classes]
    if strange:
        example, answer = strange[0]
        count = "One answer is" if len(strange) == 1 else f"{len(strange):,} answers are"
        words = f"{count} no class of the run, first {answer!r} for {example!r}."
        advice = "Put that right, or allow new classes with --new-classes."
        raise InputError(" ".join(filter(None, [words, nearest(answer, classes), advice])))
