"""Files of weights are told apart by what they are, not by a byte that either kind may begin with; hostile ones are
refused in a sentence."""

import contextlib
import io
import zipfile

import pytest
import torch
from safetensors.torch import save

from semigrad.errors import InputError
from semigrad.models import MLP
from semigrad.models.pretrained import read_weights
from tests.safety.mutations import every_mutation, generators

TENSORS = {"normalize.mean": torch.zeros(3), "body.weight": torch.arange(6.0)}


def test_safetensors_are_read_whatever_the_length_of_their_header(tmp_path):
    """It stands in front, and its lowest bytes may be those that a pickle or an archive begins with."""
    file, begins = tmp_path / "net.safetensors", set()
    for padding in (*range(0, 256, 8), *range(19_000, 19_400, 8)):
        file.write_bytes(save(TENSORS, {"note": "x" * padding}))
        begins.add(file.read_bytes()[:2])
        assert torch.equal(read_weights(str(file), MLP()).tensors["body.weight"], TENSORS["body.weight"])
    assert b"PK" in begins
    assert b"\x80" in {begin[:1] for begin in begins}


def test_both_ways_of_torch_to_save_are_read(tmp_path):
    for archive in (True, False):
        file = tmp_path / "net.pt"
        torch.save(TENSORS, file, _use_new_zipfile_serialization=archive)
        assert torch.equal(read_weights(str(file), MLP()).tensors["body.weight"], TENSORS["body.weight"])


# --- hostile files ---


def saved(content, **options) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer, **options)
    return buffer.getvalue()


def compressed(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            target.writestr(name, source.read(name))
    return out.getvalue()


def deep(levels):
    table = TENSORS
    for _ in range(levels):
        table = {"state_dict": table}
    return table


HOSTILE = {
    "whole numbers for names": (lambda: saved({1: torch.zeros(3)}), "no table of weights by name"),
    "none for a name": (lambda: saved({None: torch.zeros(3), "a": torch.zeros(3)}), "no table of weights by name"),
    "names below the wrapper": (lambda: saved({"model": {2: torch.zeros(3)}}), "no table of weights by name"),
    "a list": (lambda: saved([torch.zeros(3)]), "no table of weights by name"),
    "wrapped too often": (lambda: saved(deep(3)), "no table of weights by name"),
    "packed": (lambda: compressed(saved({"a": torch.zeros(10**7)})), "would grow when it is read"),
    "a view that repeats": (lambda: saved({"a": torch.zeros(1).expand(10**6, 10**6)}), "would grow when it is read"),
    "the same as a pickle": (
        lambda: saved({"a": torch.zeros(1).expand(10**6, 10**6)}, _use_new_zipfile_serialization=False),
        "would grow when it is read",
    ),
    "sparse": (
        lambda: saved({"a": torch.sparse_coo_tensor([[0], [0]], [1.0], (10**6, 10**6), check_invariants=True)}),
        "not plain numbers",
    ),
    "no device": (lambda: saved({"a": torch.zeros(10**6, 10**6, device="meta")}), "not plain numbers"),
    "complex": (lambda: saved({"a": torch.zeros(3, dtype=torch.complex64)}), "not plain numbers"),
    "an empty archive": (lambda: b"PK\x05\x06" + bytes(18), "holds no weights"),
    "safetensors of nothing": (lambda: b"\2\0\0\0\0\0\0\0{]", "holds no weights"),
    "a safetensors header": (lambda: (9**9).to_bytes(8, "little") + b"{", "holds no weights"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_in_a_sentence(case, tmp_path):
    content, words = HOSTILE[case]
    (tmp_path / "net.pt").write_bytes(content())
    with pytest.raises(InputError, match=words) as caught:
        read_weights(str(tmp_path / "net.pt"), MLP())
    assert len(caught.value.problems) == 1
    assert "\n" not in str(caught.value)


@every_mutation
@pytest.mark.parametrize("kind", ["archive", "pickle", "safetensors"])
def test_mutated_files_are_read_or_refused_in_a_sentence(kind, mutate, tmp_path):
    whole = {"epoch": 3, "state_dict": TENSORS}
    content = save(TENSORS) if kind == "safetensors" else saved(whole, _use_new_zipfile_serialization=kind == "archive")
    for rng in generators():
        (tmp_path / "net.pt").write_bytes(mutate(content, rng))
        with contextlib.suppress(InputError):
            found = read_weights(str(tmp_path / "net.pt"), MLP()).tensors
            assert all(isinstance(name, str) for name in found)
