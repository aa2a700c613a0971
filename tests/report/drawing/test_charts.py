"""Drawings say what their numbers say: places, ticks, colors, words."""

import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from importlib import resources

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semigrad.experiments.store import PARTS
from semigrad.report.drawing.charts import DASHED, Bar, Cell, Series, Table, bar_chart, line_chart, number
from semigrad.report.drawing.maps import confused_pairs, confusion_chart, feature_map, reliability_chart
from semigrad.report.drawing.svg import (
    COLOR_COUNT,
    WIDTH,
    Scale,
    element,
    scale_over,
    shortened,
    shortened_apart,
    width_of,
    written,
)
from tests.report.pages import NASTY, SVG

finite = st.floats(-1e6, 1e6, allow_nan=False)


def parsed(chart):
    return ElementTree.fromstring(str(chart.svg))


def with_class(svg, word):
    return [node for node in svg.iter() if word in (node.get("class") or "").split()]


def points_of(path):
    return np.array([[float(n) for n in pair.split()] for pair in path.get("d")[1:].split("L")])


@given(st.lists(finite, min_size=1, max_size=20), st.booleans())
def test_a_scale_holds_all_values_and_has_round_ticks(values, zero):
    scale = scale_over(values, 10, 110, zero=zero)
    assert all(10 - 1e-6 <= scale(value) <= 110 + 1e-6 for value in values)
    assert zero is False or scale.low <= 0
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 8
    steps = np.diff(ticks)
    assert steps == pytest.approx(np.full(len(steps), steps[0]), rel=1e-6)
    assert f"{steps[0]:.0e}"[0] in "125"


@given(st.lists(st.floats(1e-8, 1e6), min_size=1, max_size=20))
def test_a_log_scale_holds_all_values(values):
    scale = scale_over(values, 110, 10, log=True)
    assert all(10 - 1e-6 <= scale(value) <= 110 + 1e-6 for value in values)
    assert len(scale.ticks()) <= 9


def test_a_scale_is_linear_between_its_ends():
    scale = Scale(2, 4, 100, 300)
    assert [scale(value) for value in (2, 3, 4)] == [100, 200, 300]
    assert Scale(1, 100, 0, 2, log=True)(10) == pytest.approx(1)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (300, "300"),
        (12345, "12,345"),
        (0.123456, "0.123"),
        (1234.56, "1,234.6"),
        (float("nan"), "not finite"),
    ],
)
def test_numbers_for_people(value, words):
    assert written(value) == words


@given(st.text(max_size=60), st.floats(30, 300))
def test_words_are_cut_to_fit_and_keep_both_ends(words, width):
    short = shortened(words, width)
    if short != words:
        assert "…" in short
        assert short[0] == words[0]
        assert width_of(short) <= width or len(short) <= 4


@given(st.text(alphabet="<>&\"'ab", max_size=20))
def test_elements_escape_what_they_are_given(words):
    node = ElementTree.fromstring(str(element("g", element("text", words + "x"), data_tip=words)))
    assert node.get("data-tip") == words
    assert node[0].text == words + "x"


def test_lines_stand_where_their_numbers_are():
    chart = line_chart("a", "t", [Series("first", [0, 50, 100], [1, 3, 2]), Series("b", [0, 100], [2, 2])], "step", "y")
    svg = parsed(chart)
    first, second = [points_of(path) for path in with_class(svg, "line")[:2]]
    assert first[1, 0] == pytest.approx((first[0, 0] + first[2, 0]) / 2, abs=0.1)
    assert first[0, 1] - first[1, 1] == pytest.approx(2 * (first[0, 1] - first[2, 1]), abs=0.2)  # upwards
    assert second[0, 1] == second[1, 1] == pytest.approx(first[2, 1], abs=0.1)
    group = next(node for node in svg.iter(f"{SVG}g") if node.get("data-name") == "first")
    assert [value for _, value in json.loads(group.get("data-values"))] == ["1", "3", "2"]
    assert [node.get("data-key") for node in with_class(svg, "key")] == ["s0", "s1"]
    assert [cell.text for cell in chart.table.rows[1]] == ["50", "3", ""]


def ticks_below(svg):
    """Where the words below the plot stand, and what they say."""
    return [(node.get("x"), node.text) for node in with_class(svg, "tick") if node.get("y") == "235"]


