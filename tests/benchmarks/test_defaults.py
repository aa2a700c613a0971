"""The suite of defaults: equal terms for every row, and what its page says of what was measured."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from benchmarks.default_page import counts, markdown
from benchmarks.default_records import RECORDS, Cell, Measured, gain, read, verdict, write
from benchmarks.default_tasks import BASELINE, BUDGETS, DEFAULT, ROWS, TASKS
from benchmarks.defaults import REPRODUCED, Options, at_hand, error_on, key_of, on_record, wanted
from sklearn.datasets import load_wine

from semigrad import configure, load, train
from semigrad.folder.saved import load_origin
from semigrad.methods import Supervised


def measured(**errors: list[float]) -> Measured:
    """Errors of rows on one task, seed by seed."""
    return {
        Cell("wine", "long", row, seed): {"key": f"{row}{seed}", "error": error, "seconds": 1.0 + (row == DEFAULT)}
        for row, each in errors.items()
        for seed, error in enumerate(each)
    }


def test_rows_of_a_task_differ_in_their_method_alone(tmp_path):
    options = Options(tasks=("wine", "moons", "digits@20"), seeds=2, out=tmp_path)
    runs = dict(wanted(options))
    assert len(runs) == 3 * len(BUDGETS) * 2 * len(ROWS)
    for cell, run in runs.items():
        baseline = runs[dataclasses.replace(cell, row=BASELINE)]
        assert dataclasses.replace(run, method=baseline.method) == baseline
        assert run.validation == 0
    assert {type(run.method) for cell, run in runs.items() if cell.row == BASELINE} == {Supervised}


@pytest.mark.data
@pytest.mark.parametrize("name", TASKS)
def test_one_budget_is_what_a_user_gets(name, real_data, tmp_path):
    task = TASKS[name]
    assert configure(task.data(tmp_path), **task.settings).steps in task.steps


def test_what_was_measured_of_a_task_that_has_changed_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setitem(RECORDS, "pool", tmp_path / "pool.json")
    options = Options(tasks=("wine",), rows=(BASELINE, "fixmatch"), seeds=1, part="pool", out=tmp_path)
    (own, named) = (
        {cell: key_of(cell, run) for cell, run in wanted(options) if cell.row == row and cell.budget == "short"}
        for row in (BASELINE, "fixmatch")
    )
    ((baseline, key), (fixmatch, its)) = (*own.items(), *named.items())
    published = dataclasses.replace(fixmatch, row="fixmatch 0.95")  # the same run by another name
    there = {"error": 1.0, "seconds": 1.0}
    write("pool", {baseline: {"key": "of other steps", **there}, published: {"key": its, **there}})
    found = at_hand(options)
    assert baseline not in found
    assert found[fixmatch] == found[published] == {"key": its, **there}
    assert key != "of other steps"


def test_validation_has_seeds_of_its_own_and_holds_labels_out(tmp_path):
    test, held = (dict(wanted(Options(tasks=("wine",), part=part, out=tmp_path))) for part in ("test", "validation"))
    assert not {run.seed for run in test.values()} & {run.seed for run in held.values()}
    assert all(run.validation == TASKS["wine"].held_out for run in held.values())


def test_the_error_on_the_pool_is_that_of_its_hidden_labels(tmp_path):
    options = Options(tasks=("wine",), rows=(BASELINE,), budgets=("short",), seeds=1, part="pool", out=tmp_path)
    ((_, run),) = wanted(options)
    assert run.seed >= 100
    assert run.validation == 0
    path = tmp_path / "run"
    result = train(run, path)
    x, y = load_wine(return_X_y=True)
    known = {tuple(row.astype(np.float32)): label for row, label in zip(x, y, strict=True)}
    origin = load_origin(path)
    rows = np.asarray(origin.dataset.train.raw(origin.split.unlabeled))
    assert len(rows) == round(0.7 * len(x)) - 1 - 12
    true = [known[tuple(row)] for row in rows]
    wrong = np.mean([int(answer) != label for answer, label in zip(load(path).predict(rows), true, strict=True)])
    assert error_on("pool", path, result) == pytest.approx(100 * wrong)


def test_a_key_does_not_depend_on_where_the_data_lie(tmp_path):
    here, there = (dict(wanted(Options(tasks=("moons",), seeds=1, out=tmp_path / name))) for name in ("a", "b"))
    assert {cell: key_of(cell, run) for cell, run in here.items()} == {
        cell: key_of(cell, run) for cell, run in there.items()
    }
    assert all(here[cell].data != there[cell].data for cell in here)


def test_runs_of_other_tables_are_not_trained_again(tmp_path):
    options = Options(tasks=("svhn@1000", "moons"), rows=(BASELINE,), seeds=1, out=tmp_path)
    runs = dict(wanted(options))
    found = on_record(runs)
    (cell,) = (cell for cell, run in runs.items() if run.key in found)
    assert (cell.budget, cell.row, runs[cell].steps) == ("long", BASELINE, 2000)
    record = json.loads(next(REPRODUCED.path.glob(f"{runs[cell].key}-*.json")).read_text())
    assert record["run"]["method"]["name"] == "supervised"
    assert found[runs[cell].key] == {
        "key": record["key"], "error": record["result"]["error"], "seconds": None,  # those are of another machine
    }  # fmt: skip


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ([8.0, 9.1, 7.9], "better"),  # differences -2.0, -1.9, -2.1
        ([12.0, 13.1, 11.9], "worse"),
        ([8.0, 13.0, 10.5], "level"),
        ([8.0], None),
    ],
)
def test_a_verdict_is_that_of_the_interval(errors, said):
    known = measured(supervised=[10.0, 11.0, 10.0], default=errors)
    assert verdict(gain(known, "wine", "long", DEFAULT)) == said
    (line,) = [line for line in counts(known, [("wine", "long")], [DEFAULT]) if line.startswith(f"| {DEFAULT}")]
    numbers = [int(word) for word in line.strip("| ").split(" | ")[1:]]
    assert numbers == [said == "worse", said == "level", said == "better", said is not None]


def test_the_page_names_default_best_other_and_seconds():
    known = measured(
        supervised=[10.0, 11.0, 10.0], default=[8.0, 9.1, 7.9], **{"fixmatch 0.95": [7.0] * 3, "pi-model": [9.0] * 3}
    )
    (line,) = [line for line in markdown("test", known).splitlines() if line.startswith("| wine*")]
    assert (
        line == "| wine* | 800 | 3 | 10.33 ± 0.58 | 8.33 ± 0.67 | -2.00 ± 0.25 | fixmatch 0.95 | -3.33 ± 1.43 | 1 | 2 |"
    )


def test_the_best_other_is_not_the_default_under_its_own_name():
    known = measured(
        supervised=[10.0, 11.0], default=[8.0, 9.0], **{"fixmatch 0.8": [8.0, 9.0], "pi-model": [9.0, 9.5]}
    )
    for seed in (0, 1):
        known[Cell("wine", "long", "fixmatch 0.8", seed)]["key"] = known[Cell("wine", "long", DEFAULT, seed)]["key"]
    (line,) = [line for line in markdown("test", known).splitlines() if line.startswith("| wine*")]
    assert "| pi-model | -1.25" in line


def test_records_are_read_as_they_were_written(tmp_path, monkeypatch):
    monkeypatch.setitem(RECORDS, "test", tmp_path / "defaults.json")
    known = measured(supervised=[10.0], default=[9.0])
    assert read("test") == {}
    write("test", known)
    assert read("test") == known


@pytest.mark.parametrize("part", RECORDS)
def test_the_page_is_that_of_the_records(part):
    page = RECORDS[part].with_suffix(".md")
    assert page.exists() is RECORDS[part].exists()
    if page.exists():
        assert page.read_text() == markdown(part, read(part))
