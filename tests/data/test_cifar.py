"""CIFAR in both official layouts, whole, partial and damaged."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from semigrad.core import generator
from semigrad.data import cifar, open_dataset
from semigrad.errors import InputError

FILES10 = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]


def examples(file: str, classes: int, count: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Images (count, 3072) and labels."""
    draw = generator("cifar", file)
    return draw.integers(0, 256, (count, 3072), dtype=np.uint8), draw.integers(0, classes, count, dtype=np.uint8)


def write_binary10(root: Path) -> Path:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir()
    for file in FILES10:
        pixels, labels = examples(file, 10)
        np.concatenate([labels[:, None], pixels], axis=1).tofile(folder / f"{file}.bin")
    return folder


def write_python10(root: Path, protocol: int = 2) -> Path:
    folder = root / "cifar-10-batches-py"
    folder.mkdir()
    for file in FILES10:
        pixels, labels = examples(file, 10)
        content = {b"batch_label": b"batch", b"labels": labels.tolist(), b"data": pixels, b"filenames": [b"a.png"]}
        (folder / file).write_bytes(pickle.dumps(content, protocol))
    names = {b"label_names": [f"kind {number}".encode() for number in range(10)], b"num_vis": 3072}
    (folder / "batches.meta").write_bytes(pickle.dumps(names, protocol))
    return folder


def test_the_binary_layout(tmp_path: Path) -> None:
    write_binary10(tmp_path)
    data = open_dataset("cifar10", root=tmp_path)
    pixels = np.concatenate([examples(file, 10)[0] for file in FILES10[:5]])
    np.testing.assert_array_equal(data.train.raw(np.arange(100)).numpy().reshape(100, -1), pixels)
    np.testing.assert_array_equal(data.labels, np.concatenate([examples(file, 10)[1] for file in FILES10[:5]]))
    assert data.test is not None
    np.testing.assert_array_equal(data.test.raw(np.arange(20)).numpy().reshape(20, -1), examples("test_batch", 10)[0])
    np.testing.assert_array_equal(data.test_labels, examples("test_batch", 10)[1])
    assert data.classes[3] == "cat"
    assert data.title == "cifar10, 100 of 50,000"


def test_the_python_layout_holds_the_same_but_for_its_class_names(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write_binary10(tmp_path / "a")
    write_python10(tmp_path / "b")
    binary, python = (open_dataset("cifar10", root=tmp_path / place) for place in "ab")
    assert binary.fingerprint == python.fingerprint
    assert (binary.mean, binary.std) == (python.mean, python.std)
    assert python.classes[3] == "kind 3"


def test_the_binary_layout_goes_first_but_only_if_complete(tmp_path: Path) -> None:
    binary = write_binary10(tmp_path)
    write_python10(tmp_path)
    assert open_dataset("cifar10", root=tmp_path).classes[0] == "airplane"
    (binary / "data_batch_4.bin").unlink()
    assert open_dataset("cifar10", root=tmp_path).classes[0] == "kind 0"


@pytest.mark.parametrize("layout", ["binary", "python"])
def test_cifar100_uses_the_fine_labels(tmp_path: Path, layout: str) -> None:
    folder = tmp_path / f"cifar-100-{layout}"
    folder.mkdir()
    for file in ("train", "test"):
        pixels, fine = examples(file, 100)
        coarse = np.full_like(fine, 19)
        if layout == "binary":
            np.column_stack([coarse, fine, pixels]).tofile(folder / f"{file}.bin")
        else:
            content = {b"data": pixels, b"fine_labels": fine.tolist(), b"coarse_labels": coarse.tolist()}
            (folder / file).write_bytes(pickle.dumps(content, 2))
    data = open_dataset("cifar100", root=tmp_path)
    np.testing.assert_array_equal(data.labels, examples("train", 100)[1])
    np.testing.assert_array_equal(data.train.raw(np.arange(20)).numpy().reshape(20, -1), examples("train", 100)[0])
    assert (len(data.classes), data.classes[0], data.classes[99]) == (100, "apple", "worm")


def test_the_standard_names_are_as_many_as_classes_and_in_the_official_order() -> None:
    names = cifar.CIFAR100_NAMES.split()
    assert len(set(names)) == 100
    assert names == sorted(names)
    assert len(cifar.CIFAR10_NAMES.split()) == 10


def test_names_in_a_file_are_used_and_counted(tmp_path: Path) -> None:
    folder = write_binary10(tmp_path)
    (folder / "batches.meta.txt").write_text("\n".join("abcdefghij") + "\n\n")
    assert open_dataset("cifar10", root=tmp_path).classes == tuple("abcdefghij")
    (folder / "batches.meta.txt").write_text("\n".join("abc"))
    with pytest.raises(InputError, match=r"batches\.meta\.txt names 3 classes, expected 10"):
        open_dataset("cifar10", root=tmp_path)


@pytest.mark.parametrize("size", [0, 1, 3073 * 20 - 1, 3073 * 20 + 1])
def test_a_binary_file_of_a_wrong_size_is_named_with_its_size(tmp_path: Path, size: int) -> None:
    path = write_binary10(tmp_path) / "data_batch_3.bin"
    path.write_bytes((path.read_bytes() + b"\0")[:size])
    with pytest.raises(InputError, match=rf"data_batch_3\.bin has {size:,} bytes, expected a multiple of 3,073"):
        open_dataset("cifar10", root=tmp_path)


def test_a_wrong_label_is_named_with_its_place(tmp_path: Path) -> None:
    path = write_binary10(tmp_path) / "test_batch.bin"
    content = bytearray(path.read_bytes())
    content[3073 * 7] = 10
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"test_batch\.bin: image 7 has the label 10, expected 0 to 9"):
        open_dataset("cifar10", root=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({b"data": np.zeros((20, 3071), np.uint8)}, r"found uint8 \(20, 3071\)"),
        ({b"data": np.zeros((20, 3072), np.float32)}, "found float32"),
        ({b"data": [1, 2]}, "found none"),
        ({b"labels": [1] * 19}, "20 images with 19 labels"),
        ({b"labels": [1.5] * 20}, "list of whole numbers 'labels'"),
        ({b"labels": [-1] * 20}, "image 0 has the label -1"),
        ({b"labels": None}, "list of whole numbers 'labels'"),
    ],
)
def test_a_foreign_pickle_is_explained(tmp_path: Path, change: dict[bytes, object], message: str) -> None:
    path = write_python10(tmp_path) / "data_batch_2"
    path.write_bytes(pickle.dumps(pickle.loads(path.read_bytes()) | change, 2))
    with pytest.raises(InputError, match=message) as caught:
        open_dataset("cifar10", root=tmp_path)
    assert str(path) in str(caught.value)


