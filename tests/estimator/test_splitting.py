"""Unlabeled rows are in every training part and in no test part, whatever divides the labeled ones."""

import numpy as np
import pandas as pd
import pytest
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from semigrad import SemiSupervisedSplit, semi_supervised_scorer
from semigrad.errors import InputError
from tests.estimator.tables import digits, quick, wine

PARTITIONS = [3, KFold(4, shuffle=True, random_state=0), StratifiedKFold(3), GroupKFold(3), LeaveOneOut()]
OTHERS = [ShuffleSplit(4, random_state=0), RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0)]


def folds(splitter, marker=-1, y=None):
    X, given, _ = wine()
    y = given if y is None else y
    groups = np.arange(len(given)) // 5
    split, of_groups = SemiSupervisedSplit(splitter, marker), groups if isinstance(splitter, GroupKFold) else None
    found = list(split.split(X, y, of_groups))
    assert split.get_n_splits(X, y, of_groups) == len(found)
    return given, groups, found


@pytest.mark.parametrize("splitter", [*PARTITIONS, *OTHERS], ids=str)
def test_unlabeled_rows_are_always_trained_on_and_never_tested(splitter):
    y, _, found = folds(splitter)
    for train, test in found:
        assert np.array_equal(np.intersect1d(train, np.flatnonzero(y < 0)), np.flatnonzero(y < 0))
        assert (y[test] >= 0).all()
        assert len(test)
        assert len(np.intersect1d(train, test)) == 0


@pytest.mark.parametrize("splitter", PARTITIONS, ids=str)
def test_every_labeled_row_is_tested_once_and_trained_on_otherwise(splitter):
    y, _, found = folds(splitter)
    tested = np.concatenate([test for _, test in found])
    assert np.array_equal(np.sort(tested), np.flatnonzero(y >= 0))
    assert all(len(train) + len(test) == len(y) for train, test in found)


def test_folds_are_by_class_and_groups_stay_together():
    y, _, found = folds(3)
    counts = [np.bincount(y[test]) for _, test in found]
    assert np.ptp(counts, axis=0).max() <= 1
    y, groups, found = folds(GroupKFold(3))
    for train, test in found:
        assert not set(groups[test]) & set(groups[train[y[train] >= 0]])


def test_fixed_positions_are_of_all_rows():
    y, _, _ = folds(3)
    half = np.arange(len(y)) % 2
    expected = [(half != part, (half == part) & (y >= 0)) for part in (0, 1)]
    for splitter in (
        PredefinedSplit(half),
        [(np.flatnonzero(half != part), np.flatnonzero(half == part)) for part in (0, 1)],
    ):
        _, _, found = folds(splitter)
        for (train, test), (kept, tested) in zip(found, expected, strict=True):
            assert np.array_equal(test, np.flatnonzero(tested))
            assert np.array_equal(train, np.flatnonzero(kept | (y < 0)))


def test_tables_texts_and_lists():
    X, y, _ = wine()
    expected = list(SemiSupervisedSplit(3).split(X, y))
    texts = np.where(y < 0, "", y.astype(str))
    for rows, labels, marker in [(pd.DataFrame(X), pd.Series(y), -1), (X.tolist(), y.tolist(), -1), (X, texts, "")]:
        found = SemiSupervisedSplit(3, marker).split(rows, labels)
        assert all(
            np.array_equal(a, b)
            for ours, theirs in zip(found, expected, strict=True)
            for a, b in zip(ours, theirs, strict=True)
        )


def test_what_is_wrong_is_said():
    X, y, _ = wine()
    with pytest.raises(InputError, match="needs y"):
        list(SemiSupervisedSplit(3).split(X))
    with pytest.raises(InputError, match="nothing to split"):
        list(SemiSupervisedSplit(3).split(X, np.full(len(y), -1)))
    with pytest.raises(InputError, match="no labeled row to test on"):
        list(SemiSupervisedSplit([(np.arange(5), np.flatnonzero(y < 0))]).split(X, y))
    assert SemiSupervisedSplit(4).get_n_splits() == 4


