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


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_lists_and_bytes_come_back_in_every_protocol(tmp_path: Path, protocol: int) -> None:
    if protocol == 5:
        pytest.skip("protocol 5 writes arrays through a frombuffer call, as no official file does")
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
    pickletools.dis(content, out=open(os.devnull, "w"))  # noqa: SIM115
    value = pickles.read(written(tmp_path, content))
    assert value[b"data"].tolist() == [[250, 251, 252], [253, 254, 255]]
    assert value[b"labels"] == [5, 7]
