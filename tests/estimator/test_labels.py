"""What stands for no label, in every kind of array."""

import numpy as np
import pandas as pd
import pytest
import torch

from semigrad.errors import InputError
from semigrad.estimator.labels import find_unlabeled, read_labels
from tests.estimator.tables import quick, same_weights, wine

ROWS = np.zeros((4, 2))
KINDS = {
    "numbers": (np.array([1, -1, 0, -1]), -1),
    "floats": (np.array([1.0, -1.0, 0.0, -1.0]), -1),
    "another number": (np.array([1, 99, 0, 99]), 99),
    "nan": (np.array([1.0, np.nan, 0.0, np.nan]), np.nan),
    "nan for None": (np.array([1.0, np.nan, 0.0, np.nan]), None),
    "texts": (np.array(["b", "", "a", ""]), ""),
    "objects with None": (np.array(["b", None, "a", None], dtype=object), None),
    "objects with nan": (np.array(["b", np.nan, "a", np.nan], dtype=object), None),
    "objects with -1": (np.array(["b", -1, "a", -1], dtype=object), -1),
    "a list": (["b", "?", "a", "?"], "?"),
    "a series": (pd.Series([1, -1, 0, -1], index=[7, 3, 5, 1]), -1),
    "a series of texts": (pd.Series(["b", None, "a", None]), None),
    "a series with NA": (pd.Series([1, pd.NA, 0, pd.NA], dtype="object"), pd.NA),
    "texts of pandas": (pd.Series(["b", pd.NA, "a", None], dtype="string"), None),
    "whole numbers of pandas": (pd.Series([1, pd.NA, 0, None], dtype="Int64"), None),
    "times that are not": (np.array(["b", pd.NaT, "a", None], dtype=object), np.nan),
    "the text of nan": (["b", np.nan, "a", np.nan], "nan"),
    "texts of numpy": (np.array(["b", None, "a", None], np.dtypes.StringDType(na_object=None)), None),
    "categories": (pd.Series(pd.Categorical(["b", None, "a", None])), None),
    "one column": (np.array([[1], [-1], [0], [-1]]), -1),
    "dates": (np.array(["2021-01-01", "NaT", "2020-01-01", "NaT"], "datetime64[D]"), None),
    "masked": (np.ma.masked_array([1, 1, 0, 0], [0, 1, 0, 1]), None),
    "truth values of pandas": (pd.Series([True, pd.NA, False, None], dtype="boolean"), None),
    "a tensor with a gradient": (torch.tensor([1.0, -1, 0, -1], requires_grad=True), -1),
    "another kind of -1": (pd.Series(["b", -1.0, "a", -1], dtype="object"), np.int8(-1)),
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_rows_are_labeled(kind):
    y, marker = KINDS[kind]
    labels = read_labels(y, ROWS, marker)
    assert labels.numbers.tolist() == [1, -1, 0, -1]
    assert labels.known.tolist() == [True, False, True, False]
    assert len(labels.classes) == 2


@pytest.mark.parametrize("y", [np.array([1, -1, 0]), np.array(["b", "", "a"]), np.array([True, False, True])])
def test_with_none_every_number_and_text_is_a_label(y):
    assert not find_unlabeled(y, None).any()


@pytest.mark.parametrize(
    ("y", "marker", "words"),
    [
        (None, -1, "requires y to be passed"),
        ([1, 0, 1], -1, "inconsistent numbers of samples"),
        ([-1, -1, -1, -1], -1, "No row has a label: all of y is -1"),
        ([1, -1, 1, -1], -1, "at least two classes are needed; y has 1 class"),
        ([0.5, 1.5, 2.5, -1], -1, "Unknown label type"),
        ([0, np.inf, 1, 1], -1, "y contains infinity"),
        ([0, np.nan, 1, 1], -1, "y contains NaN"),
        (["a", "-1", "b", "-1"], -1, "unlabeled='-1' where that text means"),
        (np.array(["a", None, "b", None], dtype=object), -1, r"y holds 2 missing values \(None, NaN or NA\).*=None"),
        (np.array(["a", np.nan, "b", "a"], dtype=object), -1, "y holds 1 missing values"),
        (pd.Series(["a", pd.NA, "b", "a"], dtype="string"), -1, "y holds 1 missing values"),
        (pd.Series([1, pd.NA, 0, 1], dtype="Int64"), -1, "y holds 1 missing values"),
        (["a", np.nan, "b", "a"], -1, "holds the text 'nan', which a missing label becomes"),
        (["a", np.nan, "b", "a"], None, "holds the text 'nan', which a missing label becomes"),
        (np.array(["a", "<NA>", "b", "a"]), "", "holds the text '<NA>'"),
        (np.array(["a", 1, "b", -1], dtype=object), -1, r"labels of several types \(int, str\)"),
        (pd.Series(["a", "-1", "b", "-1"]), -1, "unlabeled='-1' where that text means"),
        (pd.Series(pd.Categorical(["0", "-1", "1", "-1"])), -1, "unlabeled='-1' where that text means"),
        ([1, -1, 0, -1], "-1", "y holds numbers, -1 among them, and unlabeled is the text '-1'. Set unlabeled=-1 "),
        (pd.Series([1, -1, 0, -1], dtype="object"), "-1", "unlabeled=-1 where that number means"),
        (np.array(["2021", "NaT", "2020", "2021"], "datetime64[D]"), -1, "y holds 1 missing values"),
        (np.ma.masked_array([1, 1, 0, 0], [0, 1, 0, 1]), -1, "y holds 2 missing values"),
        (pd.Series([(0, 1), (1, 0), (0, 0), (1, 1)]), -1, r"y holds labels of several parts each \(tuple\)"),
        ([1, -1, 0, -2], [-1, -2], r"unlabeled takes one number or text.*given: \[-1, -2\]"),
        (["a", "", "b", ""], {""}, "unlabeled takes one number or text"),
        ([True, True, True, True], -1, "y has 1 class, True"),
    ],
)
def test_what_is_wrong_is_said(y, marker, words):
    with pytest.raises(ValueError, match=words):
        read_labels(y, ROWS, marker)


@pytest.mark.parametrize(("kind", "values"), [("Int64", [2**53, 2**53 + 1, 2**53, 2**53 + 1]),
                                              ("boolean", [False, True, False, True])])  # fmt: skip
def test_classes_of_pandas_are_what_they_were(kind, values):
    """Floats would make one class of two large numbers."""
    labels = read_labels(pd.Series(values, dtype=kind), ROWS, -1)
    assert [type(label) for label in labels.classes.tolist()] == [type(values[0])] * 2
    assert labels.classes.tolist() == values[:2]
    assert labels.numbers.tolist() == [0, 1, 0, 1]


def test_our_own_problems_are_input_errors():
    with pytest.raises(InputError, match="1 class"):
        quick().fit([[0.0], [1.0]], [0, -1])


def test_training_does_not_depend_on_how_labels_are_written():
    X, y, _ = wine()
    names = np.array(["barolo", "grignolino", "nobody"])
    texts = np.where(y < 0, "", names[y])
    objects = np.array([None if label < 0 else names[label] for label in y], dtype=object)
    numbers, words, things = quick().fit(X, y), quick(unlabeled="").fit(X, texts), quick(unlabeled=None).fit(X, objects)
    assert same_weights(numbers, words)
    assert same_weights(numbers, things)
    assert things.classes_.tolist() == names.tolist()
    assert np.array_equal(names[numbers.predict(X)], words.predict(X))
    assert np.array_equal(words.transduction_, things.transduction_)
