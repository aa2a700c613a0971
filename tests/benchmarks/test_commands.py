"""The commands by which measurements say that they were made: each names a program that starts in that way."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md")), *sorted((ROOT / "benchmarks").glob("*.py"))]
COMMAND = re.compile(r"python (?:benchmarks/(?P<file>\w+)\.py|-m benchmarks\.(?P<module>\w+))")
COMMANDS = sorted({match.group(0) for path in TEXTS for match in COMMAND.finditer(path.read_text("utf-8"))})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_starts_as_it_is_written(command):
    named = COMMAND.fullmatch(command)
    assert named is not None
    source = (ROOT / "benchmarks" / f"{named['file'] or named['module']}.py").read_text("utf-8")
    assert "__main__" in source
    if named["file"]:  # started by its file, a program does not find the others beside it as `benchmarks`
        assert not re.search(r"^from benchmarks|^import benchmarks", source, re.MULTILINE)
