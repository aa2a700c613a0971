"""Every check that scikit-learn has for an estimator."""

import pytest
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator, parametrize_with_checks

from semigrad import SemiSupervisedClassifier
from semigrad.estimator import expected_failed_checks

SLOW = {
    "check_classifier_data_not_an_array", "check_classifiers_classes", "check_classifiers_train",
    "check_estimators_dtypes", "check_fit_score_takes_y",
}  # fmt: skip


def name_of(check):
    return getattr(check, "func", check).__name__


def checks():
    for estimator, check in estimator_checks_generator(SemiSupervisedClassifier(unlabeled=None)):
        name = name_of(check)
        yield pytest.param(estimator, check, marks=[pytest.mark.slow] if name in SLOW else [], id=name)


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_where_all_rows_are_labeled(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Estimator's parameters:sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.EstimatorCheckFailedWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_with_the_default_marker_only_the_check_that_uses_it_as_a_class_fails():
    estimator = SemiSupervisedClassifier()
    results = check_estimator(estimator, expected_failed_checks=expected_failed_checks(estimator), on_fail="warn")
    statuses = {(result["check_name"], result["status"]) for result in results if result["status"] != "passed"}
    assert statuses == {("check_classifiers_classes", "xfail"), ("check_array_api_input", "skipped")}


def test_the_expected_failures_are_as_scikit_learn_takes_them():
    mark = parametrize_with_checks([SemiSupervisedClassifier()], expected_failed_checks=expected_failed_checks)
    expected = {name_of(given.values[1]) for given in mark.args[1] if hasattr(given, "marks") and given.marks}
    assert expected == {"check_classifiers_classes"}
    for other in (None, float("nan"), "", 0):
        assert expected_failed_checks(SemiSupervisedClassifier(unlabeled=other)) == {}
