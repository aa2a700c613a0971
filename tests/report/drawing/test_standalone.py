"""Charts as files: the look of the page in every element, nothing that only a page needs, the same in both formats."""

import dataclasses
import re

import numpy as np
import pytest
from PIL import Image

from semigrad.report.drawing.charts import Bar, Chart, Series, Table, bar_chart, line_chart
from semigrad.report.drawing.maps import confusion_chart, feature_map, reliability_chart
from semigrad.report.drawing.raster import PIXELS
from semigrad.report.drawing.standalone import INVISIBLE, as_text, asset, light_rules, stand_alone
from semigrad.report.drawing.svg import WIDTH, drawing, element
from semigrad.report.page import save_pictures
from tests.report.browser import browse, needs_browser
from tests.report.pages import NASTY, SVG, drawings

BLUE, ORANGE, WHITE = (0, 114, 178), (213, 94, 0), (255, 255, 255)
BINS = [{"low": 40.0, "high": 50.0, "count": 4, "confidence": 45.0, "accuracy": 25.0}]
CHARTS = {
    "lines": lambda: line_chart("lines", NASTY, [Series("a", [1, 2], [1, 2], [(0, 3)] * 2), Series("b", [1, 2], [2, 2],
                                color=0, dashed=True)], "step", "y $1 and $2", smooth=True),
    "bars": lambda: bar_chart("bars", "t", [Bar("one", (10.0,), (1.0,), 20.0)], ("ours",), "x", reference="paper"),
    "confusion": lambda: confusion_chart([[8, 2], [1, 9]], ["a long name of a class", "another long name"]),
    "reliability": lambda: reliability_chart(BINS, 1.0, "over 4"),
    "map": lambda: feature_map(np.eye(3, 2), np.array([0, 1, -1]), np.arange(3), ["a", "b"], "t", "map"),
}  # fmt: skip


@pytest.fixture(params=CHARTS)
def files(request, tmp_path):
    return save_pictures([CHARTS[request.param]()], tmp_path)


def test_nothing_is_in_a_file_that_only_a_page_needs(files):
    text = files[0].read_text()
    (svg,) = drawings(files[0])
    names = {name for node in svg.iter() for name in node.attrib}
    assert not {name for name in names if re.match("data-|aria-|role|tabindex|class", name)}
    assert not re.search(r"var\(|<style|transparent", text)
    assert svg.find(f"{SVG}desc").text


def test_every_element_has_its_color(files):
    (svg,) = drawings(files[0])
    for node in svg.iter():
        kind = node.tag.removeprefix(SVG)
        if kind in ("rect", "circle", "path", "text"):
            assert node.get("fill") or node.get("stroke"), node.attrib
        elif kind == "line":
            assert node.get("stroke"), node.attrib


def test_the_picture_has_the_size_of_the_drawing(files):
    (svg,) = drawings(files[0])
    *_, width, height = map(float, svg.get("viewBox").split())
    with Image.open(files[1]) as image:
        assert image.size == pytest.approx((PIXELS * width, PIXELS * height), abs=1)


def test_rules_that_name_more_classes_are_stronger():
    chart = reliability_chart(BINS, 1.0, "over 4")
    looks = [node.attrib for node in stand_alone(chart.svg).iter(f"{SVG}text")]
    assert {(look["fill"], look["font-size"]) for look in looks} >= {("#56606e", "12"), ("#1d2430", "14")}


def test_every_rule_of_the_page_is_read():
    known = {name for rule in light_rules() for name in rule.classes}
    assert known | {"chart"} == set(re.findall(r"\.([a-z]\w*)", asset("chart.css")))
    assert known >= INVISIBLE


def pixel(path, x, y):
    """The color at a place of the drawing."""
    return Image.open(path).convert("RGB").getpixel((round(PIXELS * x), round(PIXELS * y)))


def test_shapes_stand_where_the_drawing_has_them(tmp_path):
    shapes = [
        element("rect", x=10, y=10, width=20, height=20, class_="area c0"),
        element("path", d="M100 50l20 0l0 20l-20 0z", class_="area c1"),
        element("path", d="M200 40L240 40", class_="line c0"),
        element("circle", cx=300, cy=50, r=10, class_="dot c1"),
        element("rect", x=350, y=10, width=20, height=20, class_="area c0", fill_opacity=0.5),
    ]
    shown = drawing("", "", 100, element("g", *shapes, transform="translate(5 0)"), element("g"))
    _, picture = save_pictures([Chart("shapes", shown, Table((), []))], tmp_path)
    places = {(25, 44): BLUE, (7, 44): WHITE, (115, 84): ORANGE, (95, 84): WHITE, (220, 64): BLUE, (220, 70): WHITE,
              (305, 74): ORANGE, (365, 44): (127, 184, 216)}  # fmt: skip
    for place, color in places.items():
        assert pixel(picture, *place) == pytest.approx(color, abs=2), place


@needs_browser
def test_the_picture_is_what_a_browser_makes_of_the_drawing(files, tmp_path):
    drawn, shot = files[1], tmp_path / "shot.png"
    image = Image.open(drawn).convert("L")
    size = f"--window-size={image.width * 2 // PIXELS},{image.height * 2 // PIXELS}"
    browse(files[0], tmp_path, f"--screenshot={shot}", size, "--hide-scrollbars")
    small = [np.asarray(each.resize((105, 80)), float) for each in (image, Image.open(shot).convert("L"))]
    assert np.abs(small[0] - small[1]).mean() < 4
    assert small[0].std() > 4


def test_a_file_is_as_wide_as_twice_the_drawing():
    text = as_text(stand_alone(CHARTS["bars"]().svg)).decode()
    assert f'width="{2 * WIDTH:g}"' in text


def test_what_xml_forbids_is_replaced(tmp_path):
    chart = confusion_chart([[8, 2], [1, 9]], ["bell\x07", "escape\x1b and \ud800"])
    svg, picture = save_pictures([chart], tmp_path)
    words = [node.text for node in drawings(svg)[0].iter(f"{SVG}text")]
    assert "bell\ufffd" in words
    assert picture.exists()


def test_long_names_are_shortened_and_told_apart(tmp_path):
    names = [f"results-npz:{'ä' * 240}{end}" for end in ("one", "two")]
    charts = [dataclasses.replace(CHARTS["bars"](), name=name) for name in names]
    paths = save_pictures(charts, tmp_path)
    assert len({*paths}) == 4
    assert all(path.exists() and path.name.startswith("results-npz-ää") for path in paths)
    assert {len(path.name.encode()) <= 200 for path in paths} == {True}
