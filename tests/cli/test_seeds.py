"""Several seeds in one command: folders of their own, the same figures as one by one, and their mean."""

import json
import statistics

import pytest

from tests.small_runs import FLAGS, cli, weights

TRAIN = ("train", "digits@40", *FLAGS, "--steps", "3")


@pytest.fixture
def trained(tmp_path, capsys):
    assert cli(*TRAIN, "--seeds", 3, "--seed", 1, "--out", tmp_path / "all", "--json") == 0
    return capsys.readouterr().out.splitlines()


def test_each_seed_is_what_it_is_alone(trained, tmp_path):
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["seed1", "seed2", "seed3"]
    assert cli(*TRAIN, "--seed", 2, "--out", tmp_path / "alone") == 0
    assert weights(tmp_path / "alone") == weights(tmp_path / "all" / "seed2")


def test_the_mean_and_the_deviation(trained, tmp_path):
    paths = [tmp_path / "all" / f"seed{seed}" / "result.json" for seed in (1, 2, 3)]
    errors = [json.loads(path.read_text())["error"] for path in paths]
    mean, deviation = statistics.mean(errors), statistics.stdev(errors)
    each = ", ".join(f"{error:.2f}" for error in errors)
    line = f"test error {mean:.2f} ± {deviation:.2f} % (mean ± deviation over seeds 1 to 3: {each})"
    assert line in trained
    summary = json.loads(trained[-1])
    assert summary["error"] == pytest.approx(mean)
    assert summary["deviation"] == pytest.approx(deviation)
    assert [seed["error"] for seed in summary["seeds"]] == errors


def test_going_on_and_adding_seeds(trained, tmp_path, capsys):
    assert cli(*TRAIN, "--seeds", 3, "--seed", 1, "--out", tmp_path / "all") == 2
    assert capsys.readouterr().err.count("holds a finished run") == 3
    before = weights(tmp_path / "all" / "seed1")
    assert cli("train", "--seeds", 4, "--out", tmp_path / "all", "--resume", "--threads", 1, "--no-report") == 0
    assert "over seeds 1 to 4" in capsys.readouterr().out
    assert weights(tmp_path / "all" / "seed1") == before
    assert cli(*TRAIN, "--seed", 4, "--out", tmp_path / "alone") == 0
    assert weights(tmp_path / "alone") == weights(tmp_path / "all" / "seed4")


def test_without_a_folder_each_has_a_name_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli(*TRAIN, "--seeds", 2, "--validation", 20) == 0
    assert len(list((tmp_path / "runs").iterdir())) == 2
    out = capsys.readouterr().out
    assert "validation error" in out.splitlines()[-3]
    assert cli(*TRAIN, "--seeds", 0) == 2
    assert "seeds must be at least 1; given: 0" in capsys.readouterr().err
