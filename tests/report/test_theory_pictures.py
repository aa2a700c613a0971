"""The pictures of the theory are written like all others, and loading them changes nothing for a user's own."""

import subprocess
import sys

import pytest
from PIL import Image

from semigrad.errors import InputError
from semigrad.report.theory import consistency_picture
from semigrad.theory.consistency import Shares

NORMS = dict.fromkeys(("total", "meta", "modes", "projection"), (3.0, 2.0, 1.0))
SHARES = Shares(drop=0.3, steps=(0, 10, 20), norms=NORMS, cosine=(1.0, 1.0, 1.0), residual=0.0)


def test_loading_them_chooses_no_backend():
    check = "import sys, semigrad.report.theory; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False, timeout=120).returncode == 0


def test_a_picture_is_written_whole(tmp_path):
    path = consistency_picture([SHARES, SHARES], tmp_path / "a.png")
    with Image.open(path) as image:
        assert len(image.convert("RGB").getcolors(2**24)) > 20
    first = path.read_bytes()
    assert consistency_picture([SHARES, SHARES], path).read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]


def test_a_picture_that_cannot_be_written_says_so(tmp_path):
    with pytest.raises(InputError, match=r"Cannot write .*a\.png"):
        consistency_picture([SHARES], tmp_path / "nowhere" / "a.png")
