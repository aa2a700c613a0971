"""Command lines that nobody means: one message and exit code 2, or help; never a traceback, never another run."""

import os
import subprocess
import sys

import pytest

from semigrad.methods import METHODS
from tests.small_runs import cli, command

NINES = "9" * 30
ODD = {
    "an empty word for the data": (["train", ""], "Cannot read the data ''"),
    "a bare double dash": (["train", "--", "digits@45"], "cannot be shared equally"),
    "a double dash and a value": (["train", "digits@40", "--=3"], "There is no option '--'"),
    "an empty value": (["train", "digits@40", "--steps="], "--steps takes a whole number; given: ''."),
    "a single dash": (["train", "digits@40", "-x"], "-x: nothing takes this"),
    "one dash for two": (
        ["train", "digits@40", "-steps", "9"],
        "-steps 9: nothing takes this. Options have two dashes: --steps.",
    ),
    "one dash for a verb": (["evaluate", "a", "-device", "cpu"], "Options have two dashes: --device."),
    "no for what is no switch": (["train", "digits@40", "--no-steps", "3"], "There is no option '--no-steps'"),
    "no for a number of the network": (["train", "digits@40", "--model.no-drop", "3"], "no option '--model.no-drop'"),
    "an option of a modifier that is not there": (
        ["train", "digits@40", "--fast-swa.cycle", "0.1"],
        "--fast-swa.cycle is an option of HOST+fast-swa, not of fixmatch.",
    ),
    "an option of another network": (
        ["train", "digits@40", "--model", "mlp", "--model.widths", "4"],
        "--model.widths is an option of network compact-conv, network compact-conv-large, network small-conv, not of "
        "mlp.",
    ),
    "one that another has and one that nobody has": (
        ["train", "digits@40", "--horizon", "3", "--foo", "4"],
        "There is no option '--foo'",
    ),
    "a field and a modifier of one name": (
        ["train", "digits@40", "--method", "meta-gradient+meta", "--no-meta", "--meta.beta", "0.1"],
        "meta on top of it makes no sense",
    ),
    "too many threads": (["train", "digits@40", "--threads", "100000"], "threads must be at most 1024"),
    "more rows than there are numbers": (["train", "digits@40", "--batch", NINES], "batch must be at most 10^12"),
    "a rate beyond single precision": (["train", "digits@40", "--lr", "1e308"], "lr must be at most 10^30"),
    "a decay beyond it": (["train", "digits@40", "--weight-decay", "1e308"], "weight_decay must be at most 10^30"),
    "a schedule far ahead": (["train", "digits@40", "--rate-ahead", NINES], "rate_ahead must be at most 10^12"),
    "more batches than there are": (
        ["train", "digits@40", "--method", "mean-teacher+swa", "--swa.batches", NINES],
        "batches of SWA must be at most 10^12",
    ),
    "a width of many digits": (["train", "digits@40", "--model.widths", NINES], "widths must be at most 10^12"),
    "labels of many digits": (["train", f"digits@{'9' * 5000}"], "Cannot read the data"),
    "digits of another script": (["train", "digits@\uff14\uff10"], "Cannot read the data"),
    "a path with a zero": (["train", "digits@40", "--out", "a\0b"], "--out takes a path"),
    "a path with a zero to go on with": (["train", "--resume", "--out", "a\0b"], "--out takes a path"),
    "an empty path": (["train", "digits@40", "--out", ""], "--out takes a path"),
    "an empty file": (["train", "digits@40", "--config="], "--config takes a path"),
    "a run that is not there": (["train", "--resume", "--out", "nowhere"], "nowhere holds no run to go on with."),
    "an empty method": (["train", "digits@40", "--method", ""], "There is no method ''"),
    "an empty method to compare": (["fit", "digits@40", "--method", ""], "There is no method ''"),
    "an empty word for the data of a fit": (["fit", ""], "The data are an empty word. Give a folder"),
    "an empty word for a doctor": (["doctor", ""], "The data are an empty word. Give a folder"),
    "an empty word for a run": (["report", ""], "RUNS takes a path; given: ''."),
    "a zero in one of several runs": (["report", "a", "b\0"], "RUNS takes a path; given: 'b\\x00'."),
    "milestones that do not ascend": (["train", "digits@40", "--milestones", "0.75,0.5"], "one after the other"),
    "what is asked of a demo": (["demo", "--steps", "0"], "steps must be at least 1; given: 0."),
    "too much for a verb": (["evaluate", "a", "b"], "b: nothing takes this."),
}


@pytest.mark.parametrize("case", ODD)
def test_one_message_and_nothing_written(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words, said = ODD[case]
    assert cli(*words) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert "Traceback" not in shown.err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ['data = ""\n', "a = " + "[" * 5000 + "]" * 5000])
def test_odd_files(content, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.toml").write_text(content)
    assert cli("train", "--config", "odd.toml") == 2
    assert "Traceback" not in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["odd.toml"]


@pytest.mark.parametrize("words", [("--steps", "--help"), ("--help", "--steps", "x"), ("digits@40", "--help", "--lr")])
def test_help_comes_before_what_is_wrong(words, capsys):
    assert cli("train", *words) == 0
    assert "usage: semigrad train" in capsys.readouterr().out


def test_a_home_is_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli("train", "--resume", "--out", "~/none") == 2
    assert f"{tmp_path}/none holds no run" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["--help", "--version", "train --help"])
def test_a_reader_that_leaves_at_once_is_no_error(words):
    code = f"{sys.executable} -m semigrad {words} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "141")


def test_a_method_that_was_typed_in_has_options_without_texts(monkeypatch, capsys):
    names = {}
    exec("""
from dataclasses import dataclass
from semigrad.methods import Supervised
@dataclass(frozen=True)
class Typed(Supervised):
    size: int = 3
""", {**names, "__name__": "__main__"}, names)  # fmt: skip
    monkeypatch.setitem(METHODS, "typed", names["Typed"])
    assert cli("train", "--method", "typed", "--help") == 0
    assert "--size N" in capsys.readouterr().out


def test_help_says_that_the_data_decide_where_they_do():
    shown = command("train", "--help").stdout
    assert "Number of optimizer steps. (default: by the data)" in " ".join(shown.split())
