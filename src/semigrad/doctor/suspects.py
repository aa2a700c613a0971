"""Labels that are probably wrong, by confident learning.

Every labeled example is answered for by its ten nearest neighbors in the other folds, weighted by distance. p_j is
their confidence in class j, and t_j the mean of p_j over the examples labeled j. A label i is suspect if some other
class j has p_j ≥ t_j, and no class that reaches its threshold is likelier.

Northcutt, Jiang, Chuang: Confident Learning: Estimating Uncertainty in Dataset Labels, JAIR 2021."""

from __future__ import annotations

import numpy as np

from semigrad.doctor.features import Compared
from semigrad.doctor.finding import Finding
from semigrad.doctor.mixed_up import find_mixed_up
from semigrad.doctor.subject import Subject

FOLDS, FEWEST = 5, 10
"""Parts that take turns, and labels of a class below which it is left out."""
NEIGHBORS = 10
MOST = 5000
"""Labels that are looked at."""
TOO_WRONG = 1 / 3
"""Share of wrong answers from which on doubts mean nothing."""


def find_suspects(subject: Subject, compared: Compared) -> list[Finding]:
    """Suspect labels of the training part, the most doubtful first, and classes that the test part calls otherwise."""
    if "labeled" not in compared.features:
        return []
    part, places, features = subject.parts["labeled"], compared.places["labeled"], compared.features["labeled"]
    spread = np.unique(np.linspace(0, len(places) - 1, min(MOST, len(places))).astype(int))
    labels = part.labels[places]
    counts = np.bincount(labels[spread], minlength=len(subject.classes))
    chosen = spread[counts[labels[spread]] >= FEWEST]
    if len(np.unique(labels[chosen])) < 2:
        more = " or compare more of those that there are (--most)" if len(places) < part.total else ""
        advice = f"Label at least {FEWEST} of each class{more}."
        return [Finding("labels-not-checked", "note", 1, "There are too few labels to tell wrong ones.", advice)]
    p, classes = out_of_fold(features[chosen], labels[chosen])
    given = np.searchsorted(classes, labels[chosen])
    wrong = float((p.argmax(1) != given).mean())
    if wrong > TOO_WRONG:
        return [_not_checked(compared, wrong)]
    mixed_up = find_mixed_up(subject, compared, chosen)
    doubted, instead, margin = doubts(p, given)
    shown = [
        f"{part.name_of(int(places[chosen[row]]))}: labeled {subject.classes[classes[given[row]]]}, looks like "
        f"{subject.classes[classes[instead[row]]]} ({100 * p[row, instead[row]]:.0f} %)"
        for row in doubted[np.argsort(margin[doubted], kind="stable")]
    ]
    if not shown:
        return mixed_up
    trained = " They were learned with these labels, so that wrong ones may hide." if compared.trained else ""
    return [
        *mixed_up,
        Finding(
            "label-suspects", "look", len(shown),
            f"{len(shown):,} of {len(chosen):,} labels look wrong (confident learning on {compared.words}; the "
            f"nearest neighbors behind it err on {100 * wrong:.0f} %).{trained}",
            "Look at them and put right what is wrong. Difficult examples with right labels are among them: remove "
            "none without a look.", shown,
        ),
    ]  # fmt: skip


def _not_checked(compared: Compared, wrong: float) -> Finding:
    return Finding(
        "labels-not-checked", "note", 1,
        f"Labels could not be checked: nearest neighbors by {compared.words} err on {100 * wrong:.0f} %, so that their "
        "doubts mean nothing.",
        "Give more labels." if compared.trained else "Train a run on these data, and give it with --run.",
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
