"""Every code block in the README and in docs/ does what it says.

    ```python     run, the blocks of a page one after the other in one namespace
    ```console    lines behind `$ ` are run; the others are what a command says, which is not compared
    ```text       for reading

Each page has a folder of its own, empty but for photos and a table where it speaks of some without writing them
(`WITH_DATA`), and training is cut short (`SHORT`). Somebody answers the sheet that `label-next` leaves, and two others
half of it each; services go on until the end of their page. A block below a comment `<!-- not run: REASON -->` is not
run: Python must still compile, the words behind `semigrad` must be words that it takes, and those behind `make`
targets. (What the README's two do is run elsewhere: `make test` is what runs this, and the demo is in
tests/cli/test_demo.py.) An indented block is for formulas: commands are fenced."""

import contextlib
import csv
import importlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import ModuleType

import pytest
from markdown_it import MarkdownIt
from PIL import Image
from sklearn.datasets import load_iris

from semigrad.cli import VERBS, train
from semigrad.cli.options import options_of, parse, values_of
from semigrad.cli.words import layer_of, take_train_apart
from semigrad.methods import METHODS
from semigrad.run import configure, layers_below
from semigrad.settings.fields import refuse
from tests.small_runs import cli, digits

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHORT = {
    "train": ("--steps", "20", "--threads", "1", "--no-report"),
    "fit": ("--steps", "10", "--jobs", "1", "--no-report"),
}
WITH_DATA = {"README.md", "backbones.md", "labeling.md", "serve.md"}
LONG = {"README.md", "backbones.md", "own-data.md", "processes.md", "scale.md", "serve.md"}
NOT_RUN = re.compile(r"<!-- not run: .+ -->")
LANGUAGES = {"python", "console", "text"}
COMMAND = re.compile(r"^(semigrad|torchrun|make|pip) ", re.MULTILINE)


def blocks(page):
    """(language, line, text, whether it is run) of every block; directives of Sphinx are none."""
    before = None
    for token in MarkdownIt().parse(page.read_text("utf-8")):
        if token.type == "fence" and not token.info.startswith("{"):
            run = before is None or before.type != "html_block" or not NOT_RUN.fullmatch(before.content.strip())
            yield token.info.strip(), token.map[0] + 1, token.content, run
        elif token.type == "code_block":
            assert not COMMAND.search(token.content), f"{page.name}:{token.map[0] + 1}"
        before = token


def commands(language, text):
    """The command lines of a block."""
    if language != "console":
        return []
    return [line.removeprefix("$ ") for line in text.replace("\\\n", "").splitlines() if line.startswith("$ ")]


class Shell(contextlib.ExitStack):
    """Where the commands of a page are run; a service that one of them starts goes on until the end."""

    def __init__(self):
        super().__init__()
        self.services = {}  # addresses as pages write them: as they are

    def run(self, line):
        for written, address in self.services.items():
            line = line.replace(written, address)
        words = shlex.split(line, comments=True)
        _, verb, *rest = words[words.index("semigrad") :] if "semigrad" in words else (None, None)
        words += SHORT.get(verb, ())
        if verb == "serve":
            port = rest.index("--port") if "--port" in rest else len(rest)
            written = f"http://127.0.0.1:{(*rest[port + 1 :], '8000')[0]}/"
            self.services[written] = self.enter_context(serving(rest[:port] + rest[port + 2 :]))
        elif words[0] == "semigrad":
            assert cli(*words[1:]) == 0, line
        else:
            words += ["--fail", "--silent"] if words[0] == "curl" else []
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            subprocess.run(words, check=True, timeout=120, env={**os.environ, "PATH": path})
        if verb == "label-next":
            take_every_proposal(Path(rest[0]) / "label-next.csv")


@contextlib.contextmanager
def serving(words):
    """A service that is well, on any port that is free: 8000 may be taken."""
    command = [sys.executable, "-m", "semigrad", "serve", *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        try:
            address = re.search(r"http://\S+/", service.stdout.readline())[0]
            with urllib.request.urlopen(f"{address}health", timeout=60) as answer:
                assert json.load(answer) == {"status": "ok"}
            yield address
        finally:
            service.send_signal(signal.SIGINT)
            service.communicate(timeout=60)
    assert service.returncode == 0


def take_every_proposal(sheet):
    with sheet.open(newline="") as file:
        rows = list(csv.DictReader(file))
    answered = [{**row, "answer": row["proposed"]} for row in rows]
    half = len(rows) // 2
    for path, some in ((sheet, answered), (Path("ann.csv"), answered[:half]), (Path("ben.csv"), answered[half:])):
        with path.open("w", newline="") as file:
            out = csv.DictWriter(file, rows[0])
            out.writeheader()
            out.writerows(some)


def lay_out_data():
    """Pictures of threes and eights, 4 with a label, 4 to test, 60 without and two new ones; and a table of flowers."""
    data = digits()
    rows = [row for row, label in enumerate(data.labels) if label in (3, 8)]
    places = {"new-photos/one.png": rows[68], "new-photos/two.png": rows[69]}
    places |= {f"photos/unlabeled/{row}.png": row for row in rows[8:68]}
    places |= {f"photos/labeled/{data.labels[row]}/{row}.png": row for row in rows[:4]}
    places |= {f"photos/test/{data.labels[row]}/{row}.png": row for row in rows[4:8]}
    for place, row in places.items():
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(data.train.values[row, 0].numpy()).save(place)
    load_iris(as_frame=True).frame.rename(columns={"target": "species"}).to_csv("table.csv", index=False)


def read_command(line):
    """Nothing is done; words that `semigrad` does not take are an error."""
    words = shlex.split(line, comments=True)
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text("utf-8"), line
    elif "semigrad" in words:
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


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.name in LONG), id=page.name) for page in PAGES]
)
def test_every_block_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name in WITH_DATA:
        lay_out_data()
    names = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, names.__name__, names)  # where dataclasses look for the types of fields
    with Shell() as shell:
        for language, line, text, run in blocks(page):
            assert language in LANGUAGES, f"{page.name}:{line}"
            if language == "python":
                code = compile("\n" * line + text, page, "exec")
                if run:
                    exec(code, vars(names))
            for command in commands(language, text):
                shell.run(command) if run else read_command(command)


def test_only_what_takes_long_or_needs_more_than_is_here_is_not_run():
    found = {page.name: sum(not run for *_, run in blocks(page)) for page in PAGES}
    assert {name: count for name, count in found.items() if count} == {
        "README.md": 1, "backbones.md": 1, "own-data.md": 2, "processes.md": 1, "quickstart.md": 1,
        "reproducing.md": 2, "scale.md": 3, "theory.md": 1,
    }  # fmt: skip


def test_a_command_with_a_word_that_is_not_known_would_be_found():
    for line in ("semigrad train digits@40 --stepz 5", "semigrad fit photos --bugdet 5m", "torchrun -m semigrad trian"):
        with pytest.raises((ValueError, KeyError)):
            read_command(line)
