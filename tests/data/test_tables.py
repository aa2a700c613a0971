"""Tables of one's own: real ones as CSV and Parquet, what becomes of their columns, a sentence for what is wrong."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from semigrad.data import Dataset, open_dataset
from semigrad.data.columns import Columns
from semigrad.data.tables import new_rows
from semigrad.errors import InputError
from semigrad.folder.saved import load_form
from semigrad.run import configure
from tests.small_runs import cli, go


def write(path: Path, names: list[str], rows: Any, separator: str = ",", encoding: str = "utf-8") -> Path:
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=separator).writerows([names, *rows])
    return path


def wine(path: Path, **options: Any) -> Path:
    """178 wines, 13 numbers each, three classes by name."""
    data = load_wine()
    names = data.target_names
    rows = [[*map(repr, row.tolist()), names[label]] for row, label in zip(data.data, data.target, strict=True)]
    return write(path, [*data.feature_names, "class"], rows, **options)


def opened(path: Path, **options: Any) -> Dataset:
    return open_dataset(path.suffix[1:] or "csv", path, **options)


def text(tmp_path: Path, content: str, **options: Any) -> Dataset:
    (tmp_path / "mine.csv").write_text(content)
    return opened(tmp_path / "mine.csv", **options)


def everything(data: Dataset) -> np.ndarray:
    return data.train.raw(np.arange(len(data.train))).numpy()


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_a_real_table(tmp_path: Path, separator: str, encoding: str) -> None:
    data = opened(wine(tmp_path / "wine.csv", separator=separator, encoding=encoding))
    np.testing.assert_array_equal(everything(data), load_wine().data.astype(np.float32))
    np.testing.assert_array_equal(data.labels, load_wine().target)
    assert data.classes == ("class_0", "class_1", "class_2")
    assert data.name == "csv:wine"
    assert data.notes == ()


def test_a_named_column_of_numbers_as_labels(tmp_path: Path) -> None:
    cancer = load_breast_cancer()
    rows = [[*row, label] for row, label in zip(cancer.data.tolist(), cancer.target.tolist(), strict=True)]
    path = write(tmp_path / "cancer.csv", [*cancer.feature_names, "malignant"], rows)
    data = opened(path, label="malignant")
    np.testing.assert_array_equal(everything(data), cancer.data.astype(np.float32))
    np.testing.assert_array_equal(data.labels, cancer.target)
    assert data.classes == ("0", "1")
    with pytest.raises(InputError, match=r"no column 'malignat'\. Did you mean 'malignant'"):
        opened(path, label="malignat")


MIXED = """age,color,sold,label
1,red,0.5,cat
,blue,1.5,dog
3,,2.5,
NA,red,3.5,-1
5,green,4.5,cat
"""


def test_numbers_categories_and_missing_ones(tmp_path: Path) -> None:
    data = text(tmp_path, MIXED)
    assert data.columns is not None
    names = ["age", "age is missing", "color=blue", "color=green", "color=red", "sold"]
    assert data.columns.feature_names == names
    expected = [
        [1, 0, 0, 0, 1, 0.5],
        [3, 1, 1, 0, 0, 1.5],  # the mean of 1, 3 and 5
        [3, 0, 0, 0, 0, 2.5],
        [3, 1, 0, 0, 1, 3.5],
        [5, 0, 0, 1, 0, 4.5],
    ]
    np.testing.assert_array_equal(everything(data), expected)
    assert data.labels.tolist() == [0, 1, -1, -1, 0]
    assert data.classes == ("cat", "dog")
    assert "missing numbers are filled with the mean of their column" in data.notes[0]
    assert "age (2)" in data.notes[0]


def test_a_column_says_which_rows_are_the_test_part(tmp_path: Path) -> None:
    rows = "x,kind,split,y\n1,a,train,0\n3,b,train,1\n5,c,test,1\n,a,Test,0\n"
    data = text(tmp_path, rows)
    assert data.test is not None
    np.testing.assert_array_equal(everything(data), [[1, 1, 0], [3, 0, 1]])
    np.testing.assert_array_equal(data.test.raw(np.arange(2)), [[5, 0, 0], [2, 1, 0]])  # c: unseen; the training mean
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [1, 0]
    assert data.notes == ("test rows with a category that no training row has get zeros there: kind (1)",)


def test_a_folder_of_three_files(tmp_path: Path) -> None:
    names = ["x", "kind", "label"]
    write(tmp_path / "train.csv", names, [[1, "a", 10], [2, "b", 9]])
    write(tmp_path / "unlabeled.csv", ["kind", "x"], [["c", 3], ["a", ""]])
    write(tmp_path / "test.csv", names, [[5, "c", 9]])
    data = open_dataset("csv", tmp_path)
    assert data.classes == ("9", "10")  # as numbers
    assert data.labels.tolist() == [1, 0, -1, -1]
    np.testing.assert_array_equal(
        everything(data), [[1, 0, 1, 0, 0], [2, 0, 0, 1, 0], [3, 0, 0, 0, 1], [2, 1, 1, 0, 0]]
    )
    assert data.test is not None
    np.testing.assert_array_equal(data.test.raw(np.array([0])), [[5, 0, 0, 0, 1]])


def test_the_file_that_pandas_writes(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0, 1, None]})
    frame.to_csv(tmp_path / "frame.csv")  # with row numbers in front, and 0.0 and 1.0 as labels
    data = opened(tmp_path / "frame.csv")
    np.testing.assert_array_equal(everything(data), [[1], [2], [3]])
    assert (data.labels.tolist(), data.classes) == ([0, 1, -1], ("0", "1"))
    assert data.notes == ("the first column has no name, as row numbers have, and is left out",)


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["1", "2", "1"], ("1", "2"), [0, 1, 0]),
        (["1.0", "2.0", ""], ("1", "2"), [0, 1, -1]),  # as pandas writes whole numbers beside missing ones
        (["007", "7", "12"], ("007", "7", "12"), [0, 1, 2]),
        (["007", "012", "007"], ("007", "012"), [0, 1, 0]),
        (["1.0", "1", "2"], ("1", "1.0", "2"), [1, 0, 2]),
        (["10", "9", "-1"], ("9", "10"), [1, 0, -1]),
        (["1e3", "5", "1000"], ("1000", "1e3", "5"), [1, 2, 0]),
        (["+1", "1", "2"], ("+1", "1", "2"), [0, 1, 2]),
    ],
)
def test_labels_stay_as_they_stand_unless_they_are_plain_numbers(
    tmp_path: Path, labels: list[str], classes: tuple[str, ...], numbers: list[int]
) -> None:
    data = opened(write(tmp_path / "mine.csv", ["x", "y"], [[n, label] for n, label in enumerate(labels)]))
    assert data.classes == classes
    assert data.labels.tolist() == numbers
    alike = len({float(name) for name in classes}) < len(classes)
    assert any("are different classes: write them alike" in note for note in data.notes) == alike


def test_a_test_part_may_write_the_same_numbers_without_a_point(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", ["x", "y"], [[1, "0.0"], [2, "1.0"], [3, ""]])
    write(tmp_path / "test.csv", ["x", "y"], [[1, "1"], [2, "0"]])
    data = open_dataset("csv", tmp_path)
    assert data.classes == ("0", "1")
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [1, 0]


def test_parquet_has_types(tmp_path: Path) -> None:
    pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {
            "x": [1.5, None, 2.5, 8.0],
            "n": pandas.array([1, 2, None, 3], dtype="Int64"),
            "yes": [True, False, True, True],
            "code": ["1", "2", "1", None],  # a text is a category, whatever it looks like
            "size": pandas.Categorical(["4", "4", "6", "4"]),
            "when": pandas.to_datetime(["2020-01-01"] * 4),
            "label": ["b", "a", None, "b"],
        }
    )
    frame.to_parquet(tmp_path / "mine.parquet")
    data = opened(tmp_path / "mine.parquet")
    assert data.columns is not None
    named = ["x", "x is missing", "n", "n is missing", "yes", "code=1", "code=2", "size=4", "size=6"]
    assert data.columns.feature_names == named
    expected = [
        [1.5, 0, 1, 0, 1, 1, 0, 1, 0],
        [4, 1, 2, 0, 0, 0, 1, 1, 0],
        [2.5, 0, 2, 1, 1, 1, 0, 0, 1],
        [8, 0, 3, 0, 1, 0, 0, 1, 0],
    ]
    np.testing.assert_array_equal(everything(data), expected)
    assert data.labels.tolist() == [1, 0, -1, 1]
    assert any("'when' is left out" in note for note in data.notes)


def test_a_new_row_of_which_nothing_is_known_keeps_its_number(tmp_path: Path) -> None:
    """Else the answers below it would be those of other rows."""
    data = text(tmp_path, MIXED)
    assert data.columns is not None
    names = ",".join(column.name for column in data.columns.columns)
    empty = "," * names.count(",")
    one = ",".join("3" if column.kind == "number" else column.categories[0] for column in data.columns.columns)
    (tmp_path / "new.csv").write_text(f"{names}\n{one}\n\n{empty}\n{one}\n")
    found = new_rows(data.columns, tmp_path / "new.csv").features
    assert len(found) == 3
    np.testing.assert_array_equal(found[0], found[2])
    assert (found[0] != found[1]).any()


def test_new_rows_become_the_same_features(tmp_path: Path) -> None:
    data = text(tmp_path, MIXED)
    assert data.columns is not None
    kept = Columns.from_dict(json.loads(json.dumps(data.columns.to_dict())))
    assert kept == data.columns
    np.testing.assert_array_equal(new_rows(kept, tmp_path / "mine.csv").features, everything(data))
    np.testing.assert_array_equal(new_rows(kept, str(tmp_path / "mine.csv")).features, everything(data))
    os.link(tmp_path / "mine.csv", tmp_path / "mine.TSV")
    np.testing.assert_array_equal(new_rows(kept, tmp_path / "mine.TSV").features, everything(data))
    rows = [{"color": "red", "age": 7, "sold": "2.5"}, {"color": "pink", "age": None, "sold": 1}]
    np.testing.assert_array_equal(new_rows(kept, rows).features, [[7, 0, 0, 0, 1, 2.5], [3, 1, 0, 0, 0, 1]])
    np.testing.assert_array_equal(new_rows(kept, rows[0]).features, [[7, 0, 0, 0, 1, 2.5]])
    assert new_rows(kept, rows).notes == ("rows with a category that no training row has get zeros there: color (1)",)
    assert new_rows(kept, rows[0]).notes == new_rows(kept, [{"color": None, "age": 1, "sold": 1}]).notes == ()
    for wrong, message in {
        "lacks the column 'age'; it has 'color', 'sold'": [{"color": "red", "sold": 1}],
        r"Row 1 \(from 0\) has other keys": [rows[0], {"age": 1}],
        r"'old' in the column 'age', row 0 \(from 0\), is no number": [{"color": "red", "age": "old", "sold": 1}],
        "are infinite or above": [{"color": "red", "age": 1e39, "sold": 1}],
        "New rows are a file": [],
        "must end in .csv, .tsv or .parquet": tmp_path / "mine.txt",
        "does not exist": tmp_path / "none.csv",
    }.items():
        with pytest.raises(InputError, match=wrong):
            new_rows(kept, message)


def test_a_damaged_description() -> None:
    for damaged in (
        None,
        {},
        {"label": "y", "columns": [{"name": "x", "kind": "strange"}]},
        {"columns": 3, "label": 1},
    ):
        with pytest.raises(InputError, match="description of the columns is damaged"):
            Columns.from_dict(damaged)


def many(header: str, cells: list[str]) -> str:
    """A table with one column of cells, and labels a and b in turn."""
    return f"{header};label\n" + "".join(f"{cell};{'ab'[row % 2]}\n" for row, cell in enumerate(cells))


FLOATS = [f"{number}.5" for number in range(60)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has nothing in it"),
        ("x,y\n", "has no rows below its line of names"),
        ("x,y\n1,0\n2,1,3\n4\n", r"2 of 3 rows do not have 2 cells .* first line 3 with 3"),
        ("x,x,y\n1,2,0\n", "more than one column called 'x'"),
        ("x,,y\n1,2,0\n", "column 2 has no name"),
        ("x\n1\n2\n", "no column of labels.* Columns: x. Separate columns by commas, semicolons or tabs"),
        ("1.5,2.5,0\n3,4,1\n", "begins with numbers"),
        ("x,z\n1,0\n2,1\n", "no column of labels: expected one of label, class, target, y. Say which with --label"),
        ("x,y,class\n1,0,a\n", r"more than one column that may hold labels \(y, class\)"),
        ("x,y\n1,0\n2,0\n", "labels in the column 'y' are of one class, '0'. At least two"),
        ("x,y\n1,1\n2,-1\n", "of one class, '1' .-1 means unlabeled: give that class another name"),
        ("x,y\n1,\n2,\n", "labels in the column 'y' are empty"),
        ("x,y\n1,0.5\n2,1.5\n", "numbers such as 0.5; classes are words or whole numbers"),
        (many("x", FLOATS).replace(";a", ";name1").replace("label", "z"), "no column of labels"),
        ("y;x\n" + "".join(f"{n};1\n" for n in range(30)), "30 different labels in 30 labeled rows: a quantity"),
        ("x,y\n1,0\n1e400,1\n", r"1 numbers in the column 'x' are infinite or above 3.4e\+38.*'1e400' in line 3"),
        ("x,y\n-inf,0\n1,1\n", "first '-inf' in line 2"),
        ("x,y\n1e39,0\n1,1\n", "first '1e39' in line 2"),
        (many("x", [*FLOATS[:-1], "oops"]), "1 cells that are no numbers among 60 .*'oops' in line 61. Put them"),
        (many("x", [cell.replace(".", ",") for cell in FLOATS]), "such as '0,5' in line 2. Write numbers with a point"),
        (many("x", ["0,5", "1,5", "2,5"]), "3 cells .* such as '0,5' in line 2. Write numbers with a point"),
        (many("x", ["1", "2,5", ""]), "1 cells .* such as '2,5' in line 3. Write numbers with a point, and no comma"),
        (many("x", [f"{n}.234,5" for n in range(60)]), "such as '0.234,5' in line 2. Write numbers with a point"),
        ("x,y\n1,none\n2,dent\n", r"of one class, 'dent' \(none means unlabeled: give that class another name\)"),
        ("x,split,y\n1,train,a\n2,train,b\n3,test,None\n", r"first line 4 \(None means unlabeled: give that class"),
        ("x,split,y\n1,train,0\n2,val,1\n", "'split' says 'val' in line 3; allowed are train and test"),
        ("x,split,y\n1,test,0\n2,test,1\n", "says test in every row"),
        ("x,split,y\n1,train,0\n2,train,1\n3,test,\n", "1 test rows have no label in 'y', first line 4"),
        ("x,split,y\n1,train,0\n2,train,1\nold,test,1\n", "'old' in the column 'x', line 4, is no number"),
        ('x,y\n1,"0\n2,1\n', "not a readable CSV file"),
        ("x,y\n" + "1" * 20_000 + ",0\n2,1\n", "a cell in line 2 has 20,000 letters, more than 10,000"),
        ("x,y\n" + "1" * 200_000 + ",0\n2,1\n", "not a readable CSV file .*field larger"),
        (many("x", [f"word {n}" for n in range(60)]), "has no column of numbers or categories besides"),
        ("a,y\n,0\n,1\n", "has no column of numbers or categories besides"),
    ],
)  # fmt: skip
def test_a_sentence_for_everything_wrong(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        text(tmp_path, content)
    assert all(problem.startswith(str(tmp_path)) for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x,y\ngröße,0\n".encode("latin-1"), r"no text in UTF-8 \(line 2\). Save it as UTF-8"),
        ("x,y\n1,0\n".encode("utf-16"), "no text in UTF-8"),
        ("x,y\n1,0\n".encode("utf-16-le"), "zero bytes, as UTF-16 has"),
    ],
)
def test_other_encodings_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "mine.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        opened(tmp_path / "mine.csv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"x,y\n1,0\n2,1\n", mtime=0), r"is compressed \(gzip\), and no text\. Unpack it first\.$"),
        (b"PK\x03\x04\x14\x00\x06\x00", r"is a zip archive or a spreadsheet, and no text\. .* save it as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", r"is a spreadsheet \(Excel\), and no text\. Let it save the table as CSV"),
        (b"PAR1\x15\x04", r"is a Parquet file, and no text\. .* use parquet:PATH"),
    ],
)
def test_other_formats_under_the_name_of_a_table_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "mine.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        opened(tmp_path / "mine.csv")


def test_columns_that_pandas_counted_have_their_numbers_as_names(tmp_path: Path) -> None:
    frame = pytest.importorskip("pandas").DataFrame(np.arange(12).reshape(4, 3) % 5)
    frame.to_csv(tmp_path / "mine.csv", index=False)
    for data in (open_dataset("csv", tmp_path / "mine.csv", label="2"), Dataset.from_frame(frame, label=2)):
        assert data.train.raw(np.arange(4)).tolist() == frame[[0, 1]].to_numpy().tolist()
        assert [data.classes[number] for number in data.labels] == [str(label) for label in frame[2]]
    with pytest.raises(InputError, match=r"no column of labels.* Columns: 0, 1, 2"):
        opened(tmp_path / "mine.csv")


def test_folders_whose_files_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"folder without train\.csv"):
        open_dataset("csv", tmp_path)
    write(tmp_path / "train.csv", ["x", "z", "y"], [[1, 2, 0], [2, 3, 1]])
    write(tmp_path / "test.csv", ["x", "z"], [[1, 2]])
    with pytest.raises(InputError, match=r"test.csv has no column 'y'.* call it unlabeled instead of test"):
        open_dataset("csv", tmp_path)
    write(tmp_path / "test.csv", ["x", "w", "y"], [[1, 2, 0]])
    with pytest.raises(
        InputError, match=r"test.csv does not have the columns of .*train.csv: it lacks z and has also w"
    ):
        open_dataset("csv", tmp_path)
    (tmp_path / "test.csv").unlink()
    write(tmp_path / "unlabeled.csv", ["x"], [[1]])
    with pytest.raises(InputError, match=r"unlabeled.csv does not have the columns"):
        open_dataset("csv", tmp_path)
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        open_dataset("parquet", tmp_path / "no.parquet")


def test_texts_that_are_no_categories_are_left_out(tmp_path: Path) -> None:
    names = [f"name {number}" for number in range(30)]
    data = text(tmp_path, "name,x,y\n" + "".join(f"{name},{row},{row % 2}\n" for row, name in enumerate(names)))
    np.testing.assert_array_equal(everything(data), np.arange(30)[:, None])
    assert data.notes == (
        "the column 'name' is left out: 30 different texts in 30 rows are too many for categories (at most half as "
        "many as rows, and 256)",
    )


def test_numbers_that_lose_digits_are_named(tmp_path: Path) -> None:
    data = text(tmp_path, "time,x,y\n" + "".join(f"{1.7e9 + row},{row},{row % 2}\n" for row in range(10)))
    assert "single precision is too coarse for 1 of 2 features (time): feature time has" in data.notes[0]


def test_what_is_trained_keeps_its_columns(tmp_path: Path) -> None:
    path = wine(tmp_path / "wine.csv")
    run = configure(f"csv:{path}@30", method="supervised", steps=60, validation=60)
    assert run.model_name == "mlp"
    result = go(run, tmp_path / "run")
    assert result["validation"]["error"] < 15  # 60 of 100 would be wrong by chance
    columns = load_form(tmp_path / "run").columns
    assert columns is not None
    np.testing.assert_array_equal(new_rows(columns, path).features, load_wine().data.astype(np.float32))


def test_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [[index, index % 3, ["a", "b"][index % 2], "test" if index > 40 else "train"] for index in range(60)]
    path = write(tmp_path / "mine.csv", ["x", "z", "kind", "split"], rows)
    words = ["train", f"csv:{path}@10", "--steps", 5, "--batch", 4, "--threads", 1]
    assert cli(*words, "--label", "kind", "--out", tmp_path / "run") == 0
    out = capsys.readouterr()
    assert "test error" in out.out
    assert cli("evaluate", tmp_path / "run") == 0
    assert cli(*words, "--out", tmp_path / "other") == 2
    assert "Say which with --label COLUMN" in capsys.readouterr().err
    assert cli("train", "digits@40", "--label", "kind") == 2
    assert "'digits' has no label; only csv, parquet and huggingface take it" in capsys.readouterr().err
    assert cli("train", str(path)) == 2
    assert f"For your own write csv:{path}" in capsys.readouterr().err


def test_missing_labels_among_texts_are_no_class(tmp_path: Path) -> None:
    for word in ("NA", "?", "None", "null", "n/a", "-1.0"):
        rows = [[index, ["a", "b", word][index % 3]] for index in range(30)]
        found = open_dataset("csv", write(tmp_path / "m.csv", ["x", "label"], rows))
        assert found.classes == ("a", "b")
        assert (found.labels == -1).sum() == 10
        told = [f"in the column 'label' {word!r} (10 rows) means unlabeled: write another word where it is a class"]
        assert list(found.notes) == ([] if word == "-1.0" else told)


def test_words_with_a_comma_are_categories(tmp_path: Path) -> None:
    data = text(tmp_path, many("x", ["red, blue", "1,5", "red", "1,5"]))
    assert data.columns is not None
    assert data.columns.feature_names == ["x=1,5", "x=red", "x=red, blue"]


def test_the_split_may_have_a_capital(tmp_path: Path) -> None:
    rows = [[index, "ab"[index % 2], "Test" if index > 20 else "Train"] for index in range(30)]
    found = open_dataset("csv", write(tmp_path / "m.csv", ["x", "label", "Split"], rows))
    assert (len(found.train), found.train.shape) == (21, (1,))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_no_table(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="no regular file"):
        open_dataset("csv", tmp_path / "pipe.csv")
