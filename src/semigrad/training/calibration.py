"""How sure a network may be: one temperature for its logits, from labels that were held out of training.

    T = argmin Σ −log softmax(z / T)[y]        (Guo et al.: On Calibration of Modern Neural Networks, 2017)

It changes no answer, only how sure it is."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

COLDEST, HOTTEST = 0.05, 20.0
FEWEST = 20  # labels: fewer say too little of how sure to be


def temperature(predicted: np.ndarray, labels: np.ndarray) -> float | None:
    """The temperature for a network that predicted (N, classes) probabilities where (N,) labels are right; None where
    there are too few labels to tell.

    >>> predicted = np.array([[0.99, 0.01]] * 20)  # 99 % sure, and right three times out of four
    >>> f"{temperature(predicted, np.array([0, 0, 0, 1] * 5)):.2f}"  # log(99) / log(3)
    '4.18'
    """
    if len(labels) < FEWEST:
        return None
    logs = np.log(np.maximum(predicted, np.finfo(float).tiny))  # logits, but for a constant in each row

    def loss(log_temperature: float) -> float:
        return float(-log_softmax(logs / np.exp(log_temperature))[np.arange(len(labels)), labels].mean())

    found = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return round(float(np.exp(found.x)), 4)


def warmed(predicted: np.ndarray, temperature: float | None) -> np.ndarray:
    """Probabilities at that temperature."""
    if temperature is None:
        return predicted
    logs = np.log(np.maximum(predicted, np.finfo(float).tiny))
    changed: np.ndarray = np.exp(log_softmax(logs / temperature))
    return changed


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(1, keepdims=True)
    difference: np.ndarray = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return difference
