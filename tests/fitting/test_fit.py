"""`semigrad fit`: from somebody's file to a model and a verdict, on real tables."""

import dataclasses
import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_wine

import semigrad
from semigrad import InputError
from semigrad.cli.fit import Told
from semigrad.data.opening import divide
from semigrad.fitting.fit import best, judged
from semigrad.fitting.folds import Answers, cross_validate, held_out_answers
from semigrad.fitting.looking import look_at, of_each_class, spec_of
from semigrad.fitting.planning import MOST_STEPS, Plan, Wish, keep, make_plan, seconds_of, seconds_of_all, usual_place
from semigrad.folder.saved import load_origin
from semigrad.settings.recipes import BY_KIND, CANDIDATES
from tests.classifier.conftest import stripes
from tests.small_runs import cli, go, small


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
    verdict = told["verdicts"]["vat"]
    assert verdict["examples"] == 12  # every label once
    assert verdict["difference"] == pytest.approx(verdict["method"] - verdict["labeled_only"])
    model = semigrad.load(fitted)
    assert model.predict(load_wine().data[:3]).shape == (3,)
    assert len([folder for folder in (fitted.parent / "run-folds").iterdir() if folder.is_dir()]) == 8
    assert "<svg" in (fitted / "report.html").read_text()


def test_a_fit_goes_on_where_it_was(fitted, wine, capsys):
    before = (fitted / "model.safetensors").read_bytes()
    assert cli("fit", wine, "--steps", "40", "--jobs", "1", "--out", fitted, "--no-report", "--json") == 0
    assert (fitted / "model.safetensors").read_bytes() == before
    told = capsys.readouterr().out
    assert "held-out labels" in told
    line, kept = json.loads(told.splitlines()[-1]), json.loads((fitted / "fit.json").read_text())
    assert (line["run"], line["chosen"]) == (str(fitted), kept["chosen"])
    assert line["methods"] == ["supervised", "vat"] == list(kept["errors"])
    verdict = line["verdicts"]["vat"]
    assert verdict == kept["verdicts"]["vat"]
    assert verdict["difference"] == pytest.approx(kept["errors"]["vat"] - kept["errors"]["supervised"])
    low, high = verdict["interval"]
    assert (low + high) / 2 == pytest.approx(verdict["difference"])
    assert verdict["helped"] is (True if high < 0 else False if low > 0 else None)


def test_every_label_is_held_out_once_and_none_of_its_fold_is_trained_on(wine):
    look = look_at(str(wine))
    plan = Plan(look, ("supervised",), 10, 0, 0.0, 1)
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
    plan = Plan(look, ("supervised",), 40, 0, 0.0, 1)
    (folder,) = (fitted.parent / "run-folds").glob("supervised_1_*")
    found = held_out_answers(plan, plan.run("supervised", 1), folder)
    result = json.loads((folder / "result.json").read_text())
    assert 100 * found.wrong.mean() == pytest.approx(result["validation"]["error"])
    assert load_origin(folder).run == plan.run("supervised", 1)


def test_steps_follow_from_the_time(wine):
    look = look_at(str(wine))
    short, long = (make_plan(look, Wish("supervised", seconds), 1) for seconds in (0.001, 1e6))
    assert (short.steps, long.steps) == (200, MOST_STEPS)
    assert "more than the 1 s of the budget: fewer than 200 steps teach little" in str(short)
    assert "more than" not in str(long)
    assert make_plan(look, Wish("supervised", 1.0, 77), 1).steps == 77


