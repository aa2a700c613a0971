"""What docs/design.md says is so: the layers are those that are enforced, the loop is the one that runs."""

import re
from pathlib import Path

import torch
from safetensors.torch import load_file

from tests.small_runs import go, small
from tests.test_layers import LAYERS

DESIGN = Path(__file__).parents[1] / "docs" / "design.md"


def test_the_table_of_layers_has_the_rows_that_are_enforced():
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", DESIGN.read_text("utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(LAYERS) + 1))
    assert [set(re.findall(r"`([\w.]+)/?`", modules)) for _, modules in rows] == LAYERS


def test_the_loop_of_the_first_minute_gives_the_bits_of_the_real_one(tmp_path):
    """Through a prologue, a teacher and statistics that are estimated for an average."""
    (block,) = re.findall(r"```python\n(.*?)```", DESIGN.read_text("utf-8"), re.DOTALL)
    assert len([line for line in block.split("def train")[1].splitlines() if line.strip()]) <= 40
    names = {}
    exec(block, names)
    for method in ("tnar", "mean-teacher", "mean-teacher+fast-swa", "meta-gradient"):
        run = small(method=method)
        result = go(run, tmp_path / method)
        answering, error = names["train"](run)
        saved = load_file(tmp_path / method / "model.safetensors")
        assert all(torch.equal(value, saved[name]) for name, value in answering.state_dict().items())
        assert error == result["error"]
