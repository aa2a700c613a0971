"""The page of a comparison: rows and seeds in the right places, the paper's numbers beside ours."""

import dataclasses
import json
import re

import numpy as np
import pytest

from semigrad.cli import report
from semigrad.errors import InputError
from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.features import describe_features
from semigrad.experiments.store import Outcome, record_of
from semigrad.report.drawing.charts import DASHED
from semigrad.report.gather import outcome_of, row_labels
from semigrad.report.page import comparison_page
from semigrad.report.parts.comparison import MAPS, maps, method_curves, provenance
from tests.report.pages import NASTY, SVG, drawings, read_page, titles
from tests.small_runs import go, small

METHODS = ("mean-teacher", "supervised")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two methods with two seeds each."""
    root = tmp_path_factory.mktemp("comparison")
    runs = {root / f"{method}-{seed}": (method, seed) for method in METHODS for seed in (0, 1)}
    for folder, (method, seed) in runs.items():
        go(small(method=method, seed=seed, steps=8, test_every=4), folder)
    return list(runs)


def test_runs_become_rows_and_seeds(folders):
    outcome = outcome_of(folders)
    assert outcome.experiment.rows == ("supervised", "mean-teacher")  # the baseline comes first
    assert outcome.experiment.columns("laptop") == ("digits@40",)
    for row in outcome.experiment.rows:
        expected = {seed: record_of(folder).result["error"] for folder in folders for seed in (0, 1)
                    if folder.name == f"{row}-{seed}"}  # fmt: skip
        assert outcome.values(row, "digits@40") == expected


def test_the_page_of_several_runs(folders, tmp_path, capsys):
    assert report.main([*map(str, folders), "--out", str(tmp_path / "page.html")]) == 0
    path = tmp_path / "page.html"
    page = read_page(path)
    outcome = outcome_of(folders)
    for row in outcome.experiment.rows:
        values = list(outcome.values(row, "digits@40").values())
        assert f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}" in page.text
    apart = np.mean([outcome.values("mean-teacher", "digits@40")[s] - outcome.values("supervised", "digits@40")[s]
                     for s in (0, 1)])  # fmt: skip
    assert f"{apart:+.2f} ±" in page.text
    curves = ["digits@40: test error", "digits@40: error on labeled training examples"]
    assert titles(path) == ["digits@40: test error, %", *curves, "digits@40: cost"]
    assert [a["id"] for a in page.all("section")] == ["results", "curves", "cost", "provenance"]
    assert "What the paper says" not in page.text
    assert set(re.findall(r"https?://[^\s\"'<]+", path.read_text())) == {"http://www.w3.org/2000/svg"}


def test_settings_that_differ_are_part_of_the_name():
    runs = [small(), small(steps=24), small(method="supervised")]
    names = row_labels([run.to_dict() for run in runs])
    assert names == ["meta-gradient, steps 12", "meta-gradient, steps 24", "supervised"]


def test_data_and_how_often_it_was_measured_are_no_part_of_the_name():
    runs = [small(), small("digits@20", steps=24), small(seed=1, test_every=4)]
    assert row_labels([run.to_dict() for run in runs]) == ["meta-gradient"] * 3
    twice = [small(), small(test_every=4)]
    assert row_labels([run.to_dict() for run in twice]) == [
        "meta-gradient, test_every 0",
        "meta-gradient, test_every 4",
    ]


def test_the_date_is_that_of_the_newest_run(folders, tmp_path):
    outcome = outcome_of(folders)
    assert outcome.date == max(record_of(folder).made["date"] for folder in folders)
    page = read_page(comparison_page(outcome, tmp_path / "page.html"))
    day, _, time = outcome.date.partition("T")
    assert f"newest run {day} {time[:5]} UTC" in page.text
    assert f"{day}T" not in page.text


def test_runs_that_cannot_be_compared(folders, tmp_path):
    with pytest.raises(InputError, match="given twice"):
        outcome_of([folders[0], *folders])
    with pytest.raises(InputError, match="does not exist"):
        report.main([str(folders[0]), str(tmp_path / "nowhere")])


def outcome_for(name, record, scale="paper", features=None):
    """An outcome with made-up errors near the published ones, two seeds a cell; one cell is missing."""
    experiment = EXPERIMENTS[name]
    rng = np.random.default_rng(0)
    records = {}
    for cell in experiment.cells(scale, 1)[1:]:
        key = cell.run.key
        near = experiment.published.get((cell.row, cell.column), 20.0)
        labeled = re.search(r"@(\d+)$", cell.column)
        split = {**record.data["split"], "labeled": int(labeled[1]) if labeled else 40}
        records[cell.row, cell.column] = {
            seed: dataclasses.replace(
                record,
                key=f"{key}-{seed}",
                data={**record.data, "split": split},
                result={**record.result, experiment.measure(cell.column): near + rng.normal()},
                features=features,
            )
            for seed in (0, 1)
        }
    return Outcome(experiment, scale, records, f"semigrad reproduce {name} --scale {scale}", "2021-04-13")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_a_page(name, folders, tmp_path):
    outcome = outcome_for(name, record_of(folders[0]))
    path = comparison_page(outcome, tmp_path / "page.html")
    page, experiment = read_page(path), outcome.experiment
    assert path.stat().st_size < 1_500_000
    assert experiment.title in page.text
    assert f"semigrad reproduce {name} --scale paper" in page.text
    assert "2021-04-13" in page.text
    assert all(" ".join(note.split()) in page.text for note in experiment.notes_at("paper"))
    assert drawings(path)
    shown = experiment.columns("paper")
    for (row, column), value in experiment.published.items():
        if column in shown and any(place[0] == row for place in outcome.records):
            assert f"{value:.2f}" in page.text, (row, column)


def test_the_first_section_is_what_the_experiment_is_about(folders, tmp_path):
    record = record_of(folders[0])
    for experiment in EXPERIMENTS.values():
        page = read_page(comparison_page(outcome_for(experiment.name, record), tmp_path / "page.html"))
        first = {"table": "results", "curves": "curves", "labels": "labels", "features": "results"}[experiment.kind]
        assert page.all("section")[0]["id"] == first


def test_a_chart_over_labels_has_a_line_for_each_method(folders, tmp_path):
    outcome = outcome_for("figure-labels", record_of(folders[0]))
    path = comparison_page(outcome, tmp_path / "page.html")
    svg = drawings(path)[0]
    assert names_of_lines(svg) == list(outcome.experiment.rows)
    ticks = {node.text for node in svg.iter(f"{SVG}text")}
    assert {column.rpartition("@")[2] for column in outcome.experiment.columns("paper")[:2]} <= ticks


def names_of_lines(svg):
    return [node.get("data-name") for node in svg.iter(f"{SVG}g") if node.get("data-name")]


def test_columns_of_the_same_runs_are_counted_and_drawn_once(folders, tmp_path):
    features = describe_features(folders[0], 90)
    outcome = outcome_for("table3", record_of(folders[0]), scale="smoke", features=features)
    experiment, columns = outcome.experiment, outcome.experiment.columns("smoke")
    shared = {(row, column): outcome.records[row, columns[1]] for row in experiment.rows for column in columns}
    outcome = dataclasses.replace(outcome, records=shared)
    path = comparison_page(outcome, tmp_path / "page.html")
    runs = 2 * len(experiment.rows)
    assert f"runs {runs} methods" in read_page(path).text
    mapped = [f"{row}, digits@20, seed {seed}" for seed in (0, 1) for row in experiment.rows]
    assert titles(path) == [
        "digits@20 top-1: test error, %", "digits@20 top-5: top-5 test error, %", "digits@20: test error",
        "digits@20: error on labeled training examples", *mapped[:MAPS], "digits@20: cost",
    ]  # fmt: skip
    assert f"{MAPS} of {runs} maps" in read_page(path).text
    rows = provenance(outcome).rows
    assert len(rows) == runs
    top1, top5 = (outcome.values("Ours", column)[0] for column in columns)
    assert f"{top1:.2f} / {top5:.2f}" in [row[4].text for row in rows if row[0].text == "Ours"]


def test_accuracy_over_time_is_one_picture(folders, tmp_path):
    record = record_of(folders[0])
    outcome = outcome_for("figure-accuracy", record, scale="smoke")
    column = outcome.experiment.columns("smoke")[0]
    outcome = dataclasses.replace(outcome, records={(row, column): {0: record} for row in outcome.experiment.rows})
    svg = drawings(comparison_page(outcome, tmp_path / "page.html"))[0]
    assert next(svg.iter(f"{SVG}text")).text == "digits@20: training and test accuracy"
    parts = ("labeled training examples", "test")
    assert names_of_lines(svg) == [f"{row}, {part}" for row in outcome.experiment.rows for part in parts]
    test = next(node for node in svg.iter(f"{SVG}g") if node.get("data-name") == "Ours, test")
    errors = [line["test_error"] for line in record.curve if "test_error" in line]
    values = [float(words) for _, words in json.loads(test.get("data-values"))]
    assert values == pytest.approx([100 - error for error in errors], abs=0.05)
    patterns = [node.get("stroke-dasharray") for node in svg.iter(f"{SVG}path") if "M0 5" in node.get("d")]
    assert patterns == [DASHED, None, DASHED, None]


def test_what_a_method_does_before_the_first_step_is_no_part_of_the_curves(folders, tmp_path):
    record = record_of(folders[0])
    before = [{"step": step, "loss": 50.0} for step in (-3, -2, 0)]
    after = [{"step": step, "loss": 1.0 + step} for step in (1, 2)]
    outcome = outcome_of(folders)
    records = {place: {0: dataclasses.replace(record, curve=before + after)} for place in outcome.records}
    charts = method_curves(dataclasses.replace(outcome, records=records)).charts
    assert [[cell.text for cell in row] for row in charts[0].table.rows] == [["1", "2", "2"], ["2", "3", "3"]]
    assert charts[0].caption == "One seed. Losses of different methods do not compare."


def test_the_words_before_the_claim(folders, tmp_path):
    record = record_of(folders[0])
    for name, said in (("table4", True), ("meta-plugin", False), ("ablation-beta", False)):
        page = read_page(comparison_page(outcome_for(name, record), tmp_path / "page.html"))
        assert ("What the paper says:" in page.text) is said


def test_maps_name_the_classes_where_they_are_known(folders):
    features = {**describe_features(folders[0], 90), "classes": [f"digit {number}" for number in range(10)]}
    outcome = outcome_for("figure-features", record_of(folders[0]), features=features)
    assert maps(outcome).charts[0].table.rows[3][0].text == "digit 3"
    del features["classes"]
    assert maps(outcome).charts[0].table.rows[3][0].text == "3"


def test_feature_maps_stand_side_by_side(folders, tmp_path):
    features = describe_features(folders[0], 90)
    outcome = outcome_for("figure-features", record_of(folders[0]), features=features)
    path = comparison_page(outcome, tmp_path / "page.html")
    assert read_page(path).all("section")[0]["id"] == "features"
    maps = [title for title in titles(path) if "seed" in title]
    first = maps[0].partition(":")[0]
    assert maps[:4] == [f"{first}: {part}" for part in ("labeled", "unlabeled", "test", "all")]
    assert len(maps) >= 8

    def places(drawing):
        shapes = [node for node in drawing.iter() if (node.get("data-keys") or "").startswith("p")]
        return {
            (node.get("data-tip"), node.get("x") or node.get("cx"), node.get("y") or node.get("cy")) for node in shapes
        }

    *parts, together = (places(drawing) for drawing in drawings(path)[:4])
    assert [len(part) for part in parts] == [30, 30, 30]
    assert set.union(*parts) == together  # the same axes


def test_names_that_are_code_stay_names(folders, tmp_path):
    outcome = outcome_of(folders)
    experiment = dataclasses.replace(
        outcome.experiment, title=NASTY, claim=f"<script>{NASTY}", notes=(NASTY,), rows=(NASTY, "supervised"),
        plans={"laptop": dataclasses.replace(outcome.experiment.plans["laptop"], runs={
            (NASTY if row != "supervised" else row, column): layer
            for (row, column), layer in outcome.experiment.plans["laptop"].runs.items()
        })},
    )  # fmt: skip
    records = {(NASTY if row != "supervised" else row, c): found for (row, c), found in outcome.records.items()}
    changed = dataclasses.replace(outcome, experiment=experiment, records=records, command=NASTY)
    page = read_page(comparison_page(changed, tmp_path / "page.html"))
    assert not page.all("img")
    assert len(page.all("script")) == 1
    assert page.text.count(NASTY) >= 4
    drawings(tmp_path / "page.html")
