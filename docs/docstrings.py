"""Our docstrings as Sphinx wants them: they are written for whoever reads the source, in plain text, where an indented
paragraph is a formula, aligned columns are a table, and `this` is code."""

import re
from collections.abc import Iterator
from itertools import groupby

INDENT = "   "
TABLE_LINE = re.compile(r"\S+( \S+)*(, \S+)*  +\S|  +\S")  # a name, two spaces or more, and what it is; or more of that
ENTRY = re.compile(r"(\S.*?) : (.*)", re.DOTALL)


def as_markup(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    section, found = False, []
    for paragraph in paragraphs(lines):
        if len(paragraph) > 1 and re.fullmatch(r"-{3,}", paragraph[1]):
            section = True
            found += [f".. rubric:: {paragraph[0]}", "", *entries(paragraph[2:]), ""]
        else:
            found += [*(entries(paragraph) if section else written(paragraph)), ""]
    return found


def paragraphs(lines: list[str]) -> Iterator[list[str]]:
    """Lines between empty ones."""
    for there, group in groupby(lines, key=lambda line: bool(line.strip())):
        if there:
            yield [line.rstrip() for line in group]


def written(paragraph: list[str]) -> list[str]:
    """Examples as they are, formulas and tables as they stand, words as words."""
    if paragraph[0].startswith(">>>"):
        return paragraph
    if paragraph[0].startswith("  ") or (len(paragraph) > 1 and all(map(TABLE_LINE.match, paragraph))):
        return ["::", "", *(INDENT + line for line in paragraph)]
    return [words(" ".join(line.strip() for line in paragraph))]


def entries(lines: list[str]) -> list[str]:
    """`name : what it is`, with further lines indented, as a list of definitions."""
    found: list[str] = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    pairs = [(match[1], match[2]) if (match := ENTRY.match(entry)) else (entry, "") for entry in found]
    return [line for name, text in pairs for line in (words(name), INDENT + words(text))]


def words(text: str) -> str:
    """Code between backticks; nothing else is markup."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(f"`{part}`\\ " if part.startswith("`") else re.sub(r"([\\*_|])", r"\\\1", part) for part in parts)
