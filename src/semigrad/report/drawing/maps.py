"""Charts of classes: who is taken for whom, how sure answers may be, where the features lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from semigrad.experiments.store import PARTS
from semigrad.report.drawing import svg
from semigrad.report.drawing.charts import Cell, Chart, Table, number
from semigrad.report.drawing.svg import WIDTH, Entry, Frame, Scale, color, drawing, element, line, text, written
from semigrad.training.evaluate import Confusion, entries_of

NUMBERED = 12
"""Up to so many classes the cells of a matrix have room for a number."""
MATRIX_LIMIT = 120
"""Beyond so many classes its cells could not be seen."""


def confusion_chart(confusion: list[list[int]], classes: Sequence[str]) -> Chart:
    """Rows are the true classes, columns the answers; the color of a cell is as strong as its share of the row."""
    count = len(classes)
    names = [svg.shortened(name, 74) for name in classes]
    widest = max(map(svg.width_of, names))
    left = min(106.0, 30 + widest)
    side = min(40.0, (WIDTH - left - 14) / count)
    high = min(side, 30.0) if count <= NUMBERED else side
    parts = [_confusion_row(row, confusion[row], classes, left, side, high) for row in range(count)]
    long = widest > side
    bottom = 4 + high * count
    for place in range(0, count, math.ceil(14 / high)):
        parts.append(text(left - 6, 4 + high * (place + 0.5) + 4, names[place], "end"))
    for place in range(0, count, math.ceil((20 if long else 0.1) / side)):  # leaning words need more room
        x = left + side * (place + 0.5)
        turn = f"rotate(-40 {x:.1f} {bottom + 12:.1f})" if long else None
        parts.append(text(x, bottom + 15, names[place], "end" if long else "middle", transform=turn))
    end = bottom + (18 + 0.64 * widest if long else 20)
    middle = 4 + high * count / 2
    parts.append(text(left + side * count / 2, end + 14, "answer", class_="label"))
    parts.append(text(12, middle, "true class", class_="label", transform=f"rotate(-90 12 {middle:.1f})"))
    picture = drawing("Confusion matrix of the test part", "Table below.", end + 20, Markup("").join(parts), Markup(""))
    rows = [(Cell(name), *(Cell(str(n), n) for n in row)) for name, row in zip(classes, confusion, strict=True)]
    table = Table(("true class \\ answer", *classes), rows) if count <= 20 else confused_pairs(confusion, classes, 40)
    caption = "Rows are true classes. Stronger color: a larger share of the row (by its square root)."
    return Chart("confusion", picture, table, caption)


def _confusion_row(
    row: int, counts: Sequence[int], classes: Sequence[str], left: float, side: float, high: float
) -> Markup:
    total, top, parts = sum(counts) or 1, 4 + high * row, []
    for column, n in enumerate(counts):
        share = n / total
        kind = "right" if row == column else "wrong"
        if n or len(classes) <= NUMBERED:
            parts.append(
                element("rect", x=left + side * column, y=top, width=side - side / 20, height=high - high / 20,
                        class_=f"cell {kind}", fill_opacity=round(0.06 + 0.94 * share**0.5, 2) if n else 0.03,
                        data_tip=f"{classes[row]} answered as {classes[column]}: {n:,} of {total:,}")
            )  # fmt: skip
        if n and len(classes) <= NUMBERED:
            shade = "inside dark" if share > 0.6 else "inside"
            parts.append(text(left + side * (column + 0.48), top + high / 2 + 4, str(n), class_=shade))
    return Markup("").join(parts)


def confused_pairs(confusion: Confusion, classes: Sequence[str], most: int = 10) -> Table:
    """The mistakes that were made most often."""
    entries = entries_of(confusion)
    totals = np.bincount(entries[:, 0], entries[:, 2], len(classes))
    pairs = [(n, true, answer, totals[true]) for true, answer, n in entries.tolist() if true != answer]
    pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2]))
    rows = [
        (Cell(classes[true]), Cell(classes[answer]), Cell(f"{n:,}", n), number(100 * n / total, ".1f"))
        for n, true, answer, total in pairs[:most]
    ]
    return Table(("true class", "answer", "how often", "% of the class"), rows)


def reliability_chart(bins: Sequence[dict[str, float]], calibration_error: float, source: str) -> Chart:
    """How often answers of each confidence are right, against the diagonal of a network that knows itself."""
    frame = Frame()
    x, y = Scale(0, 100, frame.left, frame.right), Scale(0, 100, frame.bottom, frame.top)
    most = max((entry["count"] for entry in bins), default=1)
    parts = [frame.axes(x, y, "confidence, %", "accuracy, %")]
    for entry in bins:
        tip = (
            f"confidence {entry['low']:.0f} to {entry['high']:.0f} %: {int(entry['count']):,} examples, on average "
            f"{entry['confidence']:.1f} % sure, {entry['accuracy']:.1f} % right"
        )
        start, width = x(entry["low"]) + 0.5, x(entry["high"]) - x(entry["low"]) - 1
        tall = frame.bottom - y(entry["accuracy"])
        parts.append(element("rect", x=start, y=y(entry["accuracy"]), width=width, height=tall, class_="area c0",
                             fill_opacity=round(0.25 + 0.75 * (entry["count"] / most) ** 0.5, 2), data_tip=tip,
                             data_keys="s0"))  # fmt: skip
        parts.append(
            line(start, y(entry["confidence"]), start + width, y(entry["confidence"]), "expected", data_keys="s1")
        )
    parts.append(line(x(0), y(0), x(100), y(100), "diagonal"))
    marks = [
        Entry("s0", "share that is right", element("rect", x=0, y=0, width=18, height=10, class_="area c0")),
        Entry("s1", "confidence", line(0, 5, 18, 5, "expected")),
    ]
    keys, end = svg.legend(marks, frame.bottom + 44)
    picture = drawing("Reliability: may it be believed?", "Table below.", end, Markup("").join(parts), keys)
    caption = (
        f"Expected calibration error {calibration_error:.2f} % ({source}). Bars below their line: surer than right. "
        "Stronger color: more examples (by the square root)."
    )
    return Chart("reliability", picture, _reliability_table(bins), caption)


def _reliability_table(bins: Sequence[dict[str, float]]) -> Table:
    rows = [
        (
            Cell(f"{entry['low']:.0f} to {entry['high']:.0f}", entry["low"]),
            Cell(written(entry["count"]), entry["count"]),
            number(entry["confidence"], ".1f"),
            number(entry["accuracy"], ".1f"),
        )
        for entry in bins
    ]
    return Table(("confidence, %", "examples", "mean confidence, %", "accuracy, %"), rows)


LABELED_CLASSES = 20
"""Up to so many classes have their names on the feature map."""
LABEL_HEIGHT = 14.0


def feature_map(points: np.ndarray, classes: np.ndarray, parts: np.ndarray, names: Sequence[str], title: str,
                name: str = "features", caption: str = "", only: int | None = None) -> Chart:  # fmt: skip
    """points (N, 2); classes (N,) numbers, -1: not known; parts (N,) places in PARTS. `only` one part is drawn, on the
    axes of all."""
    frame = Frame(left=8, top=4, right=WIDTH - 8, bottom=330)
    x = svg.scale_over(points[:, 0].tolist(), frame.left, frame.right)
    y = svg.scale_over(points[:, 1].tolist(), frame.bottom, frame.top)
    if only is not None:
        points, classes, parts = points[parts == only], classes[parts == only], parts[parts == only]
    order = np.argsort(-parts, kind="stable")  # labeled ones last: they lie on top
    shapes = [_point(x(points[i, 0]), y(points[i, 1]), int(classes[i]), int(parts[i]), names) for i in order]
    present = [number for number in range(len(names)) if (classes == number).any()]
    if len(names) <= LABELED_CLASSES:
        middles = {number: np.median(points[classes == number], axis=0) for number in present}
        shapes += _labels({number: (x(at[0]), y(at[1])) for number, at in middles.items()}, names)
    shown = [part for part in range(len(PARTS)) if (parts == part).any()]
    entries = [Entry(f"p{part}", PARTS[part], _shape(9, 5, part, "plain", None, None)) for part in shown]
    if len(names) <= LABELED_CLASSES:
        entries += [
            Entry(f"k{n}", names[n], element("circle", cx=9, cy=5, r=5, class_=f"area {color(n)}")) for n in present
        ]
    keys, end = svg.legend(entries, frame.bottom + 4)
    described = f"{len(points)} points, colored by class: {', '.join(names[:LABELED_CLASSES])}."
    rows = [
        (Cell(names[n]), *(Cell(str(int(((classes == n) & (parts == part)).sum()))) for part in range(3)))
        for n in present
    ]
    table = Table(("class", *PARTS), rows, "points on the map")
    return Chart(name, drawing(title, described, end, Markup("").join(shapes), keys), table, caption)


def _labels(places: Mapping[int, tuple[float, float]], names: Sequence[str]) -> list[Markup]:
    """The names of classes at their places; one that would cover an earlier one is left to the legend."""
    shapes: list[Markup] = []
    boxes: list[tuple[float, float, float]] = []
    for class_number, (x, y) in places.items():
        words = svg.shortened(names[class_number], 90)
        half = svg.width_of(words) / 2
        if not any(abs(x - other) < half + wide and abs(y - above) < LABEL_HEIGHT for other, above, wide in boxes):
            boxes.append((x, y, half))
            shapes.append(text(x, y + 4, words, class_="onmap", data_keys=f"k{class_number}"))
    return shapes


def _point(x: float, y: float, number_: int, part: int, names: Sequence[str]) -> Markup:
    known = names[number_] if number_ >= 0 else "class not known"
    keys = f"p{part} k{number_}"
    return _shape(x, y, part, color(number_) if number_ >= 0 else "plain", keys, f"{known} ({PARTS[part]})")


def _shape(x: float, y: float, part: int, class_: str, keys: str | None, tip: str | None) -> Markup:
    """Labeled: a large square with an edge; unlabeled: a dot; test: a ring."""
    if part == 0:
        return element("rect", x=x - 4.5, y=y - 4.5, width=9, height=9, class_=f"area edged {class_}", data_keys=keys,
                       data_tip=tip)  # fmt: skip
    kind = "ring" if part == 2 else "area"
    return element("circle", cx=x, cy=y, r=3.2, class_=f"{kind} {class_}", data_keys=keys, data_tip=tip)
