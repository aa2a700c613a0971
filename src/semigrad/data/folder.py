"""`folder:PATH`: a folder of pictures, a few of them labeled.

Four layouts are understood; `unlabeled` and the test part may be left out:

    labeled/<class>/*, unlabeled/**, test/<class>/*
    train/<class>/*, unlabeled/**, test/<class>/* or val/<class>/*
    <class>/*, unlabeled/**, test/<class>/* or val/<class>/*
    pictures side by side, and one table *.csv with the columns file,label (label empty or -1: unlabeled), separated by
        commas, semicolons or tabs
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semigrad.data import album
from semigrad.data.arrays import from_arrays
from semigrad.data.dataset import UNSEEN, Dataset, Outline, Request
from semigrad.data.missing import refuse_lost
from semigrad.data.pictures import find, is_picture, none_of, subfolders
from semigrad.data.table_files import read_records
from semigrad.errors import InputError
from semigrad.names import by_shown, composed, shown
from semigrad.settings.fields import refuse

TOLERATED_LOSS = 0.03
LOOKED_AT = 50  # pictures, to choose a network by
UNLABELED = ("", "-1", "-1.0")  # the last as pandas writes it beside missing labels
ASIDE = ("unlabeled", "test", "val")  # no classes, where class folders stand beside them
MEANT = {"unlabelled": "unlabeled", "unsupervised": "unlabeled", "valid": "val", "validation": "val", "testing": "test"}
"""Names, in small letters, by which other people and programs call these."""
LAYOUTS = (
    "allowed are labeled/<class>/, train/<class>/ or just <class>/ (each with unlabeled/ and test/<class>/ if wanted), "
    "or pictures side by side with one CSV file that has the columns file,label"
)


@dataclass(frozen=True)
class Entry:
    path: str
    part: str  # "train" or "test"
    label: int  # class number, -1: unlabeled


@dataclass(frozen=True)
class Listing:
    """Which picture is what, before any is read."""

    classes: tuple[str, ...]
    entries: list[Entry]  # the training part first
    others: list[str]  # files that are no pictures
    notes: tuple[str, ...] = ()


def load(request: Request) -> Dataset:
    """Every picture in memory, as uint8 of one size; weak views crop and flip."""
    assert request.path is not None
    path = request.path
    found = listing_of(path)
    pictures = album.read([entry.path for entry in found.entries], request.image_size)
    _check_losses(path, found, pictures.lost)
    return as_dataset(path, found, pictures)


def as_dataset(path: Path, listing: Listing, pictures: album.Album) -> Dataset:
    """The pictures that could be read, however few; `load` asks for more."""
    notes = [*listing.notes, *pictures.notes]
    if pictures.lost:
        notes.append(f"{len(pictures.lost)} unreadable pictures skipped: {_some(path, listing, pictures.lost)}")
    if listing.others:
        count, named = len(listing.others), shown(os.path.relpath(listing.others[0], path))
        notes.append(
            f"1 file that is no picture ignored: {named}"
            if count == 1
            else f"{count:,} files that are no pictures ignored, such as {named}"
        )
    kept = [listing.entries[position] for position in pictures.kept]
    labels = np.array([entry.label for entry in kept])
    border = sum(entry.part == "train" for entry in kept)
    tested = border < len(kept)
    return from_arrays(
        f"folder:{path.resolve().name}",
        listing.classes,
        pictures.values[:border],
        labels[:border],
        pictures.values[border:] if tested else None,
        labels[border:] if tested else None,
        pad=pictures.values.shape[2] // 8,
        flip=True,
        notes=tuple(notes),
        names=[shown(os.path.relpath(entry.path, path)) for entry in kept],
    )


def look(path: Path) -> Outline:
    """How many pictures there are, and their shape to be, by the heads of a few that are spread over all."""
    try:
        entries = listing_of(path).entries
    except (InputError, OSError):
        return UNSEEN  # reading the data will say what is wrong
    heads = album.heads_of([entry.path for entry in entries[:: max(1, len(entries) // LOOKED_AT)]])
    size, gray = album.common_form(heads)
    rows = sum(entry.part == "train" for entry in entries)
    return Outline((1 if gray else 3, size, size), rows) if heads else UNSEEN


def listing_of(path: Path) -> Listing:
    """What a folder holds, by one of the four layouts."""
    if not path.is_dir():
        raise InputError(f"{path} is not a folder; {LAYOUTS}.")
    parts = [path / name for name in ("labeled", "train") if (path / name).is_dir()]
    if len(parts) == 2:
        raise InputError(f"{path} has both labeled/ and train/; keep the one that holds the labeled pictures.")
    if parts:
        return _by_folders(path, parts[0], subfolders(parts[0]))
    tables = sorted(file for file in path.iterdir() if file.suffix.lower() == ".csv" and not file.name.startswith("."))
    if len(tables) == 1:
        return _by_table(path, tables[0])
    direct = [folder for folder in subfolders(path) if folder.name not in ASIDE]
    if not tables:
        refuse(_misnamed(direct, ASIDE, "be a class", ", or move all classes into labeled/ where it is one"))
    if not tables and len(direct) > 1 and all(_has_pictures(folder) for folder in direct):
        return _by_folders(path, path, direct)
    without = next((f", not all with pictures in them, such as {_bare(f)}" for f in direct if not _has_pictures(f)), "")
    raise InputError(
        f"{path} has no folder labeled/ or train/, {len(tables)} CSV files and {len(direct)} folders that could be "
        f"classes{without}; {LAYOUTS}."
    )


def _has_pictures(folder: Path) -> bool:
    """Whether there are some right in it."""
    return any(is_picture(entry.name) and entry.is_file() for entry in folder.iterdir())


def _bare(folder: Path) -> str:
    """The name of a folder without pictures right in it, and which other files are there."""
    files = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    return f"{shown(folder.name)}{f' ({none_of(files)})' if files else ''}"


def _by_folders(path: Path, labeled: Path, members: Sequence[Path]) -> Listing:
    """By the class folders `members` of the folder `labeled`."""
    classes = tuple(by_shown((folder.name for folder in members), f"class folders in {labeled}"))
    number = {composed(name): position for position, name in enumerate(classes)}
    problems = [] if len(classes) > 1 else [f"{labeled} has {len(classes)} class folders, at least two are needed."]
    held = [folder for name in ("test", "val") if (folder := path / name).is_dir()]
    notes: tuple[str, ...] = ("val/ is not read, because there is test/",) if len(held) == 2 else ()
    aside = [folder for folder in subfolders(path) if folder.name not in ASIDE and folder not in (labeled, *members)]
    problems += _misnamed(aside, ASIDE[:1], "not be read")
    notes += _not_read(aside)
    entries: list[Entry] = []
    others: list[str] = []

    def add(folder: Path, part: str, label: int) -> None:
        found, ignored = find(folder)
        others.extend(ignored)
        entries.extend(Entry(file, part, label) for file in found)
        if not found:
            problems.append(f"{folder} has no pictures: {none_of(ignored)}.")

    for folder in members:
        add(folder, "train", number[composed(shown(folder.name))])
    if (path / "unlabeled").is_dir():
        add(path / "unlabeled", "train", -1)
    for folder in subfolders(held[0]) if held else ():
        if (name := composed(shown(folder.name))) in number:
            add(folder, "test", number[name])
        else:
            problems.append(f"{folder} is a class that {labeled} does not have; it has {', '.join(classes)}.")
    for folder in (labeled, *held[:1]):
        if folder != labeled and not subfolders(folder):
            problems.append(f"{folder} has no class folders.")
        if loose := sum(is_picture(entry.name) and entry.is_file() for entry in folder.iterdir()):
            problems.append(f"{folder} has {loose:,} pictures outside of its class folders; move them into one.")
    if problems:
        raise InputError(problems)
    return Listing(classes, entries, others, notes)


def _misnamed(folders: Sequence[Path], parts: Collection[str], instead: str, remedy: str = "") -> list[str]:
    """Sentences for folders that are called like one of these parts, but not quite, and what would become of them."""
    meant = {folder: MEANT.get(folder.name.lower(), folder.name.lower()) for folder in folders}
    return [
        f"{folder} would {instead}: the part that it seems to be is called {part}/. Rename it{remedy}."
        for folder, part in meant.items()
        if part in parts and folder.name != part
    ]


def _by_table(path: Path, table: Path) -> Listing:
    names = sorted(file.name for file in path.iterdir() if not file.name.startswith(".") and not file.is_dir())
    images = [name for name in names if is_picture(name)]
    labels = _read_table(table, by_shown(images, f"pictures in {path}"))
    classes = tuple(sorted(set(labels.values()) - set(UNLABELED)))
    if len(classes) < 2:
        raise InputError(f"{table} has labels of {len(classes)} classes, at least two are needed.")
    number = {name: position for position, name in enumerate(classes)}
    given = {name: labels.get(composed(shown(name)), "") for name in images}
    entries = [Entry(os.path.join(path, name), "train", number.get(label, -1)) for name, label in given.items()]
    strangers = [str(path / name) for name in names if not is_picture(name) and name != table.name]
    return Listing(classes, entries, strangers, _not_read(subfolders(path)))


def _not_read(folders: Sequence[Path]) -> tuple[str, ...]:
    """A note on pictures where this layout has none: somebody may take them for a class."""
    named = [f"{shown(folder.name)}/" for folder in folders if find(folder)[0]]
    if not named:
        return ()
    return (f"not read, though there are pictures there: {', '.join(named[:5])}{', ...' if len(named) > 5 else ''}",)


def _read_table(table: Path, images: Collection[str]) -> dict[str, str]:
    """Label by file name as it is shown and composed; each must be that of a picture beside the table, and stand there
    once."""
    found = read_records(table)
    if found.header != ["file", "label"]:
        raise InputError(
            f"{table} begins with {found.separator.join(found.header)!r}, expected the columns file,label."
        )
    counts, known = Counter(composed(file) for file, _ in found.rows), set(map(composed, images))
    absent = [name for name in counts if name not in known]
    repeated = [name for name, times in counts.items() if times > 1]
    problems = [
        f"{table}: {len(names):,} {what}, for example {names[0]!r}."
        for names, what in (
            (absent, "files that are no pictures in the folder"),
            (repeated, "files that are listed more than once"),
        )
        if names
    ]
    if problems:
        raise InputError(problems)
    refuse_lost(str(table), np.array([label for _, label in found.rows]), "leave it empty, or call the class otherwise")
    return {composed(file): label for file, label in found.rows}


def _check_losses(path: Path, listing: Listing, lost: dict[int, str]) -> None:
    """A few broken files are life; a lost class, or more than 3 %, is a broken data set."""
    groups = [(entry.part, entry.label) for entry in listing.entries]
    total, missed = Counter(groups), Counter(groups[position] for position in lost)
    gone = [group for group in total if missed[group] == total[group]]
    if gone or len(lost) > TOLERATED_LOSS * len(listing.entries):
        names = ["unlabeled" if label < 0 else f"{part}/{listing.classes[label]}" for part, label in gone]
        raise InputError(
            f"{path}: {len(lost):,} of {len(listing.entries):,} pictures cannot be read"
            + (f", all of {', '.join(names)}" if names else "")
            + f": {_some(path, listing, lost)}. Repair or remove them."
        )


def _some(path: Path, listing: Listing, lost: dict[int, str], count: int = 3) -> str:
    """The first few lost files, each with the reason."""
    chosen: Sequence[int] = sorted(lost)[:count]
    files = [f"{os.path.relpath(listing.entries[position].path, path)} ({lost[position]})" for position in chosen]
    return ", ".join(files) + (", ..." if len(lost) > count else "")
