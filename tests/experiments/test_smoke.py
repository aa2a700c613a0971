"""Every experiment's whole path through the command line at the scale `smoke`: runs, records, tables, page, browser."""

import csv
import json
from pathlib import Path

import pytest

from semigrad.experiments import EXPERIMENTS
from tests.report.browser import BROWSER, browse
from tests.report.pages import drawings, read_page
from tests.small_runs import cli

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_from_the_command_to_the_page(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli("reproduce", name, "--scale", "smoke", "--json") == 0
    experiment, cells = EXPERIMENTS[name], EXPERIMENTS[name].cells("smoke")
    shown = json.loads(capsys.readouterr().out.splitlines()[-1])
    runs = {cell.run.key for cell in cells}
    assert {file.name.partition("-")[0] for file in Path("docs/results/runs").iterdir()} == runs

    out = Path("results") / f"{name}-smoke"
    with (out / "table.csv").open() as file:
        places = {(line["row"], line["column"]) for line in csv.DictReader(file)}
    assert places == {(cell.row, cell.column) for cell in cells}
    for cell in shown["cells"]:
        figure = experiment.measure(cell["column"])
        assert all(0 <= run[figure] <= 100 for run in cell["runs"].values()), cell
    for ending in ("md", "tex"):
        text = (out / f"table.{ending}").read_text()
        assert all(row in text for row in experiment.rows)

    page = read_page(out / "report.html")
    for words in (experiment.title, experiment.claim, *experiment.rows, *experiment.columns("smoke")):
        assert words in page.text
    assert drawings(out / "report.html")
    if BROWSER is not None:
        _, console = browse((out / "report.html").absolute(), tmp_path)
        assert console == []
