"""The command line: what it prints where, which settings win, and that help costs nothing."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

import semigrad
from semigrad.data import SOURCES
from semigrad.methods import METHODS, MODIFIERS
from semigrad.models import FAMILIES, MODELS
from semigrad.settings.recipes import BY_KIND, RECIPES
from tests.small_runs import FLAGS, cli, command, metrics, weights

TRAIN = ("train", "digits@40", *FLAGS, "--steps", "3")


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["train", "-h"], ["evaluate", "--help"]])
def test_help_does_without_torch_and_so_is_quick(arguments, tmp_path):
    code = f"""
import sys
from semigrad.cli import main
try:
    code = main({arguments})
except SystemExit as left:
    code = left.code
print("torch" in sys.modules, code, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    torch_loaded, exit_code = done.stderr.split()
    assert "usage: semigrad" in done.stdout
    assert (torch_loaded, exit_code) == ("False", "0")


def test_a_folder_is_all_that_resume_needs(tmp_path, capsys):
    flags = [*FLAGS, "--steps", "6", "--threshold", "0.3"]
    assert cli("train", "digits@40", *flags, "--out", tmp_path / "a") == 0
    (tmp_path / "a" / "result.json").unlink()
    assert cli("train", "--resume", "--out", tmp_path / "a", "--threads", "1") == 0
    assert "Going on at step 6" in capsys.readouterr().err
    assert cli("train", "--resume", "--out", tmp_path / "a", "--threshold", "0.4") == 2
    assert "threshold: 0.3 there, 0.4 here" in capsys.readouterr().err


def test_import_semigrad_does_without_torch_and_gives_every_name():
    assert python("import sys, semigrad; print(sorted({'torch', 'numpy', 'rich'} & set(sys.modules)))") == "[]\n"
    assert all(getattr(semigrad, name) is not None for name in semigrad.__all__)
    assert set(semigrad.__all__) <= set(dir(semigrad))
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        semigrad.trian  # noqa: B018


def test_module_and_version():
    assert command("--version").stdout.strip() == semigrad.__version__
    nothing = command()
    assert nothing.returncode == 2
    assert "usage: semigrad VERB" in nothing.stdout


def test_help_lists_the_fields_of_the_method_and_no_others(capsys):
    assert cli("train", "--method", "supervised", "--help") == 0
    supervised = capsys.readouterr().out
    assert not re.search(r"--(no-)?(beta|gamma|mixup|operator|ramp)\b", supervised)
    assert "--steps" in supervised
    assert cli("train", "--method", "meta-gradient", "--help") == 0
    meta = capsys.readouterr().out
    assert all(f"--{field}" in meta for field in ("beta", "gamma", "mixup", "operator", "model.drop"))
    assert cli("train", "digits@40", "--model", "wrn-28-2", "--help") == 0
    assert "(default: 800)" in capsys.readouterr().out  # the steps for digits
    assert cli("train", "csv:none.csv", "--method", "vat", "--help") == 0
    table = capsys.readouterr().out
    assert "Defaults are those for csv:none.csv" in table
    assert re.search(r"--epsilon X [^()]*\(default:\s*0\.5\)", table)


def test_results_on_stdout_and_the_rest_on_stderr(tmp_path, capsys):
    assert cli(*TRAIN, "--out", tmp_path / "run", "--json") == 0
    shown = capsys.readouterr()
    *words, last = shown.out.splitlines()
    line = json.loads(last)
    assert list(line) == ["error", "error_top5", "method", "data", "seed", "steps", "seconds", "run"]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (line["error"], line["error_top5"], line["seconds"]) == (
        result["error"], result["error_top5"], result["seconds"],
    )  # fmt: skip
    assert (line["method"], line["data"], line["seed"], line["steps"]) == ("fixmatch", "digits@40", 0, 3)
    assert line["run"] == str(tmp_path / "run")
    assert words[0].startswith(f"test error {result['error']:.2f} %, top-5 {result['error_top5']:.2f} %")
    assert words[1:] == [f"Run: {tmp_path / 'run'}", f"Learning curve: {tmp_path / 'run' / 'curve.png'}"]
    assert "40 labeled and 1,257 unlabeled" in shown.err
    assert "step 3/3" in shown.err
    assert "test error" not in shown.err


def test_without_json_there_is_none(tmp_path, capsys):
    assert cli(*TRAIN, "--out", tmp_path / "run") == 0
    assert "{" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("methods", [*METHODS, *(f"HOST+{name}" for name in MODIFIERS)]),
        ("models", [*MODELS, *(f"{family}:NAME" for family in FAMILIES)]),
        ("recipes", RECIPES),
        ("data", [name + ":PATH" * source.needs_path for name, source in SOURCES.items()]),
    ],
)
def test_lists(what, names, capsys):
    assert cli("list", what) == 0
    shown = capsys.readouterr().out
    assert {line.split()[0] for line in shown.splitlines()[1:] if line[1:2].strip()} == set(names)


def test_data_behind_options_trains(tmp_path):
    assert cli("train", *FLAGS, "--steps", "2", "--include-labeled", "--out", tmp_path / "digits@9", "digits@40") == 0
    assert json.loads((tmp_path / "digits@9" / "run.json").read_text())["run"]["data"] == "digits@40"


