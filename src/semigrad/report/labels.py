"""The page of `semigrad label-next`: every example that is to be labeled, why, and a field for the answer."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semigrad.labeling.candidates import Candidates
from semigrad.labeling.choosing import Choice
from semigrad.labeling.merging import takes_answers
from semigrad.labeling.sheet import content_of
from semigrad.report.page import write_page
from semigrad.report.parts.pictures import embed
from semigrad.run import Run

EXPLAINED = {
    "typical": "With few labels, the most typical example of each group of alike ones says most: k-means in the "
    "network's features, groups with the fewest labels first (Hacohen, Dekel, Weinshall, ICML 2022).",
    "margin": "The network wavers between two classes here: the smallest gap between the likeliest and the next.",
    "entropy": "The network's answers are spread over several classes here: the largest entropy.",
    "random": "Drawn at random, as a baseline.",
    "meta-gradient": "An experiment: how strongly a label would move the loss on the labeled examples, to first order.",
}


LARGEST = 192
"""Height and width in pixels of an embedded picture: enough to tell what it shows."""


@dataclass(frozen=True)
class Card:
    """An example on the page."""

    name: str
    source: str  # a data: address; empty where there is no picture
    content: str  # the row of a table in words
    proposed: str
    confidence: float  # in per cent
    reason: str


def labels_page(
    path: Path, folder: Path, run: Run, candidates: Candidates, choices: Sequence[Choice], strategy: str
) -> Path:
    """Write the page; it needs no network, and saves answers as a sheet that `add-labels` reads."""
    command = shlex.join(["semigrad", "add-labels", str(folder), "answers.csv"])
    context = {
        "title": f"To label next: {len(choices):,} examples of {run.data}",
        "sections": [],
        "headline": [
            ("Run", str(folder)), ("Chosen by", strategy), ("Labels so far", f"{len(candidates.labeled):,}"),
            ("Unlabeled", f"{candidates.total:,}"), ("Looked at", f"{len(candidates.unlabeled):,}"),
        ],
        "explained": EXPLAINED[strategy],
        "classes": candidates.classes,
        "cards": _cards(candidates, choices),
        "command": command if takes_answers(run) else "",
    }  # fmt: skip
    return write_page(path, "labels.html", context)


def _cards(candidates: Candidates, choices: Sequence[Choice]) -> list[Card]:
    examples = candidates.dataset.train
    positions = np.array([choice.position for choice in choices], np.int64)
    pictures = [""] * len(choices)
    if len(examples.shape) == 3:
        pictures = [embed(image, LARGEST) for image in examples.raw(positions)]
    return [
        Card(
            examples.name_of(choice.position), source, content_of(candidates.dataset, choice.position), choice.proposed,
            100 * choice.confidence, choice.reason,
        )
        for choice, source in zip(choices, pictures, strict=True)
    ]  # fmt: skip
