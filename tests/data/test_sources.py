"""The table of sources, what each is asked for, and where data lie."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from semigrad.data import SOURCES, data_root, download, open_dataset
from semigrad.errors import InputError


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"no data set 'cifar-10'\. Did you mean 'cifar10'"):
        open_dataset("cifar-10")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("npz", {}, "needs a path: npz:PATH"),
        ("digits", {"path": Path("x")}, "takes no path, 'x' was given"),
        ("folder", {"path": Path("/no/where")}, "/no/where does not exist"),
        ("digits", {"image_size": 32}, "'digits' has no image_size; only folder and imagenet take it"),
        ("folder", {"path": Path("/"), "resized_crop": True}, "'folder' has no resized_crop; only imagenet takes it"),
        ("imagenet", {"path": Path("/"), "image_size": 4}, "image_size must be at least 8; given: 4"),
    ],
)
def test_what_a_source_does_not_take_is_an_error(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_dataset(name, **options)


def test_problems_come_together() -> None:
    with pytest.raises(InputError) as caught:
        open_dataset("npz", image_size=2, resized_crop=True)
    assert len(caught.value.problems) == 4


def test_what_can_be_downloaded_is_a_source_without_a_path() -> None:
    assert set(download.FILES) <= {name for name, source in SOURCES.items() if not source.needs_path}


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "svhn", "svhn-extra"])
def test_missing_data_say_what_goes_where(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path))
    with pytest.raises(InputError) as caught:
        open_dataset(name)
    for part in (str(tmp_path), f"semigrad download {name}", "SEMIGRAD_DATA", download.FILES[name][0].place):
        assert part in str(caught.value)


def test_the_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("SEMIGRAD_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for platform, place in (
        ("linux", ".cache/semigrad"),
        ("darwin", "Library/Caches/semigrad"),
        ("win32", "AppData/Local/semigrad"),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        assert data_root() == tmp_path / place
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert data_root() == tmp_path / "local" / "semigrad"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_root() == tmp_path / "xdg" / "semigrad"
    monkeypatch.setenv("SEMIGRAD_DATA", "~/mine")
    assert data_root() == tmp_path / "mine"


def test_root_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path / "a"))
    with pytest.raises(InputError, match=str(tmp_path / "b")):
        open_dataset("svhn", root=tmp_path / "b")


def test_a_path_without_a_source_gets_the_source(tmp_path: Path) -> None:
    (tmp_path / "a.npz").touch()
    with pytest.raises(InputError, match="For your own write folder:"):
        open_dataset(str(tmp_path))
    with pytest.raises(InputError, match="For your own write npz:"):
        open_dataset(str(tmp_path / "a.npz"))
    with pytest.raises(InputError, match=r"For your own write csv:b\.tsv; but b\.tsv does not exist\.$"):
        open_dataset("b.tsv")
    with pytest.raises(InputError, match="For your own write folder:nowhere/photos; but nowhere/photos does not exist"):
        open_dataset("nowhere/photos")
