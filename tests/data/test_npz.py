"""The user's own arrays: every accepted form, and a sentence for every other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semigrad.core import generator
from semigrad.data import Dataset, Request, open_dataset
from semigrad.data.dataset import UNSEEN, Outline
from semigrad.data.npz import load, look
from semigrad.errors import InputError
from semigrad.fitting.looking import look_at

Y = np.array([0, 1, 2, -1, -1, 0])


def opened(tmp_path: Path, **arrays: Any) -> Dataset:
    np.savez(tmp_path / "mine.npz", **arrays)
    return open_dataset("npz", tmp_path / "mine.npz")


def everything(data: Dataset) -> np.ndarray:
    return data.train.raw(np.arange(len(data.train))).numpy()


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_])
def test_features_become_float32(tmp_path: Path, kind: Any) -> None:
    x = np.arange(24).reshape(6, 4).astype(kind)
    data = opened(tmp_path, x=x, y=Y)
    assert everything(data).dtype == np.float32
    np.testing.assert_array_equal(everything(data), x)
    np.testing.assert_allclose(data.mean, x.astype(float).mean(0))
    assert data.classes == ("0", "1", "2")
    assert data.test is None
    weak = data.train.weak(np.arange(6), generator("draws").random((6, 5)))
    np.testing.assert_array_equal(weak, everything(data))


IMAGES = generator("npz images").integers(0, 256, (6, 3, 16, 20), dtype=np.uint8)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (IMAGES, IMAGES),
        (IMAGES.transpose(0, 2, 3, 1), IMAGES),
        (IMAGES[:, 0], IMAGES[:, :1]),
        (IMAGES[:, :1], IMAGES[:, :1]),
        (IMAGES[:, 0, :, :, None], IMAGES[:, :1]),
        (IMAGES / 255, IMAGES),
        ((IMAGES / 255).astype(np.float32), IMAGES),
    ],
)
def test_images_become_bytes_with_channels_first(tmp_path: Path, given: np.ndarray, expected: np.ndarray) -> None:
    data = opened(tmp_path, x=given, y=Y)
    np.testing.assert_array_equal(everything(data), expected)
    corner = data.train.weak(np.array([0]), np.array([[0.0, 0.0, 0.0, 0.0, 0.0]]))[0]
    np.testing.assert_array_equal(corner[:, 2:, 2:], expected[0, :, :-2, :-2])  # pad 16 // 8, no flip


def test_float_images_are_rounded(tmp_path: Path) -> None:
    x = np.array([0.0, 0.999, 1.0, 0.4 / 255, 0.6 / 255, 99.7 / 255]).reshape(6, 1, 1)
    assert everything(opened(tmp_path, x=x, y=Y)).ravel().tolist() == [0, 255, 255, 0, 1, 100]


def test_tiny_images_are_shifted_by_at_least_one(tmp_path: Path) -> None:
    data = opened(tmp_path, x=IMAGES[:, :, :4, :4], y=Y)
    corner = data.train.weak(np.array([0]), np.zeros((1, 5)))[0]
    np.testing.assert_array_equal(corner[:, 1:, 1:], IMAGES[0, :, :3, :3])


def test_the_test_part_and_names(tmp_path: Path) -> None:
    x = np.eye(6)
    data = opened(tmp_path, x=x, y=Y, x_test=x[:2] + 1, y_test=[2, 1], class_names=["cat", "dog", "eel"])
    assert data.classes == ("cat", "dog", "eel")
    assert data.test is not None
    np.testing.assert_array_equal(data.test.raw(np.arange(2)), x[:2] + 1)
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [2, 1]
    assert data.labels.tolist() == Y.tolist()
    assert data.name == "npz:mine"


def test_examples_may_have_names(tmp_path: Path) -> None:
    given: dict[str, Any] = {"x": np.eye(6), "y": Y, "x_test": np.eye(6)[:2], "y_test": [2, 1]}
    for more, train, test in (
        ({}, "3", "1"),
        ({"names": list("abcdef")}, "d", "1"),
        ({"names": list("abcdef"), "names_test": ["g", "h"]}, "d", "h"),
        ({"names_test": ["g", "h"]}, "3", "h"),
    ):
        data = opened(tmp_path, **given, **more)
        assert data.test is not None
        assert (data.train.name_of(3), data.test.name_of(1)) == (train, test)
        assert data.fingerprint == opened(tmp_path, **given).fingerprint  # names change no run


def test_labels_may_be_strings(tmp_path: Path) -> None:
    y = np.array(["dog", "", "cat", "-1", "dog", "cat"])
    data = opened(tmp_path, x=np.eye(6), y=y, x_test=np.eye(6)[:1], y_test=["dog"])
    assert data.classes == ("cat", "dog")
    assert data.labels.tolist() == [1, -1, 0, -1, 1, 0]
    assert data.test_labels is not None
    assert data.test_labels.tolist() == [1]
    ordered = opened(tmp_path, x=np.eye(6), y=y, class_names=["dog", "cat"])
    assert ordered.classes == ("dog", "cat")
    assert ordered.labels.tolist() == [0, -1, 1, -1, 0, 1]


def test_a_mark_among_numbers_that_became_texts_is_no_class(tmp_path: Path) -> None:
    data = opened(tmp_path, x=np.eye(4), y=np.array([1.0, 2.0, -1.0, 1.0]).astype(str))
    assert (data.classes, data.labels.tolist()) == (("1.0", "2.0"), [0, 1, -1, 0])


def test_string_classes_are_sorted(tmp_path: Path) -> None:
    data = opened(tmp_path, x=np.eye(12), y=list("kebgadjcifhl"))
    assert data.classes == tuple("abcdefghijkl")


def test_a_class_may_be_seen_in_the_test_part_only(tmp_path: Path) -> None:
    data = opened(tmp_path, x=np.eye(6), y=Y, x_test=np.eye(6)[:1], y_test=[3])
    assert data.classes == ("0", "1", "2", "3")


NAN = np.eye(6)
NAN[4, 1:3] = np.nan, np.inf


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": NAN, "y": Y}, "x has 2 values that are not finite numbers, first in row 4"),
        ({"x": np.eye(6) * 1e300, "y": Y}, "6 values beyond what single precision holds.*first in row 0; scale"),
        ({"x": IMAGES.astype(float), "y": Y}, r"outside \[0, 1\], first in image 0; divide by"),
        ({"x": IMAGES * np.nan, "y": Y}, r"outside \[0, 1\]"),
        ({"x": IMAGES.astype(np.int32), "y": Y}, r"x is int32 \(6, 3, 16, 20\); allowed are"),
        ({"x": IMAGES[:, :2], "y": Y}, "no axis of 1 or 3 channels"),
        ({"x": IMAGES[:, :, :, :3], "y": Y}, "both could be the channels"),
        ({"x": np.zeros((len(Y), 8, 8, 4), np.uint8), "y": Y}, "no axis of 1 or 3 channels; leave the fourth channel"),
        ({"x": np.arange(6), "y": Y}, r"x is int64 \(6,\)"),
        ({"x": np.eye(6).astype(complex), "y": Y}, "x is complex128"),
        ({"x": np.eye(5), "y": Y}, r"x has the shape \(5, 5\) and y \(6,\)"),
        ({"x": np.eye(6), "y": Y[:, None]}, r"y \(6, 1\)"),
        ({"x": np.zeros((0, 3)), "y": Y[:0]}, "it is empty"),
        ({"x": np.eye(6)}, "the array 'y' is missing"),
        (
            {"X": np.eye(6), "y": Y},
            r"There is no array 'X'. Did you mean 'x'\? Known: class_names, names, names_test, x, x_test",
        ),
        ({"x": np.eye(6), "y": Y, "x_test": np.eye(6)}, "x_test and y_test go together"),
        ({"x": np.eye(6), "y": Y, "x_test": np.eye(5)[:2], "y_test": [0, 1]}, r"\(6,\) in x, but \(5,\) in x_test"),
        ({"x": np.eye(6), "y": Y, "x_test": np.eye(6), "y_test": Y}, "y_test has 2 labels outside 0 to 2"),
        ({"x": np.eye(6), "y": [0, 1, 4, -1, 1, 1]}, "no example has the class 2, 3; with classes 0 to 4"),
        ({"x": np.eye(6), "y": [0, 10**12, 1, 1, 1, 1]}, "no example has the class 2, 3, 4"),
        ({"x": np.eye(6), "y": Y.astype(np.uint64)}, "y is uint64 and has the label 18446744073709551615"),
        ({"x": np.eye(6), "y": [0, 1, -2, 1, 1, 1]}, "y has 1 labels outside -1 to 1, the first is -2"),
        ({"x": np.eye(6), "y": [-1] * 6}, "0 labels of 0 classes"),
        ({"x": np.eye(6), "y": [0] * 6}, "6 labels of 1 classes"),
        ({"x": np.eye(6), "y": Y + 0.5}, "y float64: labels must be whole numbers or strings"),
        ({"x": np.eye(6), "y": Y, "x_test": np.eye(6)[:1], "y_test": ["a"]}, "the same in y and y_test"),
        ({"x": np.eye(6), "y": Y, "class_names": ["a", "b"]}, "y has 1 labels outside -1 to 1, the first is 2"),
        ({"x": np.eye(6), "y": Y, "class_names": ["a", "b", "b"]}, "different strings"),
        (
            {"x": np.eye(6), "y": Y, "names": list("abcdef")[:5]},
            "names must be different texts, one for each example of x",
        ),
        ({"x": np.eye(6), "y": Y, "names": list("abcdea")}, "names must be different texts"),
        ({"x": np.eye(6), "y": Y, "names": np.arange(6)}, "names must be different texts"),
        (
            {"x": np.eye(6), "y": Y, "names_test": ["a"]},
            "names_test must be different texts, one for each .* of x_test",
        ),
        ({"x": np.eye(6), "y": list("abcabc"), "class_names": ["a", "b"]}, r"\['c'\], which class_names does not list"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        opened(tmp_path, **arrays)
    assert str(tmp_path / "mine.npz") in str(caught.value)


def test_several_problems_come_together(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        opened(tmp_path, x_test=np.eye(2), class_names=["a"])
    assert len(caught.value.problems) == 3


def test_object_arrays_are_not_unpickled(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a readable"):
        opened(tmp_path, x=np.array([{}, {}], dtype=object), y=[0, 1])


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_archive_is_named(tmp_path: Path, share: float) -> None:
    np.savez_compressed(tmp_path / "whole.npz", x=np.eye(6), y=Y)
    content = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"cut\.npz is not a readable"):
        open_dataset("npz", tmp_path / "cut.npz")


def test_a_damaged_member_is_named(tmp_path: Path) -> None:
    np.savez(tmp_path / "mine.npz", x=np.eye(60), y=np.arange(60))
    content = bytearray((tmp_path / "mine.npz").read_bytes())
    content[5000] ^= 1
    (tmp_path / "mine.npz").write_bytes(content)
    with pytest.raises(InputError, match="not a readable"):
        open_dataset("npz", tmp_path / "mine.npz")


def test_a_single_array_is_explained(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.eye(3))
    with pytest.raises(InputError, match="one array without a name"):
        open_dataset("npz", tmp_path / "one.npy")
    with pytest.raises(InputError, match="it is a folder"):
        open_dataset("npz", tmp_path)


def test_a_feature_that_float32_is_too_coarse_for_is_named(tmp_path: Path) -> None:
    rng = generator("digits lost")
    times = 1.7e9 + np.arange(100.0)
    x = np.stack([rng.normal(size=100), times, np.full(100, 0.1), times - 1.7e9, rng.normal(size=100) * 1e-9], 1)
    data = opened(tmp_path, x=x, y=np.arange(100) % 2)
    assert len(np.unique(everything(data)[:, 1])) < 5
    (note,) = data.notes
    assert "too coarse for 1 of 5 features (counted from 0: 1)" in note
    assert "a standard deviation of 29 and is rounded by up to 64" in note
    assert len(np.unique(everything(data)[:, 3])) == 100  # as the note advises


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.int32, np.float32, np.int16, np.bool_])
def test_ordinary_features_have_nothing_to_note(tmp_path: Path, kind: Any) -> None:
    x = 1000 + 30 * generator("ordinary").normal(size=(50, 4))
    assert opened(tmp_path, x=x.astype(kind), y=np.arange(50) % 2).notes == ()
    year = 1.7e9 + 3e7 * generator("a year").random((50, 1))
    assert opened(tmp_path, x=year.astype(np.int64), y=np.arange(50) % 2).notes == ()


@pytest.mark.parametrize(
    ("shape", "found"),
    [((5,), (5,)), ((8, 9), (1, 8, 9)), ((3, 8, 9), (3, 8, 9)), ((8, 9, 3), (3, 8, 9)), ((8, 9, 1), (1, 8, 9))],
)
def test_a_look_finds_the_shape_that_reading_gives(shape, found, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((4, *shape), np.uint8 if len(shape) > 1 else np.float32), y=np.array([0, 1, 0, 1]))
    assert look(path) == Outline(found, 4)
    assert load(Request(tmp_path, path)).train.shape == found


@pytest.mark.parametrize("shape", [(), (1, 8, 8, 8)])
def test_a_look_at_what_is_no_example_leaves_it_to_reading(shape, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((4, *shape)), y=np.array([0, 1, 0, 1]))
    assert look(path) == UNSEEN
    with pytest.raises(InputError, match=r"x is float64 \(4,.*; allowed are numbers \(N, D\)"):
        look_at(str(path))


@pytest.mark.parametrize("lost", ["nan", "<NA>", "NaT"])
def test_a_missing_label_that_became_a_text_is_no_class(tmp_path: Path, lost: str) -> None:
    with pytest.raises(InputError, match=f"y holds the text '{lost}', .*leave it empty, or call the class otherwise"):
        opened(tmp_path, x=np.eye(6), y=np.array(["a", "b", lost] * 2))
    data = opened(tmp_path, x=np.eye(6), y=np.array(["3.0", "8.0", "-1.0"] * 2))
    assert data.labels.tolist() == [0, 1, -1] * 2


@pytest.mark.parametrize("content", [b"", b"rubbish", b"PK\x05\x06" + bytes(18)])
def test_a_look_at_rubbish_finds_nothing(content, tmp_path):
    (tmp_path / "a.npz").write_bytes(content)
    assert look(tmp_path / "a.npz") == look(tmp_path / "none.npz") == UNSEEN
