"""Parquet files: whole numbers as they stand, and files that stand for more than they hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semigrad.data import Dataset, open_dataset
from semigrad.errors import InputError
from tests.small_runs import cli

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

LARGE = [2**53, 2**53 + 1, 5, 6]


def written(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def classes_of(path: Path, **options: Any) -> tuple[str, ...]:
    return open_dataset("parquet", path, **options).classes


@pytest.mark.parametrize("kind", ["int64", "uint64", pyarrow.decimal128(20)])
@pytest.mark.parametrize("missing", [[], [None]], ids=["all", "some"])
def test_whole_numbers_that_float64_rounds_are_classes_of_their_own(tmp_path: Path, kind: Any, missing: list) -> None:
    labels = 5 * (LARGE + missing)
    columns = {"size": list(range(len(labels))), "label": pyarrow.array(labels, kind)}
    data = open_dataset("parquet", written(tmp_path / "a.parquet", columns))
    assert data.classes == tuple(map(str, sorted(LARGE)))
    assert data.labels[:4].tolist() == [2, 3, 0, 1]
    assert set(data.labels[4:5].tolist()) <= {-1, 2}
    assert not any("different classes" in note for note in data.notes)


def test_the_same_in_csv_in_frames_and_beside_a_test_part(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    names = tuple(map(str, sorted(LARGE)))
    rows = "".join(f"{row},{label}\n" for row, label in enumerate(5 * LARGE))
    (tmp_path / "a.csv").write_text("size,label\n" + rows)
    assert open_dataset("csv", tmp_path / "a.csv").classes == names
    (tmp_path / "b.csv").write_text("size,label\n" + rows.replace(f"{2**53}\n", "7\n"))
    assert str(2**53 + 1) in open_dataset("csv", tmp_path / "b.csv").classes
    for kind in ("int64", "Int64", object):
        frame = pandas.DataFrame({"size": range(20), "label": pandas.Series(5 * LARGE, dtype=kind)})
        assert Dataset.from_frame(frame).classes == names
    columns = {"size": list(range(20)), "label": 5 * LARGE, "split": 16 * ["train"] + 4 * ["test"]}
    data = open_dataset("parquet", written(tmp_path / "c.parquet", columns))
    assert (data.classes, data.test_labels.tolist()) == (names, [2, 3, 0, 1])


def test_texts_are_the_same_however_they_are_kept(tmp_path: Path) -> None:
    words = ["red ", "blue", None, "red"]
    columns = {
        "plain": words, "large": pyarrow.array(words, "large_string"), "view": pyarrow.array(words, "string_view"),
        "category": pyarrow.array(words).dictionary_encode(), "label": ["a", "b", "a", None],
    }  # fmt: skip
    for options in ({}, {"use_dictionary": False}, {"row_group_size": 1}):
        data = open_dataset("parquet", written(tmp_path / "a.parquet", columns, **options))
        expected = np.tile([[0, 1], [1, 0], [0, 0], [0, 1]], 4)  # blue, red
        np.testing.assert_array_equal(data.train.raw(np.arange(4)).numpy(), expected)
        assert (data.classes, data.labels.tolist()) == (("a", "b"), [0, 1, 0, -1])


# --- what a file says is larger than it is ---


def swollen(path: Path, category: bool) -> Path:
    """Thousands of categories that are one text of a megabyte, or hundreds of texts, in a file of a few kB."""
    text = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 6000, "int32"), pyarrow.array(["x" * 10**6]))
    labels = text if category else pyarrow.array(["x" * 10**6] * 300)
    written(path, {"size": list(range(len(labels))), "label": labels}, compression="zstd")
    assert path.stat().st_size < 100_000
    return path


PEAK = """
import sys
from semigrad.cli import main
code = main(["doctor", sys.argv[1]])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)
"""
"""The child says itself how much it took at most: what its parent is told counts pages of the parent too."""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what a process took at most")
@pytest.mark.parametrize("category", [True, False], ids=["category", "text"])
def test_a_text_for_thousands_of_rows_is_not_written_out(tmp_path: Path, category: bool) -> None:
    path = swollen(tmp_path / "a.parquet", category)
    ended = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "The column 'label' is left out: a text in it has 1,000,000 bytes, more than 10,000." in ended.stderr
    assert "Traceback" not in ended.stderr
    assert int(ended.stdout) < 700_000  # kB, most of it torch


def test_long_texts_beside_the_labels_are_left_out(tmp_path: Path) -> None:
    essays = ["y" * 20_000 if row == 7 else "y" for row in range(60)]
    columns = {"size": list(range(60)), "essay": essays, "label": ["a", "b"] * 30}
    data = open_dataset("parquet", written(tmp_path / "a.parquet", columns))
    assert data.notes == ("the column 'essay' is left out: a text in it has 20,000 bytes, more than 10,000",)
    assert data.train.shape == (1,)


def test_texts_of_more_than_a_gigabyte_are_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semigrad.data.parquet_files.MOST_BYTES", 10**5)
    columns = {"text": [f"{row}" + "x" * 100 for row in range(2000)], "label": ["a", "b"] * 1000}
    path = written(tmp_path / "a.parquet", columns, compression="zstd", use_dictionary=False)
    with pytest.raises(
        InputError, match=r"has texts of 0\.0 GB, more than .* Leave out columns of long texts, or rows"
    ):
        open_dataset("parquet", path)


def test_texts_that_are_no_text(tmp_path: Path) -> None:
    broken = pyarrow.array([b"\xff\xfe", b"b"]).view("string")
    path = written(tmp_path / "a.parquet", {"color": broken, "label": ["a", "b"]})
    with pytest.raises(InputError, match=r"the column 'color' cannot be read \(.*\)\. Leave it out"):
        open_dataset("parquet", path)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("verb", ["fit", "doctor", "train"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "a.parquet")
    path = tmp_path / "a.parquet"
    assert cli(verb, f"parquet:{path}" if verb == "train" else path) == 2
    assert "it is no regular file" in capsys.readouterr().err


@pytest.mark.timeout(60)
def test_a_huge_csv_file_is_refused_before_its_lines_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open(tmp_path / "a.csv", "wb") as file:
        file.truncate(2 * 10**12)  # takes no room
    assert cli("fit", tmp_path / "a.csv") == 2
    assert "has 2000.0 GB, more than 1 GB as text. Save it as Parquet" in capsys.readouterr().err


def test_no_labels_in_a_parquet_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", {"size": [1, 2, 3]})
    with pytest.raises(InputError, match=r"has no column of labels.*Columns: size\.$"):
        open_dataset("parquet", path)
    (tmp_path / "a.csv").write_text("size\n1\n2\n")
    with pytest.raises(InputError, match=r"Columns: size\. Separate columns by commas, semicolons or tabs\.$"):
        open_dataset("csv", tmp_path / "a.csv")
    path = written(tmp_path / "a.parquet", {"size": [1, 2, 3], "label": [["a"], ["b"], []]})
    with pytest.raises(InputError, match=r"Columns: size\. The column 'label' is left out: list<.*> is neither"):
        open_dataset("parquet", path)
