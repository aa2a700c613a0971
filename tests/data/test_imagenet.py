"""Pictures read while training: views are pure functions of a picture and its draws."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from semigrad.core import generator
from semigrad.data import imagenet, open_dataset
from semigrad.data.dataset import DRAWS
from semigrad.errors import InputError


def save(path: Path, width: int = 90, height: int = 60) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    small = generator(path.name).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("n02", "n01", "n03"):
        for number in range(4):
            save(tmp_path / "set" / "train" / name / f"{name}_{number}.png")
        save(tmp_path / "set" / "val" / name / f"{name}_val.png", 60, 90)
    return tmp_path / "set"


def drawn(rows: int) -> np.ndarray:
    return generator("draws").random((rows, DRAWS))


def test_the_parts_and_their_labels(root: Path) -> None:
    data = open_dataset("imagenet", root, image_size=32)
    assert data.classes == ("n01", "n02", "n03")
    assert data.labels.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert data.test is not None
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [0, 1, 2]
    assert data.train.streamed
    assert (data.train.shape, len(data.train)) == ((3, 32, 32), 12)
    assert data.official is None
    assert open_dataset("imagenet", root).train.shape == (3, 224, 224)


def test_raw_is_resize_and_center_crop(root: Path) -> None:
    data = open_dataset("imagenet", root, image_size=28)  # shorter edge to 32
    picture = Image.open(root / "train" / "n01" / "n01_1.png").resize((48, 32), Image.Resampling.BILINEAR)
    expected = np.asarray(picture).transpose(2, 0, 1)[:, 2:30, 10:38]
    assert np.abs(data.train.raw(np.array([1]))[0].numpy().astype(int) - expected).max() <= 1


def test_weak_is_resize_then_crop_and_flip_where_the_draws_say(root: Path) -> None:
    train = open_dataset("imagenet", root, image_size=28).train
    picture = Image.open(root / "train" / "n02" / "n02_0.png").resize((48, 32), Image.Resampling.BILINEAR)
    resized = np.asarray(picture).transpose(2, 0, 1).astype(int)
    for down, right, flip in [(0.0, 0.0, 0.9), (0.999, 0.999, 0.9), (0.5, 0.3, 0.2)]:
        top, left = int(down * 5), int(right * 21)
        expected = resized[:, top : top + 28, left : left + 28]
        view = train.weak(np.array([4]), np.array([[down, right, flip, 0.0, 0.0]]))[0].numpy()
        assert np.abs(view - (expected[:, :, ::-1] if flip < 0.5 else expected)).max() <= 1


@pytest.mark.parametrize("resized_crop", [False, True])
def test_a_view_depends_on_its_own_row_alone_also_in_another_process(root: Path, resized_crop: bool) -> None:
    train = open_dataset("imagenet", root, image_size=32, resized_crop=resized_crop).train
    index, draws = np.array([3, 0, 7, 3]), drawn(4)
    together = train.weak(index, draws)
    sent = pickle.loads(pickle.dumps(train))
    for row in range(4):
        np.testing.assert_array_equal(sent.weak(index[row : row + 1], draws[row : row + 1])[0], together[row])
    assert (together[0] != together[3]).any()  # the same picture under other draws
    assert together.dtype.is_floating_point is False


@pytest.mark.parametrize(("width", "height"), [(500, 375), (64, 64), (30, 900), (333, 17), (224, 225)])
def test_boxes_stay_inside(width: int, height: int) -> None:
    for draws in [*drawn(300), np.zeros(DRAWS), np.full(DRAWS, np.nextafter(1, 0))]:
        for box in (imagenet.shifted_box(width, height, 64, draws), imagenet.resized_box(width, height, draws)):
            left, top, right, bottom = box
            assert 0 <= left < right <= width
            assert 0 <= top < bottom <= height


def test_resized_boxes_have_the_area_and_aspect_asked_for() -> None:
    draws = drawn(4000)
    boxes = np.array([imagenet.resized_box(400, 400, row) for row in draws])
    across, down = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    area, aspect = across * down / 400**2, across / down
    assert area.min() >= 0.1 - 1e-9
    assert aspect.min() >= 0.8 - 1e-9
    assert aspect.max() <= 1.25 + 1e-9
    assert np.log(aspect).mean() == pytest.approx(0, abs=0.01)
    fitting = draws[:, 3] < 0.7 / 0.9  # below an area of 0.8 every aspect fits into a square
    np.testing.assert_allclose(area[fitting], 0.1 + 0.9 * draws[fitting, 3])


def test_an_image_without_change_of_size_is_not_blurred(tmp_path: Path) -> None:
    for name in "ab":
        save(tmp_path / "train" / name / "1.png", 32, 32)
    train = open_dataset("imagenet", tmp_path, image_size=28).train
    pixels = np.asarray(Image.open(tmp_path / "train" / "a" / "1.png")).transpose(2, 0, 1)
    view = train.weak(np.array([0]), np.array([[0.3, 0.95, 0.9, 0.0, 0.0]]))[0]
    np.testing.assert_array_equal(view, pixels[:, 1:29, 4:32])  # whole pixels: one of five places each way


@pytest.mark.parametrize("separator", ["\t", ",", " "])
def test_readable_names(root: Path, separator: str) -> None:
    names = {"n01": "crane, bird", "n02": "polar bear, ice bear", "n03": "crane", "n99": "nobody"}
    (root / "classes.txt").write_text("\n".join(separator.join(pair) for pair in names.items()))
    assert open_dataset("imagenet", root, image_size=32).classes == ("crane (n01)", "polar bear", "crane (n03)")


def test_names_of_any_kind_are_texts(root: Path) -> None:
    """Bytes that are no UTF-8, formulas and markup stand in pages and pictures as they are."""
    (root / "classes.txt").write_bytes(b"n01\tcaf\xe9\nn02\t$\\frac{$\nn03\t[/red]<script>\n")
    classes = open_dataset("imagenet", root, image_size=32).classes
    assert classes == ("caf\ufffd", "$\\frac{$", "[/red]<script>")


def test_a_class_without_a_line_keeps_its_folder(root: Path) -> None:
    (root / "classes.txt").write_text("n02\tstork\n\nn01\n")
    assert open_dataset("imagenet", root, image_size=32).classes == ("n01", "stork", "n03")


def test_the_fingerprint_is_of_names_and_sizes(root: Path) -> None:
    first = open_dataset("imagenet", root).fingerprint
    assert first == open_dataset("imagenet", root, image_size=32).fingerprint
    (root / "train" / "n01" / "n01_0.png").rename(root / "train" / "n01" / "other.png")
    renamed = open_dataset("imagenet", root).fingerprint
    with (root / "val" / "n03" / "n03_val.png").open("ab") as file:
        file.write(b"\0")
    assert len({first, renamed, open_dataset("imagenet", root).fingerprint}) == 3


def test_without_val_there_is_no_test_part(root: Path) -> None:
    for path in sorted((root / "val").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    with pytest.raises(InputError, match="no pictures in class folders"):
        open_dataset("imagenet", root)
    (root / "val").rmdir()
    data = open_dataset("imagenet", root)
    assert data.test is None
    assert data.notes == ("no val/ folder, so there is no test part",)


def test_a_broken_set_is_found_before_training(root: Path) -> None:
    for path in (root / "train" / "n03").iterdir():
        path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match="n03"):
        open_dataset("imagenet", root)


def test_the_next_of_its_class_stands_in_for_a_picture_that_breaks_later(root: Path, capsys) -> None:
    train = open_dataset("imagenet", root, image_size=32).train
    last = max(i for i in range(len(train)) if train.names[i].startswith(b"n01"))
    (root / "train" / os.fsdecode(train.names[last])).write_bytes(b"broken")
    first = min(i for i in range(len(train)) if train.names[i].startswith(b"n01"))
    assert torch.equal(train.raw(np.array([last])), train.raw(np.array([first])))  # round the end, same class
    draws = drawn(1)
    assert torch.equal(train.weak(np.array([last]), draws), train.weak(np.array([first]), draws))
    told = capsys.readouterr().err
    assert told.count("cannot be read as a picture") == 1


def test_more_than_a_few_unreadable_pictures_are_an_error(root: Path) -> None:
    for number in range(8):
        save(root / "train" / "n01" / f"more{number}.png")
    train = open_dataset("imagenet", root, image_size=32).train
    for number in range(8):
        (root / "train" / "n01" / f"more{number}.png").write_bytes(b"broken")
    wanted = [i for i in range(len(train)) if b"more" in train.names[i]]
    with pytest.raises(InputError, match="pictures read so far"):
        train.raw(np.array(wanted))


def test_a_class_that_breaks_altogether_is_named(root: Path) -> None:
    train = open_dataset("imagenet", root, image_size=32).train
    mine = [i for i in range(len(train)) if train.names[i].startswith(b"n02")]
    for i in mine:
        (root / "train" / os.fsdecode(train.names[i])).write_bytes(b"broken")
    with pytest.raises(InputError, match="read"):
        train.raw(np.array(mine[:1]))


def test_wrong_folders_are_explained_together(root: Path) -> None:
    save(root / "val" / "n77" / "1.png")
    (root / "val" / "n02" / "n02_val.png").unlink()
    with pytest.raises(InputError) as caught:
        open_dataset("imagenet", root)
    assert len(caught.value.problems) == 2
    assert "n77 is a class that train/ does not have" in str(caught.value)
    with pytest.raises(InputError, match="0 folders train/<class>/"):
        open_dataset("imagenet", root / "train")


def test_gray_pictures_are_read_as_colored(root: Path) -> None:
    path = root / "train" / "n01" / "n01_0.png"
    Image.open(path).convert("L").save(path)
    view = open_dataset("imagenet", root, image_size=32).train.raw(np.array([0]))[0]
    np.testing.assert_array_equal(view[0], view[2])


@pytest.mark.data
def test_the_real_tiny_imagenet(real_data: Path) -> None:
    path = real_data / "tiny-imagenet-20"
    if not path.is_dir():
        pytest.skip(f"{path} is not there: twenty classes of Tiny ImageNet in train/ and val/")
    data = open_dataset("imagenet", path, image_size=64)
    assert len(data.classes) == 20
    assert data.classes[0] == "goldfish"
    assert set(np.bincount(data.labels)) == {500}
    assert data.test is not None
    assert len(data.test) == 1000
    index = np.arange(0, len(data.train), 250)
    assert data.train.weak(index, drawn(len(index))).float().std() > 20
