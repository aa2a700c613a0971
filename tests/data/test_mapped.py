"""Pictures that are mapped from a file because they are many: the same training, less memory, nothing left behind."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from semigrad.data import album, mapped, open_dataset
from semigrad.errors import InputError
from semigrad.folder.files import read_json
from tests.small_runs import go, metrics, small, weights


@pytest.fixture
def folder(tmp_path):
    """Class folders of noise, one file of which is no picture."""
    rng = np.random.default_rng(0)
    for part, count in (("train", 40), ("test", 5)):
        for name in ("cat", "dog"):
            (tmp_path / "photos" / part / name).mkdir(parents=True)
            for number in range(count):
                pixels = rng.integers(0, 256, (12, 12, 3), np.uint8)
                Image.fromarray(pixels).save(tmp_path / "photos" / part / name / f"{number:02}.png")
    (tmp_path / "photos" / "train" / "cat" / "07.png").write_bytes(b"no picture")
    return tmp_path / "photos"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMIGRAD_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def test_training_is_the_same_to_the_bit_and_nothing_is_left_behind(folder, root, monkeypatch, tmp_path):
    run = small(f"folder:{folder}@10", steps=6, method="fixmatch")
    go(run, tmp_path / "in memory")
    assert not root.exists()
    monkeypatch.setattr(mapped, "MAPPED_FROM", 0)
    data = open_dataset("folder", folder)
    assert (data.train.mapped, data.test.mapped, len(data.train), len(data.test)) == (True, True, 79, 10)
    assert list(root.iterdir()) == []
    go(run, tmp_path / "mapped")
    assert weights(tmp_path / "mapped") == weights(tmp_path / "in memory")
    assert metrics(tmp_path / "mapped") == metrics(tmp_path / "in memory")
    one, other = (read_json(tmp_path / way / "run.json")["data"] for way in ("mapped", "in memory"))
    assert one == other  # counts, fingerprint and notes
    assert list(root.iterdir()) == []


def test_where_there_is_no_room_for_a_file_memory_has_to_do(folder, root, monkeypatch):
    monkeypatch.setattr(mapped, "MAPPED_FROM", 0)
    root.write_text("no folder")
    assert not open_dataset("folder", folder).train.mapped
    monkeypatch.setattr(mapped, "MEMORY_LIMIT", 1000)
    with pytest.raises(InputError, match=r"GB of pictures do not fit into .*data \(File exists\). Give a smaller"):
        open_dataset("folder", folder)


def test_a_disk_too_small_says_so_before_reading(folder, root):
    paths = [str(folder / "train" / "cat" / "00.png")] * 500
    with pytest.raises(InputError, match=r"15,000\.0 GB of pictures do not fit into .* GB are free there.*imagenet"):
        album.read(paths, 100_000)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_is_mapped_is_no_memory_of_the_process(folder, root):
    """90 pictures of 512 x 512 are 71 MB."""
    script = """
import re, sys
from pathlib import Path
from semigrad.data import mapped, open_dataset
mapped.MAPPED_FROM = int(sys.argv[2])
def own():
    return int(re.search(r"RssAnon:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1000
before = own()
data = open_dataset("folder", Path(sys.argv[1]), image_size=512)
print(own() - before)
"""
    taken = [
        float(subprocess.check_output([sys.executable, "-c", script, str(folder), str(limit)], text=True))
        for limit in (10**9, 0)
    ]
    assert taken[0] - taken[1] > 60, taken
