"""Counts: examples of each part and class, sizes of pictures, files that cannot be read."""

from __future__ import annotations

import numpy as np

from semigrad.doctor.finding import Finding
from semigrad.doctor.subject import Subject

UNEVEN = 3.0
"""Times as many labels as the rarest class has, from which on classes are called uneven."""
FEW_LABELS = 4
SHIFTED, BY_CHANCE = 0.1, 0.01
"""Share of the test part that would have to change class for it to be divided as the labels are, from which on that is
said, and the probability below which it is no accident of few labels."""


def class_counts(subject: Subject) -> dict[str, list[int]]:
    """Examples of each class, in the parts whose classes are known; also of those that were not read."""
    return {
        name: np.bincount(part.known[part.known >= 0], minlength=len(subject.classes)).tolist()
        for name, part in subject.parts.items()
        if name != "unlabeled"
    }


def count(subject: Subject) -> list[Finding]:
    found = [*_broken(subject), *_sizes(subject), *_balance(subject), *_test(subject), *_shifted(subject)]
    return found + [Finding("note", "note", 1, f"{note[:1].upper()}{note[1:]}.", "") for note in subject.notes]


def _broken(subject: Subject) -> list[Finding]:
    if not subject.broken:
        return []
    total = sum(len(part) for part in subject.parts.values()) + len(subject.broken)
    files = [f"{name} ({reason})" for name, reason in subject.broken.items()]
    return [
        Finding(
            "broken", "problem", len(files), f"{len(files):,} of {total:,} pictures cannot be read.",
            "Repair or remove them: training passes over a few, and refuses data in which more than 3 % or a whole "
            "class are broken.", files,
        )
    ]  # fmt: skip


def _sizes(subject: Subject) -> list[Finding]:
    if len(subject.sizes) < 2:
        return []
    (usual, often), *_ = subject.sizes.most_common()
    sides = [side for size in subject.sizes for side in size]
    longest = max(max(width, height) / min(width, height) for width, height in subject.sizes)
    shown = [f"{width} x {height}: {times:,}" for (width, height), times in subject.sizes.most_common(10)]
    return [
        Finding(
            "sizes", "note", len(subject.sizes),
            f"Pictures have {len(subject.sizes):,} different sizes, sides from {min(sides):,} to {max(sides):,}, "
            f"{usual[0]} x {usual[1]} most often ({often:,}); the longest is {longest:.1f} times as long as wide.",
            "All are brought to one square, of which the middle is seen: --image-size chooses its side; cut pictures "
            "yourself where what matters lies outside of the middle.", shown,
        )
    ]  # fmt: skip


def _balance(subject: Subject) -> list[Finding]:
    counts = class_counts(subject).get("labeled", [0] * len(subject.classes))
    named = dict(zip(subject.classes, counts, strict=True))
    found = []
    few = {name: number for name, number in named.items() if number < FEW_LABELS}
    if few:
        found.append(
            Finding(
                "few-labels", "look", len(few), f"{len(few):,} classes have fewer than {FEW_LABELS} labels.",
                "Label some more of them: with fewer, no label can be held out to choose a method by.",
                [f"{name}: {number}" for name, number in few.items()],
            )
        )  # fmt: skip
    least, most = min(counts), max(counts)
    if most >= UNEVEN * max(1, least):
        order = sorted(named, key=lambda name: named[name])
        found.append(
            Finding(
                "uneven", "look", len(counts),
                f"Labels are uneven: {most:,} of {order[-1]!r}, {least:,} of {order[0]!r}.",
                "Label more of the rare classes, or train with --balanced. If they are as rare in what is to be "
                "classified, look at the error of each class and not at the mean alone.",
                [f"{name}: {named[name]:,}" for name in order],
            )
        )  # fmt: skip
    return found


def _test(subject: Subject) -> list[Finding]:
    if "test" not in subject.parts:
        advice = "Put some labeled examples aside as a test part, or hold labels out with --validation."
        return [Finding("no-test", "look", 1, "There is no test part, so that no error can be measured.", advice)]
    counts = class_counts(subject)["test"]
    absent = [name for name, number in zip(subject.classes, counts, strict=True) if number == 0]
    if not absent:
        return []
    advice = "Add some: the measured error says nothing about these classes."
    return [Finding("untested", "look", len(absent), f"{len(absent):,} classes are not in the test part.", advice,
                    absent)]  # fmt: skip


def _shifted(subject: Subject) -> list[Finding]:
    """Labels that are divided among the classes otherwise than the test part is."""
    from scipy.stats import chi2_contingency

    counts = class_counts(subject)
    if not all(sum(counts.get(name, ())) for name in ("labeled", "test")):
        return []
    table = np.array([counts["labeled"], counts["test"]])
    labeled, test = table / table.sum(1, keepdims=True)
    apart = float(np.abs(labeled - test).sum()) / 2
    if apart < SHIFTED or chi2_contingency(table[:, table.any(0)]).pvalue >= BY_CHANCE:
        return []
    order = np.argsort(-np.abs(labeled - test), kind="stable")
    shown = [f"{subject.classes[c]}: {100 * labeled[c]:.0f} % of the labels, {100 * test[c]:.0f} % of the test part"
             for c in order]  # fmt: skip
    return [
        Finding(
            "shifted", "note", len(shown),
            f"Labels are divided among the classes otherwise than the test part ({100 * apart:.0f} % of it).",
            "Answers lean towards classes with many labels. Where the test part is as what is to be classified, draw "
            "examples to label at random, or look at the error of each class.", shown,
        )
    ]  # fmt: skip
