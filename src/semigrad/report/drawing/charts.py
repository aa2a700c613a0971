"""Charts as inline SVG, each with the table that says the same in words: lines, bars."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from semigrad.report.drawing import svg
from semigrad.report.drawing.svg import WIDTH, Entry, Frame, Scale, drawing, element, line, text, written

DASHED = "5 4"
LOG_RATIO = 20.0
"""Where the largest value is so many times the smallest, a log scale shows more."""


@dataclass(frozen=True)
class Cell:
    """A place in a table: what is shown, and the number that it is sorted by."""

    text: str
    value: float | None = None


def number(value: float | None, form: str = ".2f", none: str = "") -> Cell:
    """A cell with a number, or an empty one."""
    return Cell(none) if value is None or math.isnan(value) else Cell(format(value, form), value)


@dataclass(frozen=True)
class Table:
    header: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    caption: str = ""

    @property
    def columns(self) -> list[tuple[str, bool]]:
        """The headings, and whether numbers stand below them."""
        numbers = [any(row[place].value is not None for row in self.rows) for place in range(len(self.header))]
        return list(zip(self.header, numbers, strict=True))


@dataclass(frozen=True)
class Chart:
    """A picture with everything around it."""

    name: str  # of its file
    svg: Markup
    table: Table
    caption: str = ""


@dataclass(frozen=True)
class Series:
    """A named line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    reach: Sequence[tuple[float, float]] = ()  # from where to where the error bar of each point goes
    color: int | None = None  # None: that of its place among the lines
    dashed: bool = False

    def look(self, place: int) -> dict[str, str | None]:
        """Color and pattern, as attributes."""
        number = place if self.color is None else self.color
        return {"class_": f"line {svg.color(number)}", "stroke_dasharray": DASHED if self.dashed else svg.dash(number)}


def line_chart(
    name: str, title: str, series: Sequence[Series], x_label: str, y_label: str, *, caption: str = "",
    smooth: bool = False, log: bool = False, log_x: bool = False, top: float | None = None, zero: bool = False,
    most: float = math.inf, named: bool = False,
) -> Chart:  # fmt: skip
    """Lines over a common axis; `smooth` puts the running mean over the faint values, `log` allows a log
    scale, `top` fixes the axis from 0 to that, `zero` starts it at 0 for values that are never below, and it does not
    go beyond `most` for values that are never above; `named` puts even a single line into a legend."""
    xs = [value for each in series for value in each.x]
    ends = [end for each in series for reach in each.reach for end in reach]
    ys = [value for each in series for value in each.y] + [max(0.0, end) if zero else end for end in ends]
    log = log and bool(ys) and min(ys) > 0 and max(ys) > LOG_RATIO * min(ys)
    frame = Frame()
    y = (
        Scale(0, top, frame.bottom, frame.top)
        if top
        else svg.scale_over(ys, frame.bottom, frame.top, zero=zero, log=log, most=most)
    )
    frame = Frame(left=30 + max(svg.width_of(words) for _, words in y.marks()))
    x, below = _horizontal(xs, frame, log_x)
    drawn = [_draw(each, place, x, y, smooth) for place, each in enumerate(series)]
    entries = [_line_entry(each, place) for place, each in enumerate(series)] if named or len(series) > 1 else []
    keys, end = svg.legend(entries, frame.bottom + 44)
    points = json.dumps([[round(x(value), 1), written(value)] for value in sorted(set(xs))])
    ground = element(
        "rect", x=frame.left, y=frame.top, width=frame.right - frame.left, height=frame.bottom - frame.top,
        class_="hover", data_x=points, data_label=x_label,
    )  # fmt: skip
    plot = Markup("").join([frame.axes(x, y, x_label, y_label + (" (log)" if log else ""), below), *drawn, ground])
    described = f"Lines of {y_label} over {x_label}: {', '.join(each.name for each in series)}."
    return Chart(name, drawing(title, described, end, plot, keys), _line_table(series, x_label), caption)


