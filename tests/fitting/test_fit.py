"""`semigrad fit`: from somebody's file to a model and a verdict, on real tables."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

import semigrad
from semigrad import InputError
from semigrad.data.opening import divide
from semigrad.fitting.folds import held_out_answers
from semigrad.fitting.looking import look_at, spec_of
from semigrad.fitting.planning import MOST_STEPS, Plan, make_plan, seconds_of, seconds_of_all
from semigrad.folder.saved import load_origin
from tests.small_runs import cli


def save(path, x, y, labels_of_each, test=40):
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order], y[order]
    kept = np.concatenate([np.flatnonzero(y[test:] == c)[:labels_of_each] for c in np.unique(y)])
    given = np.full(len(y) - test, -1)
    given[kept] = y[test:][kept]
    np.savez(path, x=x[test:], y=given, x_test=x[:test], y_test=y[:test])
    return path


@pytest.fixture(scope="module")
def wine(tmp_path_factory):
    return save(tmp_path_factory.mktemp("wine") / "wine.npz", *load_wine(return_X_y=True), 4)


@pytest.fixture(scope="module")
def fitted(wine):
    """One real fit through the command line."""
    out = wine.parent / "run"
    assert cli("fit", wine, "--steps", "40", "--jobs", "1", "--out", out, "--json") == 0
    return out


def test_what_a_fit_leaves(fitted):
    told = json.loads((fitted / "fit.json").read_text())
    assert told["folds"] == 4
    assert set(told["errors"]) == {"supervised", told["chosen"]} | set(told["verdicts"])
    verdict = told["verdicts"]["meta-gradient"]
    assert verdict["examples"] == 12  # every label once
    assert verdict["difference"] == pytest.approx(verdict["method"] - verdict["baseline"])
    model = semigrad.load(fitted)
    assert model.predict(load_wine().data[:3]).shape == (3,)
    assert len(list((fitted.parent / "run-folds").iterdir())) == 8
    assert "<svg" in (fitted / "report.html").read_text()


def test_a_fit_goes_on_where_it_was(fitted, wine, capsys):
    before = (fitted / "model.safetensors").read_bytes()
    assert cli("fit", wine, "--steps", "40", "--jobs", "1", "--out", fitted, "--no-report") == 0
    assert (fitted / "model.safetensors").read_bytes() == before
    assert "held-out labels" in capsys.readouterr().out


def test_every_label_is_held_out_once_and_none_of_its_fold_is_trained_on(wine):
    look = look_at(str(wine))
    plan = Plan(look, ("supervised",), look.folds, 10, 0, 0.0, 1)
    whole = divide(look.spec, plan.run("supervised"), look.dataset)[1]
    seen = []
    for fold in range(plan.folds):
        split = divide(look.spec, plan.run("supervised", fold), look.dataset)[1]
        assert not set(split.validation) & (set(split.labeled) | set(split.unlabeled))
        assert set(split.validation) | set(split.labeled) == set(whole.labeled)
        np.testing.assert_array_equal(split.unlabeled, whole.unlabeled)
        assert (np.bincount(look.dataset.labels[split.validation]) == 1).all()  # stratified: 4 labels, 4 folds
        seen += split.validation.tolist()
    assert sorted(seen) == whole.labeled.tolist()


def test_answers_are_those_of_the_model_of_the_fold(fitted, wine):
    look = look_at(str(wine))
    plan = Plan(look, ("supervised",), look.folds, 40, 0, 0.0, 1)
    (folder,) = (fitted.parent / "run-folds").glob("supervised_1_*")
    found = held_out_answers(plan, plan.run("supervised", 1), folder)
    result = json.loads((folder / "result.json").read_text())
    assert 100 * found.wrong.mean() == pytest.approx(result["validation"]["error"])
    assert load_origin(folder).run == plan.run("supervised", 1)


def test_steps_follow_from_the_time(wine):
    look = look_at(str(wine))
    short, long = (make_plan(look, ("supervised",), seconds, 1, 0, None).steps for seconds in (0.001, 1e6))
    assert (short, long) == (200, MOST_STEPS)
    assert make_plan(look, ("supervised",), 1.0, 1, 0, 77).steps == 77


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_times(text, seconds):
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "m", "-5m", "0s", "1e9h", "10 minutes", "nan"])
def test_odd_times(text):
    with pytest.raises(InputError, match="90s, 10m or 2h"):
        seconds_of(text)


def test_what_a_path_is(tmp_path, wine):
    assert spec_of(str(wine)) == f"npz:{wine}"
    assert spec_of(str(tmp_path)) == f"folder:{tmp_path}"
    assert spec_of("digits@40") == "digits@40"
    (tmp_path / "x.txt").write_text("")
    for odd in (tmp_path / "nothing", tmp_path / "x.txt"):
        with pytest.raises(InputError):
            spec_of(str(odd))


def test_a_class_with_one_label_cannot_be_compared(tmp_path, capsys):
    path = save(tmp_path / "x.npz", *load_breast_cancer(return_X_y=True), 1)
    assert cli("fit", path) == 2
    assert "one label only" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--budget", "soon"], ["--method", "magic"], ["--steps", "0"]])
def test_odd_words(wine, words, capsys):
    assert cli("fit", wine, *words) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_the_place_is_looked_at_before_anything_is_trained(wine, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert cli("fit", wine, "--steps", "40", "--out", tmp_path / "full") == 2
    assert "holds no run of ours" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]


@pytest.mark.parametrize("jobs", [1, 2, 8, 64])
def test_the_time_is_that_of_runs_dealt_to_so_many_cores(jobs):
    """Against dealing the folds one by one to the core that is free first, then the final run."""
    times, folds = {"supervised": 0.1, "meta-gradient": 0.35}, 5
    free = [0.0] * jobs
    for _ in range(folds):
        for seconds in times.values():
            first = free.index(min(free))
            free[first] += seconds
    dealt = max(free) + 0.35
    assert 0.75 * dealt <= seconds_of_all(times, folds, jobs) <= dealt + 1e-9


def test_a_column_of_labels_by_its_name(tmp_path, capsys):
    rows = [f"{number},{number % 2},{'ab'[number % 2] if number < 20 else ''}" for number in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["x,z,kind", *rows]))
    assert cli("fit", tmp_path / "t.csv", "--steps", "30", "--jobs", "1") == 2
    assert "--label COLUMN" in capsys.readouterr().err
    out = tmp_path / "run"
    assert cli("fit", tmp_path / "t.csv", "--label", "kind", "--steps", "30", "--jobs", "1", "--out", out) == 0
    told = json.loads((out / "fit.json").read_text())
    assert told["chosen"] == min(told["errors"], key=told["errors"].get) or len(set(told["errors"].values())) == 1
    assert semigrad.load(out).form.temperature is not None  # from the 20 labels that were held out
    assert semigrad.load(out).form.columns is not None
