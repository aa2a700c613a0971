r"""Names of files as text. They need not be any: Python keeps bytes that are no UTF-8 as lone surrogates, which no
file, page or reply can hold. Wherever a name is shown, written down or handed on, such a byte stands as `\xe9`, and
what comes back so is looked up among the names that are there."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable

from semigrad.errors import InputError

SHOWN = "semigrad-shown"
"""The way of encoding, as the `errors` of a stream, in which nothing fails."""


def shown(text: str) -> str:
    """The text, with an escape for what cannot be written."""
    return text.encode("utf-8", SHOWN).decode("utf-8")


def printable(text: str) -> str:
    """A line for a terminal, with an escape for what would end it, color it, move in it or turn its direction: a name
    that is somebody else's may hold anything."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", lambda found: ascii(found[0])[1:-1], text)


def composed(text: str) -> str:
    """A letter with its marks as one sign where there is one: a Mac writes names with two, others with one, and nobody
    sees the difference."""
    return unicodedata.normalize("NFC", text)


def by_shown(names: Iterable[str], what: str) -> dict[str, str]:
    """Each name by how it is shown; `what` these are, in words for whoever has two that look alike."""
    found: dict[str, str] = {}
    alike: dict[str, str] = {}
    for name in names:
        if alike.setdefault(composed(shown(name)), name) != name:
            raise InputError(f"Two {what} would both be shown as {shown(name)!r}. Rename one of them.")
        found[shown(name)] = name
    return found


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_letter, error.object[error.start : error.end])), error.end


def _letter(letter: str) -> str:
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a name
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if 0xD800 <= code <= 0xDFFF else "?"  # a sign that the terminal does not have


codecs.register_error(SHOWN, _escaped)
