"""Labels that are probably wrong, by confident learning.

Every labeled example is answered for by somebody who has not learned its label: by its ten nearest neighbors in the
other folds, weighted by distance, or by the network that `semigrad fit` trained without its fold. p_j is the
confidence in class j, and t_j the mean of p_j over the examples labeled j. A label i is suspect if some other class j
has p_j ≥ t_j, and no class that reaches its threshold is likelier.

Northcutt, Jiang, Chuang: Confident Learning: Estimating Uncertainty in Dataset Labels, JAIR 2021."""

from __future__ import annotations

import numpy as np

from semigrad.doctor.features import Compared
from semigrad.doctor.finding import Finding
from semigrad.doctor.held_out import HeldOut
from semigrad.doctor.mixed_up import find_mixed_up
from semigrad.doctor.subject import Subject

FOLDS, FEWEST = 5, 10
"""Parts that take turns, and labels of a class below which it is left out."""
NEIGHBORS = 10
MOST = 5000
"""Labels that are looked at."""
TOO_WRONG = 1 / 3
"""Share of wrong answers from which on doubts mean nothing."""
BY_HEART = 0.99
"""Share of labels that a run answers as they stand, from which on its features doubt none: they have learned them."""


def find_suspects(subject: Subject, compared: Compared, held: HeldOut | None = None) -> list[Finding]:
    """Suspect labels of the training part, the most doubtful first, and classes that the test part calls otherwise."""
    if "labeled" not in compared.features:
        return []
    part, places, features = subject.parts["labeled"], compared.places["labeled"], compared.features["labeled"]
    spread = np.unique(np.linspace(0, len(places) - 1, min(MOST, len(places))).astype(int))
    labels = part.labels[places]
    chosen = spread[_often(labels[spread])]
    if len(np.unique(labels[chosen])) < 2:
        more = " or compare more of those that there are (--most)" if len(places) < part.total else ""
        advice = f"Label at least {FEWEST} of each class{more}."
        return [Finding("labels-not-checked", "note", 1, "There are too few labels to tell wrong ones.", advice)]
    p, classes = out_of_fold(features[chosen], labels[chosen])
    given = np.searchsorted(classes, labels[chosen])
    wrong = float((p.argmax(1) != given).mean())
    mixed_up = [] if wrong > TOO_WRONG else find_mixed_up(subject, compared, chosen)
    if held is not None:
        return [*mixed_up, *_doubted_by(subject, held)]
    if wrong > TOO_WRONG:
        return [_not_checked(f"nearest neighbors by {compared.words} err", compared, wrong)]
    if compared.learned is not None and compared.learned >= BY_HEART:
        return [*mixed_up, _by_heart(compared)]
    source = f"{compared.words}; the nearest neighbors behind it err"
    return [*mixed_up, *_suspects(subject, places[chosen], p, classes, source, compared.learned is not None)]


def _often(labels: np.ndarray) -> np.ndarray:
    """(N,) whether there are enough labels of the class of each."""
    counts = np.bincount(labels)
    enough: np.ndarray = counts[labels] >= FEWEST
    return enough


def _doubted_by(subject: Subject, held: HeldOut) -> list[Finding]:
    """By answers of networks that have not learned these labels."""
    labels = subject.parts["labeled"].labels[held.places]
    chosen = _often(labels)
    classes = np.unique(labels[chosen])
    if len(classes) < 2:
        return [Finding("labels-not-checked", "note", 1, "Too few labels were held out to tell wrong ones.",
                        f"Hold out at least {FEWEST} of each class, or all in turns: semigrad fit does.")]  # fmt: skip
    p = held.p[chosen][:, classes]
    wrong = float((classes[p.argmax(1)] != labels[chosen]).mean())
    if wrong > TOO_WRONG:
        return [_not_checked(f"{held.words} is wrong", None, wrong)]
    return _suspects(subject, held.places[chosen], p, classes, f"{held.words}, which is wrong", False)


def _suspects(
    subject: Subject, places: np.ndarray, p: np.ndarray, classes: np.ndarray, source: str, learned: bool
) -> list[Finding]:
    """Of the labeled examples at these places; p: (N, classes) by who has not learned their labels."""
    part = subject.parts["labeled"]
    given = np.searchsorted(classes, part.labels[places])
    wrong = float((p.argmax(1) != given).mean())
    doubted, instead, margin = doubts(p, given)
    shown = [
        f"{part.name_of(int(places[row]))}: labeled {subject.classes[classes[given[row]]]}, looks like "
        f"{subject.classes[classes[instead[row]]]} ({100 * p[row, instead[row]]:.0f} %)"
        for row in doubted[np.argsort(margin[doubted], kind="stable")]
    ]
    if not shown:
        return []
    hidden = " They were learned with these labels, so that wrong ones may hide." if learned else ""
    return [
        Finding(
            "label-suspects", "look", len(shown),
            f"{len(shown):,} of {len(places):,} labels look wrong (confident learning on {source} on "
            f"{100 * wrong:.0f} %).{hidden}",
            "Look at them and put right what is wrong. Difficult examples with right labels are among them: remove "
            "none without a look.", shown,
        ),
    ]  # fmt: skip


HELD_OUT = "Give with --run what semigrad fit made: its folds are asked about labels that they have not learned."


def _not_checked(who: str, compared: Compared | None, wrong: float) -> Finding:
    return Finding(
        "labels-not-checked", "note", 1,
        f"Labels could not be checked: {who} on {100 * wrong:.0f} %, so that doubts would mean nothing.",
        HELD_OUT if compared is not None else "Give more labels, or train for longer.",
    )  # fmt: skip


def _by_heart(compared: Compared) -> Finding:
    return Finding(
        "labels-learned", "note", 1,
        f"Labels could not be checked: the run answers {100 * (compared.learned or 0):.0f} % of them as they stand, "
        "wrong ones too if there are any.", HELD_OUT,
    )  # fmt: skip


def out_of_fold(features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(N, classes) probabilities for each row from the other folds, and the class numbers of the columns."""
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    classes, counts = np.unique(labels, return_counts=True)
    parts = min(FOLDS, int(counts.min()))
    model = KNeighborsClassifier(min(NEIGHBORS, len(labels) - -(-len(labels) // parts)), weights="distance")
    folds = StratifiedKFold(parts, shuffle=True, random_state=0)
    p: np.ndarray = cross_val_predict(model, features, labels, cv=folds, method="predict_proba")
    return p, classes


def doubts(p: np.ndarray, given: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows whose label is suspect; for every row the class that it looks like, and how far the label's probability is
    above the best other one (below 0: the doubt). p: (N, classes), given: (N,) columns."""
    rows = np.arange(len(p))
    thresholds = np.array([p[given == column, column].mean() for column in range(p.shape[1])])
    confident = np.where(p >= thresholds, p, -1.0)
    likely = confident.argmax(1)
    doubted = np.flatnonzero((confident.max(1) >= 0) & (likely != given))
    others = p.copy()
    others[rows, given] = -1.0
    return doubted, likely, p[rows, given] - others.max(1)
