"""What scikit-learn's checks of estimators cannot find here, in the form in which it wants to be told."""

from __future__ import annotations

from typing import Any


def expected_failed_checks(estimator: Any) -> dict[str, str]:
    """The checks of scikit-learn that an estimator cannot pass, each with the reason.

    >>> from semigrad import SemiSupervisedClassifier
    >>> expected_failed_checks(SemiSupervisedClassifier())
    {'check_classifiers_classes': '-1 is a class there, and stands for no label here'}
    >>> expected_failed_checks(SemiSupervisedClassifier(unlabeled=None))
    {}

    `check_estimator` takes what it gives, and `parametrize_with_checks` the function itself, both under this name."""
    marker = estimator.unlabeled
    if isinstance(marker, str) or marker is None or marker != -1:
        return {}
    return {"check_classifiers_classes": "-1 is a class there, and stands for no label here"}
