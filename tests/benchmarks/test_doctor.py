"""Faults planted in real data: every data set is on record, and the tables are those of the records."""

from __future__ import annotations

import json

import numpy as np
from benchmarks.doctor import KEPT, NAMES, PAGE, Case, cells, exchanged, page, with_every_class


def test_every_data_set_is_on_record_and_the_page_is_what_the_records_give():
    kept = json.loads(KEPT.read_text("utf-8"))
    assert {*kept} == {*NAMES}
    assert PAGE.read_text("utf-8") == page(kept)


def test_faults_that_nobody_looked_for_are_empty_and_those_that_cannot_be_told_say_so():
    assert [cells(None), cells([20, None, None]), cells([20, 19, 1])] == [" | ", "not checked | ", "19 | 1"]


def test_two_classes_change_places_and_nothing_else_does():
    assert exchanged(np.array([0, 1, 2, -1, 1])).tolist() == [1, 0, 2, -1, 0]


def test_a_class_without_a_label_gets_one_for_the_run_alone():
    x, truth = np.zeros((6, 2, 2)), np.array([0, 1, 2, 2, 1, -1])
    case = Case(x, np.array([0, 1, -1, -1, -1, -1]), x, truth, truth)
    assert with_every_class(case).tolist() == [0, 1, 2, -1, -1, -1]
    assert case.y.tolist() == [0, 1, -1, -1, -1, -1]
