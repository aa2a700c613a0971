"""The records that come with the project: complete at the scale of a laptop, and what its pages of results say."""

from pathlib import Path

import pytest

from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.reproduce import Work, pending
from semigrad.experiments.store import Store
from semigrad.experiments.tables import markdown

RESULTS = Path(__file__).parents[2] / "docs" / "results"
STORE = Store(RESULTS / "runs")
PAGES = sorted(file.stem for file in RESULTS.glob("*.md") if file.stem.rpartition("-")[0] in EXPERIMENTS)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_run_at_the_scale_of_a_laptop_is_on_record(name):
    assert f"{name}-laptop" in PAGES
    _, waiting = pending(EXPERIMENTS[name], "laptop", store=STORE)
    assert waiting == []


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_results_is_what_the_records_give(page):
    name, _, scale = page.rpartition("-")
    experiment = EXPERIMENTS[name]
    work = Work(experiment, scale, experiment.cells(scale), STORE, lambda text: None)
    work.read_records(unseen=True)
    outcome = work.outcome(f"semigrad reproduce {name} --scale {scale}")
    assert markdown(outcome) == (RESULTS / f"{page}.md").read_text("utf-8")
