"""Semigrad trains classifiers from few labels and many unlabeled examples.

Names are imported on first use, so that `import semigrad` costs nothing and torch loads when it is needed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Classifier": "classifier.classifier",
    "load": "classifier.classifier",
    "Batch": "core",
    "Dataset": "data",
    "Clock": "core",
    "Method": "core",
    "Task": "core",
    "InputError": "errors",
    "FiniteDifference": "metagrad",
    "ForwardMode": "metagrad",
    "Lookahead": "metagrad",
    "Unrolled": "metagrad",
    "Meta": "methods",
    "check_metagrad": "metagrad.check",
    "meta_gradient": "metagrad",
    "meta_pseudo_labels": "metagrad",
    "METHODS": "methods",
    "MetaGradient": "methods",
    "Supervised": "methods",
    "MODELS": "models",
    "Run": "run",
    "configure": "run",
    "Execution": "settings",
    "SemiSupervisedClassifier": "estimator",
    "SemiSupervisedSplit": "estimator",
    "semi_supervised_scorer": "estimator",
    "Stopped": "training.signals",
    "train": "training.loop",
}

__all__ = ["__version__", *sorted(_HOMES)]

if TYPE_CHECKING:
    from semigrad.classifier.classifier import Classifier as Classifier
    from semigrad.classifier.classifier import load as load
    from semigrad.core import Batch as Batch
    from semigrad.core import Clock as Clock
    from semigrad.core import Method as Method
    from semigrad.core import Task as Task
    from semigrad.data import Dataset as Dataset
    from semigrad.errors import InputError as InputError
    from semigrad.estimator import SemiSupervisedClassifier as SemiSupervisedClassifier
    from semigrad.estimator import SemiSupervisedSplit as SemiSupervisedSplit
    from semigrad.estimator import semi_supervised_scorer as semi_supervised_scorer
    from semigrad.metagrad import FiniteDifference as FiniteDifference
    from semigrad.metagrad import ForwardMode as ForwardMode
    from semigrad.metagrad import Lookahead as Lookahead
    from semigrad.metagrad import Unrolled as Unrolled
    from semigrad.metagrad import meta_gradient as meta_gradient
    from semigrad.metagrad import meta_pseudo_labels as meta_pseudo_labels
    from semigrad.metagrad.check import check_metagrad as check_metagrad
    from semigrad.methods import METHODS as METHODS
    from semigrad.methods import Meta as Meta
    from semigrad.methods import MetaGradient as MetaGradient
    from semigrad.methods import Supervised as Supervised
    from semigrad.models import MODELS as MODELS
    from semigrad.run import Run as Run
    from semigrad.run import configure as configure
    from semigrad.settings import Execution as Execution
    from semigrad.training.loop import train as train
    from semigrad.training.signals import Stopped as Stopped


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"semigrad.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'semigrad' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
