"""Semigrad as a scikit-learn estimator, and cross-validation that knows of unlabeled rows."""

from __future__ import annotations

from semigrad.estimator.checks import expected_failed_checks
from semigrad.estimator.classifier import SemiSupervisedClassifier
from semigrad.estimator.scoring import semi_supervised_scorer
from semigrad.estimator.splitting import SemiSupervisedSplit

__all__ = ["SemiSupervisedClassifier", "SemiSupervisedSplit", "expected_failed_checks", "semi_supervised_scorer"]
