"""How sure a network may be: one temperature for its logits, from labels that were held out of training.

    T = argmin Σ −log softmax(z / T)[y] + (1/C) Σ_c mean −log softmax(z / T)[c]

The first sum is Guo et al.'s (On Calibration of Modern Neural Networks, 2017). The second is one label more, which may
be any class: without it a network that was right on all of 20 labels would be sure of everything. A temperature changes
no answer, only how sure it is."""

from __future__ import annotations

import numpy as np

COLDEST, HOTTEST = 0.05, 20.0
FEWEST = 20  # labels: fewer say too little of how sure to be


def temperature(predicted: np.ndarray, labels: np.ndarray) -> float | None:
    """The temperature for a network that predicted (N, classes) probabilities where (N,) labels are right; None where
    there are too few labels to tell.

    >>> predicted = np.array([[0.99, 0.01]] * 20)  # 99 % sure, and right 15 times, and half a time
    >>> f"{temperature(predicted, np.array([0, 0, 0, 1] * 5)):.1f}"  # log(99) / log(15.5 / 5.5)
    '4.4'
    """
    if len(labels) < FEWEST:
        return None
    from scipy.optimize import minimize_scalar  # here, because it takes a fifth of a second to load

    logits = logits_of(predicted)

    def loss(log_temperature: float) -> float:
        surprise = -log_softmax(logits / np.exp(log_temperature))
        return float(surprise[np.arange(len(labels)), labels].sum() + surprise.mean())

    found = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return round(float(np.exp(found.x)), 4)


def warmed(predicted: np.ndarray, temperature: float | None) -> np.ndarray:
    """Probabilities at that temperature."""
    if temperature is None:
        return predicted
    changed: np.ndarray = np.exp(log_softmax(logits_of(predicted) / temperature))
    return changed


def logits_of(predicted: np.ndarray) -> np.ndarray:
    """Logits that give these probabilities: the network's own, but for a constant in each row."""
    logits: np.ndarray = np.log(np.maximum(predicted, np.finfo(float).tiny))
    return logits


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(1, keepdims=True)
    difference: np.ndarray = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return difference
