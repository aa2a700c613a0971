"""What the names in a line of metrics stand for."""

import re
from pathlib import Path

import pytest

import semigrad
from semigrad.folder.metrics import ERRORS, OF_EVERY_LINE, PSEUDO_LABELS, errors_in, names_in, prepares, terms_in

LINES = [
    {"step": 1, "loss": 2.0, "labeled": 1.5, "sharpness_error": 0.5, "lr": 0.1, "seconds": 0.2},
    {"step": 2, "loss": 2.0, "test_error": 12.0, "pseudo_label_share": 0.5, "labeled": 1.0, "validation_error": 9.0},
]


def test_names_come_in_the_order_in_which_they_are_met():
    assert names_in(LINES) == [
        "step", "loss", "labeled", "sharpness_error", "lr", "seconds", "test_error", "pseudo_label_share",
        "validation_error",
    ]  # fmt: skip


def test_every_name_is_of_one_kind():
    assert errors_in(LINES) == ["test_error", "validation_error"]
    assert terms_in(LINES) == ["labeled", "sharpness_error"]  # a term may be called an error
    kinds = [OF_EVERY_LINE, PSEUDO_LABELS, ERRORS]
    assert sum(map(len, kinds)) == len({name for kind in kinds for name in kind})


@pytest.mark.parametrize(("step", "expected"), [(-3, True), (0, True), (1, False)])
def test_a_line_of_the_prologue(step, expected):
    assert prepares({"step": step}) is expected


def test_no_other_file_spells_the_names():
    root = Path(semigrad.__file__).parent
    spelled = re.compile("|".join(f"[\"']{name}" for name in ("pseudo_label_", *ERRORS, "_error[\"']")))
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if spelled.search(path.read_text("utf-8"))}
    assert found == {"folder/metrics.py"}
