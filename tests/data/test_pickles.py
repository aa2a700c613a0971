"""The restricted reader builds plain values and arrays of numbers, and runs nothing."""

from __future__ import annotations

import os
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semigrad.data import pickles
from semigrad.errors import InputError

VALUES = {b"data": np.arange(12, dtype=np.uint8).reshape(3, 4), b"labels": [3, 1, 2], b"name": b"batch 1"}


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "batch"
    path.write_bytes(content)
    return path


class Calls:
    """Pickles to a call of `function`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(5))
def test_arrays_lists_and_bytes_come_back_in_every_protocol(tmp_path: Path, protocol: int) -> None:
    content = pickles.read(written(tmp_path, pickle.dumps(VALUES, protocol)))
    assert set(content) == set(VALUES)
    np.testing.assert_array_equal(content[b"data"], VALUES[b"data"])
    assert content[b"data"].dtype == np.uint8
    assert content[b"labels"] == [3, 1, 2]
    assert content[b"name"] == b"batch 1"


@pytest.mark.parametrize("module", ["numpy.core.multiarray", "numpy._core.multiarray"])
def test_a_file_as_python_2_wrote_it(tmp_path: Path, module: str) -> None:
    """8-bit strings (opcode U) as keys, dtype code and content, as in the official archives."""

    def string(text: bytes) -> bytes:
        return b"U" + bytes([len(text)]) + text

    array = (
        f"c{module}\n_reconstruct\n".encode() + b"cnumpy\nndarray\nK\x00\x85" + string(b"b") + b"\x87R"
        b"(K\x01K\x02K\x03\x86cnumpy\ndtype\n" + string(b"u1") + b"K\x00K\x01\x87R"
        b"(K\x03" + string(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89" + string(bytes(range(250, 256))) + b"tb"
    )
    content = b"\x80\x02}(" + string(b"data") + array + string(b"labels") + b"](K\x05K\x07eu."
    assert [opcode.name for opcode, _, _ in pickletools.genops(content)][-1] == "STOP"
    value = pickles.read(written(tmp_path, content))
    assert value[b"data"].tolist() == [[250, 251, 252], [253, 254, 255]]
    assert value[b"labels"] == [5, 7]


def test_byte_order_and_column_order_are_kept(tmp_path: Path) -> None:
    values = {
        "big": np.arange(6, dtype=">i4").reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    }
    content = pickles.read(written(tmp_path, pickle.dumps(values, 2)))
    for key, array in values.items():
        np.testing.assert_array_equal(content[key], array)


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        (os.system, ("touch {}",), "system"),
        (eval, ("open('{}', 'w')",), "eval"),
        (exec, ("open('{}', 'w')",), "exec"),
        (np.save, ("{}", [1]), "numpy.save"),
        (np.load, ("{}", None, True), "numpy.load"),
        (np.frombuffer, (b"12",), "numpy.frombuffer"),
        (getattr, (VALUES, "clear"), "getattr"),
        (pickle.loads, (b"N.",), "loads"),
        (__import__, ("antigravity",), "__import__"),
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_call_is_refused_and_named(
    tmp_path: Path, function: Any, arguments: tuple[Any, ...], named: str, protocol: int
) -> None:
    mark = tmp_path / "mark"
    filled = tuple(item.format(mark) if isinstance(item, str) else item for item in arguments)
    path = written(tmp_path, pickle.dumps({b"data": Calls(function, *filled)}, protocol))
    with pytest.raises(InputError) as caught:
        pickles.read(path)
    assert str(path) in str(caught.value)
    assert named in str(caught.value)
    assert not list(tmp_path.glob("mark*"))


@pytest.mark.parametrize(
    "name", ["numpy.core.multiarray.fromfile", "numpy.ndarray.__class__", "numpy.ndarray.tofile", "numpy.load"]
)
def test_no_dotted_way_leads_from_an_allowed_name_to_another(tmp_path: Path, name: str) -> None:
    """Protocol 4 resolves dots in names: ("numpy", "ndarray.tofile") is asked for as well as ("numpy.ndarray", ...)."""
    module, _, rest = name.partition(".")
    head, _, last = name.rpartition(".")
    for asked in ((module, rest), (head, last)):
        strings = b"".join(b"\x8c" + bytes([len(part)]) + part.encode() for part in asked)
        with pytest.raises(InputError, match=name):
            pickles.read(written(tmp_path, b"\x80\x04" + strings + b"\x93."))


def test_an_array_of_pointers_cannot_be_forged(tmp_path: Path) -> None:
    """Eight chosen bytes as an "object" would be a pointer of the attacker's choice."""
    objects = pickle.dumps(np.array([None, None]), 2)
    assert b"O8" in objects
    with pytest.raises(InputError, match="not of numbers"):
        pickles.read(written(tmp_path, objects))
    wide = pickle.dumps(np.zeros(4, dtype=np.uint8), 2).replace(b"K\x04\x85", b"K\x40\x85")
    with pytest.raises(InputError, match="not a readable pickle"):
        pickles.read(written(tmp_path, wide))


def test_a_pickle_cannot_change_the_reader_for_the_next_one(tmp_path: Path) -> None:
    """BUILD with a pair as state sets attributes on what is on the stack."""
    vandal = b"\x80\x02cnumpy\ndtype\nN}U\x0c__setstate__NsU\x08__code__Ns\x86b."
    with pytest.raises(InputError):
        pickles.read(written(tmp_path, vandal))
    path = written(tmp_path, pickle.dumps(VALUES, 2))
    np.testing.assert_array_equal(pickles.read(path)[b"data"], VALUES[b"data"])


def test_a_damaged_pickle_is_an_input_error_wherever_it_is_cut(tmp_path: Path) -> None:
    content = pickle.dumps(VALUES, 2)
    for length in range(len(content)):
        with pytest.raises(InputError, match="not a readable pickle"):
            pickles.read(written(tmp_path, content[:length]))