def test_what_is_planned_and_done_is_said_in_words(wine, capsys):
    look = look_at(str(wine))
    assert "12 labeled (4 of each class)" in str(look)
    assert of_each_class([3, 1000]) == "3 to 1,000 of a class"
    plan = Plan(look, ("supervised", "vat"), 40, 0, 300.0, 2)
    told = "vat against labeled-only with mlp, 40 steps each, on 4 folds of the labels and then on all: 9 runs, 2 at a"
    assert str(plan) == f"{told} time, about 5.0 min."
    begun = dataclasses.replace(plan, begun=True, methods=("supervised", "vat", "pi-model"))
    assert str(begun).startswith("Going on with what was begun.\npi-model, vat, labeled-only with mlp")
    told = Told(plan)
    told.under_way({("vat", 0): 7, ("supervised", 3): 0})
    told.under_way({})
    for method in plan.methods:
        told.finished(method, 2, {"validation": {"error": 25.0}, "seconds": 3.2})
    assert capsys.readouterr().err.splitlines() == [
        "under way: vat, fold 1, step 7 of 40; labeled-only, fold 4, step 0 of 40", "under way: starting",
        "[1/9] labeled-only, fold 3 held out: 25.0 % wrong, 3 s", "[2/9] vat, fold 3 held out: 25.0 % wrong, 3 s",
    ]  # fmt: skip


def test_a_long_comparison_tells_how_far_it_is(wine, tmp_path):
    """With real runs in other processes, asked as often as can be."""

    class Listener:
        silence = 0.0

        def __init__(self):
            self.heard, self.ended = {}, []

        def finished(self, method, fold, result):
            self.ended.append((method, fold))

        def under_way(self, runs):
            for run, step in runs.items():
                self.heard.setdefault(run, []).append(step)

    look, listener = look_at(str(wine)), Listener()
    plan = Plan(look, ("supervised", "vat"), 400, 0, 1.0, 1)
    cross_validate(plan, tmp_path, listener)
    assert sorted(listener.ended) == sorted((method, fold) for method in plan.methods for fold in range(4))
    assert {*listener.heard} <= {*listener.ended}
    assert all(steps == sorted(steps) and steps[-1] <= 400 for steps in listener.heard.values())
    assert any(0 < step < 400 for steps in listener.heard.values() for step in steps)


def test_a_plan_of_several_sentences_has_a_line_for_each(wine, tmp_path, capsys):
    """A line break that was shown as an escape made one long line of them. The place holds another run, so that
    nothing is trained."""
    go(small(steps=1), tmp_path / "run")
    assert cli("fit", wine, "--budget", "1s", "--jobs", "1", "--out", tmp_path / "run") == 2
    *_, compared, longer, problem = capsys.readouterr().err.splitlines()
    assert compared.startswith("vat against labeled-only with mlp")
    assert longer.startswith("That is more than the 1 s of the budget")
    assert "holds another run" in problem


def test_the_plan_fills_the_time_and_not_more(wine):
    """Whatever a step takes here: between the fewest and the most steps, one step more would be too long."""
    look = look_at(str(wine))
    one = make_plan(look, Wish("supervised", 1e6), 1).seconds / MOST_STEPS
    plan = make_plan(look, Wish("supervised", 1000 * one), 1)
    if plan.steps not in (200, MOST_STEPS):  # so unless the machine is ten times slower or quicker than just now
        step = plan.seconds / plan.steps
        assert plan.seconds <= 1000 * one < plan.seconds + step
    assert "about" in str(plan)


def test_what_is_compared_goes_by_the_wish_and_the_kind_of_data(wine):
    look, pictures = look_at(str(wine)), look_at("digits@40")
    assert Wish().methods(look) == ("supervised", BY_KIND["features"]["method"]["name"])
    assert Wish("vat").methods(look) == ("supervised", "vat")
    assert Wish("supervised").methods(look) == ("supervised",)
    assert Wish("auto").methods(look) == ("supervised", *CANDIDATES["features"])
    assert Wish("auto").methods(pictures) == ("supervised", *CANDIDATES["images"])
    assert Plan(look, ("supervised",), 10, 0, 0.0, 1).run("meta-match").method.beta == 1.0


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
    (tmp_path / "t.TSV").touch()
    assert spec_of(str(tmp_path / "t.TSV")) == f"csv:{tmp_path / 't.TSV'}"
    (tmp_path / "x.txt").write_text("")
    for odd in (tmp_path / "nothing", tmp_path / "x.txt"):
        with pytest.raises(InputError):
            spec_of(str(odd))


