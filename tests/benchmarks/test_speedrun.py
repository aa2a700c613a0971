"""Error against seconds: which rows are on the frontier, and where their names stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.speedrun import COLUMNS, Options, Row, heights_of_names, main, markdown, parts, with_frontier

from semigrad import configure
from semigrad.core.statistics import difference, summarize
from semigrad.errors import InputError
from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.published import LABELED_ONLY
from semigrad.experiments.reproduce import recorded
from semigrad.experiments.store import Store

RECORDS = Path(__file__).parents[2] / "docs" / "results" / "runs"


def row(name, seconds, error, data="svhn@1000"):
    return Row(name, summarize([error]), None, configure(data, method="supervised"), seconds, 1e12)


def test_the_frontier_is_whatever_no_quicker_row_beats():
    rows = [row("a", 10, 20.0), row("b", 20, 25.0), row("c", 30, 15.0), row("all", 35, 5.0, "svhn"), row("d", 40, 12.0)]
    assert [each.name for each in with_frontier(rows, "svhn@1000") if each.frontier] == ["a", "c", "d"]


def test_names_of_rows_that_are_close_do_not_lie_on_each_other():
    rows = [row("a", 10, 20.0), row("b", 10.5, 20.1), row("c", 100, 20.05), row("d", 11, 30.0)]
    a, b, c, d = heights_of_names(rows)
    assert b - a >= 0.3
    assert (c, d) == (20.05, 30.0)


def test_nothing_on_record_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="Labeled-Only is not on record for SVHN@1000"):
        main(Options(records=tmp_path, out=tmp_path))


def test_the_page_says_what_part_of_the_data_it_was_and_whether_classes_were_balanced():
    outcome = recorded(EXPERIMENTS["table4"], "overnight", store=Store(RECORDS))
    assert parts([outcome], "SVHN@1000") == (
        " Trained on a part of the data: svhn, 20,000 of 73,257; tested on 5,000 examples, both with equally many of "
        "every class, unlike the whole."
    )
    assert parts([outcome], "CIFAR-10@4000") == ""


def test_the_page_says_the_threshold_of_fixmatch():
    run = configure("svhn@1000", method={"name": "fixmatch", "threshold": 0.7})
    page = markdown(Options(), "SVHN@1000", [Row("FixMatch", summarize([9.0]), None, run, 1.0, 1e12)], "a.png", "")
    assert "FixMatch: with a threshold of 0.7." in page


@pytest.mark.parametrize("data", COLUMNS)
def test_the_pages_have_every_row_that_is_on_record(data):
    """Errors, seeds and differences; only seconds are measured where the page is made."""
    column, names = COLUMNS[data]
    told = (RECORDS.parents[1] / f"speedrun-{data.partition('@')[0]}.md").read_text("utf-8")
    shown = {line.split("|")[1].strip(): line for line in told.splitlines() if line.startswith("| ")}
    for outcome in (recorded(EXPERIMENTS[name], "overnight", store=Store(RECORDS)) for name in names):
        baseline = outcome.values(LABELED_ONLY, column)
        for row in outcome.rows:
            if values := outcome.values(row, column):
                error, gain = summarize(list(values.values())), difference(values, baseline)
                told_gain = "" if row == LABELED_ONLY else str(gain)
                assert f"| {row} | {error} | {error.seeds} | {told_gain} |" in shown.get(row, f"{row} is missing")
