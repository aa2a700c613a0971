"""The figures against independent computations, and a saved run measured again."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import binomtest
from sklearn.metrics import confusion_matrix, top_k_accuracy_score
from torch import nn

from semigrad.core import CPU
from semigrad.data.arrays import from_arrays
from semigrad.data.opening import open_data
from semigrad.data.split import Split
from semigrad.data.stream import in_order
from semigrad.errors import InputError
from semigrad.folder.saved import load_model, load_run
from semigrad.run import configure
from semigrad.training.evaluate import (
    calibration_error,
    evaluate,
    evaluate_again,
    measure_labeled,
    measure_test,
    measure_validation,
    probabilities,
    wilson,
)  # fmt: skip
from tests.small_runs import FLAGS, MODEL, cli, go, small


def drawn(rng, count, classes):
    """Probabilities and labels that agree somewhat."""
    labels = rng.integers(classes, size=count)
    logits = rng.normal(size=(count, classes)) + 2 * np.eye(classes)[labels]
    predicted = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    return predicted, labels


@pytest.mark.parametrize("classes", [2, 5, 6, 10, 100])
def test_figures_agree_with_scipy_and_scikit_learn(classes):
    predicted, labels = drawn(np.random.default_rng(classes), 2000, classes)
    found = evaluate(predicted, labels)
    everything = np.arange(classes)
    assert found.error == pytest.approx(100 * (predicted.argmax(1) != labels).mean())
    assert found.confusion == confusion_matrix(labels, predicted.argmax(1), labels=everything).tolist()
    if classes > 5:
        right = top_k_accuracy_score(labels, predicted, k=5, labels=everything)
        assert found.error_top5 == pytest.approx(100 * (1 - right))
    else:
        assert found.error_top5 is None
    wrong = round(found.error * 20)
    interval = binomtest(wrong, 2000).proportion_ci(0.95, "wilson")
    assert found.error_interval == pytest.approx((100 * interval.low, 100 * interval.high))


@pytest.mark.parametrize(("events", "count"), [(0, 1), (1, 1), (0, 500), (500, 500), (3, 500), (250, 500)])
def test_wilson_at_the_ends(events, count):
    interval = binomtest(events, count).proportion_ci(0.95, "wilson")
    assert wilson(events, count) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_calibration_error_bin_by_bin():
    predicted, labels = drawn(np.random.default_rng(0), 3000, 4)
    confidence, correct = predicted.max(1), predicted.argmax(1) == labels
    expected = 0.0
    for low in np.arange(15) / 15:
        inside = (confidence >= low) & (confidence < low + 1 / 15)
        if inside.any():
            expected += inside.mean() * abs(correct[inside].mean() - confidence[inside].mean())
    assert calibration_error(confidence, correct) == pytest.approx(expected)


def test_calibration_error_by_hand():
    assert calibration_error(np.array([1.0, 1.0]), np.array([True, False])) == pytest.approx(0.5)
    assert calibration_error(np.array([1.0, 1.0]), np.array([True, True])) == 0
    assert calibration_error(np.array([0.65, 0.61, 0.9]), np.array([True, False, True])) == pytest.approx(
        (abs(1 - 1.26) + 0.1) / 3
    )


def test_measuring_leaves_the_network_as_it_was():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))
    net[2].eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    batches = [torch.randn(5, 3), torch.randn(2, 3)]
    first, second = probabilities(net, batches), probabilities(net, batches)
    assert first.shape == (7, 2)
    assert np.array_equal(first, second)  # no dropout
    assert first.sum(1) == pytest.approx(1)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert [module.training for module in net] == [True, True, False, True]


def measured(labeled, tested):
    """A network of one feature whose logits are (2x, 3x), and data with these features."""
    net = nn.Linear(1, 2, bias=False)
    net.weight.data = torch.tensor([[2.0], [3.0]])
    columns = [np.array(values, np.float32)[:, None] for values in (labeled, tested)]
    x, x_test = columns
    data = from_arrays("mine", ("a", "b"), x, np.arange(len(x)) % 2, x_test, np.arange(len(x_test)) % 2)
    everything = np.arange(len(x))
    return net, data, Split(everything, everything[:0], everything[1:])


def test_answers_that_are_not_finite_are_counted_and_named():
    """A feature of -3.4e38, which float32 can hold, makes both logits -inf, which have no softmax."""
    wild = -3.4e38
    net, data, split = measured([0, 1, wild, wild, 1], [1, 2, 3, wild, 1, -1, 2])
    with pytest.raises(InputError, match="for 1 of 7 examples, first for number 3 of the test part") as caught:
        measure_test(net, data, CPU, 0)
    assert "drop such examples" in str(caught.value)
    with pytest.raises(InputError, match="for 2 of 4 examples, first for number 2 of the training part"):
        measure_validation(net, data, split, CPU, 0)
    with pytest.raises(InputError, match="for 2 of 5 examples, first for number 2 of the training part"):
        measure_labeled(net, data, split, CPU, 0)


def test_a_class_that_a_network_excludes_is_no_reason_to_refuse():
    net, data, _ = measured([0, 1], [1, 2, -1])

    class Masked(nn.Module):
        def forward(self, x):
            return net(x) + torch.tensor([0.0, -torch.inf])

    assert measure_test(Masked(), data, CPU, 0).confusion == [[2, 0], [1, 0]]


@pytest.mark.parametrize(("labels", "some"), [(3, 3), (3999, 3999), (4000, 2000), (5999, 3000), (6000, 2000)])
def test_the_training_error_is_of_all_labels_or_of_some_thousand_spread_over_them(labels, some):
    net, data, split = measured(np.linspace(-1, 1, labels), [0])
    assert measure_labeled(net, data, split, CPU, 0).examples == some


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    for name, changes in {"last": {}, "average": {"average": 0.5}, "seed": {"seed": 3}}.items():
        go(small(steps=6, **changes), folder / name)
    return folder


@pytest.mark.parametrize("name", ["last", "average", "seed"])
def test_a_saved_run_measures_the_same_again(name, finished, capsys):
    result = json.loads((finished / name / "result.json").read_text())
    assert cli("evaluate", finished / name, "--threads", "1", "--json") == 0
    shown = capsys.readouterr()
    line = json.loads(shown.out.splitlines()[-1])
    assert line == {"run": str(finished / name), "mirrored": False, **result["test"]}
    assert shown.out.startswith(f"test error {result['error']:.2f} %")
    assert shown.err == ""


def test_a_saved_run_comes_back_equal(finished):
    assert load_run(finished / "seed") == small(steps=6, seed=3)
    net, classes = load_model(finished / "last")
    assert classes == tuple("0123456789")
    assert net(torch.rand(2, 1, 8, 8)).shape == (2, 10)


def test_every_model_for_small_images_comes_back(tmp_path):
    for name in ("small-conv", "wrn-28-2"):
        run = configure("digits@40", model=name, steps=1, batch=8, method="supervised")
        result = go(run, tmp_path / name)
        assert evaluate_again(tmp_path / name).error == result["error"]


def copy_of(finished, tmp_path):
    return shutil.copytree(finished / "last", tmp_path / "copy")


RUBBISH = {
    "no model": (lambda run: (run / "model.safetensors").unlink(), "holds no finished run"),
    "half a model": (lambda run: (run / "model.safetensors").write_bytes(b"\x10" * 40), "damaged"),
    "empty model": (lambda run: (run / "model.safetensors").write_bytes(b""), "damaged"),
    "no config": (lambda run: (run / "config.json").unlink(), "Cannot read"),
    "empty config": (lambda run: (run / "config.json").write_text("{}"), "must have model, classes and shape"),
    "odd config": (lambda run: (run / "config.json").write_text('{"model": {}, "classes": 3, "shape": []}'), "must"),
    "unknown model": (
        lambda run: (run / "config.json").write_text(
            '{"model": {"name": "gpt"}, "classes": ["a"], "shape": [1, 8, 8]}'
        ),
        "There is no model 'gpt'",
    ),
    "another model": (
        lambda run: (run / "config.json").write_text(
            json.dumps({"model": {**MODEL, "widths": [3]}, "classes": ["a"], "shape": [1, 8, 8]})
        ),
        "damaged or of another network",
    ),
    "run.json is a list": (lambda run: (run / "run.json").write_text("[]"), "does not hold a table"),
    "run.json is half": (lambda run: (run / "run.json").write_text('{"run": {'), "it is no JSON"),
    "run.json is of something else": (lambda run: (run / "run.json").write_text('{"a": 1}'), "describes no run"),
}


@pytest.mark.parametrize("case", RUBBISH)
def test_evaluate_on_rubbish(case, finished, tmp_path, capsys):
    harm, words = RUBBISH[case]
    folder = copy_of(finished, tmp_path)
    harm(folder)
    assert cli("evaluate", folder) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""
    assert shown.err.count("\n") == 1


def test_evaluate_says_when_the_data_have_changed(tmp_path, capsys):
    rng = np.random.default_rng(0)
    arrays = {"x": rng.normal(size=(60, 5)), "y": np.arange(60) % 3, "y_test": np.arange(9) % 3}
    np.savez(tmp_path / "a.npz", **arrays, x_test=rng.normal(size=(9, 5)))
    assert cli("train", f"npz:{tmp_path / 'a.npz'}@6", *FLAGS[4:], "--steps", "2", "--out", tmp_path / "run") == 0
    np.savez(tmp_path / "a.npz", **arrays, x_test=rng.normal(size=(9, 5)))
    capsys.readouterr()
    assert cli("evaluate", tmp_path / "run") == 0
    assert "is not what it was when the run was trained" in capsys.readouterr().err


def test_evaluate_where_there_is_nothing_to_measure_on(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", x=rng.normal(size=(60, 5)), y=np.arange(60) % 3)
    assert cli("train", f"npz:{tmp_path / 'a.npz'}@6", *FLAGS, "--steps", "2", "--out", tmp_path / "run") == 2
    assert cli("train", f"npz:{tmp_path / 'a.npz'}@6", *FLAGS[4:], "--steps", "2", "--out", tmp_path / "run") == 0
    with pytest.raises(InputError, match="has no test part"):
        evaluate_again(tmp_path / "run")


def test_data_that_have_changed_are_measured_as_they_are_and_other_classes_refused(tmp_path, capsys):
    rng = np.random.default_rng(0)

    def write(classes, rows):
        y = np.arange(rows) % classes
        x = rng.normal(size=(rows, 5)) + y[:, None]
        np.savez(tmp_path / "a.npz", x=x, y=y, x_test=x[:12], y_test=y[:12])

    write(2, 60)
    words = (*FLAGS[4:], "--steps", "2", "--method", "supervised")
    assert cli("train", f"npz:{tmp_path / 'a.npz'}@10", *words, "--out", tmp_path / "run") == 0
    write(2, 13)  # too few for the split
    assert cli("evaluate", tmp_path / "run") == 0
    assert "is not what it was when the run was trained" in capsys.readouterr().err
    write(3, 60)
    assert cli("evaluate", tmp_path / "run") == 2
    assert "has other classes now (0, 1, 2) than the model was trained for (0, 1)" in capsys.readouterr().err


def test_mirror_images_are_a_second_figure(tmp_path):
    draws = np.random.default_rng(0)
    for part, count in (("labeled", 8), ("unlabeled", 8), ("test", 20)):
        for number, name in enumerate(("dark", "bright")):
            place = tmp_path / "pictures" / part / name
            place.mkdir(parents=True)
            for picture in range(count):
                pixels = draws.integers(0, 200 + 50 * number, (16, 16), np.uint8)
                Image.fromarray(pixels).save(place / f"{picture}.png")
    run = configure(f"folder:{tmp_path / 'pictures'}", method="supervised", steps=4, batch=8, image_size=16)
    go(run, tmp_path / "run")
    net, _ = load_model(tmp_path / "run")
    dataset = open_data(run.data, run)
    x = torch.cat(list(in_order(dataset.test, np.arange(40), CPU)))
    with torch.no_grad():
        both = (net.eval()(x).softmax(1) + net(x.flip(3)).softmax(1)).numpy() / 2
    expected = evaluate(both, dataset.test_labels)
    found = evaluate_again(tmp_path / "run", mirrored=True)
    assert found.confusion == expected.confusion
    assert found.calibration_error == pytest.approx(expected.calibration_error, abs=1e-4)
    assert found.calibration_error != evaluate_again(tmp_path / "run").calibration_error


def test_digits_are_not_mirrored(finished, capsys):
    assert cli("evaluate", str(finished / "last"), "--mirrored") == 2
    assert "a mirror image may be of another class" in capsys.readouterr().err