def test_a_folder_with_an_at_sign_in_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "mine.npz", *load_wine(return_X_y=True), 4)
    (tmp_path / "mine.npz").rename(tmp_path / "wine@6.npz")
    (tmp_path / "photos@40").mkdir()
    assert spec_of("photos@40") == spec_of("photos@40/") == "folder:photos@40@100%"
    assert spec_of("wine@6.npz") == "npz:wine@6.npz"
    for kind in "ab":
        (tmp_path / "photos@40" / kind).mkdir()
        for number in range(3):
            stripes(kind == "a", number).save(tmp_path / "photos@40" / kind / f"{number}.png")
    look = look_at("photos@40")
    assert look.labels.tolist() == [3, 3]
    assert cli("train", "folder:photos@40", "--steps", "1") == 2
    assert "folder:photos@40@100%" in capsys.readouterr().err


def test_where_every_class_has_one_label_nothing_is_compared_and_that_is_said(tmp_path, capsys):
    path = save(tmp_path / "x.npz", *load_breast_cancer(return_X_y=True), 1)
    out = tmp_path / "run"
    assert cli("fit", path, "--method", "auto", "--steps", "20", "--jobs", "1", "--out", out, "--no-report") == 0
    shown = capsys.readouterr()
    assert "every class has one label only" in shown.err
    assert "Nothing was compared" in shown.out
    told = json.loads((out / "fit.json").read_text())
    assert (told["chosen"], told["folds"], told["verdicts"]) == (BY_KIND["features"]["method"]["name"], 0, {})
    assert "no labels were held out" in semigrad.load(out).confidence


def test_labeled_only_by_itself_has_an_error_too(wine, tmp_path, capsys):
    out = tmp_path / "run"
    words = ("--method", "supervised", "--steps", "20", "--jobs", "1", "--out", out, "--json")
    assert cli("fit", wine, *words) == 0
    shown = capsys.readouterr().out
    error = json.loads((out / "fit.json").read_text())["errors"]["supervised"]
    assert f"labeled-only: {error:.1f} % wrong, each label held out once." in shown
    assert json.loads(shown.splitlines()[-1])["errors"] == {"supervised": error}
    page = (out / "report.html").read_text()
    assert "No other method was compared with it" in page
    assert "Nothing was compared" not in page


def test_the_only_label_of_a_class_is_always_trained_on(tmp_path):
    x, y = load_wine(return_X_y=True)
    kept = np.concatenate([np.flatnonzero(y == c)[:count] for c, count in enumerate((7, 3, 1))])
    np.savez(tmp_path / "x.npz", x=x, y=np.where(np.isin(np.arange(len(y)), kept), y, -1))
    look = look_at(str(tmp_path / "x.npz"))
    assert look.folds == 5
    assert "1 of 3 classes have one label only (2)" in look.notes[-1]
    plan = Plan(look, ("supervised",), 10, 0, 0.0, 1)
    splits = [divide(look.spec, plan.run("supervised", fold), look.dataset)[1] for fold in range(5)]
    assert sorted(np.concatenate([split.validation for split in splits])) == sorted(kept[:-1])
    assert all(len(split.validation) and kept[-1] in split.labeled for split in splits)
    assert all(set(y[split.labeled]) == {0, 1, 2} for split in splits)


@pytest.mark.parametrize("words", [["--budget", "soon"], ["--method", "magic"], ["--steps", "0"]])
def test_odd_words(wine, words, capsys):
    assert cli("fit", wine, *words) == 2
    (problem,) = capsys.readouterr().err.splitlines()  # before the data are read
    assert problem.startswith("semigrad: ")


def test_data_without_unlabeled_examples_say_what_can_be_done(tmp_path, capsys):
    x, y = load_wine(return_X_y=True)
    kept = np.concatenate([np.flatnonzero(y == c)[:6] for c in range(3)])
    np.savez(tmp_path / "all.npz", x=x[kept], y=y[kept])
    assert cli("fit", tmp_path / "all.npz", "--out", tmp_path / "run") == 2
    problem = capsys.readouterr().err.splitlines()[-1]
    assert "leaves nothing unlabeled, so that there is nothing to compare" in problem
    assert "--include-labeled" not in problem  # which fit does not have
    assert not (tmp_path / "run-folds").exists()
    (advised,) = re.findall(r"semigrad fit (\S+@9)\)", problem)
    for words in ([advised], [tmp_path / "all.npz", "--method", "supervised"]):
        assert cli("fit", *words, "--steps", "2", "--jobs", "1", "--out", tmp_path / str(len(words))) == 0


