"""Answers into a folder of pictures: a new table of labels, or a new folder in which answered pictures lie with their
class."""

from __future__ import annotations

import csv
import io
import os
import shutil
from pathlib import Path

from semigrad.data.folder import ASIDE, UNLABELED, listing_of
from semigrad.data.pictures import subfolders
from semigrad.data.table_files import read_records
from semigrad.errors import InputError
from semigrad.folder.files import PARTIAL, cannot_write, write_whole
from semigrad.labeling.exchange import Answers, Merged, free, place_for, still_open
from semigrad.names import by_shown, composed


def merge(path: Path, answers: Answers, out: Path | None, label: str | None) -> Merged:
    listing = listing_of(path)
    entries = [entry for entry in listing.entries if entry.part == "train"]
    files = by_shown((os.path.relpath(entry.path, path) for entry in entries), f"pictures in {path}")
    labels = ["" if entry.label < 0 else listing.classes[entry.label] for entry in entries]
    missing = still_open(path, answers, dict(zip(files, labels, strict=True)))
    labeled = next((name for name in ("labeled", "train") if (path / name).is_dir()), None)
    tables = [file for file in path.iterdir() if file.suffix.lower() == ".csv" and not file.name.startswith(".")]
    if labeled is None and len(tables) == 1:
        old, new = tables[0], _new_table(tables[0], missing, out)
    else:  # class folders stand in labeled/ or train/, or right in the path
        answered = {files[example]: answer for example, answer in missing.items()}
        old, new = path, _new_folder(path, labeled or "", answered, out)
    return Merged(old, new, len(missing), len(answers) - len(missing))


def _new_table(old: Path, answers: Answers, out: Path | None) -> Path:
    """The table of labels with the answers in it, separated as it was; pictures that had no line get one."""
    new = place_for(out, old.with_name(f"{old.name}.new"))  # a second .csv would make the folder unreadable
    found = read_records(old)
    rows, written = found.rows, io.StringIO(newline="")
    known, answered = {composed(file) for file, _ in rows}, {composed(file): word for file, word in answers.items()}
    writer = csv.writer(written, delimiter=found.separator, lineterminator="\n")
    writer.writerow(found.header)
    writer.writerows(
        [file, answered.get(composed(file), label) if label in UNLABELED else label] for file, label in rows
    )
    writer.writerows([file, answer] for file, answer in answers.items() if composed(file) not in known)
    write_whole(new, written.getvalue().encode())
    return new


def _new_folder(path: Path, labeled: str, answers: Answers, out: Path | None) -> Path:
    """The same files again, as hard links where that can be done and else as copies; the answered ones with their
    class."""
    odd = [answer for answer in answers.values() if Path(answer).name != answer or answer.startswith(".")]
    odd += [] if labeled else [answer for answer in answers.values() if answer in ASIDE]
    if odd:
        raise InputError(f"{odd[0]!r} is no name that a folder can have. Give the class another.")
    root = path.resolve()
    new = place_for(out, root.with_name(f"{root.name}-labeled"))
    if new.resolve().is_relative_to(root):
        raise InputError(f"{new} lies inside of {path}. Choose another place.")
    building = new.with_name(f".{new.name}{PARTIAL}")
    classes = by_shown((folder.name for folder in subfolders(root / labeled)), f"class folders in {path}")
    try:
        building.mkdir(parents=True)
        for file in _files(root, {root / labeled, root / "unlabeled", *subfolders(root / labeled)}):
            if str(file) not in answers:
                _link(root / file, building / file)
        for example, answer in answers.items():
            _link(root / example, free(building / labeled / classes.get(answer, answer) / Path(example).name))
        building.rename(new)
    except OSError as error:
        shutil.rmtree(building, ignore_errors=True)
        raise cannot_write(new, error) from error
    return new


def _files(root: Path, opened: set[Path]) -> list[Path]:
    """Whatever lies below, relative to the root: files, links, and folders that are links. Into those that are to be
    `opened` it looks: what is put into a link would lie where that leads to."""
    found, left = [], [root]
    for start in left:
        for parent, folders, files in os.walk(start):
            here = Path(parent)
            linked = [here / name for name in folders if (here / name).is_symlink()]
            left += [path for path in linked if path in opened]
            found += [*(here / name for name in files), *(path for path in linked if path not in opened)]
    return [path.relative_to(root) for path in found]


def _link(old: Path, new: Path) -> None:
    new.parent.mkdir(parents=True, exist_ok=True)
    if old.is_symlink():
        new.symlink_to(old.resolve())
        return
    try:
        os.link(old, new)
    except OSError:  # another file system, or one without links
        shutil.copy2(old, new)
