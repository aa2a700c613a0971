"""From a run to a sheet, and from its answers back into labels of pictures and arrays, with nothing lost."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from semigrad.errors import InputError
from semigrad.labeling import merge_arrays, merge_pictures
from semigrad.labeling.exchange import still_open, take_place
from semigrad.labeling.merging import merge
from tests.labeling.sheets import answered, everything, trained
from tests.small_runs import cli, digits

DIGITS = digits()
KNOWN = 25  # the first ones, of every class
IMAGES, LABELS = DIGITS.train.values.numpy(), DIGITS.labels


def labels_in(file):
    return dict(list(csv.reader(file.read_text("utf-8").splitlines()))[1:])


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
    out = capsys.readouterr().out
    assert "Answer on the page, which saves a sheet, or in the sheet's column answer; then: semigrad add-labels" in out
    said = json.loads(out.splitlines()[-1])
    assert len(said["examples"]) == 30
    assert b"\r" not in sheet.read_bytes()  # editors that show it would let people write behind it
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


def test_a_table_of_labels_keeps_its_separator(tmp_path):
    for number in range(4):
        picture(tmp_path / "photos" / f"{number}.png", number)
    (tmp_path / "photos" / "labels.csv").write_text("file;label\n0.png;a, b\n1.png;c\n2.png;\n")
    merged = merge_pictures.merge(tmp_path / "photos", {"2.png": "c", "3.png": "a, b"}, tmp_path / "new.csv", None)
    assert merged.new.read_text() == "file;label\n0.png;a, b\n1.png;c\n2.png;c\n3.png;a, b\n"


def test_one_answer_is_spoken_of_as_one():
    for answers, sentence in (
        ({"z": "1"}, "^One answer is for examples that .* does not have"),
        ({"y": "1", "z": "1"}, "^2 answers are for examples that"),
        ({"a": "1"}, "^One answer contradicts a label"),
        ({"a": "1", "b": "1"}, "^2 answers contradict a label"),
    ):
        with pytest.raises(InputError, match=sentence):
            still_open(Path("labels.csv"), answers, {"a": "0", "b": "2"})


def test_answers_find_names_that_a_mac_wrote(tmp_path):
    one, two = "\u00e4", "a\u0308"  # look alike
    for number, name in enumerate([one, "1", two + two, two]):
        picture(tmp_path / "photos" / f"{name}-{number}.png", number)
    listed = ["file,label", f"{two}-0.png,{one}", "1-1.png,c", f"{one}{one}-2.png,-1.0"]
    (tmp_path / "photos" / "labels.csv").write_text("\n".join(listed), encoding="utf-8")
    run, sheet = trained(f"folder:{tmp_path / 'photos'}", tmp_path / "run"), tmp_path / "sheet.csv"
    sheet.write_text(f"example,answer\n{two}{two}-2.png,{two}\n{two}-3.png,c\n", encoding="utf-8")
    merged = merge(run, [sheet])
    assert merged.added == 2
    assert labels_in(merged.new) == {f"{two}-0.png": one, "1-1.png": "c", f"{one}{one}-2.png": one, f"{two}-3.png": "c"}


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


@pytest.mark.parametrize("linked", ["labeled", "labeled/n1", "unlabeled", "n1"])
def test_what_a_linked_folder_leads_to_is_not_written_to(tmp_path, linked):
    data, elsewhere = tmp_path / "photos", tmp_path / "elsewhere"
    labeled = "labeled" if "labeled" in linked else "."
    for number, place in enumerate([f"{labeled}/n0", f"{labeled}/n1", "unlabeled/deep"]):
        picture(data / place / f"{number}.png", number)
    (data / linked).rename(elsewhere)
    (data / linked).symlink_to(elsewhere)
    before = everything(data), everything(elsewhere)
    merged = merge_pictures.merge(data, {"unlabeled/deep/2.png": "n1"}, None, None)
    assert (everything(data), everything(elsewhere)) == before
    after = sorted(str(path.relative_to(merged.new)) for path in merged.new.rglob("*.png"))
    assert after == sorted(os.path.normpath(f"{labeled}/{name}") for name in ("n0/0.png", "n1/1.png", "n1/2.png"))


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


@pytest.mark.parametrize(
    ("y", "names", "answer"),
    [
        ([0, 1, -1], None, "7"),
        ([0, 1, -1], None, "-7"),
        ([0, 1, -1], ["a", "b"], "c"),
        (["a", "b", ""], ["a", "b"], "c"),
    ],
)
def test_arrays_that_could_not_be_read_again_are_not_written(tmp_path, y, names, answer):
    np.savez(tmp_path / "a.npz", x=np.eye(3), y=np.array(y), **({} if names is None else {"class_names": names}))
    with pytest.raises(InputError, match=r"class|labels outside"):
        merge_arrays.merge(tmp_path / "a.npz", {"2": answer}, tmp_path / "new.npz", None)
    assert not (tmp_path / "new.npz").exists()


def test_a_class_of_pictures_may_be_called_none(tmp_path):
    for number in range(12):
        picture(
            tmp_path / "photos" / (("labeled/cat", "labeled/none", "unlabeled")[number % 3]) / f"{number}.png", number
        )
    run, sheet = trained(f"folder:{tmp_path / 'photos'}", tmp_path / "run"), tmp_path / "sheet.csv"
    sheet.write_text("example,answer\nunlabeled/2.png,none\n")
    assert (merge(run, [sheet]).new / "labeled" / "none" / "2.png").is_file()


def test_data_by_name_have_no_labels_to_add_to(tmp_path, capsys):
    run = trained("digits@40", tmp_path / "run")
    deep = tmp_path / "deep" / "er" / "sheet.csv"  # as elsewhere, folders are made
    assert cli("label-next", run, "--budget", "3", "--threads", "1", "--no-page", "--out", deep) == 0
    assert deep.is_file()
    said = capsys.readouterr().out
    assert "digits@40 has no labels of yours that answers could be added to." in said
    assert "add-labels" not in said  # which would refuse
    assert cli("label-next", run, "--budget", "3", "--threads", "1", "--no-page") == 0
    assert not (run / "label-next.html").exists()
    assert cli("label-next", run, "--budget", "3", "--threads", "1", "--strategy", "meta-gradient") == 0
    assert (run / "label-next-2.html").exists()
    assert "add-labels" not in (run / "label-next-2.html").read_text("utf-8")
    assert cli("label-next", run, "--out", run / "sheet.html") == 2  # where the page would go
    assert not (run / "sheet.html").exists()
    answered(run / "label-next.csv", lambda name: "1")
    assert cli("add-labels", run, run / "label-next.csv") == 2


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