def test_the_place_is_looked_at_before_anything_is_trained(wine, tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    for place, problem in {"full": "holds no run of ours", "full/mine.txt": "is a file, and a run is a folder"}.items():
        assert cli("fit", wine, "--steps", "40", "--out", tmp_path / place) == 2
        (line,) = capsys.readouterr().err.splitlines()  # before the data are read
        assert problem in line
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


# --- stopped, and begun again ---


def waiting_for(folder, pattern, process):
    """Until there is such a file; the process must not end before."""
    while not list(folder.glob(pattern)):
        assert process.poll() is None
        time.sleep(0.05)


@pytest.mark.slow
def test_a_stopped_fit_goes_on_with_its_plan(wine, tmp_path):
    """Without --steps: they are those of the plan, though none that is made now has fewer than 200."""
    out, wish = tmp_path / "run", Wish(budget=1.0)
    look = look_at(str(wine))
    keep(Plan(look, wish.methods(look), 120, 0, 60.0, 1), wish, out)
    words = ["fit", str(wine), "--budget", "1s", "--jobs", "1", "--out", str(out), "--no-report"]
    process = subprocess.Popen([sys.executable, "-m", "semigrad", *words], stderr=subprocess.PIPE)
    waiting_for(tmp_path, "run-folds/*/checkpoints/*.pt", process)
    process.send_signal(signal.SIGTERM)
    assert "Stopped" in process.communicate(timeout=120)[1].decode()
    assert not (out / "fit.json").exists()
    assert cli(*words) == 0
    assert json.loads((out / "fit.json").read_text())["steps"] == 120
    assert len(list((tmp_path / "run-folds").glob("*/result.json"))) == 8  # no fold was begun anew with other steps


@pytest.mark.slow
def test_one_who_is_impatient_gets_one_sentence(wine, tmp_path):
    words = ["fit", str(wine), "--steps", "100000", "--jobs", "2", "--out", str(tmp_path / "run"), "--no-report"]
    process = subprocess.Popen([sys.executable, "-m", "semigrad", *words], stderr=subprocess.PIPE)
    waiting_for(tmp_path, "run-folds/*/metrics.jsonl", process)
    while process.poll() is None:  # also while it waits for the others, and at its very end
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    shown = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 130
    assert shown.splitlines()[-1].lower().startswith("semigrad: stopped")
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "41"], "steps: 40 there, 41 here"),
        (["--budget", "5m"], "steps: 40 there, None here"),
        (["--steps", "40", "--seed", "1"], "seed: 0 there, 1 here"),
        (["--steps", "40", "--method", "mean-teacher"], "methods"),
    ],
)
def test_other_options_in_the_same_place_are_said(fitted, wine, words, said, capsys):
    before = (fitted / "model.safetensors").read_bytes()
    assert cli("fit", wine, *words, "--jobs", "1", "--out", fitted) == 2
    shown = capsys.readouterr().err
    assert "was begun with other data or options" in shown
    assert said in shown
    assert (fitted / "model.safetensors").read_bytes() == before


def test_other_data_in_the_same_place_are_said(tmp_path, capsys):
    path = save(tmp_path / "x.npz", *load_wine(return_X_y=True), 2)
    words = ["fit", path, "--steps", "5", "--jobs", "1", "--out", tmp_path / "run", "--no-report"]
    assert cli(*words) == 0
    save(path, *load_wine(return_X_y=True), 3)
    assert cli(*words) == 2
    assert "fingerprint" in capsys.readouterr().err


def test_a_damaged_plan_is_one_sentence(fitted, wine, tmp_path, capsys):
    plan = json.loads((fitted.parent / "run-folds" / "plan.json").read_text())
    (tmp_path / "run-folds").mkdir()
    for damage in ({"steps": -3}, {"steps": "many"}, {"seconds": None}, {"seconds": float("nan")}):
        (tmp_path / "run-folds" / "plan.json").write_text(json.dumps({**plan, **damage}))
        assert cli("fit", wine, "--steps", "40", "--jobs", "1", "--out", tmp_path / "run") == 2
        assert "is damaged" in capsys.readouterr().err


