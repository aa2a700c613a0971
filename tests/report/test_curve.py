"""The learning curve: charts of the page in one picture, with the title and the test error above them."""

import json
import shutil

import numpy as np
import pytest
from PIL import Image

from semigrad.report.curve import curve_drawing, learning_curve
from semigrad.report.drawing.raster import PIXELS
from semigrad.report.page import run_page
from tests.report.pages import SVG, titles
from tests.small_runs import go, small


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curves")
    go(small(steps=12, validation=50, validate_every=4, test_every=4), folder / "full")
    go(small(steps=1, method="supervised"), folder / "short")
    return folder


def words(folder):
    return [node.text for node in curve_drawing(folder).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", ["full", "short"])
def test_the_learning_curve_is_a_picture_with_something_in_it(name, pictures):
    path = learning_curve(pictures / name)
    with Image.open(path) as image:
        assert image.width > 800
        assert len(image.convert("RGB").getcolors(2**24)) > 50
    first = path.read_bytes()
    assert learning_curve(pictures / name).read_bytes() == first


def test_a_learning_curve_without_lines(pictures, tmp_path):
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "metrics.jsonl").write_text("")
    assert learning_curve(tmp_path).exists()
    assert "nothing recorded yet" in words(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 0.0, "labeled": 0.0}\n')
    assert learning_curve(tmp_path).exists()
    assert "Loss, term by term" in words(tmp_path)


def test_the_charts_are_those_of_the_page(pictures):
    shown = [title for title in titles(run_page(pictures / "full")) if title in words(pictures / "full")]
    assert shown == ["Error", "Loss, term by term", "Pseudo-labels of each batch"]


def test_title_and_test_error_stand_above(pictures):
    test = json.loads((pictures / "full" / "result.json").read_text())["test"]
    low, high = test["error_interval"]
    assert words(pictures / "full")[:3] == [
        "meta-gradient on digits@40, seed 0", f"test error {test['error']:.2f} %",
        f"95 % interval {low:.2f} to {high:.2f} % over 500 examples",
    ]  # fmt: skip


@pytest.mark.parametrize(("official", "said"), [(73257, True), (1297, False), (None, False)])
def test_data_that_are_a_part_only_say_so(official, said, pictures, tmp_path):
    folder = shutil.copytree(pictures / "short", tmp_path / "run")
    content = json.loads((folder / "run.json").read_text())
    content["data"] |= {"title": "digits, a part", "official": official}
    (folder / "run.json").write_text(json.dumps(content))
    assert ("data: digits, a part" in words(folder)) is said


def test_nothing_is_cut_at_the_edges(pictures, tmp_path):
    folder = shutil.copytree(pictures / "full", tmp_path / "run")
    content = json.loads((folder / "run.json").read_text())
    content["run"]["data"] = f"folder:/home/{'Some_Pictures/' * 8}of many things@40"
    (folder / "run.json").write_text(json.dumps(content))
    with Image.open(learning_curve(folder)) as image:
        seen = np.asarray(image.convert("L"))
    assert (seen[:, -PIXELS:] == 255).all()
    assert (seen[-PIXELS:] == 255).all()
    assert (seen[:PIXELS] == 255).all()
    assert words(folder)[-1] == "confidence"
