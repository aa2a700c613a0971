"""What stands for nothing in Python and its libraries, and the texts that numpy makes of it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from semigrad.errors import InputError

TYPES = ("NAType", "NaTType")  # of pandas, which is not imported here
AS_TEXT = ("nan", "<NA>", "NaT")
"""What numpy and pandas make of nothing in an array of texts."""


def is_missing(value: Any) -> bool:
    """None, NaN, and what pandas has for them."""
    if value is None or type(value).__name__ in TYPES:
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def refuse_lost(
    name: str, texts: np.ndarray, advice: str = "leave it missing (dtype=object), or set unlabeled={!r}"
) -> None:
    """Refuse texts that were no labels before somebody made texts of them: nobody can tell them from a class."""
    lost = [word for word in AS_TEXT if (texts == word).any()]
    if lost:
        raise InputError(
            f"{name} holds the text {lost[0]!r}, which a missing label becomes in an array of texts: "
            f"{advice.format(lost[0])}."
        )
