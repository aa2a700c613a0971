"""From a run to a sheet, and from its answers back into labels of every kind, with nothing lost."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from semigrad.data.table_files import read_csv
from semigrad.data.tables import READERS
from semigrad.errors import InputError
from semigrad.labeling.exchange import take_place
from semigrad.labeling.merging import merge
from semigrad.run import configure
from tests.small_runs import cli, digits, go

DIGITS = digits()
KNOWN = 25  # the first ones, of every class
IMAGES, LABELS = DIGITS.train.values.numpy(), DIGITS.labels


def trained(spec, folder, **settings):
    """A run that knows nothing much; its folder."""
    go(configure(spec, method="supervised", steps=2, batch=8, **settings), folder)
    return folder


def answered(sheet, answer):
    """The sheet with `answer(example)` in it."""
    rows = list(csv.DictReader(sheet.read_text("utf-8").splitlines()))
    for row in rows:
        row["answer"] = answer(row["example"])
    with sheet.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def labels_in(file):
    return dict(list(csv.reader(file.read_text("utf-8").splitlines()))[1:])


def everything(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def picture(path, number):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(IMAGES[number, 0]).save(path)


@pytest.fixture(scope="module")
def beside(tmp_path_factory):
    """Pictures beside a table of labels, the first ones labeled; and a run on them."""
    root = tmp_path_factory.mktemp("beside")
    data = root / "photos"
    for number in range(60):
        picture(data / f"{number}.png", number)
    named = [f"n{LABELS[number]}" if number < KNOWN else "" for number in range(50)]  # ten have no line
    rows = [[f"{number}.png", label] for number, label in enumerate(named)]
    with (data / "labels.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["file", "label"], *rows])
    return data, trained(f"folder:{data}", root / "run")


def test_a_table_of_labels_gets_the_answers_and_stays_itself(beside, tmp_path, capsys):
    data, run = beside
    before = everything(data)
    sheet = tmp_path / "sheet.csv"
    assert cli("label-next", run, "--budget", "30", "--out", sheet, "--threads", "1", "--json") == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert len(said["examples"]) == 30
    names = [row["example"] for row in answered(sheet, lambda name: f"n{LABELS[int(name[:-4])]}")]
    assert all(int(name[:-4]) >= KNOWN for name in names)
    assert cli("add-labels", run, sheet, "--out", tmp_path / "new.csv") == 0
    assert everything(data) == before
    old, new = (labels_in(file) for file in (data / "labels.csv", tmp_path / "new.csv"))
    assert {*old} <= {*new}
    for name, label in new.items():
        assert label == (f"n{LABELS[int(name[:-4])]}" if name in names else old[name])
    assert cli("add-labels", run, sheet, "--out", tmp_path / "new.csv") == 2  # never over something
    assert cli("label-next", run, "--out", sheet) == 2


def test_answers_that_cannot_be_meant_are_refused(beside, tmp_path):
    data, run = beside
    before = everything(data)
    for lines, words in (
        ("example,answer\n40.png,n77\n", "no class of the run"),
        ("example,answer\nnobody.png,n1\n", "does not have"),
        (f"example,answer\n0.png,n{(LABELS[0] + 1) % 10}\n", "contradict"),
        ("example,answer\n40.png,n1\n40.png,n2\n", "two answers"),
        ("example,answer\n40.png,\n", "no answers yet"),
        ("file,label\n40.png,n1\n", "lacks the column"),
    ):
        (tmp_path / "sheet.csv").write_text(lines)
        with pytest.raises(InputError, match=words):
            merge(run, [tmp_path / "sheet.csv"], tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "sheet.csv").write_text(f"example,answer\n0.png,n{LABELS[0]}\n40.png,n77\n")
    merged = merge(run, [tmp_path / "sheet.csv"], tmp_path / "new", new_classes=True)
    assert (merged.added, merged.known) == (1, 1)
    assert everything(data) == before


def test_class_folders_become_a_new_folder_that_can_take_the_old_ones_place(tmp_path):
    data = tmp_path / "photos"
    for number in range(40):
        kind = f"labeled/n{LABELS[number]}" if number < KNOWN else "unlabeled/deep"
        picture(data / kind / f"{number}.png", number)
    picture(data / "labeled" / f"n{LABELS[30]}" / "30.png", 3)  # a name that is taken there
    picture(data / "test" / f"n{LABELS[50]}" / "50.png", 50)
    (data / "notes.txt").write_text("mine")
    before = everything(data)
    run = trained(f"folder:{data}", tmp_path / "run")
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("example,answer\n" + "".join(f"unlabeled/deep/{n}.png,n{LABELS[n]}\n" for n in (26, 30)))
    merged = merge(run, [sheet])
    assert everything(data) == before
    after = everything(merged.new)
    assert sorted(after.values()) == sorted(before.values())  # every file once
    assert len(after) == len(before)
    assert (merged.new / "labeled" / f"n{LABELS[30]}" / "30-2.png").is_file()
    aside = take_place(merged)
    assert everything(aside) == before
    assert everything(data) == after
    with pytest.raises(InputError, match="does not have"):
        merge(run, [sheet])  # they are unlabeled no more


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
def test_rows_move_from_unlabeled_to_train(tmp_path, ending):
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
    assert cli("add-labels", run, run / "label-next.csv", "--replace") == 0
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


@pytest.mark.parametrize("named", [False, True])
def test_arrays(tmp_path, named):
    data = tmp_path / "arrays.npz"
    y = np.where(np.arange(80) % 2, LABELS[:80], -1)
    names = {"class_names": np.array([f"digit {n}" for n in range(10)])} if named else {}
    np.savez(data, x=IMAGES[:80], y=y, **names)
    run = trained(f"npz:{data}", tmp_path / "run")
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("example,answer\n" + "".join(f"{n},{'digit ' if named else ''}{LABELS[n]}\n" for n in (0, 2, 4)))
    with np.load(merge(run, [sheet]).new) as new:
        assert (new["x"] == IMAGES[:80]).all()
        y[[0, 2, 4]] = LABELS[[0, 2, 4]]
        assert (new["y"] == y).all()


def test_data_by_name_have_no_labels_to_add_to(tmp_path):
    run = trained("digits@40", tmp_path / "run")
    assert cli("label-next", run, "--budget", "3", "--threads", "1", "--no-page") == 0
    assert not (run / "label-next.html").exists()
    assert cli("label-next", run, "--budget", "3", "--threads", "1", "--strategy", "meta-gradient") == 0
    assert (run / "label-next-2.html").exists()
    assert cli("label-next", run, "--out", run / "sheet.html") == 2  # where the page would go
    assert not (run / "sheet.html").exists()
    answered(run / "label-next.csv", lambda name: "1")
    assert cli("add-labels", run, run / "label-next.csv") == 2


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


def test_class_folders_right_in_the_path(tmp_path, monkeypatch):
    data = tmp_path / "photos"
    for number in range(40):
        picture(data / (f"n{LABELS[number]}" if number < KNOWN else "unlabeled") / f"{number}.png", number)
    run = trained(f"folder:{data}", tmp_path / "run")
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("example,answer\nunlabeled/30.png,n3\n")
    merged = merge(run, [sheet], None)
    assert (merged.new / "n3" / "30.png").is_file()
    assert not (merged.new / "unlabeled" / "30.png").exists()
    for answer, words in (("test", "no name"), ("-1", "no label")):
        sheet.write_text(f"example,answer\nunlabeled/30.png,{answer}\n")
        with pytest.raises(InputError, match=words):
            merge(run, [sheet], None, new_classes=True)
    monkeypatch.chdir(data)  # where the path has no name
    before = everything(data)
    aside = take_place(replace(merged, old=Path()))
    assert everything(aside) == before
    assert (data / "n3" / "30.png").is_file()