def test_the_usual_place_is_the_same_for_the_same_wish(wine):
    look = look_at(str(wine))
    place = usual_place(look, Wish())
    assert place == usual_place(dataclasses.replace(look, dataset=dataclasses.replace(look.dataset)), Wish())
    assert len({place, usual_place(look, Wish(seed=1)), usual_place(look, Wish(budget=5.0))}) == 3


# --- what is chosen ---


def answers(wrong, classes=3, sure=0.9):
    """Of a model that is as sure whatever it says, and wrong where it is said to be."""
    labels = np.zeros(len(wrong), np.int64)
    predicted = np.full((len(wrong), classes), (1 - sure) / (classes - 1))
    predicted[np.arange(len(wrong)), np.where(wrong, 1, 0)] = sure
    return Answers(predicted, labels)


def test_the_verdicts_are_those_of_scipys_paired_test_but_for_the_overlap(wine):
    look = look_at(str(wine))
    rng = np.random.default_rng(0)
    wrong = {
        name: rng.random(12) < share for name, share in {"supervised": 0.6, "vat": 0.5, "mean-teacher": 0.2}.items()
    }
    given = {name: answers(flags) for name, flags in wrong.items()}
    plan = Plan(look, tuple(wrong), 10, 0, 0.0, 1)
    found = judged(plan, given)
    assert set(found) == {"vat", "mean-teacher"}
    for name, verdict in found.items():
        test = stats.ttest_rel(100.0 * wrong[name], 100.0 * wrong["supervised"])
        plain = test.confidence_interval(1 - 0.05 / 2)
        shared = np.sqrt((1 / 12 + 1 / 9) / (1 / 12))  # 12 labels in 4 folds: 9 are trained on
        assert verdict.half == pytest.approx(shared * (plain.high - plain.low) / 2)
        assert verdict.difference == pytest.approx((plain.high + plain.low) / 2)


def test_the_best_has_the_fewest_mistakes_and_of_equals_the_smallest_surprise():
    few, many = np.arange(10) < 2, np.arange(10) < 5
    assert best({"supervised": answers(many), "vat": answers(few)}) == "vat"
    assert best({"supervised": answers(few), "vat": answers(many)}) == "supervised"
    assert best({"supervised": answers(few, sure=0.99), "vat": answers(few, sure=0.7)}) == "vat"
    assert best({"supervised": answers(~many | many), "vat": answers(few)}) == "vat"


def moons(path, labels_of_each=3, rows=400):
    """Two half circles, each a class: a few labels hide what all rows show."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % 2
    angle = np.pi * rng.random(rows)
    x = np.stack([np.cos(angle), np.sin(angle)], 1) * (1 - 2 * y[:, None]) + y[:, None] * np.array([1.0, 0.3])
    x += rng.normal(0, 0.05, x.shape)
    given = np.where(np.isin(np.arange(rows), np.r_[0 : 2 * labels_of_each]), y, -1)
    np.savez(path, x=x, y=given, x_test=x[-100:], y_test=y[-100:])
    return path


@pytest.mark.slow
def test_auto_takes_the_method_that_is_clearly_better(tmp_path, capsys):
    path = moons(tmp_path / "moons.npz")
    out = tmp_path / "run"
    assert cli("fit", path, "--method", "auto", "--steps", "150", "--jobs", "1", "--out", out, "--no-report") == 0
    told = json.loads((out / "fit.json").read_text())
    assert set(told["errors"]) == {"supervised", *CANDIDATES["features"]}
    assert told["errors"][told["chosen"]] == min(told["errors"].values())
    assert told["chosen"] != "supervised"
    shown = capsys.readouterr().out
    assert shown.count(f"widened for {len(CANDIDATES['features'])} comparisons") == len(CANDIDATES["features"])
    assert f"Trained {told['chosen']} on all 6 labels" in shown
