"""What the ways of putting answers back share: names that are free, labels that are not contradicted, an exchange that
loses nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from semigrad.errors import InputError
from semigrad.folder.files import cannot_write

Answers = Mapping[str, str]
"""The class by the name of the example."""


@dataclass(frozen=True)
class Merged:
    """What was written."""

    old: Path  # what holds the labels so far
    new: Path  # the same with the answers
    added: int
    known: int  # answers that were in the labels already


def still_open(old: Path, answers: Answers, present: Mapping[str, str]) -> Answers:
    """The answers that are not in the labels yet; `present` has the label of every example, "" for none."""
    strangers = [example for example in answers if example not in present]
    if strangers:
        raise InputError(
            f"{_counted(strangers, 'is', 'are')} for examples that {old} does not have, first {strangers[0]!r}. Use "
            "the answers with the run that they were asked for, and the data that it was trained on."
        )
    against = [example for example, answer in answers.items() if present[example] not in ("", answer)]
    if against:
        raise InputError(
            f"{_counted(against, 'contradicts', 'contradict')} a label that is there already, first {against[0]!r}: "
            f"{present[against[0]]!r} in {old}, {answers[against[0]]!r} among the answers. Put one of them right."
        )
    return {example: answer for example, answer in answers.items() if not present[example]}


def _counted(answers: Sequence[str], one: str, several: str) -> str:
    return f"One answer {one}" if len(answers) == 1 else f"{len(answers):,} answers {several}"


def place_for(out: Path | None, usual: Path) -> Path:
    """Where to write: what is asked for, which must not exist; else the usual name, numbered where it is taken."""
    if out is None:
        return free(usual)
    if out.exists() or out.is_symlink():
        raise InputError(f"{out} exists, and nothing is overwritten. Choose another place, or move it away.")
    return out


def free(path: Path) -> Path:
    """The path, or the first one numbered behind its stem that is not taken."""
    number, candidate = 1, path
    while candidate.exists() or candidate.is_symlink():
        number += 1
        candidate = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return candidate


def take_place(merged: Merged) -> Path:
    """Move the old labels aside and the new ones into their place; returns where the old ones are."""
    number, old, new = 1, merged.old.resolve(), merged.new.resolve()
    while (aside := old.with_name(f"{old.name}.before-{number}")).exists():
        number += 1
    try:
        old.rename(aside)
        new.rename(old)
    except OSError as error:
        if aside.exists() and not old.exists():
            aside.rename(old)
        raise cannot_write(old, error) from error
    return aside