def extent(node):
    """From where to where some words go."""
    x, width = float(node.get("x")), width_of(node.text)
    start = {"start": 0, "middle": width / 2, "end": width}[node.get("text-anchor")]
    return x - start, x - start + width


@pytest.mark.parametrize("last", [3, 12, 800, 30_000, 400_000, 2_000_000])
def test_the_steps_below_a_chart_are_whole_apart_and_within_the_drawing(last):
    chart = line_chart("a", "t", [Series("x", [1, last], [0, 1])], "step", "y")
    words = [node for node in with_class(parsed(chart), "tick") if node.get("y") == "235"]
    assert len(words) >= 2
    values = [float(node.text.replace(",", "")) for node in words]
    assert len(set(values)) == len(values)
    assert all(value == int(value) for value in values)
    assert extent(words[-1])[1] <= WIDTH
    middles = [float(node.get("x")) for node in words]
    assert all(b - a >= width_of(node.text) - 1e-6 for a, b, node in zip(middles, middles[1:], words, strict=False))


def test_a_single_step_has_one_tick_in_the_middle():
    chart = line_chart("a", "t", [Series("x", [60], [1.0])], "step", "y")
    ((x, words),) = ticks_below(parsed(chart))
    assert words == "60"
    assert float(x) == pytest.approx((52 + WIDTH - 12) / 2, abs=12)
    assert float(with_class(parsed(chart), "dot")[0].get("cx")) == float(x)


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e3))
def test_the_words_of_ticks_tell_them_apart_and_are_true(low, reach):
    scale = Scale(low, low + reach, 0, 100)
    values, words = zip(*scale.marks(), strict=True)
    assert len(set(words)) == len(words)
    step = values[1] - values[0]
    assert [float(word.replace(",", "")) for word in words] == pytest.approx(values, abs=step / 100)


def test_an_axis_from_zero_has_more_than_two_ticks():
    for high in np.geomspace(0.3, 3000, 40):
        assert len(scale_over([0.0, high], 60, 360, zero=True).marks_apart()) >= 3, high


def test_error_bars_that_are_not_symmetric_and_never_below_zero():
    chart = line_chart("a", "t", [Series("x", [1, 2], [1, 20], [(-1, 4), (19, 22)])], "step", "y", zero=True)
    svg = parsed(chart)
    line = points_of(with_class(svg, "line")[0])
    unit = (line[0, 1] - line[1, 1]) / 19
    first, second = with_class(svg, "thin")
    floor = line[0, 1] + unit
    assert float(first.get("y1")) == pytest.approx(floor, abs=0.2)
    assert float(second.get("y1")) - line[1, 1] == pytest.approx(unit, abs=0.2)
    assert line[1, 1] - float(second.get("y2")) == pytest.approx(2 * unit, abs=0.2)
    assert min(float(node.text) for node in with_class(svg, "tick") if node.get("text-anchor") == "end") == 0


def test_an_error_bar_stays_with_its_point_where_another_is_not_finite():
    reach = [(0, 9), (2, 4)]
    svg = parsed(line_chart("a", "t", [Series("x", [1, 2], [float("nan"), 3], reach)], "step", "y"))
    (bar,) = with_class(svg, "thin")
    assert bar.get("x1") == with_class(svg, "dot")[0].get("cx")
    height = float(bar.get("y1")) - float(bar.get("y2"))
    unit = height / 2
    assert float(bar.get("y1")) - float(with_class(svg, "dot")[0].get("cy")) == pytest.approx(unit, abs=0.1)


def test_an_axis_ends_at_the_most_that_there_can_be():
    svg = parsed(line_chart("a", "t", [Series("x", [1, 2], [40, 100])], "step", "accuracy, %", most=100))
    assert with_class(svg, "dot")[1].get("cy") == "12"  # at the upper edge


def test_lines_may_share_a_color_and_be_told_apart_by_their_pattern():
    pair = [Series("training", [1, 2], [1, 2], color=3, dashed=True), Series("test", [1, 2], [1, 2], color=3)]
    svg = parsed(line_chart("a", "t", pair, "step", "y"))
    looks = [(node.get("class"), node.get("stroke-dasharray")) for node in with_class(svg, "line")]
    assert looks == [("line c3", DASHED), ("line c3", None)] * 2  # in the plot and in the legend


def test_words_beside_the_plot_are_not_longer_than_it():
    svg = parsed(line_chart("a", "t", [Series("x", [1, 2], [1, 2])], "step", "error on " + "very " * 20 + "many, %"))
    assert width_of(with_class(svg, "label")[1].text) <= 218 - 12


