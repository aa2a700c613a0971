"""The records that come with the project: complete, and what its pages of results say."""

from pathlib import Path

import pytest

from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.reproduce import Work, pending
from semigrad.experiments.store import Store
from semigrad.experiments.tables import markdown

RESULTS = Path(__file__).parents[2] / "docs" / "results"
STORE = Store(RESULTS / "runs")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_run_at_the_scale_of_a_laptop_is_on_record(name):
    _, waiting = pending(EXPERIMENTS[name], "laptop", store=STORE)
    assert waiting == []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_page_of_results_is_what_the_records_give(name):
    experiment = EXPERIMENTS[name]
    work = Work(experiment, "laptop", experiment.cells("laptop"), STORE, lambda text: None)
    work.read_records(unseen=True)
    outcome = work.outcome(f"semigrad reproduce {name} --scale laptop")
    assert markdown(outcome) == (RESULTS / f"{name}-laptop.md").read_text("utf-8")
