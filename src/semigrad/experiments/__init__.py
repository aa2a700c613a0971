"""The paper's tables and figures as values: `EXPERIMENTS` lists them, `Experiment.cells` gives the runs they need."""

from __future__ import annotations

from semigrad.experiments.catalogue import EXPERIMENTS
from semigrad.experiments.experiment import SCALES, Cell, Column, Experiment, Kind, Place, Plan, Scale, find_experiment

__all__ = ["EXPERIMENTS", "SCALES", "Cell", "Column", "Experiment", "Kind", "Place", "Plan", "Scale", "find_experiment"]
