"""A new method is one class and one entry in METHODS: the laws, the command line and the tables know it then."""

import json
from pathlib import Path

import pytest
from benchmarks.methods import rows

from semigrad.methods import METHODS
from semigrad.run import configure
from tests.methods import laws, toy_method
from tests.methods.toy_method import Toy
from tests.small_runs import FLAGS, cli


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    monkeypatch.setitem(METHODS, "toy", Toy)


def test_it_is_short():
    assert len(Path(toy_method.__file__).read_text().splitlines()) < 30


@pytest.mark.parametrize("law", laws.LAWS, ids=lambda law: law.__name__)
def test_it_obeys_the_laws(law):
    law(Toy())


def test_it_has_the_command_line(tmp_path, capsys):
    out = tmp_path / "run"
    flags = ("--method", "toy", "--weight", "0.5", "--steps", "4", "--out", out, "--json")
    assert cli("train", "digits@40", *FLAGS, *flags) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["method"] == "toy"
    assert json.loads((out / "run.json").read_text())["run"]["method"] == {"name": "toy", "weight": 0.5}
    assert cli("list", "methods") == 0
    listed = capsys.readouterr().out
    assert " toy " in listed
    assert "two views must" in " ".join(listed.split())


def test_it_has_a_row_in_the_tables():
    assert configure("digits@40", method=rows()["toy"]).method == Toy()


def test_it_can_be_modified():
    assert configure("digits@40", method="toy+fast-swa").method.host == Toy()