MODELS = {
    "self-training": lambda: make_pipeline(StandardScaler(), SelfTrainingClassifier(LogisticRegression(max_iter=1000))),
    "label spreading": lambda: make_pipeline(StandardScaler(), LabelSpreading(kernel="knn", n_neighbors=7)),
}


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # of label spreading's own
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("table", "least"), [(digits, 0.85), (wine, 0.85)], ids=["digits", "wine"])
def test_without_it_the_marker_counts_as_a_class(model, table, least):
    X, y, _ = table(0.1) if table is digits else table(0.3)
    scores = cross_val_score(MODELS[model](), X, y, cv=5)
    right = cross_val_score(MODELS[model](), X, y, cv=SemiSupervisedSplit(5), scoring=semi_supervised_scorer())
    assert scores.mean() < (y >= 0).mean() + 0.01 < right.mean()
    assert right.mean() > least


def test_the_scorer_refuses_the_marker_and_scores_as_asked_otherwise():
    X, y, truth = wine()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, truth)
    scorer = semi_supervised_scorer("f1_macro")
    known = y >= 0
    assert scorer(model, X[known], y[known]) == pytest.approx(1.0, abs=0.02)
    with pytest.raises(InputError, match=r"of the 178 rows to measure on have no label \(-1\)"):
        scorer(model, X, y)
    texts = np.where(known, truth.astype(str), "none")
    with pytest.raises(InputError, match="no label"):
        semi_supervised_scorer(unlabeled="none")(model, X, texts)
    with pytest.raises(InputError, match="SemiSupervisedSplit"):
        cross_val_score(model, X, y, cv=5, scoring=scorer, error_score="raise")


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_the_marker_is_found_in_whatever_holds_the_labels():
    X, y, truth = wine()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, truth)
    whole = pd.Series(y).where(y >= 0).astype("Int64")
    for labels, marker in [(pd.DataFrame({"y": y}), -1), (y[:, None], -1), (whole, None)]:
        with pytest.raises(InputError, match="rows to measure on have no label"):
            semi_supervised_scorer(unlabeled=marker)(model, X, labels)
    assert semi_supervised_scorer()(model, X, pd.Series(truth, dtype="Int64")) > 0.9


@pytest.mark.parametrize("kind", ["Int64", "object"])
def test_folds_of_numbers_in_other_clothes_are_the_same(kind):
    """Those of objects would not be by class."""
    X, y, _ = wine()
    dressed = pd.Series(y, dtype=kind)
    expected, found = (list(SemiSupervisedSplit(3).split(X, labels)) for labels in (y, dressed))
    assert SemiSupervisedSplit(3).get_n_splits(X, dressed) == 3
    for ours, theirs in zip(found, expected, strict=True):
        assert [part.tolist() for part in ours] == [part.tolist() for part in theirs]


def test_a_search_that_measures_training_rows_says_how_not_to():
    X, y, _ = wine()
    with pytest.raises(InputError, match=r"Where training rows are measured too.*: return_train_score=False"):
        GridSearchCV(
            quick(), {"lr": [0.1]}, cv=SemiSupervisedSplit(2), return_train_score=True, error_score="raise"
        ).fit(X, y)
    search = HalvingGridSearchCV(
        quick(), {"lr": [0.01, 0.1]}, resource="steps", min_resources=2, max_resources=4, factor=2,
        cv=SemiSupervisedSplit(2), return_train_score=False, error_score="raise", refit=False,
    )  # fmt: skip
    assert search.fit(X, y).n_resources_ == [2, 4]


def test_our_estimator_refuses_it_by_itself():
    X, y, _ = wine()
    with pytest.raises(InputError, match="SemiSupervisedSplit"):
        cross_val_score(quick(), X, y, cv=2, error_score="raise")
    assert (cross_val_score(quick(steps=60), X, y, cv=SemiSupervisedSplit(2)) > 0.8).all()
