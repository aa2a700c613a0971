"""Examples that are there more than once, exactly or nearly: within a part, and across parts, where it matters most."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from semigrad.doctor.finding import Finding, Weight
from semigrad.doctor.likeness import near_pairs
from semigrad.doctor.subject import Part, Subject

CHUNK = 1000


@dataclass(frozen=True, eq=False)
class Place:
    """An example."""

    part: Part
    number: int  # in the part

    @property
    def label(self) -> int:
        return int(self.part.labels[self.number])

    def __str__(self) -> str:
        return self.part.name_of(self.number)


def find_duplicates(subject: Subject, most: int) -> list[Finding]:
    """Exact ones among all examples, near ones among `most` of each part."""
    digests = {name: digests_of(part) for name, part in subject.parts.items()}
    return [*_exact(subject, digests), *_near(subject, digests, most), *_blank(subject)]


def digests_of(part: Part) -> np.ndarray:
    """(N,) a number that is the same for the same content, and else almost surely another."""
    found = np.empty(len(part), "S16")
    for start in range(0, len(part), CHUNK):
        rows = part.values(np.arange(start, min(start + CHUNK, len(part))))
        for place, row in enumerate(rows):
            found[start + place] = hashlib.blake2b(np.ascontiguousarray(row).tobytes(), digest_size=15).digest() + b"."
    return found


def _exact(subject: Subject, digests: dict[str, np.ndarray]) -> list[Finding]:
    values, counts = np.unique(np.concatenate(list(digests.values())), return_counts=True)
    repeated = values[counts > 1]
    groups: dict[bytes, list[Place]] = {}
    for name, part in subject.parts.items():
        for number in np.flatnonzero(np.isin(digests[name], repeated)).tolist():
            groups.setdefault(bytes(digests[name][number]), []).append(Place(part, number))
    return _findings(subject, [pair for group in groups.values() for pair in _pairs(group)], "same", "the same as")


def _pairs(group: list[Place]) -> Iterable[tuple[Place, Place]]:
    """Every example of a group with the first of each part; all pairs of a large group would be too many."""
    firsts = {place.part.name: place for place in reversed(group)}
    for place in group:
        for first in firsts.values():
            if first is not place and not (firsts[place.part.name] is place and _rank(first) > _rank(place)):
                yield first, place


def _rank(place: Place) -> int:
    return ("labeled", "unlabeled", "test").index(place.part.name)


def _near(subject: Subject, digests: dict[str, np.ndarray], most: int) -> list[Finding]:
    chosen = {name: part.some(most) for name, part in subject.parts.items()}
    places = [Place(part, int(number)) for name, part in subject.parts.items() for number in chosen[name]]
    if len(places) < 2:
        return []
    same = np.concatenate([digests[name][chosen[name]] for name in subject.parts])
    _, groups = np.unique(same, return_inverse=True)

    def fetch(numbers: np.ndarray) -> np.ndarray:
        return _values([places[number] for number in numbers.tolist()])

    pairs = [(places[i], places[j]) for i, j, _ in near_pairs(fetch, groups)]
    return _findings(subject, pairs, "near", "almost the same as")


def _values(places: list[Place]) -> np.ndarray:
    """The examples, read part by part."""
    found: list[np.ndarray] = [np.empty(0)] * len(places)
    for part in {place.part.name: place.part for place in places}.values():
        here = [row for row, place in enumerate(places) if place.part is part]
        for row, values in zip(here, part.values(np.array([places[row].number for row in here])), strict=True):
            found[row] = values
    return np.stack(found)


def _findings(subject: Subject, pairs: list[tuple[Place, Place]], kind: str, words: str) -> list[Finding]:
    """Pairs by the parts that they are of, and by what that means."""
    found = []
    names = [*combinations(subject.parts, 2), *((name, name) for name in subject.parts)]
    for one, other in names:
        here = [_ordered(pair, one) for pair in pairs if {place.part.name for place in pair} == {one, other}]
        against = [pair for pair in here if one == other and _disagree(*pair)]
        others = [pair for pair in here if one != other or not _disagree(*pair)]
        if against:
            found.append(_finding(subject, against, f"{kind}-against", one, other, words))
        if others:
            found.append(_finding(subject, others, kind, one, other, words))
    return found


def _ordered(pair: tuple[Place, Place], first: str) -> tuple[Place, Place]:
    return pair if pair[0].part.name == first else (pair[1], pair[0])


ADVICE: dict[str, tuple[Weight, str]] = {
    "test": ("problem", "The measured error is too good: take them out of the training data, or out of the test part."),
    "against": ("problem", "They have different labels: at least one is wrong. Look at them and put it right."),
    "within": ("note", "Keep one of each where copies are no accident of your collection: copies count twice."),
    "pool": ("note", "Harmless for most methods; a copy of a labeled example teaches nothing more. Remove it if easy."),
}


def _finding(
    subject: Subject, pairs: list[tuple[Place, Place]], kind: str, one: str, other: str, words: str
) -> Finding:
    against = kind.endswith("-against")
    means = "against" if against else "within" if one == other else "test" if "test" in (one, other) else "pool"
    weight, advice = ADVICE[means]
    count = len({(second.part.name, second.number) for _, second in pairs})
    where = f"another {one} one" if one == other else f"{'an' if one[0] in 'aeiou' else 'a'} {one} one"
    labels = ", with another label" if against else ""
    examples = "example is" if count == 1 else "examples are"
    shown = [f"{second} = {first}{_labels(subject, first, second)}" for first, second in pairs]
    name = f"{kind}-{one}-{other}"
    return Finding(name, weight, count, f"{count:,} {other} {examples} {words} {where}{labels}.", advice, shown)


def _disagree(first: Place, second: Place) -> bool:
    return first.label != second.label and -1 not in (first.label, second.label)


def _labels(subject: Subject, first: Place, second: Place) -> str:
    if not _disagree(first, second):
        return ""
    return f" ({subject.classes[second.label]} here, {subject.classes[first.label]} there)"


def _blank(subject: Subject) -> list[Finding]:
    """Pictures of one color."""
    if not subject.images:
        return []
    found = []
    for part in subject.parts.values():
        for start in range(0, len(part), CHUNK):
            values = part.values(np.arange(start, min(start + CHUNK, len(part))))
            flat = values.reshape(*values.shape[:2], -1)
            found += [part.name_of(start + int(n)) for n in np.flatnonzero((np.ptp(flat, axis=2) == 0).all(1))]
    if not found:
        return []
    advice = "Remove them, or repair what made them."
    return [Finding("blank", "look", len(found), f"{len(found):,} pictures are of one color.", advice, found)]
