"""What stands behind `semigrad train`: lists of names, files in UTF-8 whatever the language of the machine is."""

import os

import pytest

from semigrad.cli.options import take_data
from tests.small_runs import FLAGS, cli, command

PLAIN = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
"""A machine that knows no letters but ASCII."""


@pytest.mark.parametrize(
    ("given", "data"),
    [
        (["--classes", "0", "1", "cat", "dog"], None),
        (["--classes", "cat", "dog", "--steps", "3"], None),
        (["--classes", "cat", "dog", "digits@40"], "digits@40"),
        (["--classes", "cat", "dog", "folder:my/photos@10%", "--steps", "3"], "folder:my/photos@10%"),
        (["--classes", "cat", "dog", "--steps", "3", "npz:a.npz"], "npz:a.npz"),
        (["--out", "runs/cat", "dog@40"], "dog@40"),
    ],
)
def test_names_of_classes_are_not_taken_for_the_data(given, data):
    rest = [word for word in given if word != data]
    assert take_data(given) == data
    assert given == rest


def test_classes_without_data_end_in_one_message(capsys):
    assert cli("train", "--classes", "0", "1", "cat", "dog") == 2
    assert capsys.readouterr().err.startswith("semigrad: Say which data to train on, such as digits@40.")


@pytest.mark.slow
def test_a_run_writes_its_page_where_text_is_ascii_by_default(tmp_path):
    (tmp_path / "mine.toml").write_text("# größer, 更大\nsteps = 5\n", encoding="utf-8")
    words = [word for word in FLAGS if word != "--no-report"]
    options = ("--config", tmp_path / "mine.toml", "--out", tmp_path / "run")
    done = command("train", "digits@40", *words, *options, env={**os.environ, **PLAIN})
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
