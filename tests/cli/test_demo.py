"""The demo: real runs in processes of their own, a table, a picture; and what happens when it is stopped."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from PIL import Image
from scipy import stats

from semigrad.cli.demo import ROWS
from semigrad.core.statistics import summarize
from semigrad.errors import InputError
from semigrad.report.comparison import comparison_picture, comparison_table
from semigrad.training.parallel import train_all
from tests.small_runs import cli, command, go, small, stop_after, weights


def test_a_table_of_one_seed_claims_no_deviation():
    table = comparison_table("t", {"a": [5.0], "b": [3.0]})
    assert [list(column.cells) for column in table.columns][3] == ["", "-2.00"]


def test_a_table_pairs_the_seeds():
    table = comparison_table("t", {"a": [5.0, 7.0, 9.0], "b": [4.0, 5.0, 6.0]})
    # differences -1, -2, -3: half the interval is t(0.975; 2) · 1/√3
    half = stats.t.ppf(0.975, 2) / math.sqrt(3)
    cells = [list(column.cells) for column in table.columns]
    assert cells[1:] == [["7.00 ± 2.00", "5.00 ± 1.00"], ["3", "3"], ["", f"-2.00 ± {half:.2f}"]]


@pytest.mark.parametrize("rows", [{"a": [5.0, 6.0], "b": [3.0, 4.0]}, {"a": [0.0], "b": [0.0], "c": [0.0]}])
def test_the_picture(rows, tmp_path):
    with Image.open(comparison_picture("title", rows, tmp_path / "a.png")) as image:
        assert len(image.convert("RGB").getcolors(2**24)) > 20


@pytest.mark.slow
def test_the_demo_and_the_demo_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    arguments = ("demo", "--steps", "3", "--seeds", "2", "--out", tmp_path / "demo")
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    for row in ROWS:
        folders = [tmp_path / "demo" / f"{row}-seed{seed}" for seed in (0, 1)]
        found = [json.loads((folder / "result.json").read_text())["error"] for folder in folders]
        assert re.search(rf"{row}\s*│\s*{re.escape(str(summarize(found)))}", done.stdout)
    assert "Picture: " in done.stdout
    assert (tmp_path / "demo" / "demo.png").exists()
    assert done.stderr.count("% test error") == 2 * len(ROWS)
    started = time.monotonic()
    assert cli(*arguments) == 0  # finished runs are used again
    assert time.monotonic() - started < 3
    assert capsys.readouterr().out == done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "jobs"), [(signal.SIGINT, 130, 2), (signal.SIGTERM, 143, 1)])
def test_a_stopped_demo_saves_and_leaves_no_process_behind(number, code, jobs, tmp_path):
    options = ("--steps", "20000", "--seeds", "1", "--jobs", str(jobs), "--out", str(tmp_path))
    words = [sys.executable, "-m", "semigrad", "demo", *options]
    demo = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True)
    metrics = [tmp_path / f"{row}-seed0" / "metrics.jsonl" for row in ("labeled-only", "meta-gradient")[:jobs]]
    deadline = time.monotonic() + 90
    while not all(path.exists() and path.stat().st_size for path in metrics):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    # Ctrl-C goes to every process of a terminal; SIGTERM to the one that was named.
    os.killpg(demo.pid, number) if number == signal.SIGINT else demo.send_signal(number)
    _, err = demo.communicate(timeout=60)
    assert demo.returncode == code
    assert err.splitlines()[1:] == ["semigrad: Stopped; everything is saved. The same command goes on."]
    assert all(list((path.parent / "checkpoints").glob("*.pt")) for path in metrics)
    deadline = time.monotonic() + 20
    while subprocess.run(["pgrep", "-g", str(demo.pid)], capture_output=True, check=False).returncode == 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_runs_in_processes_go_on_with_what_was_begun_and_are_the_same_to_the_bit(tmp_path):
    run = small(steps=8)
    go(run, tmp_path / "here")
    stop_after(run, tmp_path / "there", 3)
    heard = []
    results = train_all({tmp_path / "there": run}, 1, lambda path, result: heard.append((path, result["error"])))
    assert heard == [(tmp_path / "there", results[tmp_path / "there"]["error"])]
    assert weights(tmp_path / "here") == weights(tmp_path / "there")
    with pytest.raises(InputError, match="finished after 8 steps"):
        train_all({tmp_path / "there": small(steps=9)}, 1, lambda path, result: None)


def test_the_demo_with_nothing_to_do(capsys):
    assert cli("demo", "--jobs", "0") == 2
    assert "at least 1" in capsys.readouterr().err