def test_a_log_scale_only_where_it_shows_more():
    def label(values):
        svg = parsed(line_chart("a", "t", [Series("x", [1, 2], values)], "step", "loss", log=True))
        return [node.text for node in with_class(svg, "label")][1]

    assert label([0.01, 2]) == "loss (log)"
    assert label([1, 2]) == "loss"
    assert label([0, 2]) == "loss"


def test_error_bars_reach_as_far_as_the_deviation():
    svg = parsed(line_chart("a", "t", [Series("x", [1, 2], [10, 20], [(8, 12), (20, 20)])], "labels", "y", zero=True))
    (bar,) = with_class(svg, "thin")
    line = points_of(with_class(svg, "line")[0])
    unit = (line[0, 1] - line[1, 1]) / 10
    assert float(bar.get("y1")) - float(bar.get("y2")) == pytest.approx(4 * unit, abs=0.2)


def test_empty_and_single_values_can_be_drawn():
    for series in ([], [Series("x", [], [])], [Series("x", [5], [1.0])], [Series("x", [1, 2], [float("nan"), 3])]):
        parsed(line_chart("a", "t", series, "step", "y", smooth=True, log=True))
    parsed(bar_chart("a", "t", [], ("ours",), "x"))
    parsed(bar_chart("a", "t", [Bar("x", (0.0,))], ("ours",), "x"))


def test_bars_are_as_long_as_their_values_and_the_paper_stands_beside():
    bars = [Bar("one", (10.0,), (1.0,), 20.0), Bar("two", (20.0,), (0.0,))]
    chart = bar_chart("a", "t", bars, ("ours",), "error, %", reference="paper")
    svg = parsed(chart)
    widths = [float(node.get("width")) for node in with_class(svg, "area") if node.get("data-tip")]
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.01)
    diamond = next(node for node in with_class(svg, "reference") if node.get("data-tip"))
    left = next(float(node.get("x")) for node in with_class(svg, "area") if node.get("data-tip"))
    assert float(diamond.get("d")[1:].split()[0]) - left == pytest.approx(widths[1], abs=0.2)
    assert [cell.text for cell in chart.table.rows[0]] == ["one", "10.00 ± 1.00", "20.00"]


def test_whiskers_start_at_zero_at_the_least_and_are_explained():
    chart = bar_chart("a", "t", [Bar("one", (1.0,), (3.0,)), Bar("two", (20.0,), (0.0,))], ("mean ± deviation",), "x")
    svg = parsed(chart)
    left = float(with_class(svg, "area")[0].get("x"))
    starts = [float(node.get("d")[1:].split()[0]) for node in with_class(svg, "whisker")]
    assert min(starts[:2]) == pytest.approx(left, abs=0.1)
    (key,) = with_class(svg, "key")
    assert "mean ± deviation" in "".join(key.itertext())
    assert with_class(key, "whisker")
    assert [cell.text for cell in chart.table.rows[1]] == ["two", "20.00"]
    assert not with_class(parsed(bar_chart("a", "t", [Bar("one", (1.0,))], ("ours",), "x")), "key")


def test_numbers_beside_bars_stay_within_the_drawing_and_keep_three_digits():
    bars = [Bar("one", (0.27,)), Bar("two", (0.31,)), Bar("three", (12345.6,))]
    chart = bar_chart("a", "t", bars, ("ours",), "x", rows="class", write=written)
    words = [node for node in with_class(parsed(chart), "tick") if node.get("text-anchor") == "start"]
    assert [node.text for node in words] == ["0.27", "0.31", "12,345.6"]
    assert all(extent(node)[1] <= WIDTH for node in words)
    assert chart.table.header == ("class", "ours")


def test_the_confusion_matrix_has_every_number():
    confusion = [[8, 2, 0], [0, 5, 5], [1, 0, 9]]
    svg = parsed(confusion_chart(confusion, ["cat", NASTY, "dog"]))
    tips = [node.get("data-tip") for node in with_class(svg, "cell")]
    assert len(tips) == 9
    assert f"{NASTY} answered as dog: 5 of 10" in tips
    shades = {node.get("data-tip"): float(node.get("fill-opacity")) for node in with_class(svg, "cell")}
    assert shades["dog answered as dog: 9 of 10"] > shades[f"{NASTY} answered as dog: 5 of 10"]
    assert sorted(node.text for node in with_class(svg, "inside")) == sorted(["8", "2", "5", "5", "1", "9"])
    assert [cell.text for cell in confused_pairs(confusion, ["cat", "bee", "dog"]).rows[0]] == [
        "bee",
        "dog",
        "5",
        "50.0",
    ]


