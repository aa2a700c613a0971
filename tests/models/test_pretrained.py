"""Files of weights are told apart by what they are, not by a byte that either kind may begin with."""

import torch
from safetensors.torch import save

from semigrad.models import MLP
from semigrad.models.pretrained import read_weights

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
