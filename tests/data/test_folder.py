"""Folders of pictures: the three layouts, sizes, broken files, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from semigrad.core import generator
from semigrad.data import open_dataset, pictures
from semigrad.data.dataset import UNSEEN, Outline
from semigrad.data.folder import look
from semigrad.errors import InputError
from semigrad.run import configure

COLORS = {"cat": (200, 30, 30), "dog": (30, 200, 30), "eel": (30, 30, 200)}


def save(
    path: Path, color: tuple[int, int, int] = (9, 9, 9), size: tuple[int, int] = (20, 20), mode: str = "RGB"
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).convert(mode).save(path)


def fill(root: Path, part: str, count: int = 4, suffix: str = "png") -> None:
    for name, color in COLORS.items():
        for number in range(count):
            save(root / part / name / f"{number}.{suffix}", color)


def test_labeled_unlabeled_test(tmp_path: Path) -> None:
    fill(tmp_path, "labeled")
    fill(tmp_path, "test", 2)
    save(tmp_path / "unlabeled" / "a.png", (1, 2, 3))
    save(tmp_path / "unlabeled" / "deep" / "er" / "b.png", (4, 5, 6))
    data = open_dataset("folder", tmp_path)
    assert data.classes == ("cat", "dog", "eel")
    assert data.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [-1] * 2
    assert data.test is not None
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.train.shape == (3, 20, 20)
    pixels = data.train.raw(np.arange(14)).numpy()
    assert [tuple(pixels[row, :, 10, 10]) for row in (0, 4, 8, 12, 13)] == [*COLORS.values(), (1, 2, 3), (4, 5, 6)]
    assert tuple(data.test.raw(np.array([3]))[0, :, 0, 0].tolist()) == COLORS["dog"]
    assert data.notes == ()
    assert data.name == f"folder:{tmp_path.name}"


def test_train_with_val_and_test_before_val(tmp_path: Path) -> None:
    fill(tmp_path, "train")
    fill(tmp_path, "val", 1)
    data = open_dataset("folder", tmp_path)
    assert data.test is not None
    assert len(data.test) == 3
    fill(tmp_path, "test", 2)
    data = open_dataset("folder", tmp_path)
    assert data.test is not None
    assert len(data.test) == 6
    assert data.notes == ("val/ is not read, because there is test/",)


def test_pictures_that_no_layout_has_a_place_for_are_named(tmp_path: Path) -> None:
    fill(tmp_path / "one", "labeled")
    for name in ("fox", "gnu", ".hidden"):
        save(tmp_path / "one" / name / "deep" / "a.png")
    (tmp_path / "one" / "empty").mkdir()
    assert open_dataset("folder", tmp_path / "one").notes == ("not read, though there are pictures there: fox/, gnu/",)
    table(tmp_path, "file,label\n0.png,cat\n1.png,dog\n")
    assert open_dataset("folder", tmp_path).notes == ("not read, though there are pictures there: one/",)


def test_without_test_part(tmp_path: Path) -> None:
    fill(tmp_path, "labeled")
    data = open_dataset("folder", tmp_path)
    assert data.test is None
    assert data.test_labels is None


def table(root: Path, text: str, name: str = "labels.csv") -> None:
    for number, color in enumerate(COLORS.values()):
        save(root / f"{number}.png", color)
    (root / name).write_text(text, encoding="utf-8")


def test_a_table_of_labels(tmp_path: Path) -> None:
    save(tmp_path / "3.png")
    save(tmp_path / "4.png")
    (tmp_path / "readme.md").touch()
    table(tmp_path, '\ufefffile,label\n1.png,"dog, small"\n 0.png ,cat\n\n2.png,\n3.png,-1\n')
    data = open_dataset("folder", tmp_path)
    assert data.classes == ("cat", "dog, small")
    assert data.labels.tolist() == [0, 1, -1, -1, -1]
    assert data.notes == ("1 file that is no picture ignored: readme.md",)


def test_missing_labels_that_became_texts_are_no_classes(tmp_path: Path) -> None:
    """As pandas and numpy write them."""
    table(tmp_path, "file,label\n0.png,3.0\n1.png,8.0\n2.png,-1.0\n")
    data = open_dataset("folder", tmp_path)
    assert (data.classes, data.labels.tolist()) == (("3.0", "8.0"), [0, 1, -1])
    table(tmp_path, "file,label\n0.png,a\n1.png,none\n2.png,nan\n")
    with pytest.raises(InputError, match=r"labels\.csv holds the text 'nan', .*leave it empty"):
        open_dataset("folder", tmp_path)
    table(tmp_path, "file,label\n0.png,a\n1.png,none\n2.png,\n")
    assert open_dataset("folder", tmp_path).classes == ("a", "none")


@pytest.mark.parametrize("separator", [",", ";", "\t", "; "], ids=repr)
def test_what_a_spreadsheet_puts_between_cells_is_understood(tmp_path: Path, separator: str) -> None:
    rows = [("file", "label"), ("0.png", '"cat; small, old"'), ("1.png", "dog"), ("2.png", "")]
    table(tmp_path, "\r\n".join(separator.join(row) for row in rows))
    data = open_dataset("folder", tmp_path)
    assert data.classes == ("cat; small, old", "dog")
    assert data.labels.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,label\n0.png,a\n", "begins with 'name,label', expected the columns file,label"),
        ("name;label\n0.png;a\n", "begins with 'name;label', expected the columns file,label"),
        ("file,label;\n0.png,a;\n", "begins with 'file,label;', expected the columns file,label"),  # one or the other
        ("", "has nothing in it"),
        (
            "file,label\n0.png,a\n1.png,b\n9.png,a\n",
            r"1 files that are no pictures in the folder, for example '9\.png'",
        ),
        ("file,label\n0.png,a\n1.png,b\n../x.png,a\n", r"for example '\.\./x\.png'"),
        ("file,label\n0.png,a\n0.png,b\n", r"listed more than once, for example '0\.png'"),
        (
            "file,label\n0.png,a\n1.png\n",
            "1 of 2 rows do not have 2 cells as the line of names has, first line 3 with 1",
        ),
        ("file;label\n0.png;a\n1.png,b\n", "1 of 2 rows do not have 2 cells"),
        ("file,label\n0.png,a\n1.png,a\n", "labels of 1 classes"),
        ('file,label\n0.png,"a\n', "not a readable CSV"),
    ],
)
def test_a_wrong_table_is_explained(tmp_path: Path, text: str, message: str) -> None:
    table(tmp_path, text)
    with pytest.raises(InputError, match=message):
        open_dataset("folder", tmp_path)


def test_class_folders_without_a_folder_around_them(tmp_path: Path) -> None:
    fill(tmp_path, ".")
    plain = open_dataset("folder", tmp_path)
    fill(tmp_path / "around", "train")
    same = open_dataset("folder", tmp_path / "around")
    assert (plain.classes, plain.fingerprint) == (same.classes, same.fingerprint)
    shutil.rmtree(tmp_path / "around")
    save(tmp_path / "unlabeled" / "deep" / "x.png")
    fill(tmp_path, "test", 2)
    whole = open_dataset("folder", tmp_path)
    assert whole.classes == plain.classes
    assert (whole.labels < 0).sum() == 1
    assert whole.test is not None
    assert len(whole.test) == 2 * len(COLORS)


def test_folders_that_may_be_anything_are_no_classes(tmp_path: Path) -> None:
    fill(tmp_path, "2023")  # classes of classes
    fill(tmp_path, "2024")
    with pytest.raises(
        InputError, match="2 folders that could be classes, not all with pictures in them, such as 2023"
    ):
        open_dataset("folder", tmp_path)
    fill(tmp_path / "loose", ".")
    save(tmp_path / "loose" / "stray.png")
    with pytest.raises(InputError, match="1 pictures outside of its class folders"):
        open_dataset("folder", tmp_path / "loose")


def test_what_is_no_layout_is_explained(tmp_path: Path) -> None:
    fill(tmp_path, "pets")
    with pytest.raises(InputError, match="no folder labeled/ or train/, 0 CSV files and 1 folders that could be"):
        open_dataset("folder", tmp_path)
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.csv").touch()
    with pytest.raises(InputError, match="2 CSV files"):
        open_dataset("folder", tmp_path)
    fill(tmp_path, "train")
    fill(tmp_path, "labeled")
    with pytest.raises(InputError, match="both labeled/ and train/"):
        open_dataset("folder", tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        open_dataset("folder", tmp_path / "a.csv")


def test_all_problems_of_a_layout_come_together(tmp_path: Path) -> None:
    save(tmp_path / "labeled" / "cat" / "1.png")
    save(tmp_path / "labeled" / "loose.png")
    (tmp_path / "labeled" / "dog").mkdir()
    save(tmp_path / "test" / "elk" / "1.png")
    (tmp_path / "unlabeled").mkdir()
    with pytest.raises(InputError) as caught:
        open_dataset("folder", tmp_path)
    text = str(caught.value)
    assert len(caught.value.problems) == 4
    for part in ("dog has no pictures", "unlabeled has no pictures", "elk is a class that", "1 pictures outside"):
        assert part in text


@pytest.mark.parametrize(
    ("name", "part"),
    [("Unlabeled", "unlabeled"), ("unlabelled", "unlabeled"), ("Test", "test"), ("valid", "val"), ("VAL", "val")],
)
def test_a_part_that_is_called_otherwise_becomes_no_class(tmp_path: Path, name: str, part: str) -> None:
    fill(tmp_path, ".")
    save(tmp_path / name / "0.png")
    with pytest.raises(InputError, match=rf"{name} would be a class: .* is called {part}/\. Rename it, or move all"):
        open_dataset("folder", tmp_path)
    (tmp_path / "labeled").mkdir()
    for folder in (*COLORS, name):
        shutil.move(tmp_path / folder, tmp_path / "labeled" / folder)
    assert open_dataset("folder", tmp_path).classes == tuple(sorted([*COLORS, name]))
    fill(tmp_path / "beside", "train")
    save(tmp_path / "beside" / name / "0.png")
    if part == "unlabeled":
        with pytest.raises(InputError, match=rf"{name} would not be read: .* is called unlabeled/\. Rename it\."):
            open_dataset("folder", tmp_path / "beside")
    else:
        assert open_dataset("folder", tmp_path / "beside").notes == (
            f"not read, though there are pictures there: {name}/",
        )


def test_pictures_of_a_kind_that_is_not_read_are_named(tmp_path: Path) -> None:
    fill(tmp_path, ".")
    (tmp_path / "fox").mkdir()
    for number in range(3):
        (tmp_path / "fox" / f"IMG_{number}.HEIC").write_bytes(b"x")
    told = r"3 files there are none of \.bmp, \.gif, .*, such as IMG_0\.HEIC"
    with pytest.raises(InputError, match=rf"not all with pictures in them, such as fox \({told}\)"):
        open_dataset("folder", tmp_path)
    (tmp_path / "labeled").mkdir()
    for folder in (*COLORS, "fox"):
        shutil.move(tmp_path / folder, tmp_path / "labeled" / folder)
    with pytest.raises(InputError, match=rf"fox has no pictures: {told}\.$"):
        open_dataset("folder", tmp_path)
    save(tmp_path / "labeled" / "fox" / "0.png")
    named = Path("labeled", "fox", "IMG_0.HEIC")
    assert open_dataset("folder", tmp_path).notes == (f"3 files that are no pictures ignored, such as {named}",)


def test_names_that_a_mac_wrote_are_those_that_look_alike(tmp_path: Path) -> None:
    one, two = "K\u00e4tzchen", "Ka\u0308tzchen"  # the letter as one sign, and with its marks behind it
    for name in (one, "dog"):
        save(tmp_path / "labeled" / name / "0.png", COLORS["cat"] if name == one else COLORS["dog"])
        save(tmp_path / "test" / (two if name == one else name) / "0.png")
    data = open_dataset("folder", tmp_path)
    assert data.classes == (one, "dog")
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [0, 1]
    save(tmp_path / "labeled" / two / "1.png")
    with pytest.raises(InputError, match=r"Two class folders in .* would both be shown as"):
        open_dataset("folder", tmp_path)
    beside = tmp_path / "beside"
    table(beside, f"file,label\n{one}.png,cat\n1.png,dog\n2.png,\n")
    save(beside / f"{two}.png")
    assert open_dataset("folder", beside).labels.tolist() == [-1, 1, -1, 0]
    (beside / "labels.csv").write_text(f"file,label\n{one}.png,cat\n{two}.png,dog\n", encoding="utf-8")
    with pytest.raises(InputError, match="1 files that are listed more than once"):
        open_dataset("folder", beside)


def test_no_label_may_stand_in_a_table_as_pandas_writes_it(tmp_path: Path) -> None:
    save(tmp_path / "3.png")
    table(tmp_path, "file,label\n0.png,1.0\n1.png,2.0\n2.png,-1.0\n3.png,\n")
    data = open_dataset("folder", tmp_path)
    assert data.classes == ("1.0", "2.0")
    assert data.labels.tolist() == [0, 1, -1, -1]


def test_an_empty_or_flat_test_folder_is_not_passed_over(tmp_path: Path) -> None:
    fill(tmp_path, "labeled")
    (tmp_path / "test").mkdir()
    with pytest.raises(InputError, match="test has no class folders"):
        open_dataset("folder", tmp_path)
    save(tmp_path / "test" / "1.png")
    with pytest.raises(InputError, match="test has 1 pictures outside of its class folders"):
        open_dataset("folder", tmp_path)


def test_one_class_is_not_enough(tmp_path: Path) -> None:
    save(tmp_path / "labeled" / "cat" / "1.png")
    with pytest.raises(InputError, match="1 class folders, at least two"):
        open_dataset("folder", tmp_path)


def test_gray_only_if_every_picture_is(tmp_path: Path) -> None:
    for number, mode in enumerate(["L", "1", "I;16"]):
        image = (
            Image.fromarray(np.full((16, 16), 40_000, np.uint16)) if mode == "I;16" else Image.new(mode, (16, 16), 255)
        )
        (tmp_path / "labeled" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        image.save(tmp_path / "labeled" / "ab"[number % 2] / f"{number}.png")
    data = open_dataset("folder", tmp_path)
    assert data.train.shape == (1, 16, 16)
    assert data.train.raw(np.arange(3))[:, 0, 0, 0].tolist() == [255, 156, 255]
    save(tmp_path / "labeled" / "a" / "color.png")
    assert open_dataset("folder", tmp_path).train.shape == (3, 64, 64)


@pytest.mark.parametrize(
    ("sizes", "wanted", "result"),
    [
        ([(96, 96), (96, 96)], None, 96),
        ([(97, 97), (97, 97)], None, 64),
        ([(40, 40), (41, 41)], None, 64),
        ([(40, 50), (40, 50)], None, 64),
        ([(40, 40), (40, 40)], 24, 24),
        ([(10, 200), (300, 31)], 48, 48),
    ],
)
def test_the_size(tmp_path: Path, sizes: list[tuple[int, int]], wanted: int | None, result: int) -> None:
    for name, size in zip("ab", sizes, strict=True):
        save(tmp_path / "train" / name / "1.jpg", size=size)
    data = open_dataset("folder", tmp_path, image_size=wanted)
    assert data.train.shape == (3, result, result)


def test_the_middle_is_kept_and_weak_views_mirror(tmp_path: Path) -> None:
    left_to_right = np.tile(np.arange(0, 240, 2, dtype=np.uint8), (40, 1))  # 120 wide, 40 high
    for name in "ab":
        (tmp_path / "train" / name).mkdir(parents=True)
        Image.fromarray(left_to_right).save(tmp_path / "train" / name / "1.png")
    train = open_dataset("folder", tmp_path, image_size=40).train
    np.testing.assert_array_equal(train.raw(np.array([0]))[0, 0], left_to_right[:, 40:80])
    mirrored = train.weak(np.array([0]), np.array([[0.5, 0.5, 0.1, 0.0, 0.0]]))
    np.testing.assert_array_equal(mirrored[0, 0], left_to_right[:, 79:39:-1])
    corner = train.weak(np.array([0]), np.array([[0.0, 0.0, 0.9, 0.0, 0.0]]))
    np.testing.assert_array_equal(corner[0, 0, 5:, 5:], left_to_right[:35, 40:75])  # pad 40 // 8


def noisy(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = generator(path.name).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_a_few_broken_pictures_are_skipped_and_told(tmp_path: Path, suffix: str) -> None:
    for number in range(80):
        noisy(tmp_path / "train" / ("cat" if number < 40 else "dog") / f"{number:02}.{suffix}")
    cut = tmp_path / "train" / "cat" / f"07.{suffix}"
    cut.write_bytes(cut.read_bytes()[:1000])
    (tmp_path / "train" / "dog" / f"50.{suffix}").write_bytes(b"not a picture")
    (tmp_path / "train" / "dog" / "notes.txt").write_text("?")
    data = open_dataset("folder", tmp_path)
    assert len(data.train) == 78
    assert np.bincount(data.labels).tolist() == [39, 39]
    np.testing.assert_array_equal(
        data.train.raw(np.array([7]))[0].permute(1, 2, 0), Image.open(tmp_path / "train" / "cat" / f"08.{suffix}")
    )
    assert data.notes[0].startswith("2 unreadable pictures skipped")
    assert f"cat/07.{suffix}" in data.notes[0]
    assert f"dog/50.{suffix} (no known picture format)" in data.notes[0]
    assert data.notes[1] == f"1 file that is no picture ignored: {Path('train', 'dog', 'notes.txt')}"
    (tmp_path / "train" / "dog" / f"51.{suffix}").write_bytes(b"")
    with pytest.raises(InputError, match=rf"3 of 80 pictures cannot be read: .*cat/07\.{suffix}"):
        open_dataset("folder", tmp_path)


def test_a_class_that_is_lost_is_an_error_however_small(tmp_path: Path) -> None:
    for number in range(99):
        save(tmp_path / "train" / ("cat" if number < 50 else "dog") / f"{number}.png")
    (tmp_path / "train" / "elk").mkdir()
    (tmp_path / "train" / "elk" / "1.png").symlink_to(tmp_path / "nowhere.png")
    with pytest.raises(InputError, match=r"1 of 100 pictures cannot be read, all of train/elk: .*not a file"):
        open_dataset("folder", tmp_path)


def test_nothing_readable_at_all(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / "train" / name).mkdir(parents=True)
        (tmp_path / "train" / name / "1.png").write_bytes(b"x")
    with pytest.raises(InputError, match="2 of 2 pictures cannot be read, all of train/a, train/b"):
        open_dataset("folder", tmp_path)


def test_links_that_loop_do_not_hang(tmp_path: Path) -> None:
    fill(tmp_path, "train")
    (tmp_path / "train" / "cat" / "loop").symlink_to(tmp_path / "train")
    (tmp_path / "train" / "up").symlink_to(tmp_path)
    (tmp_path / "unlabeled").mkdir()
    save(tmp_path / "unlabeled" / "1.png")
    (tmp_path / "unlabeled" / "root").symlink_to("/")
    data = open_dataset("folder", tmp_path)
    assert data.classes == ("cat", "dog", "eel")
    assert len(data.train) == 13


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    for number in range(30):
        noisy(tmp_path / "train" / "ab"[number % 2] / f"{number}.jpg")
    assert open_dataset("folder", tmp_path).fingerprint == open_dataset("folder", tmp_path).fingerprint


def test_one_odd_picture_that_changes_all_is_named(tmp_path: Path) -> None:
    for name in ("cat", "dog"):
        for number in range(10):
            save(tmp_path / "labeled" / name / f"{number}.png", size=(12, 12), mode="L")
    assert open_dataset("folder", tmp_path).notes == ()
    assert configure(f"folder:{tmp_path}").model_name == "small-conv"  # 12 x 12
    save(tmp_path / "labeled" / "cat" / "odd.png", COLORS["cat"], (30, 20))
    data = open_dataset("folder", tmp_path)
    assert data.train.shape == (3, 64, 64)
    assert data.notes == (
        "1 of 21 pictures are not 12 x 12: all are brought to 64 x 64 (--image-size chooses another size)",
        "1 of 21 pictures are in color, the others gray: all are read as color",
    )
    assert configure(f"folder:{tmp_path}").model_name == "compact-conv"
    asked = open_dataset("folder", tmp_path, image_size=12)
    assert (asked.train.shape, asked.notes) == ((3, 12, 12), ())


def test_sizes_that_differ_and_large_ones_are_named(tmp_path: Path) -> None:
    sizes = [(30, 20), (40, 50), (60, 70), (30, 20)]
    for number, size in enumerate(sizes):
        save(tmp_path / "labeled" / "ab"[number % 2] / f"{number}.png", size=size)
    assert "pictures have 3 different sizes, 30 x 20 most often: all are" in open_dataset("folder", tmp_path).notes[0]
    for number in range(4):
        save(tmp_path / "labeled" / "ab"[number % 2] / f"{number}.png", size=(200, 200))
    assert open_dataset("folder", tmp_path).notes[0].startswith("pictures are 200 x 200: all are brought to 64 x 64 (")


def test_a_look_finds_the_shape_without_reading_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("labeled", "test"):
        for number in range(300):
            save(tmp_path / part / "ab"[number % 2] / f"{number}.png", size=(10, 10), mode="L")
    seen = []
    monkeypatch.setattr(pictures, "inspect", lambda path, real=pictures.inspect: seen.append(path) or real(path))
    assert look(tmp_path) == Outline((1, 10, 10), 300)
    assert 40 < len(seen) < 60
    assert open_dataset("folder", tmp_path).train.shape == (1, 10, 10)
    assert look(tmp_path / "none") == look(tmp_path / "labeled" / "a") == UNSEEN
