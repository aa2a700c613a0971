"""Small tables and images with some labels taken away."""

import numpy as np
from sklearn.datasets import load_digits, load_wine

from semigrad import SemiSupervisedClassifier


def wine(share=0.5, seed=0):
    """178 rows of 13 features of three classes: rows, labels with -1 for those taken away, all labels."""
    return hidden(*load_wine(return_X_y=True), share, seed)


def digits(share=0.1, seed=0):
    """1,797 rows of 64 features of ten classes."""
    return hidden(*load_digits(return_X_y=True), share, seed)


def pictures():
    """200 digits as images."""
    X, y, truth = digits()
    images = np.rint(X * (255 / 16)).astype(np.uint8).reshape(-1, 8, 8)
    return images[:200], y[:200], truth[:200]


def hidden(X, y, share, seed):
    given = np.where(np.random.default_rng(seed).random(len(y)) < share, y, -1)
    assert set(given) == {-1, *y}
    return X, given, y


def quick(**changes) -> SemiSupervisedClassifier:
    """A few steps, where only the way there matters."""
    options = {"steps": 6, "batch": 16, "random_state": 0, "device": "cpu", "threads": 1}
    return SemiSupervisedClassifier(**{**options, **changes})


def weights(estimator):
    return {name: value.numpy() for name, value in estimator.network_.state_dict().items()}


def same_weights(first, second):
    first, second = weights(first), weights(second)
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)
