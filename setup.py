"""Beside pyproject.toml: a package that is built to be installed takes the records of finished runs with it."""

import tarfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

RECORDS = Path("docs/results/runs")
PACKED = "semigrad/experiments/records.tar.xz"


class WithRecords(build_py):
    """The modules, and the records in one file: hundreds of small ones take ten times the room on a disk."""

    def run(self) -> None:
        super().run()
        if RECORDS.is_dir() and not self.editable_mode:  # in an editable install they are read from where they are
            pack(RECORDS, Path(self.build_lib) / PACKED)


def pack(folder: Path, archive: Path) -> None:
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for file in sorted(folder.glob("*.json")):
            packed.add(file, file.name, filter=_plain)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without what differs from machine to machine, so that equal records give equal bytes."""
    member.mtime = member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


setup(cmdclass={"build_py": WithRecords})
