"""The page of a comparison: rows and seeds in the right places, the paper's numbers beside ours."""

import dataclasses
import re

import numpy as np
import pytest

from semigrad.cli import report
from semigrad.errors import InputError
from semigrad.experiments import EXPERIMENTS
from semigrad.experiments.features import describe_features
from semigrad.experiments.store import Outcome, record_of
from semigrad.report.compare_parts import outcome_of, row_labels
from semigrad.report.page import comparison_page
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
    curves = ["digits@40: test error, %", "digits@40: error on labeled training examples, %"]
    assert titles(path) == ["digits@40: test error, %", *curves, "digits@40: cost"]
    assert [a["id"] for a in page.all("section")] == ["results", "curves", "cost", "provenance"]
    assert "What the paper says" not in page.text
    assert set(re.findall(r"https?://[^\s\"'<]+", path.read_text())) == {"http://www.w3.org/2000/svg"}


def test_settings_that_differ_are_part_of_the_name():
    runs = [small(), small(steps=24), small(method="supervised")]
    names = row_labels([run.to_dict() for run in runs])
    assert names == ["meta-gradient, steps 12", "meta-gradient, steps 24", "supervised"]


def test_runs_that_cannot_be_compared(folders, tmp_path):
    with pytest.raises(InputError, match="given twice"):
        outcome_of([folders[0], *folders])
    with pytest.raises(InputError, match="There is no folder"):
        report.main([str(folders[0]), str(tmp_path / "nowhere")])


def outcome_for(name, record, scale="paper", features=None):
    """An outcome with made-up errors near the published ones, two seeds a cell; one cell is missing."""
    experiment = EXPERIMENTS[name]
    rng = np.random.default_rng(0)
    records = {}
    for cell in experiment.cells(scale, 1)[1:]:
        near = experiment.published.get((cell.row, cell.column), 20.0)
        labeled = re.search(r"@(\d+)$", cell.column)
        split = {**record.data["split"], "labeled": int(labeled[1]) if labeled else 40}
        records[cell.row, cell.column] = {
            seed: dataclasses.replace(
                record,
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
    names = [node.get("data-name") for node in svg.iter(f"{SVG}g") if node.get("data-name")]
    assert names == list(outcome.experiment.rows)
    ticks = {node.text for node in svg.iter(f"{SVG}text")}
    assert {column.rpartition("@")[2] for column in outcome.experiment.columns("paper")[:2]} <= ticks


def test_feature_maps_stand_side_by_side(folders, tmp_path):
    features = describe_features(folders[0], 90)
    outcome = outcome_for("figure-features", record_of(folders[0]), features=features)
    path = comparison_page(outcome, tmp_path / "page.html")
    assert read_page(path).all("section")[0]["id"] == "features"
    maps = [title for title in titles(path) if "seed" in title]
    assert len(maps) >= 2
    points = [node for node in drawings(path)[0].iter() if (node.get("data-keys") or "").startswith("p")]
    assert len(points) == 90


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
