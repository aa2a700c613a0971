"""Reads a pickle of plain values and number arrays without letting it run anything.

A pickle is a program that may call whatever it names. This reader resolves no name: the few that a number array needs
are answered by functions of its own, which copy bytes and no more, and every other name is refused. NumPy's own
reconstruction is kept out as well, because a forged dtype can make it read bytes as pointers.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from semigrad.errors import InputError

NUMBERS = re.compile(r"b1|[iu][1248]|f[248]")
"""Kinds of array elements: truth values, integers, floating-point numbers."""


def read(path: Path) -> Any:
    """The value in the file: numbers, strings, bytes, None, lists, tuples, sets, dicts, and arrays of numbers.

    The 8-bit strings of Python 2 come as bytes."""
    try:
        with path.open("rb") as file:
            return _finish(_Reader(file, path).load())
    except InputError:
        raise
    except Exception as problem:  # a damaged pickle can raise almost anything
        raise InputError(f"{path} is not a readable pickle ({problem}); it may be cut short: fetch it again.") from None


class _Reader(pickle.Unpickler):
    def __init__(self, file: Any, path: Path) -> None:
        super().__init__(file, encoding="bytes")
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        """Bound functions and a string stand for the names, not classes: a pickle can set attributes on a class."""
        answers: dict[str, Callable[..., Any] | str] = {
            "numpy.core.multiarray._reconstruct": self.empty_array,
            "numpy._core.multiarray._reconstruct": self.empty_array,
            "numpy.ndarray": "numpy.ndarray",
            "numpy.dtype": self.element,
            "_codecs.encode": self.encode,  # how Python 3 writes bytes in protocol 2
        }
        wanted = f"{module}.{name}"
        if wanted not in answers:
            raise InputError(
                f"{self.path} asks for {wanted}, which a data file has no use for and which could run a program. "
                "Nothing was run. Get the file from its official place."
            )
        return answers[wanted]

    def empty_array(self, *_: object) -> _Array:
        return _Array()

    def element(self, code: str | bytes, *_: object) -> _Element:
        return _Element(code)

    def encode(self, text: str, encoding: str) -> bytes:
        if encoding != "latin1":
            raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
        return text.encode("latin1")


class _Element:
    """What stands for a dtype: its code, and the byte order that the pickle adds to it."""

    def __init__(self, code: str | bytes) -> None:
        self.code, self.order = _text(code), "<"
        if not NUMBERS.fullmatch(self.code):
            raise pickle.UnpicklingError(f"an array of {self.code!r}, not of numbers")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = ">" if _text(state[1]) == ">" else "<"


class _Array:
    """What stands for an array until the pickle hands over its content."""

    def __init__(self) -> None:
        self.values: np.ndarray | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, element, columns_first, content = state
        dtype = np.dtype(element.order + element.code)
        self.values = np.frombuffer(content, dtype).reshape(shape, order="F" if columns_first else "C")


def _text(value: str | bytes) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else value


def _finish(value: Any) -> Any:
    """The arrays in place of what stood for them, at the top or in a dict at the top."""
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else _plain(value)


def _plain(value: Any) -> Any:
    return value.values if isinstance(value, _Array) else value