def test_a_truncated_or_hostile_pickle_is_an_input_error(tmp_path: Path) -> None:
    path = write_python10(tmp_path) / "data_batch_2"
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(InputError, match="data_batch_2 is not a readable pickle"):
        open_dataset("cifar10", root=tmp_path)
    path.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(InputError, match=r"data_batch_2 asks for os\.system"):
        open_dataset("cifar10", root=tmp_path)
    path.write_bytes(b"N.")
    with pytest.raises(InputError, match="expected an array 'data'"):
        open_dataset("cifar10", root=tmp_path)


def test_missing_files_are_listed_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cifar-10-batches-bin/data_batch_1\.bin.*semigrad download cifar10"):
        open_dataset("cifar10", root=tmp_path)
    (write_python10(tmp_path) / "data_batch_5").unlink()
    with pytest.raises(InputError, match=r"missing: cifar-10-batches-py/data_batch_5\."):
        open_dataset("cifar10", root=tmp_path)


def test_weak_views_shift_by_up_to_four_and_mirror(tmp_path: Path) -> None:
    write_binary10(tmp_path)
    train = open_dataset("cifar10", root=tmp_path).train
    raw = train.raw(np.array([0]))
    corner = train.weak(np.array([0]), np.array([[0.0, 0.0, 0.9, 0.0, 0.0]]))
    np.testing.assert_array_equal(corner[:, :, 4:, 4:], raw[:, :, :-4, :-4])
    assert not corner[:, :, :4].any()
    mirrored = train.weak(np.array([0]), np.array([[0.5, 0.5, 0.1, 0.0, 0.0]]))
    np.testing.assert_array_equal(mirrored, raw.flip(3))


@pytest.mark.data
def test_the_real_cifar10(real_data: Path) -> None:
    data = open_dataset("cifar10", root=real_data)
    assert data.title == "cifar10"
    assert np.bincount(data.labels).tolist() == [5000] * 10
    assert data.test_labels is not None
    assert np.bincount(data.test_labels).tolist() == [1000] * 10
    for file, place in (("data_batch_1.bin", 0), ("data_batch_4.bin", 30_000)):
        record = np.fromfile(real_data / "cifar-10-batches-bin" / file, dtype=np.uint8, count=3073)
        assert data.labels[place] == record[0]
        np.testing.assert_array_equal(data.train.raw(np.array([place]))[0].numpy().ravel(), record[1:])
    assert data.mean == pytest.approx((0.4914, 0.4822, 0.4465), abs=1e-4)
    assert data.std == pytest.approx((0.2470, 0.2435, 0.2616), abs=1e-4)


@pytest.mark.data
def test_a_part_of_the_real_cifar100_says_its_size(real_data: Path) -> None:
    data = open_dataset("cifar100", root=real_data)
    count = (real_data / "cifar-100-binary" / "train.bin").stat().st_size // 3074
    assert data.title == ("cifar100" if count == 50_000 else f"cifar100, {count:,} of 50,000")
    assert set(data.labels) == set(range(100))
