"""Answers back into tables, CSV and Parquet, with nothing lost."""

import csv
import json

import numpy as np
import pytest

from semigrad.data.table_files import read_csv
from semigrad.data.tables import READERS
from semigrad.errors import InputError
from semigrad.labeling import merge_tables
from semigrad.labeling.merging import merge
from tests.labeling.sheets import answered, everything, trained
from tests.small_runs import cli


def write_rows(path, rows, header, separator=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=separator).writerows([header, *rows])


def table_rows(count):
    draw = np.random.default_rng(0)
    label = [("yes", "no", "")[n % 3] for n in range(count)]
    return [[f"{draw.normal():.3f}", ("red; dark", 'a "blue"')[n % 2], label[n]] for n in range(count)]


def test_a_table_in_one_file(tmp_path):
    data = tmp_path / "table.csv"
    write_rows(data, table_rows(60), ["size", "color", "label"], ";")
    before = data.read_bytes()
    run = trained(f"csv:{data}", tmp_path / "run")
    assert cli("label-next", run, "--budget", "5", "--threads", "1", "--strategy", "margin") == 0
    rows = answered(run / "label-next.csv", lambda name: "yes")
    assert all(row["content"].startswith("size ") for row in rows)
    merged = merge(run, [run / "label-next.csv"])
    assert data.read_bytes() == before
    old, new = read_csv(data), read_csv(merged.new)
    assert (old.cells["size"], old.cells["color"]) == (new.cells["size"], new.cells["color"])
    asked = {row["example"] for row in rows}
    for row, (was, now) in enumerate(zip(old.cells["label"], new.cells["label"], strict=True)):
        assert now == ("yes" if old.place(row) in asked else was)
    write_rows(data, table_rows(61), ["size", "color", "label"], ";")
    with pytest.raises(InputError, match="is not what it was"):
        merge(run, [run / "label-next.csv"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_move_from_unlabeled_to_train(tmp_path, ending, capsys):
    data = tmp_path / "tables"
    data.mkdir()
    rows = table_rows(60)
    known = [row for row in rows if row[2]]
    write_rows(data / "train.csv", known, ["size", "color", "label"])
    write_rows(data / "unlabeled.csv", [row[1::-1] for row in rows if not row[2]], ["color", "size"])
    write_rows(data / "test.csv", known[:6], ["size", "color", "label"])
    if ending == "parquet":
        arrow = pytest.importorskip("pyarrow.csv")
        parquet = pytest.importorskip("pyarrow.parquet")
        for file in sorted(data.glob("*.csv")):
            parquet.write_table(arrow.read_csv(file), file.with_suffix(".parquet"))
            file.unlink()
    before = everything(data)
    run = trained(f"{ending}:{data}", tmp_path / "run")
    assert cli("label-next", run, "--budget", "4", "--threads", "1") == 0
    answered(run / "label-next.csv", lambda name: "no")
    capsys.readouterr()
    assert cli("add-labels", run, run / "label-next.csv", "--replace") == 0
    assert capsys.readouterr().out.endswith(f"To train with them: semigrad fit {data}, with another --out.\n")
    assert cli("label-next", run) == 2
    assert "Train on it again, in another place." in capsys.readouterr().err
    assert everything(data.with_name("tables.before-1")) == before
    new = {part: READERS[ending](data / f"{part}.{ending}") for part in ("train", "unlabeled", "test")}
    assert [len(new[part]) for part in ("train", "unlabeled", "test")] == [44, 16, 6]
    assert new["train"].cells["label"][-4:] == ["no"] * 4
    both = [*new["train"].cells["color"], *new["unlabeled"].cells["color"]]
    assert sorted(both) == sorted(row[1] for row in rows)
    trained(f"{ending}:{data}", tmp_path / "again")


def test_parquet_in_one_file_keeps_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = tmp_path / "table.parquet"
    labels = [None if n % 3 == 0 else n % 2 for n in range(30)]
    table = pyarrow.table({"size": pyarrow.array(np.arange(30) / 7, "float32"), "label": pyarrow.array(labels, "int8")})
    parquet.write_table(table, data)
    run = trained(f"parquet:{data}", tmp_path / "run")
    assert cli("label-next", run, "--budget", "3", "--threads", "1") == 0
    rows = answered(run / "label-next.csv", lambda name: "1")
    new = parquet.read_table(merge(run, [run / "label-next.csv"]).new)
    assert new.schema == table.schema
    assert new.column("size") == table.column("size")
    asked = {int(row["example"].split()[1]) for row in rows}
    assert new.column("label").to_pylist() == [1 if n in asked else label for n, label in enumerate(labels)]


@pytest.mark.parametrize(
    ("written", "classes"), [(("0.0", "1.0"), {"0.0", "1.0"}), (("007", "7"), {"007", "7"}), (("0", "1"), {"0", "1"})]
)
def test_answers_are_written_as_the_column_spells_its_classes(tmp_path, written, classes):
    rows = [f"{number},{written[number % 2] if number < 12 else ''}" for number in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["size,label", *rows]))
    run = trained(f"csv:{tmp_path / 'a.csv'}", tmp_path / "run")
    sheet = tmp_path / "sheet.csv"
    assert cli("label-next", run, "--budget", "6", "--out", sheet, "--threads", "1", "--no-page") == 0
    answered(sheet, lambda _: json.loads((run / "config.json").read_text())["classes"][0])
    assert cli("add-labels", run, sheet, "--out", tmp_path / "new.csv") == 0
    lines = [line.split(",")[1] for line in (tmp_path / "new.csv").read_text().splitlines()[1:]]
    assert {*lines} - {""} == classes
    assert len([line for line in lines if line]) == 18


def test_truths_in_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    labels = [number % 2 == 0 if number < 12 else None for number in range(30)]
    parquet.write_table(pyarrow.table({"size": list(range(30)), "label": labels}), tmp_path / "a.parquet")
    run = trained(f"parquet:{tmp_path / 'a.parquet'}", tmp_path / "run")
    sheet = tmp_path / "sheet.csv"
    assert cli("label-next", run, "--budget", "6", "--out", sheet, "--threads", "1", "--no-page") == 0
    answered(sheet, lambda _: json.loads((run / "config.json").read_text())["classes"][1])
    assert cli("add-labels", run, sheet, "--out", tmp_path / "new.parquet") == 0
    filled = parquet.read_table(tmp_path / "new.parquet").column("label")
    assert filled.type == pyarrow.bool_()
    assert filled.null_count == 12
    assert filled.to_pylist().count(True) == 12


@pytest.mark.parametrize(
    ("labels", "kind", "answer"),
    [([0, 1, None], "int64", "1.5"), ([0, 1, None], "int64", "inf"), ([0, 1, None], "int64", "one"),
     ([0, 1, None], "int8", "300"), ([False, True, None], "bool", "2")],
)  # fmt: skip
def test_an_answer_that_a_column_cannot_hold_is_refused_and_not_rounded(tmp_path, labels, kind, answer):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(
        pyarrow.table({"size": [1, 2, 3], "label": pyarrow.array(labels, kind)}), tmp_path / "a.parquet"
    )
    with pytest.raises(InputError, match="label"):
        merge_tables.merge_parquet(tmp_path / "a.parquet", {"row 2 (from 0)": answer}, tmp_path / "new.parquet", None)
    assert not (tmp_path / "new.parquet").exists()


@pytest.mark.parametrize(
    ("train", "unlabeled", "answer", "expected"),
    [
        ({"size": [1.0, 2.0], "label": ["a", "b"]}, {"size": [3.0, 4.0], "label": [None, None]}, "b", [3.0, "b"]),
        ({"size": [1, 2], "label": [0, 1]}, {"size": [3.5, 4.0]}, "1", [3.5, 1]),
        ({"size": [1, 2], "label": ["a", "b"], "boxes": [[1], [2]]}, {"size": [3, 4]}, "b", [3, "b", None]),
        ({"size": [1, 2], "label": ["a", "b"], "split": ["train", "test"]}, {"size": [3, 4]}, "b", [3, "b", "train"]),
        ({"size": [1, 2], "label": [0, 1]}, {"size": [3, 4], "label": ["?", "?"]}, "1", [3, 1]),
    ],
    ids=["labels of no type", "numbers of another type", "a column that is not read", "a column split", "other labels"],
)
def test_rows_of_parquet_move_between_files_that_differ(tmp_path, train, unlabeled, answer, expected):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    data, new = tmp_path / "tables", tmp_path / "new"
    data.mkdir()
    for part, columns in (("train", train), ("unlabeled", unlabeled)):
        parquet.write_table(pyarrow.table(columns), data / f"{part}.parquet")
    example = f"row 0 (from 0) of {data / 'unlabeled.parquet'}"
    merge_tables.merge_parquet(data, {example: answer}, new, None)
    rows = parquet.read_table(new / "train.parquet").to_pylist()
    assert rows[:2] == [dict(zip(train, row, strict=True)) for row in zip(*train.values(), strict=True)]
    assert rows[2:] == [dict(zip(train, expected, strict=True))]
    assert parquet.read_table(new / "unlabeled.parquet").column("size").to_pylist() == unlabeled["size"][1:]


def test_what_is_refused_leaves_nothing_behind(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    data = tmp_path / "tables"
    data.mkdir()
    parquet.write_table(pyarrow.table({"size": [1, 2], "label": [0, 1]}), data / "train.parquet")
    parquet.write_table(pyarrow.table({"size": [3, 4]}), data / "unlabeled.parquet")
    example = f"row 0 (from 0) of {data / 'unlabeled.parquet'}"
    with pytest.raises(InputError, match="whole numbers"):
        merge_tables.merge_parquet(data, {example: "one"}, tmp_path / "new", None)
    assert [path.name for path in tmp_path.iterdir()] == ["tables"]


def test_an_answer_keeps_every_digit(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"size": [1, 2, 3], "label": [5, 6, None]}), tmp_path / "a.parquet")
    new, large = tmp_path / "new.parquet", 2**53 + 1
    merge_tables.merge_parquet(tmp_path / "a.parquet", {"row 2 (from 0)": str(large)}, new, None)
    assert parquet.read_table(new).column("label").to_pylist() == [5, 6, large]