def _horizontal(xs: Sequence[float], frame: Frame, log: bool) -> tuple[Scale, list[tuple[float, str]]]:
    """The scale from edge to edge, and its marks: every value on a log scale, and never parts of one step."""
    start, end = frame.left + 4, frame.right - 4
    low, high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    every = [(value, written(value)) for value in sorted(set(xs))]
    if log:
        return svg.scale_over(xs, start, end, log=True), every
    if low == high:
        return Scale(low - 1, low + 1, start, end), every
    scale = Scale(low, high, start, end)
    return scale, scale.marks_apart(least=float(all(value == int(value) for value in xs)))


def _draw(series: Series, place: int, x: Scale, y: Scale, smooth: bool) -> Markup:
    look = series.look(place)
    points = [(a, b) for a, b in zip(series.x, series.y, strict=True) if math.isfinite(b)]
    means = _running_mean([b for _, b in points]) if smooth else [b for _, b in points]
    parts = []
    if smooth and len(points) >= 40:
        parts.append(element("path", d=_path([(x(a), y(b)) for a, b in points]), class_=f"{look['class_']} faint"))
    path = _path([(x(a), y(b)) for (a, _), b in zip(points, means, strict=True)])
    parts.append(element("path", d=path, **look))
    if len(points) <= 25:
        dot = str(look["class_"]).replace("line", "dot")
        parts += [element("circle", cx=x(a), cy=y(b), r=3, class_=dot) for a, b in points]
    for a, b, reach in zip(series.x, series.y, series.reach, strict=False):
        low, high = (max(end, y.low) for end in reach)
        if math.isfinite(b) and high > low:
            parts.append(line(x(a), y(low), x(a), y(high), f"{look['class_']} thin"))
    values = json.dumps([[round(x(a), 1), written(b)] for a, b in points])
    return element("g", *parts, data_keys=f"s{place}", data_name=series.name, data_values=values)


def _running_mean(values: Sequence[float]) -> list[float]:
    """Over a twentieth of the line, the window cut at both ends."""
    half = len(values) // 40
    windows = [values[max(0, place - half) : place + half + 1] for place in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points) if points else "M0 0"


def _line_entry(series: Series, place: int) -> Entry:
    return Entry(f"s{place}", series.name, element("path", d="M0 5L18 5", **series.look(place)))


def _line_table(series: Sequence[Series], x_label: str) -> Table:
    """The values at up to twenty places, the last one among them."""
    places = sorted({value for each in series for value in each.x})
    every = max(1, math.ceil(len(places) / 20))
    kept = places[::-1][::every][::-1]
    known = [dict(zip(each.x, each.y, strict=True)) for each in series]
    rows = [
        (Cell(written(x), x), *(Cell(written(values[x]), values[x]) if x in values else Cell("") for values in known))
        for x in kept
    ]
    return Table((x_label, *(each.name for each in series)), rows)


@dataclass(frozen=True)
class Bar:
    """A row of a bar chart: a value for each group, with half the length of its error bar, and a mark to compare."""

    name: str
    values: tuple[float, ...]
    spreads: tuple[float, ...] = ()
    reference: float | None = None


def two_decimals(value: float) -> str:
    return f"{value:.2f}"


Write = Callable[[float], str]
"""How the values of bars are written."""


