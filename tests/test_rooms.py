"""The README of a room names every file in it, and no other."""

import re
from pathlib import Path

import pytest

import semigrad

ROOT = Path(semigrad.__file__).parent
UNNAMED = {"README.md", "__init__.py"}


def files_of(room: Path) -> set[str]:
    """Below a room; templates count as one."""
    found = [path.relative_to(room) for path in room.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    named = [path for path in found if path.name not in UNNAMED]
    return {"templates/" if path.parts[0] == "templates" else path.as_posix() for path in named}


@pytest.mark.parametrize("name", ["experiments", "report"])
def test_a_room_says_what_each_of_its_files_is_for(name):
    lines = (ROOT / name / "README.md").read_text("utf-8").splitlines()
    named = [found for line in lines for found in re.findall(r"^\| `([^`]+)` \| \S.* \|$", line)]
    assert len(named) == len(set(named))
    assert set(named) == files_of(ROOT / name)
