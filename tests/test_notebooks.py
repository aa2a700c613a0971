"""The notebooks in docs/ run from top to bottom, and are kept without what they gave.

Their cells run here, in one namespace each, because a kernel would have to load torch for every notebook anew; `make
docs` runs them in one."""

import re
import sys
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_some():
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_sound_and_kept_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells
    assert not any(cell.outputs or cell.execution_count for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ModuleType(f"notebook_{re.sub(r'[^a-z]', '_', path.stem)}")
    monkeypatch.setitem(sys.modules, names.__name__, names)
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{path.name}, cell {number}", "exec"), vars(names))
    plt.close("all")
