"""Labels of which some classes have many and others few: batches that hold all classes equally often."""

import numpy as np
import pytest

from semigrad import SemiSupervisedClassifier, configure
from semigrad.errors import InputError
from tests.small_runs import FLAGS, cli, go, metrics, small, stop_after, uneven_digits, weights


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
