"""`semigrad reproduce`: what is printed and written, and what is refused before anything is trained."""

import json
import re
from pathlib import Path

import pytest

from semigrad.cli.reproduce import cost
from semigrad.experiments import EXPERIMENTS
from tests.small_runs import cli

OUTPUT = {"outcome.json", "report.html", "table.csv", "table.md", "table.tex"}
TWO_RUNS = ("reproduce", "figure-labels", "--scale", "smoke", "--seeds", "1", "--only", "digits@10", "--json")


@pytest.mark.parametrize(
    ("seconds", "jobs", "words"),
    [
        ([85, 336], 2, "About 5.6 min for 2 runs, 2 at a time."),  # not half of both
        ([60, 60, 60], 2, "About 2.0 min for 3 runs, 2 at a time."),
        ([60, 60, 60], 1, "About 3.0 min for 3 runs, one at a time."),
        ([], 2, "Every run is on record: nothing to train."),
    ],
)
def test_the_time_is_that_of_the_process_that_ends_last(seconds, jobs, words):
    assert cost([{"seconds": each} for each in seconds], jobs) == words


def test_command_line_computes_once_and_writes_everything(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli(*TWO_RUNS) == 0
    shown = capsys.readouterr()
    assert re.search(r"^About [\d.]+ (s|min) for 2 runs, 2 at a time\.$", shown.err, re.MULTILINE)
    assert shown.err.count("To train:") == 1
    assert shown.err.count("test error") == 2
    assert "missing" in shown.out
    line = json.loads(shown.out.splitlines()[-1])
    assert (line["scale"], len(line["cells"])) == ("smoke", 2)
    out = Path("results/figure-labels-smoke")
    assert {file.name for file in out.iterdir()} == OUTPUT
    assert "\nRecords of the runs: docs/results/runs" in shown.out
    kept = {file.name: file.stat().st_mtime_ns for file in Path("docs/results/runs").iterdir()}
    text = (out / "table.md").read_text()
    assert cli(*TWO_RUNS, "--runs", "elsewhere", "--pictures", "charts") == 0
    shown = capsys.readouterr()
    assert "Every run is on record" in shown.err
    assert f"Pictures: {len(list(Path('charts').iterdir()))} in charts" in shown.out
    assert not Path("elsewhere").exists()
    assert (out / "table.md").read_text() == text
    assert {file.name: file.stat().st_mtime_ns for file in Path("docs/results/runs").iterdir()} == kept


def test_what_is_on_record_is_shown_without_training_or_data(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path / "nothing"))
    assert cli("reproduce", "table4", "--scale", "overnight", "--recorded", "--json") == 0
    shown = capsys.readouterr()
    cells = json.loads(shown.out.splitlines()[-1])["cells"]
    labeled = next(cell for cell in cells if (cell["row"], cell["column"]) == ("Labeled-Only", "SVHN@1000"))
    assert sorted(labeled["runs"]) == ["0", "1", "2"]
    assert "To train" not in shown.err
    assert {file.name for file in Path("results/table4-overnight").iterdir()} == OUTPUT
    assert not Path("runs").exists()
    places = [
        Path(line.partition(": ")[2]) for line in shown.out.splitlines() if line.startswith("Records of the runs:")
    ]
    assert places == [Path(json.loads(shown.out.splitlines()[-1])["records"])]
    assert len(list(places[0].glob("*.json"))) > 10  # where they were read, and not where new ones would be


def test_a_run_that_fails_is_named_at_the_end_with_code_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in EXPERIMENTS["figure-labels"].cells("smoke", 1) if cell.column == "digits@10"]
    damaged = Path("runs/reproduce", cells[0].run.key, "run.json")
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{}")
    assert cli(*TWO_RUNS) == 1
    shown = capsys.readouterr()
    failed = f"{cells[0].row}, digits@10, seed 0"
    assert shown.err.endswith(f"\n1 run could not be trained and is missing in the tables: {failed}.\n")
    line = json.loads(shown.out.splitlines()[-1])
    (failure,) = line["failures"]
    assert (failure["places"], failure["seed"]) == ([[cells[0].row, "digits@10"]], 0)
    assert "run.json" in failure["reason"]
    assert [cell["row"] for cell in line["cells"]] == [cells[1].row]
    assert {file.name for file in Path(line["out"]).iterdir()} == OUTPUT


def test_dry_run_says_what_would_be_done_and_does_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli("reproduce", "table1", "--scale", "paper", "--dry-run", "--json") == 0
    shown = capsys.readouterr().out
    line = json.loads(shown.splitlines()[-1])
    assert {"MT+SNTG", "Ours"} <= {row["row"] for row in line["runs"]}
    assert line["cost"] in shown
    assert shown.splitlines()[1].split()[:4] == ["row", "column", "data", "seed"]
    assert any("cifar10@4000" in text.split()[:6] for text in shown.splitlines()[2:])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("table1", "--recorded", "--dry-run"), "--recorded shows all"),
        (("table1", "--recorded", "--only", "Ours"), "--recorded shows all"),
        (("table1", "--recorded", "--scale", "paper"), "Nothing of table1 at scale paper is on record"),
        (("table1", "--recorded", "--records", "nowhere"), "is on record in nowhere"),
        (("table11",), "Did you mean 'table1'?"),
        (("table4", "--only", "Labeled-Onlyy"), "Did you mean 'Labeled-Only'?"),
        (("table4", "--jobs", "0"), "jobs must be at least 1"),
        (("table4", "--seeds", "0"), "at least 1 and at most 100"),
        (("table4", "--scale", "huge"), "huge"),
        (("table4", "--out", "file"), "Cannot write file: Not a directory."),
        (("table4", "--out", "file/below"), "Cannot write file/below: Not a directory."),
        (("table4", "--pictures", "file"), "Cannot write file: Not a directory."),
        (("table4", "--records", "file"), "file is no folder."),
        (("table4", "--records", "file", "--dry-run"), "file is no folder."),
        (("figure-labels", "--scale", "smoke", "--runs", "file"), "Cannot write file: Not a directory."),
    ],
)
def test_bad_input_ends_with_code_2_before_training(tmp_path, monkeypatch, capsys, words, expected):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept")
    assert cli("reproduce", *words) == 2
    shown = capsys.readouterr()
    assert expected in shown.err + shown.out
    assert "Traceback" not in shown.err
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