def test_a_hundred_classes_still_make_a_small_drawing():
    rng = np.random.default_rng(0)
    chart = confusion_chart(rng.integers(0, 3, (100, 100)).tolist(), [f"class {n}" for n in range(100)])
    parsed(chart)
    assert len(chart.svg) < 1_200_000
    assert len(chart.table.rows) == 40  # the worst pairs, not ten thousand numbers


def test_reliability_bars_stand_at_their_accuracy():
    bins = [{"low": 40.0, "high": 50.0, "count": 4, "confidence": 45.0, "accuracy": 25.0},
            {"low": 90.0, "high": 100.0, "count": 16, "confidence": 97.0, "accuracy": 50.0}]  # fmt: skip
    svg = parsed(reliability_chart(bins, 12.3, "over 20 examples"))
    heights = [float(node.get("height")) for node in with_class(svg, "area") if node.get("data-tip")]
    assert heights[1] == pytest.approx(2 * heights[0])


def test_the_map_tells_parts_and_classes_apart():
    points = np.array([[0, 0], [1, 1], [2, 0], [3, 3.0]])
    chart = feature_map(points, np.array([0, 1, 0, -1]), np.array([0, 1, 2, 1]), ["a", "b"], "t")
    keys = [node.get("data-keys") for node in parsed(chart).iter() if (node.get("data-keys") or "").startswith("p")]
    assert sorted(keys) == ["p0 k0", "p1 k-1", "p1 k1", "p2 k0"]
    assert chart.table.header == ("class", *PARTS)
    assert [cell.text for cell in chart.table.rows[0]] == ["a", "1", "0", "1"]


def test_names_on_the_map_do_not_cover_each_other():
    points = np.array([[0, 0], [0.01, 0], [9, 9.0], [5, 5]])
    svg = parsed(feature_map(points, np.arange(4), np.zeros(4, int), ["first", "second", "third", "fourth"], "t"))
    assert [node.text for node in with_class(svg, "onmap")] == ["first", "third", "fourth"]
    assert len(with_class(svg, "key")) == 5  # the legend has all of them


def test_tables_know_which_columns_are_numbers():
    table = Table(("a", "b"), [(Cell("x"), Cell("")), (Cell("y"), number(1.234))])
    assert table.columns == [("a", False), ("b", True)]
    assert number(None) == Cell("")
    assert number(float("nan"), none="-") == Cell("-")


def luminance(color):
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(first, second):
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def themes():
    """Names and colors: light, dark by preference, dark by choice."""
    folder = resources.files("semigrad.report") / "templates"
    blocks = re.findall(
        r":root[^{]*\{(.*?)\}", (folder / "light.css").read_text() + (folder / "style.css").read_text(), re.S
    )
    assert len(blocks) == 3
    return [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in blocks]


def cielab(color):
    """Where the eye sees it: distances below about 20 are hard to tell apart in thin lines."""
    parts = np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(to_xyz @ linear / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_first_six_lines_of_a_chart_have_colors_that_can_be_told_apart():
    for theme in themes():
        for first, second in itertools.combinations(range(6), 2):
            apart = np.linalg.norm(cielab(theme[f"c{first}"]) - cielab(theme[f"c{second}"]))
            assert apart > 30, (first, second)


def test_colors_stand_out_on_light_and_dark_pages():
    light, dark, chosen = themes()
    assert dark == chosen
    for theme in (light, dark):
        for name in (f"c{place}" for place in range(COLOR_COUNT)):
            assert contrast(theme[name], theme["page"]) >= 3, name
        for name in ("ink", "soft", "accent", "bad", "good"):
            assert contrast(theme[name], theme["page"]) >= 4.5, name
            assert contrast(theme[name], theme["raised"]) >= 4.5, name


def test_names_that_are_cut_stay_apart():
    names = ["meta-gradient, meta False, mixup True", "meta-gradient, meta True, mixup True", "supervised"]
    cut = shortened_apart(names, 120)
    assert cut == ["… meta False", "… meta True", "supervised"]
    assert shortened_apart(["a" * 99, "a" * 99], 60)[0].count("…") == 1  # the same name twice stays what it is