def bar_chart(
    name: str, title: str, bars: Sequence[Bar], groups: Sequence[str], x_label: str, *, reference: str = "",
    rows: str = "method", write: Write = two_decimals, caption: str = "",
) -> Chart:  # fmt: skip
    """Horizontal bars, so that long names have room; `reference` names the mark that stands for it, `rows` says what
    the bars are."""
    thick = 15.0 if len(groups) == 1 else 9.0
    high = thick * len(groups) + 8
    left = min(150.0, 14 + max((svg.width_of(bar.name) for bar in bars), default=20))
    beside = max((svg.width_of(write(bar.values[0])) for bar in bars), default=0) + 4 if len(groups) == 1 else 14
    frame = Frame(left=left, top=4, right=WIDTH - beside, bottom=4 + high * len(bars))
    ends = [v + s for bar in bars for v, s in zip(bar.values, bar.spreads or (0.0,) * len(bar.values), strict=True)]
    ends += [bar.reference for bar in bars if bar.reference is not None]
    x = svg.scale_over([0.0, *ends], frame.left, frame.right, zero=True)
    parts = [_bar_axis(frame, x, x_label)]
    names = svg.shortened_apart([bar.name for bar in bars], left - 12)
    for row, bar in enumerate(bars):
        top = frame.top + high * row + 4
        parts.append(text(left - 7, top + (high - 8) / 2 + 4, names[row], "end"))
        parts += [_bar(bar, place, groups, x, top + thick * place, thick, write) for place in range(len(groups))]
        if bar.reference is not None:
            parts.append(_diamond(x(bar.reference), top + (high - 8) / 2, f"{bar.name}, {reference}", bar.reference))
    whiskers = any(half > 0 for bar in bars for half in bar.spreads)
    entries = [_box_entry(group, place, whiskers) for place, group in enumerate(groups)]
    if not (len(groups) > 1 or reference or whiskers):
        entries = []
    if reference:
        entries.append(Entry("reference", reference, _diamond(9, 5, "", 0)))
    keys, end = svg.legend(entries, frame.bottom + 44)
    described = f"Bars of {x_label} for {', '.join(bar.name for bar in bars)}."
    return Chart(name, drawing(title, described, end, Markup("").join(parts), keys),
                 _bar_table(bars, (rows, *groups), reference, write), caption)  # fmt: skip


def _bar_axis(frame: Frame, x: Scale, label: str) -> Markup:
    parts = [text((frame.left + frame.right) / 2, frame.bottom + 34, label, class_="label")]
    for value, words in x.marks_apart():
        parts.append(line(x(value), frame.top, x(value), frame.bottom, "grid"))
        parts.append(text(x(value), frame.bottom + 17, words))
    return Markup("").join([*parts, line(frame.left, frame.top, frame.left, frame.bottom, "axis")])


def _bar(bar: Bar, place: int, groups: Sequence[str], x: Scale, top: float, thick: float, write: Write) -> Markup:
    value, half = bar.values[place], bar.spreads[place] if bar.spreads else 0.0
    if not math.isfinite(value):
        return Markup("")
    tip = f"{bar.name}, {groups[place]}: {write(value)}" + (f" ± {write(half)}" if half > 0 else "")
    middle, end = top + thick / 2, x(value + half)
    parts = [element("rect", x=x(0), y=top, width=max(0.5, x(value) - x(0)), height=thick - 1,
                     class_=f"area {svg.color(place)}", data_tip=tip)]  # fmt: skip
    if half > 0:
        parts.append(_whisker(x(max(0.0, value - half)), end, middle))
    if len(groups) == 1:
        parts.append(text(max(end, x(bar.reference or 0) + 4) + 4, middle + 3.5, write(value), "start"))
    return element("g", *parts, data_keys=f"s{place}")


def _whisker(start: float, end: float, y: float) -> Markup:
    reach = f"M{start:.1f} {y - 3:.1f}l0 6m0 -3L{end:.1f} {y:.1f}m0 -3l0 6"
    return Markup("").join(element("path", d=reach, class_=kind) for kind in ("whisker halo", "whisker"))


def _diamond(x: float, y: float, name: str, value: float) -> Markup:
    tip = f"{name}: {written(value)}" if name else None
    path = f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"
    return element("path", d=path, class_="reference", data_keys="reference", data_tip=tip)


def _box_entry(name: str, place: int, whisker: bool) -> Entry:
    box = element("rect", x=0, y=0, width=12 if whisker else 18, height=10, class_=f"area {svg.color(place)}")
    return Entry(f"s{place}", name, box + _whisker(6, 18, 5) if whisker else box)


def _bar_table(bars: Sequence[Bar], header: tuple[str, ...], reference: str, write: Write) -> Table:
    rows = []
    for bar in bars:
        halves = bar.spreads or (0.0,) * len(bar.values)
        words = [
            write(value) + (f" ± {write(half)}" if half > 0 else "")
            for value, half in zip(bar.values, halves, strict=True)
        ]
        shown = [Cell(said, value) for said, value in zip(words, bar.values, strict=True)]
        compared = [] if bar.reference is None else [Cell(write(bar.reference), bar.reference)]
        rows.append((Cell(bar.name), *shown, *((compared or [Cell("")]) if reference else [])))
    return Table((*header, *([reference] if reference else [])), rows)