def recorded(folder):
    return json.loads((folder / "run.json").read_text())["run"]


def test_defaults_below_recipe_below_file_below_flags(tmp_path):
    (tmp_path / "mine.toml").write_text("lr = 0.05\nmomentum = 0.8\nbatch = 16\nsteps = 2\n[method]\nbeta = 0.25\n")
    common = ("train", "digits@40", "--threads", "1", "--model", "small-conv", "--model.widths", "4")
    layered = ("--recipe", "algorithm-2", "--config", tmp_path / "mine.toml", "--momentum", "0.7", "--gamma", "0.5")
    assert cli(*common, *layered, "--out", tmp_path / "a") == 0
    run = recorded(tmp_path / "a")
    assert BY_KIND["images"]["warmup"] == 0.075
    assert run["warmup"] == 0.0  # the recipe over the defaults of the data
    assert (run["lr"], run["batch"], run["steps"]) == (0.05, 16, 2)  # the file over both
    assert run["momentum"] == 0.7  # the flag over the file
    assert run["method"]["beta"] == 0.25
    assert run["method"]["gamma"] == 0.5
    assert (run["method"]["operator"], run["method"]["project"]) == ("finite-difference", "none")
    assert run["weight_decay"] == 1e-4  # what nobody named
    assert run["model"]["widths"] == [4]


def test_a_method_flag_over_a_file_drops_the_fields_of_the_other_method(tmp_path):
    (tmp_path / "mine.toml").write_text('steps = 1\nbatch = 16\nmethod = {name = "meta-gradient", beta = 0.25}\n')
    options = ("--config", tmp_path / "mine.toml", "--method", "supervised", "--threads", "1")
    assert cli("train", "digits@40", *options, "--out", tmp_path / "a") == 0
    assert recorded(tmp_path / "a")["method"] == {"name": "supervised", "strong": False, "smoothing": 0.0}


def test_a_run_json_reproduces_its_run_to_the_bit(tmp_path):
    chosen = (
        "--method",
        "meta-match",
        "--beta",
        "0.3",
        "--seed",
        "5",
        "--average",
        "0.5",
        "--optimizer",
        "adam",
        "--lr",
        "0.01",
    )
    assert cli(*TRAIN, *chosen, "--out", tmp_path / "first") == 0
    assert cli("train", "--config", tmp_path / "first" / "run.json", "--out", tmp_path / "second") == 0
    assert recorded(tmp_path / "first") == recorded(tmp_path / "second")
    assert weights(tmp_path / "first") == weights(tmp_path / "second")
    assert metrics(tmp_path / "first") == metrics(tmp_path / "second")


def test_each_different_run_has_a_folder_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli(*TRAIN) == 0
    assert cli(*TRAIN, "--threshold", "0.5") == 0
    assert cli(*TRAIN) == 2  # the same again
    assert "holds a finished run" in capsys.readouterr().err
    names = sorted(os.listdir("runs"))
    assert len(names) == 2
    assert all(name.startswith("digits@40_fixmatch_seed0_") for name in names)


def test_a_reader_that_leaves_early_is_no_error(tmp_path):
    code = f"{sys.executable} -m semigrad list recipes | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "141")  # 0 where the pipe took all before its reader left


def test_a_terminal_that_cannot_show_everything_shows_something_else(tmp_path):
    done = command("list", "recipes", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def in_terminal(arguments, columns=80, interrupt_at=None):
    """What a terminal of this width shows, and the exit code; `interrupt_at`: a text at which to press Ctrl-C."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ["COLUMNS"] = str(columns)
        os.environ["TERM"] = "xterm"
        os.execv(sys.executable, [sys.executable, "-m", "semigrad", *map(str, arguments)])
    shown, pressed, deadline = b"", False, time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            shown += os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if interrupt_at and not pressed and interrupt_at in shown.decode(errors="replace"):
            os.write(terminal, b"\x03")
            pressed = True
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()), code


@pytest.mark.slow
def test_a_terminal_shows_a_bar_that_fits(tmp_path):
    shown, code = in_terminal([*TRAIN[:-1], "80", "--out", tmp_path / "run"], columns=80)
    assert code == 0
    states = [line for line in re.split(r"[\r\n]+", shown) if "━" in line]
    assert states
    assert all(len(line) <= 80 for line in states)
    assert "80/80" in states[-1]
    assert re.search(r"\d/s .*loss \d", states[-1])
    assert shown.index("80/80") < shown.index("test error")


@pytest.mark.slow
def test_errors_and_interruptions_are_readable_under_the_bar(tmp_path):
    hot = [*TRAIN, "--steps", "300", "--method", "supervised", "--warmup", "0", "--lr", "1e15"]
    shown, code = in_terminal([*hot, "--out", tmp_path / "hot"], columns=100)
    assert code == 2
    assert re.search(r"[\r\n]semigrad: Step \d+ is not finite", shown)
    shown, code = in_terminal([*TRAIN[:-1], "5000", "--out", tmp_path / "run"], interrupt_at="pseudo-labels")
    assert code == 128 + signal.SIGINT
    assert re.search(r"[\r\n]semigrad: Stopped at step \d+; everything is saved", shown)
    assert "Traceback" not in shown
