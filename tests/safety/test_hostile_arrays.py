"""Arrays that were damaged at random or made to do harm: each file ends in a right result or in one sentence."""

import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from semigrad.data import npz, open_dataset
from semigrad.errors import InputError
from tests.safety.mutations import every_mutation, generators


def arrays(**changes):
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=(60, 5)), "y": np.arange(60) % 3, **changes}


def saved(writer, **changes) -> bytes:
    buffer = io.BytesIO()
    writer(buffer, **arrays(**changes))
    return buffer.getvalue()


def opened_or_refused(path):
    """What is read, or None where one sentence says why not."""
    npz.look(path)
    try:
        return open_dataset("npz", path)
    except InputError as error:
        problems = error.problems
    assert all(problem and "\n" not in problem for problem in problems)
    return None


@every_mutation
@pytest.mark.parametrize("writer", [np.savez, np.savez_compressed], ids=["plain", "compressed"])
def test_mutated_arrays(writer, mutate, tmp_path):
    content, path = saved(writer), tmp_path / "a.npz"
    for rng in generators():
        path.write_bytes(mutate(content, rng))
        found = opened_or_refused(path)
        assert found is None or len(found.labels) == 60  # a check sum of the archive notices other values


def member(shape: str, descr: str = "'<f8'") -> bytes:
    """The head of an array of whatever shape, with nothing behind it."""
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head


def archive(members: dict[str, bytes]) -> bytearray:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return bytearray(buffer.getvalue())


def marked(offset_here: int, offset_there: int, value: int) -> bytes:
    """An archive of sound arrays with a byte changed in the head and in the directory of its first member."""
    content = archive(MEMBERS)
    content[content.find(b"PK\x03\x04") + offset_here] |= value
    content[content.find(b"PK\x01\x02") + offset_there] |= value
    return bytes(content)


def array_bytes(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


class Malice:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def bomb() -> bytes:
    """Half a kilobyte that says that it is a petabyte."""
    content = archive({"x.npy": member("(1, 1)") + b"\0" * 8, "y.npy": MEMBERS["y.npy"]})
    place = content.find(b"PK\x01\x02") + 24
    content[place : place + 4] = (2**32 - 2).to_bytes(4, "little")
    return bytes(content)


MEMBERS = {"x.npy": array_bytes(arrays()["x"]), "y.npy": array_bytes(arrays()["y"])}
HOSTILE_ARRAYS = {
    "encrypted": lambda: marked(6, 8, 1),
    "of an unknown compression": lambda: marked(8, 10, 77),
    "of text": lambda: archive({**MEMBERS, "x.npy": b"hello"}),
    "of nothing": lambda: archive({**MEMBERS, "x.npy": b""}),
    "without endings": lambda: archive({"x": b"hello", "y": b"you"}),
    "a program": lambda: archive({**MEMBERS, "x.npy": array_bytes(np.array([Malice()], object))}),
    "a pickle": lambda: pickle.dumps(Malice()),
    "larger than any memory": lambda: archive({**MEMBERS, "x.npy": member("(1000000000, 1000000)")}),
    "of negative shape": lambda: archive({**MEMBERS, "x.npy": member("(-5, 3)")}),
    "of a shape of text": lambda: archive({**MEMBERS, "x.npy": member("('a', 3)")}),
    "of a computed shape": lambda: archive({**MEMBERS, "x.npy": member("(__import__('os').mkdir('harm'), 3)")}),
    "of an odd kind": lambda: archive({**MEMBERS, "x.npy": member("(60, 5)", "'|O'")}),
    "of structures": lambda: archive({**MEMBERS, "x.npy": member("(60,)", "[('a', '<f8')]")}),
    "with a name that leads out": lambda: archive({**MEMBERS, "../../x_test.npy": MEMBERS["x.npy"]}),
    "with deep brackets": lambda: archive({**MEMBERS, "x.npy": member("(" * 900 + ")" * 900)}),
    "an empty archive": lambda: archive({}),
    "an empty file": lambda: b"",
    "a text": lambda: b"a letter to somebody",
    "complex": lambda: saved(np.savez, x=np.ones((60, 5), complex)),
    "dates": lambda: saved(np.savez, x=np.zeros((60, 5), "datetime64[s]")),
    "a bomb": bomb,
}


@pytest.mark.parametrize("case", HOSTILE_ARRAYS)
def test_hostile_arrays(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.npz").write_bytes(HOSTILE_ARRAYS[case]())
    assert opened_or_refused(tmp_path / "a.npz") is None
    assert os.listdir(tmp_path) == ["a.npz"]


def test_an_archive_larger_than_the_memory_is_refused_before_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "a.npz").write_bytes(saved(np.savez_compressed, x=np.zeros((60, 20_000))))
    assert len(open_dataset("npz", tmp_path / "a.npz").labels) == 60
    monkeypatch.setattr(npz, "memory", lambda: 10**7)  # as on a very small machine
    with pytest.raises(InputError, match=r"holds arrays of 0.0 GB, more than half of the memory here"):
        open_dataset("npz", tmp_path / "a.npz")
