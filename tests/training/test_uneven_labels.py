"""Labels of which some classes have many and others few: batches that hold all classes equally often, and answers that
are adjusted to the shares of the classes."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

import semigrad
from semigrad import SemiSupervisedClassifier, configure
from semigrad.errors import InputError
from semigrad.training.setup import set_up
from tests.small_runs import FLAGS, cli, go, metrics, small, stop_after, uneven_digits, weights

SHARES = torch.tensor([20, 2, *[4] * 8], dtype=torch.float64) / 54


@pytest.fixture(scope="module")
def uneven_file(tmp_path_factory):
    """The same digits as a file."""
    data, path = uneven_digits(), tmp_path_factory.mktemp("uneven") / "digits.npz"
    images = data.train.values.numpy()
    test = data.test.values.numpy()
    np.savez(path, x=images, y=data.labels, x_test=test, y_test=data.test_labels)
    return path


@pytest.mark.parametrize("method", ["supervised", "fixmatch", "meta-gradient+fast-swa"])
def test_a_balanced_run_goes_on_to_the_same_bits(method, tmp_path):
    run = small("digits", method=method, balanced=True)
    go(run, tmp_path / "whole", dataset=uneven_digits())
    stop_after(run, tmp_path / "stopped", 5, data=uneven_digits())
    go(run, tmp_path / "stopped", dataset=uneven_digits(), resume=True)
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")
    assert metrics(tmp_path / "stopped") == metrics(tmp_path / "whole")
    go(small("digits", method=method), tmp_path / "plain", dataset=uneven_digits())
    assert weights(tmp_path / "plain") != weights(tmp_path / "whole")


def test_what_is_not_said_is_no_part_of_the_key():
    assert small().key == small(balanced=False).key != small(balanced=True).key


def test_balanced_batches_from_the_shell(uneven_file, tmp_path, capsys):
    words = ("train", f"npz:{uneven_file}", *FLAGS, "--steps", "20", "--balanced", "--out", tmp_path / "run")
    assert cli(*words, "--classes", "0,1,2") == 0
    said = capsys.readouterr().err
    assert "labeled batches hold every class equally often" in said
    assert "3 classes" in said


def test_balanced_batches_of_the_estimator_and_of_fit(uneven_file, tmp_path):
    data = uneven_digits()
    x = data.train.values.flatten(1).numpy() / 255
    settings = {"balanced": True}
    one, other = (
        SemiSupervisedClassifier("supervised", steps=30, threads=1, random_state=0, settings=given).fit(x, data.labels)
        for given in (settings, None)
    )
    assert not np.array_equal(one.predict_proba(x[:5]), other.predict_proba(x[:5]))
    fit = (
        "fit",
        uneven_file,
        "--method",
        "supervised",
        "--steps",
        "5",
        "--jobs",
        "1",
        "--no-report",
        "--out",
        tmp_path,
    )
    assert cli(*fit, "--balanced") == 0
    assert '"balanced": true' in (tmp_path / "run.json").read_text()
    assert cli(*fit) == 2  # begun with it


@pytest.mark.parametrize("value", [1, "yes", None])
def test_odd_values_are_one_sentence(value):
    with pytest.raises(InputError, match="balanced takes true or false; given: ") as caught:
        configure("digits@40", balanced=value)
    assert len(caught.value.problems) == 1


def saved(folder):
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("supervised", {}),
        ("supervised", {"average": 0.9}),
        ("mean-teacher", {}),
        ("meta-gradient+fast-swa", {}),
        ("dual-student", {}),
    ],
)
def test_what_is_saved_is_what_answers_less_the_logarithms_of_the_shares(method, more, tmp_path):
    plain = go(small("digits", method=method, **more), tmp_path / "plain", dataset=uneven_digits())
    run = small("digits", method=method, adjust=1.5, test_every=6, **more)
    result = go(run, tmp_path / "run", dataset=uneven_digits())
    before, after = saved(tmp_path / "plain"), saved(tmp_path / "run")
    assert torch.allclose(after.pop("head.bias"), before.pop("head.bias") - 1.5 * SHARES.log().float(), atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in after.items())
    assert result["evaluated"] == f"{plain['evaluated']}, logits adjusted by 1.5"
    assert metrics(tmp_path / "run")[-1]["test_error"] == result["error"]
    model, test = semigrad.load(tmp_path / "run"), uneven_digits()
    answers = model.predict_proba(test.test.values.numpy()).argmax(1)
    assert 100 * (answers != test.test_labels).mean() == pytest.approx(result["error"])
    assert model.form.adjusted == pytest.approx((-1.5 * SHARES.log()).tolist())


def test_an_adjusted_run_goes_on_to_the_same_bits(tmp_path):
    run = small("digits", method="mean-teacher", adjust=1.0, test_every=3)
    go(run, tmp_path / "whole", dataset=uneven_digits())
    stop_after(run, tmp_path / "stopped", 5, data=uneven_digits())
    go(run, tmp_path / "stopped", dataset=uneven_digits(), resume=True)
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")
    assert metrics(tmp_path / "stopped") == metrics(tmp_path / "whole")


def test_an_adjusted_run_from_the_shell_is_evaluated_checked_and_handed_on(uneven_file, tmp_path, capsys):
    out = tmp_path / "run"
    words = ("train", f"npz:{uneven_file}", *FLAGS[:-1], "--steps", "20", "--adjust", "1", "--out", out)
    assert cli(*words) == 0
    told = capsys.readouterr()
    assert "logits are adjusted by 1 to the shares of the classes" in told.err
    assert "logits adjusted by 1;" in told.out
    assert "logits adjusted by 1" in (out / "report.html").read_text("utf-8")
    assert cli("evaluate", out) == 0
    told = capsys.readouterr()
    assert "is what is measured now" not in told.err
    assert cli("check-metagrad", out) == 0
    assert cli("export", out, "--format", "safetensors", "--out", tmp_path / "hub") == 0
    assert "adjusted after training to the shares of the classes" in (tmp_path / "hub" / "README.md").read_text("utf-8")
    x = uneven_digits().test.values[:9].numpy()
    here, there = (semigrad.load(place).predict_proba(x) for place in (out, tmp_path / "hub"))
    assert np.array_equal(here, there)


def test_who_starts_from_an_adjusted_run_starts_from_what_training_left(tmp_path):
    for name, strength in (("plain", 0.0), ("adjusted", 2.0)):
        go(small("digits", method="supervised", adjust=strength), tmp_path / name, dataset=uneven_digits())
    run = small("digits", method="supervised", start_from=str(tmp_path / "adjusted"))
    begun = set_up(run, "cpu", uneven_digits()).net.state_dict()
    before = saved(tmp_path / "plain")
    assert all(torch.allclose(value, before[name], atol=1e-6) for name, value in begun.items())


def test_adjusted_answers_of_the_estimator_and_of_networks_of_ones_own(tmp_path):
    x, y = uneven_digits().train.values.flatten(1).numpy() / 255, uneven_digits().labels
    given = {"method": "supervised", "network": "linear", "steps": 30, "threads": 1, "random_state": 0}
    plain, adjusted = (SemiSupervisedClassifier(**given, settings={"adjust": s}).fit(x, y) for s in (0.0, 1.0))
    odds = np.log(adjusted.predict_proba(x[:9]) / plain.predict_proba(x[:9])) + SHARES.log().numpy()
    assert np.ptp(odds, axis=1) == pytest.approx(0, abs=1e-4)
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    go(small("digits", method="supervised", adjust=1.0), tmp_path / "own", dataset=uneven_digits(), network=network)
    assert torch.equal(saved(tmp_path / "own")["1.bias"], network[1].bias)  # it holds the weights that answer
    without = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, bias=False))
    with pytest.raises(InputError, match="this network has none there"):
        go(small("digits", adjust=1.0), tmp_path / "none", dataset=uneven_digits(), network=without)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e31, "much", True])
def test_odd_strengths_are_one_sentence(value, tmp_path):
    with pytest.raises(
        InputError, match=r"adjust (takes a number|must be (finite and not negative|at most 10.30))"
    ) as said:
        go(configure("digits@40", adjust=value), tmp_path / "run")
    assert len(said.value.problems) == 1


def test_balancing_and_adjusting_are_one_too_many(tmp_path, capsys):
    words = ("train", "digits@40", *FLAGS, "--balanced", "--adjust", "1", "--out", tmp_path / "run")
    assert cli(*words) == 2
    assert "adjust corrects a network that was not:" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_damaged_adjustment_is_one_sentence(tmp_path):
    go(small("digits", method="supervised", adjust=1.0), tmp_path / "run", dataset=uneven_digits())
    file = tmp_path / "run" / "config.json"
    config = json.loads(file.read_text())
    del config["checksum"]
    for wrong in ([1.0], "no", [*config["adjusted"][1:], None]):
        file.write_text(json.dumps({**config, "adjusted": wrong}))
        with pytest.raises(InputError, match="adjusted is a list of numbers, one for each class"):
            semigrad.load(tmp_path / "run")
