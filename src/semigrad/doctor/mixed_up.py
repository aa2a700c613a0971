"""Classes that the labeled part and the test part call by different names.

Where two folders were mixed up, a class is mislabeled as a whole. Its labeled examples agree with each other then, and
no label of theirs is suspect; test examples disagree with them."""

from __future__ import annotations

import numpy as np

from semigrad.doctor.features import Compared
from semigrad.doctor.finding import Finding
from semigrad.doctor.subject import Subject

NEIGHBORS, FEWEST = 10, 10
"""Labeled examples that answer for a test example, and test examples of a class below which it is left out."""
MOSTLY = 0.5
"""Share of a class's test examples that look like one other class."""


def find_mixed_up(subject: Subject, compared: Compared, rows: np.ndarray) -> list[Finding]:
    """By the nearest of those labeled examples at `rows`, which must be worth asking."""
    if "test" not in compared.features:
        return []
    labels = subject.parts["labeled"].labels[compared.places["labeled"][rows]]
    truth = subject.parts["test"].labels[compared.places["test"]]
    answers = nearest(compared.features["labeled"][rows], labels, compared.features["test"])
    shown = []
    for number in np.unique(labels):
        looks = np.bincount(answers[truth == number], minlength=len(subject.classes))
        instead, count = int(looks.argmax()), int(looks.sum())
        if instead != number and count >= FEWEST and looks[instead] > MOSTLY * count:
            shown.append(
                f"{subject.classes[number]}: {looks[instead]:,} of {count:,} test examples look like labeled "
                f"{subject.classes[instead]}"
            )
    if not shown:
        return []
    return [
        Finding(
            "classes-mixed-up", "problem", len(shown),
            f"{len(shown):,} {'class looks' if len(shown) == 1 else 'classes look'} like another one in the test part.",
            "Look at some labeled and some test examples of each: one of the two parts has it under another's name.",
            shown,
        )
    ]  # fmt: skip


def nearest(features: np.ndarray, labels: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """(N,) the class that the nearest labeled rows have, weighted by distance, for each row that is asked about."""
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(min(NEIGHBORS, len(labels)), weights="distance").fit(features, labels)
    answers: np.ndarray = model.predict(asked)
    return answers
