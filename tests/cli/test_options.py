"""Options and their words, read and written; files in UTF-8 whatever the language of the machine is."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semigrad.cli import train
from semigrad.cli.options import POSITIONAL, options_of, parse, read_word, write_word
from semigrad.cli.words import take_train_apart
from semigrad.errors import InputError
from semigrad.methods import METHODS, MODIFIERS
from semigrad.models import MODELS
from semigrad.settings import Execution, Settings
from semigrad.settings.fields import Count, NotNegative
from tests.small_runs import FLAGS, cli, command

PLAIN = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
"""A machine that knows no letters but ASCII."""


COMMON = train.COMMON


@pytest.mark.parametrize(
    ("given", "data", "behind"),
    [
        (["digits@40", "--steps", "3"], "digits@40", {"steps": "3"}),
        (["--steps", "3", "digits@40"], "digits@40", {"steps": "3"}),
        (["--steps=3", "digits@40", "--json"], "digits@40", {"steps": "3", "json": True}),
        (["--out", "digits@40", "svhn@1000"], "svhn@1000", {"out": "digits@40"}),
        (["--json", "digits@40"], "digits@40", {"json": True}),
        (["--no-mixup", "--include-labeled", "digits"], "digits", {"mixup": False, "include-labeled": True}),
        (["--milestones", "0.5,0.75", "digits@40"], "digits@40", {"milestones": "0.5,0.75"}),
        (["--model.widths", "8,8", "npz:a.npz"], "npz:a.npz", {"model.widths": "8,8"}),
        (["--model.no-batch-norm", "npz:a.npz"], "npz:a.npz", {"model.batch-norm": False}),
        (["--model.norm", "weight", "cifar10@4000"], "cifar10@4000", {"model.norm": "weight"}),
        (["--beta", "lr", "digits@40"], "digits@40", {"beta": "lr"}),
        (["--seed", "-1", "digits@40"], "digits@40", {"seed": "-1"}),
        (["--include_labeled", "digits@40"], "digits@40", {"include-labeled": True}),
        (["--steps", "3", "--steps", "4"], None, {"steps": "4"}),
        (["--classes", "cat,dog", "folder:my/photos@10%", "--steps", "3"], "folder:my/photos@10%",
         {"classes": "cat,dog", "steps": "3"}),
        (["--out", "runs/cat", "dog@40"], "dog@40", {"out": "runs/cat"}),
    ],
)  # fmt: skip
def test_data_may_stand_anywhere(given, data, behind):
    line = take_train_apart(given, COMMON)
    assert line.alone == ([] if data is None else [data])
    assert line.behind == behind
    assert not line.problems
    assert not line.asks_help


def test_classes_without_data_end_in_one_message(capsys):
    assert cli("train", "--classes", "0,1,cat,dog") == 2
    assert capsys.readouterr().err.startswith("semigrad: Say which data to train on, such as digits@40.")


@pytest.mark.parametrize(
    ("word", "hint", "value"),
    [
        ("3", int, 3), ("-3", int, -3), ("3", float, 3.0), ("1e-4", float, 1e-4), ("x", int, "x"), ("x", str, "x"),
        ("none", Count | None, None), ("None", Count | None, None), ("7", Count | None, 7), ("none", str, "none"),
        ("lr", NotNegative | Literal["lr"], "lr"), ("0.5", NotNegative | Literal["lr"], 0.5),
        ("", tuple[float, ...], ()), ("0.5", tuple[float, ...], (0.5,)), ("0.5,9", tuple[float, ...], (0.5, 9.0)),
        ("0,1", tuple[str, ...], ("0", "1")), (r"a\,b,c", tuple[str, ...], ("a,b", "c")), ("a/b", Path, Path("a/b")),
    ],
)  # fmt: skip
def test_a_word_is_read_by_the_type_of_its_field(word, hint, value):
    assert read_word(word, hint) == value
    assert type(read_word(word, hint)) is type(value)


@given(st.lists(st.text(), min_size=2))
def test_lists_of_any_names_are_read_as_they_were_written(names):
    assert read_word(write_word(tuple(names)), tuple[str, ...]) == tuple(names)


@dataclass(frozen=True)
class Small:
    """Options of a verb."""

    what: Annotated[Literal["one", "two"], POSITIONAL]
    """Which one."""
    others: Annotated[tuple[Path, ...], POSITIONAL] = ()
    """Any number of them."""
    count: Count = 1
    """How many."""
    loud: bool = False
    """Whether to shout."""


def test_a_verb_reads_its_options_wherever_they_stand():
    found = parse(Small, ["--count", "3", "two", "a", "--loud", "b"], "semigrad small")
    assert found == Small("two", (Path("a"), Path("b")), 3, True)
    assert parse(Small, ["one"], "semigrad small") == Small("one")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "WHAT is missing: Which one."),
        (["tow"], "WHAT takes 'one' or 'two'; given: 'tow'. Did you mean 'two'?"),
        (["one", "--count", "0"], "count must be at least 1; given: 0."),
        (["one", "--cuont", "2"], "There is no option '--cuont'. Did you mean '--count'? See semigrad small --help."),
        (["one", "--loud=yes"], "--loud takes no value: write --loud or --no-loud."),
        (["one", "--count"], "--count needs a word behind it."),
        (["one", "--count", "--loud"], "--count needs a word behind it."),
    ],
)
def test_a_verb_says_what_is_wrong(words, problem):
    with pytest.raises(InputError) as caught:
        parse(Small, words, "semigrad small")
    assert caught.value.problems == [problem]


def test_help_says_all_of_it(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit) as left:
        parse(Small, ["--help"], "semigrad small")
    assert left.value.code == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == "usage: semigrad small WHAT OTHERS ... [options]"
    assert "Options of a verb." in shown
    for text in ("WHAT", "Which one.", "--count N", "How many. (default: 1)", "--loud, --no-loud", "(default: off)"):
        assert text in shown
    assert all(len(line) <= 100 for line in shown.splitlines())


def test_every_field_says_what_it_means():
    parts = [*METHODS.values(), *MODIFIERS.values(), *MODELS.values(), Settings, Execution]
    parts += [train.Selection, train.Output]
    for part in parts:
        assert all(option.text for option in options_of(part)), part


@pytest.mark.slow
def test_a_run_writes_its_page_where_text_is_ascii_by_default(tmp_path):
    (tmp_path / "mine.toml").write_text("# größer, 更大\nsteps = 5\n", encoding="utf-8")
    words = [word for word in FLAGS if word != "--no-report"]
    options = ("--config", tmp_path / "mine.toml", "--out", tmp_path / "run")
    done = command("train", "digits@40", *words, *options, env={**os.environ, **PLAIN})
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert page.rstrip().endswith("</html>")
