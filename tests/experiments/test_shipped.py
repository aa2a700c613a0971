"""The records that come with the package, from a checkout and from what is built to be installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import semigrad
from semigrad.experiments.shipped import shipped_records
from tests.small_runs import cli

CHECKOUT = Path(semigrad.__file__).resolve().parents[2]
RECORDS = CHECKOUT / "docs" / "results" / "runs"

pytestmark = pytest.mark.skipif(not RECORDS.is_dir(), reason="the package runs from no checkout")


def test_the_records_that_come_with_a_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with shipped_records() as shipped:
        assert shipped.path == RECORDS
        assert shipped.name == str(RECORDS)
    monkeypatch.chdir(CHECKOUT)
    with shipped_records() as shipped:
        assert shipped is None  # they are here already


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The package as a wheel holds it."""
    place = tmp_path_factory.mktemp("built")
    words = ["setup.py", "-q", "build", "--build-base", place / "base", "--build-lib", place / "lib"]
    subprocess.run([sys.executable, *words], cwd=CHECKOUT, check=True, capture_output=True)
    return place / "lib"


def reproduce(package, folder, *words):
    code = "from semigrad.cli import main; raise SystemExit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, "reproduce", *words], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(package), "TMPDIR": str(folder)},
    )  # fmt: skip


def test_an_installed_package_has_them_in_one_small_file(built, tmp_path):
    packed = built / "semigrad" / "experiments" / "records.tar.xz"
    assert packed.stat().st_size < 2 * 2**20
    done = reproduce(built, tmp_path, "table4", "--scale", "laptop", "--recorded")
    assert done.returncode == 0, done.stderr
    assert f"Records that come with the package are read from {packed}." in done.stderr
    assert f"Records of the runs: {packed}\n" in done.stdout
    assert (tmp_path / "results" / "table4-laptop" / "report.html").is_file()
    assert [file.name for file in tmp_path.iterdir()] == ["results"]  # nothing that was unpacked is left


def test_without_them_it_is_said_where_they_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(semigrad, "__file__", str(tmp_path / "lib" / "semigrad" / "__init__.py"))
    assert cli("reproduce", "table4", "--scale", "laptop", "--recorded") == 2
    assert "Those that come with the source are in its docs/results/runs" in capsys.readouterr().err
