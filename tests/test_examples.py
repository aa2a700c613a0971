"""The examples in the docstrings of the public functions, and of how one's own logging gets in, do what they say."""

import doctest
import importlib
import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import semigrad
from semigrad.training.progress import Progress, Quiet

FUNCTIONS = [name for name in semigrad.__all__ if inspect.isfunction(getattr(semigrad, name))]
ESTIMATORS = [
    semigrad.SemiSupervisedClassifier,
    semigrad.SemiSupervisedClassifier.compare,
    semigrad.SemiSupervisedSplit,
]


def run_examples(thing, folder):
    names = {name: getattr(semigrad, name) for name in semigrad.__all__}
    names |= {"torch": torch, "nn": nn, "F": F, "folder": folder, "Quiet": Quiet}
    found = doctest.DocTestFinder(recurse=False).find(
        thing, thing.__name__, module=importlib.import_module(thing.__module__), globs=names
    )
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for example in found:
        runner.run(example)
    assert runner.summarize().attempted > 0, "there is no example"
    assert runner.failures == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_public_function_has_an_example_that_works(name, tmp_path):
    torch.manual_seed(0)
    run_examples(getattr(semigrad, name), tmp_path)


@pytest.mark.parametrize("thing", ESTIMATORS, ids=lambda thing: thing.__qualname__)
def test_the_estimator_has_examples_that_work(thing, tmp_path):
    run_examples(thing, tmp_path)


def test_ones_own_logging(tmp_path):
    run_examples(Progress, tmp_path)
