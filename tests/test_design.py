"""What docs/design.md says of the layers is what test_layers.py enforces."""

import re
from pathlib import Path

from tests.test_layers import LAYERS

DESIGN = Path(__file__).parents[1] / "docs" / "design.md"


def test_the_table_of_layers_has_the_rows_that_are_enforced():
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", DESIGN.read_text("utf-8"), re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, len(LAYERS) + 1))
    assert [set(re.findall(r"`(\w+)/?`", modules)) for _, modules in rows] == LAYERS
