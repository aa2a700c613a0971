"""The fields of each method for the miniatures, chosen on training examples held out with their labels.

`python benchmarks/choices.py fields DATA` wrote tuned.json: for every row the same number of settings, set down
beforehand, one run each on a seed that no table uses; the lowest error on the examples held out was taken. The errors
stand beside the fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from semigrad.settings.recipes import Layer

Chosen = Mapping[str, Layer]
"""Method name -> fields that differ from the method's own; a modifier's are a table under its name."""

TUNED_FILE = Path(__file__).with_name("tuned.json")
_TRIED = json.loads(TUNED_FILE.read_bytes())


def chosen_for(data: str) -> Chosen:
    """What was chosen for the data that a column names, "digits" or "SVHN"; nothing for others."""
    return {name: entry["fields"] for name, entry in _TRIED.get(data, {}).items() if entry["fields"]}


TUNED = chosen_for("digits")
