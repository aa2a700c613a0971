"""The records that come with the project: complete at the scale of a laptop, and what its pages of results say."""

from pathlib import Path

import pytest

from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.reproduce import pending, recorded
from semigrad.experiments.store import Store
from semigrad.experiments.tables import markdown
from semigrad.run import configure

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
    outcome = recorded(EXPERIMENTS[name], scale, store=STORE)
    assert markdown(outcome) == (RESULTS / f"{page}.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("row", "method"),
    [
        ("Labeled-Only", "supervised"),
        ("Ours", "meta-gradient"),
        ("Labeled-Only (strong)", {"name": "supervised", "strong": True}),
        ("Meta-Match", "meta-match"),
        ("FixMatch", None),
    ],
)
@pytest.mark.parametrize("labels", [250, 500, 1000])
def test_the_first_table_of_the_readme_is_what_its_options_train(row, method, labels):
    cells = EXPERIMENTS["figure-labels"].cells("overnight", 1)
    (run,) = (cell.run for cell in cells if (cell.row, cell.column) == (row, f"SVHN@{labels}"))
    assert configure(f"svhn@{labels}", **({} if method is None else {"method": method})).key == run.key
