"""Every code block in the README and in docs/ does what it says.

    ```python     run, the blocks of a page one after the other in one namespace
    ```console    lines behind `$ ` are run; the others are what a command says, which is not compared
    ```text       for reading

Each page has an empty folder of its own, and training is cut short (`SHORT`). A block below a comment
`<!-- not run: REASON -->`, and one that is indented, is not run: Python must still compile, and the words behind
`semigrad` must be words that it takes."""

import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt

from semigrad.cli import VERBS, train
from semigrad.cli.options import options_of, parse, values_of
from semigrad.cli.words import layer_of, take_train_apart
from semigrad.methods import METHODS
from semigrad.run import configure, layers_below
from semigrad.settings.fields import refuse
from tests.small_runs import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHORT = {
    "train": ("--steps", "20", "--threads", "1", "--no-report"),
    "fit": ("--steps", "10", "--jobs", "1", "--no-report"),
}
NOT_RUN = re.compile(r"<!-- not run: .+ -->")
LANGUAGES = {"python", "console", "text"}


def blocks(page):
    """(language, line, text, whether it is run) of every block; directives of Sphinx are none."""
    before = None
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type == "fence" and not token.info.startswith("{"):
            run = before is None or before.type != "html_block" or not NOT_RUN.fullmatch(before.content.strip())
            yield token.info.strip(), token.map[0] + 1, token.content, run
        elif token.type == "code_block":
            yield "indented", token.map[0], token.content, False
        before = token


def commands(language, text):
    """The command lines of a block."""
    if language == "console":
        return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
    return [line for line in text.splitlines() if language == "indented" and line.startswith("semigrad ")]


def run_command(line):
    words = shlex.split(line, comments=True)
    if words[0] == "semigrad":
        assert cli(*words[1:], *SHORT.get(words[1], ())) == 0, line
    else:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        subprocess.run(line, shell=True, check=True, timeout=120, env={**os.environ, "PATH": path})


def read_command(line):
    """Nothing is done; words that `semigrad` does not take are an error."""
    words = shlex.split(line, comments=True)
    if "semigrad" in words:
        verb, *rest = words[words.index("semigrad") + 1 :]
        read_train(rest) if verb == "train" else parse(importlib.import_module(VERBS[verb][0]).Options, rest, verb)


def read_train(words):
    line = take_train_apart(words, train.COMMON)
    problems = list(line.problems)
    values_of([*options_of(train.Execution), *options_of(train.Output)], line.behind, problems)
    chosen = train.Selection(**values_of(options_of(train.Selection), line.behind, problems))
    data = line.alone[0] if line.alone else "digits@40"
    layer = layer_of(line, layers_below(data, chosen.recipe, {}), train.COMMON, problems)
    refuse(problems)
    configure(data, recipe=chosen.recipe, **layer)


@pytest.fixture(autouse=True)
def _methods_stay():
    """Those that a page adds are there for that page alone."""
    before = dict(METHODS)
    yield
    METHODS.clear()
    METHODS.update(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, names.__name__, names)  # where dataclasses look for the types of fields
    for language, line, text, run in blocks(page):
        assert language in {*LANGUAGES, "indented"}, f"{page.name}:{line}"
        if language == "python":
            code = compile("\n" * line + text, page, "exec")
            if run:
                exec(code, vars(names))
        for command in commands(language, text):
            run_command(command) if run else read_command(command)


def test_a_command_with_a_word_that_is_not_known_would_be_found():
    for line in ("semigrad train digits@40 --stepz 5", "semigrad fit photos --bugdet 5m", "torchrun -m semigrad trian"):
        with pytest.raises((ValueError, KeyError)):
            read_command(line)
