"""The fields of each method for the miniatures on digits, chosen on training examples held out with their labels.

`python benchmarks/methods.py tune digits@40` wrote tuned.json: four settings for every row, set down beforehand, one
run each on a seed that no table uses; the lowest error on 250 training images held out was taken. The errors stand
beside the fields."""

from __future__ import annotations

import json
from pathlib import Path

from semigrad.settings.recipes import Layer

TUNED_FILE = Path(__file__).with_name("tuned.json")
TUNED: dict[str, Layer] = {
    name: entry["fields"] for name, entry in json.loads(TUNED_FILE.read_bytes()).items() if entry["fields"]
}
"""Method name -> fields that differ from the method's own; a modifier's are a table under its name."""
