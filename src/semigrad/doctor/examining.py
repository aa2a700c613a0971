"""Everything that is looked at, in order, and the report of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semigrad.doctor.counting import class_counts, count
from semigrad.doctor.duplicates import find_duplicates
from semigrad.doctor.features import reduced, seen_by
from semigrad.doctor.finding import Finding
from semigrad.doctor.held_out import held_out
from semigrad.doctor.strangers import find_strangers
from semigrad.doctor.subject import Subject, open_subject
from semigrad.doctor.suspects import MOST as MOST_LABELS
from semigrad.doctor.suspects import find_suspects
from semigrad.fitting.looking import of_each_class
from semigrad.folder.saved import load_run

MOST = 10_000
"""Examples of each part that are compared; exact copies are looked for among all that are in memory."""
ORDER = ("problem", "look", "note")
SHOWN = 5  # examples of a finding in a text


@dataclass(frozen=True)
class Report:
    """What was looked at, and what was found."""

    subject: Subject
    compared_by: str
    sampled: list[str]  # what was not looked at in full
    findings: list[Finding]

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        counts = class_counts(self.subject)
        return {
            "data": self.subject.title,
            "classes": list(self.subject.classes),
            "shape": list(self.subject.shape),
            "parts": {name: {"examples": part.total, "read": len(part), "classes": counts.get(name)}
                      for name, part in self.subject.parts.items()},
            "sizes": [[*size, times] for size, times in self.subject.sizes.most_common()],
            "compared_by": self.compared_by,
            "sampled": self.sampled,
            "findings": [finding.to_dict() for finding in self.findings],
        }  # fmt: skip

    def __str__(self) -> str:
        shape = self.subject.shape
        kind = f"images of {' x '.join(map(str, shape))}" if self.subject.images else f"rows of {shape[0]} features"
        lines = [f"{self.subject.title}: {kind}, {len(self.subject.classes)} classes"]
        counts = class_counts(self.subject)
        for name, part in self.subject.parts.items():
            each = f" ({of_each_class(counts[name])})" if name in counts else ""
            lines.append(f"  {name:<10} {part.total:>9,}{each}")
        lines += [f"Compared by {self.compared_by}.", *self.sampled, ""]
        for finding in self.findings:
            lines += _described(finding)
        if not any(finding.weight != "note" for finding in self.findings):
            lines.append("No problem found.")
        return "\n".join(lines)


def _described(finding: Finding) -> list[str]:
    lines = [f"{finding.weight.upper()}: {finding.what}"]
    lines += [f"    {example}" for example in finding.examples[:SHOWN]]
    if len(finding.examples) > SHOWN:
        lines.append(f"    ... {len(finding.examples) - SHOWN:,} more")
    return [*lines, *([f"  What to do: {finding.advice}"] if finding.advice else [])]


def examine(
    given: str, *, run: Path | None = None, seed: int = 0, label: str | None = None, image_size: int | None = None,
    most: int = MOST, device: str = "auto", tell: Callable[[str], None] = lambda text: None,
) -> Report:  # fmt: skip
    """Look at data: a path, or data by name. With a `run`, examples are compared by its network's features; `tell`
    hears what is under way."""
    tell("Reading ...")
    if run is not None:
        settings = load_run(run)
        label, image_size = label or settings.label, image_size or settings.image_size
    subject = open_subject(given, seed, label, image_size, most, full=run is not None)
    findings = count(subject)
    tell("Looking for duplicates ...")
    findings += find_duplicates(subject, most)
    tell("Comparing examples ...")
    compared = reduced(subject, most) if run is None else seen_by(run, subject, most, device)
    findings += find_strangers(subject, compared)
    findings += find_suspects(subject, compared, None if run is None else held_out(run, subject, device))
    findings.sort(key=lambda finding: ORDER.index(finding.weight))
    return Report(subject, compared.words, sampled(subject, most), findings)


def sampled(subject: Subject, most: int) -> list[str]:
    """A sentence for everything that is not looked at in full."""
    said = []
    for name, part in subject.parts.items():
        if part.total > len(part):
            said.append(f"Only {len(part):,} of {part.total:,} {name} pictures were read (--most).")
        elif len(part) > most:
            said.append(f"Near duplicates and features: {most:,} of {len(part):,} {name} examples (--most).")
    if "labeled" in subject.parts and min(most, len(subject.parts["labeled"])) > MOST_LABELS:
        said.append(f"Labels checked: {MOST_LABELS:,} of {len(subject.parts['labeled']):,}.")
    return said
