"""What is kept of a folder is what a walk over it finds, and no more is walked than changed."""

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from semigrad.data import imagenet, index, open_dataset
from semigrad.data.pictures import find

LONG_AGO = 10**9  # seconds


@pytest.fixture
def folder(tmp_path):
    """Three classes, one with a folder inside, that changed long ago."""
    train = tmp_path / "set" / "train"
    for number, name in enumerate(("a/1.png", "a/deep/2.png", "b/3.png", "b/4.png", "c/5.png")):
        put(train / name, number)
    (train / "a" / "notes.txt").write_text("no picture")
    settle(train)
    return train


def put(file: Path, number: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12 + number, 12), (40 * number, 0, 0)).save(file)


def settle(folder: Path, since: int = LONG_AGO) -> None:
    for parent, _, _ in os.walk(folder):
        os.utime(parent, (since, since))


def walked(monkeypatch) -> list[str]:
    """The names of the class folders that are walked from now on."""
    seen, walk = [], index.walk
    monkeypatch.setattr(index, "walk", lambda member: seen.append(member.name) or walk(member))
    return seen


def names_of(found: index.Index) -> list[str]:
    return [os.fsdecode(name) for name in found.names.tolist()]


def test_it_holds_what_a_walk_finds_in_the_same_order(folder, tmp_path):
    for _ in range(2):  # made, then kept
        found = index.index_of(folder, tmp_path)
        assert [str(folder / name) for name in names_of(found)] == find(folder)[0]
        assert found.sizes.tolist() == [os.path.getsize(path) for path in find(folder)[0]]
        assert dict(zip(found.classes, found.counts, strict=True)) == {"a": 2, "b": 2, "c": 1}
        assert isinstance(found.names, np.memmap)  # in a file, not in memory
        assert isinstance(found.sizes, np.memmap)


def test_the_second_time_nothing_is_walked_and_later_what_changed(folder, tmp_path, monkeypatch):
    index.index_of(folder, tmp_path)
    seen = walked(monkeypatch)
    index.index_of(folder, tmp_path)
    assert seen == []
    put(folder / "b" / "6.png", 6)
    settle(folder / "b", LONG_AGO + 1)
    assert "b/6.png" in names_of(index.index_of(folder, tmp_path))
    assert seen == ["b"]
    (folder / "a" / "deep" / "2.png").unlink()
    settle(folder / "a" / "deep", LONG_AGO + 1)
    assert "a/deep/2.png" not in names_of(index.index_of(folder, tmp_path))
    assert seen == ["b", "a"]
    (folder / "d").mkdir()
    settle(folder / "d")
    assert index.index_of(folder, tmp_path).counts == (1, 3, 1, 0)
    assert seen == ["b", "a", "d"]
    assert len(list(tmp_path.glob("indexes/*/names-*.npy"))) == 1  # the old ones are gone


def test_an_interrupted_walk_goes_on_where_it_was(folder, tmp_path, monkeypatch):
    walk = index.walk

    def fails_at_c(member):
        if member.name == "c":
            raise KeyboardInterrupt
        return walk(member)

    with monkeypatch.context() as patched:
        patched.setattr(index, "walk", fails_at_c)
        with pytest.raises(KeyboardInterrupt):
            index.index_of(folder, tmp_path)
    seen = walked(monkeypatch)
    assert len(index.index_of(folder, tmp_path)) == 5
    assert seen == ["c"]


def test_folders_that_changed_just_now_are_walked_again(folder, tmp_path, monkeypatch):
    os.utime(folder / "b")
    index.index_of(folder, tmp_path)
    seen = walked(monkeypatch)
    index.index_of(folder, tmp_path)
    assert seen == ["b"]


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"classes": 3}', b"\x93NUMPY"], ids=str)
@pytest.mark.parametrize("file", ["index.json", "names-*.npy", "sizes-*.npy", "shards/*.npz"])
def test_what_is_damaged_is_made_again(folder, tmp_path, file, damage):
    expected = names_of(index.index_of(folder, tmp_path))
    for path in tmp_path.glob(f"indexes/*/{file}"):
        path.write_bytes(damage)
    if "shards" in file:  # which are looked at where there is no index
        for path in tmp_path.glob("indexes/*/index.json"):
            path.unlink()
    assert names_of(index.index_of(folder, tmp_path)) == expected


def test_without_a_place_to_keep_it_there_is_one_all_the_same(folder, tmp_path):
    (tmp_path / "file").touch()
    assert len(index.index_of(folder, tmp_path / "file")) == 5


def test_a_picture_written_over_is_noticed(folder, tmp_path):
    """No folder changes, but its size does, and the fingerprint with it: as if there were no index."""
    first = open_dataset("imagenet", folder.parent, image_size=8, root=tmp_path)
    Image.new("RGB", (90, 90), (1, 2, 3)).save(folder / "c" / "5.png")
    settle(folder / "c")
    second = open_dataset("imagenet", folder.parent, image_size=8, root=tmp_path)
    fresh = open_dataset("imagenet", folder.parent, image_size=8, root=tmp_path / "other")
    assert first.fingerprint != second.fingerprint == fresh.fingerprint


def test_the_fingerprint_is_that_of_names_and_sizes(folder, tmp_path):
    """As it was before there were indexes: records of runs hold it."""
    paths = find(folder)[0]
    text = b"part;" + b"".join(
        f"{os.path.relpath(path, folder)}:{os.path.getsize(path)};".encode() for path in paths
    ) + b"part;"  # fmt: skip
    dataset = open_dataset("imagenet", folder.parent, image_size=8, root=tmp_path)
    assert dataset.fingerprint == hashlib.sha256(text).hexdigest()
    assert dataset.labels.tolist() == [0, 0, 1, 1, 2]
    assert dataset.train.take(np.array([3])).name_of(0) == os.path.join("train", "b", "4.png")
    assert imagenet._fingerprint(dataset.train.take(np.array([0])), None) != dataset.fingerprint
