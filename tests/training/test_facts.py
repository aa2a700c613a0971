"""What a record says of the code that made it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import semigrad
from semigrad.training.facts import source

SAY = "from semigrad.training.facts import source; print(source())"


def _said_by(copy: Path) -> str:
    shown = subprocess.run(
        [sys.executable, "-c", SAY],
        env={**os.environ, "PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=True,
    )
    return shown.stdout.strip()


def test_the_source_has_another_name_when_a_line_of_training_changes_and_only_then(tmp_path: Path) -> None:
    package = Path(semigrad.__file__).parent
    shutil.copytree(package, tmp_path / "semigrad", ignore=shutil.ignore_patterns("__pycache__"))
    assert _said_by(tmp_path) == source()
    with (tmp_path / "semigrad/cli/train.py").open("a") as shell:
        shell.write("# a word\n")
    assert _said_by(tmp_path) == source()
    with (tmp_path / "semigrad/methods/fixmatch.py").open("a") as method:
        method.write("# a word\n")
    assert _said_by(tmp_path) != source()
