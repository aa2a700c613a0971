"""The ground that charts stand on: SVG elements, scales with round ticks, axes, a legend that can be clicked.

Colors are named by CSS classes and variables, never given: the same drawing is right on light and on dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

WIDTH = 420.0
"""Of every drawing. Narrow, so that its letters are still readable where a phone shows it at 360 points."""
COLOR_COUNT = 10
DASHES = ("", "6 3", "2 3", "8 3 2 3")
"""Lines beyond the tenth repeat the colors with another pattern."""
LETTER = 7.0
"""Width of an ordinary letter of the usual size, for placing texts that nobody measures."""


def element(name: str, *children: str | Markup, **attributes: object) -> Markup:
    """One element, everything escaped that is not markup already; `class_` and `data_tip` are class and data-tip, None
    leaves an attribute out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    words = [Markup('{}="{}"').format(key, _plain(value)) for key, value in given.items()]
    start = Markup(" ").join([Markup(name), *words])
    if not children:
        return Markup("<{}/>").format(start)
    return Markup("<{}>{}</{}>").format(start, Markup("").join(children), Markup(name))


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def text(x: float, y: float, words: str, anchor: str = "middle", class_: str = "tick", **more: object) -> Markup:
    return element("text", escape(words), x=x, y=y, text_anchor=anchor, class_=class_, **more)


def line(x1: float, y1: float, x2: float, y2: float, class_: str, **more: object) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_, **more)


def width_of(words: str) -> float:
    """About how wide some words are, rather too wide than too narrow."""
    narrow, wide = sum(c in "iljtfr.,:;'|()[] -" for c in words), sum(c.isupper() or c in "mw%@+_…" for c in words)
    return LETTER * (len(words) - 0.35 * narrow + 0.3 * wide)


def shortened(words: str, width: float) -> str:
    """What fits into a width, the middle left out."""
    kept, short = len(words), words
    while width_of(short) > width and kept > 3:
        kept -= 1
        short = f"{words[: (kept + 1) // 2]}…{words[len(words) - kept // 2 :]}"
    return short


def wrapped(words: str, width: float) -> list[str]:
    """Lines that fit into a width; a word that does not is shortened."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and width_of(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return [shortened(each, width) for each in lines]


def shortened_apart(names: Sequence[str], width: float) -> list[str]:
    """Every name as far as it fits; of those that would look the same, the parts in which they differ."""
    short = [shortened(name, width) for name in names]
    alike = {words: [name for name, own in zip(names, short, strict=True) if own == words] for words in short}

    def apart(name: str, words: str) -> str:
        others = [set(other.split(", ")) for other in alike[words] if other != name]
        own = [part for part in name.split(", ") if not all(part in other for other in others)]
        return shortened(f"… {', '.join(own)}", width) if others and own else words

    return [apart(*pair) for pair in zip(names, short, strict=True)]


def written(value: float) -> str:
    """A number for people: three digits that count, thousands apart."""
    if not math.isfinite(value):
        return "not finite"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Scale:
    """From values to places on the drawing."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        return self.start + (self.end - self.start) * (at - low) / (high - low)

    def ticks(self, wanted: int = 5, least: float = 0.0) -> list[float]:
        """Round values, about as many as wanted; on a linear scale at least so far apart."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            every = max(1, round((last - first) / wanted))
            found = [10.0**power for power in range(first, last + 1, every)]
            if last - first <= 2:
                found = sorted(factor * power for power in found for factor in (1, 2, 5))
        else:
            rough = max((self.high - self.low) / wanted, least)
            unit = 10.0 ** math.floor(math.log10(rough))
            step = min((unit * factor for factor in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / rough)))
            found = [
                step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step + 1) + 1)
            ]
        slack = 1e-9 * (self.high - self.low)
        return [value for value in found if self.low - slack <= value <= self.high + slack]

    def marks(self, wanted: int = 5, least: float = 0.0) -> list[tuple[float, str]]:
        """Ticks in words, with the decimals that tell them apart."""
        ticks = self.ticks(wanted, least)
        if self.log or len(ticks) < 2 or max(map(abs, ticks)) < 1e-4:
            return [(value, written(value)) for value in ticks]
        near = (ticks[1] - ticks[0]) / 1000
        decimals = next(d for d in range(16) if d == 15 or all(abs(round(v, d) - v) < near for v in ticks))
        return [(value, f"{value:,.{decimals}f}") for value in ticks]

    def marks_apart(self, least: float = 0.0) -> list[tuple[float, str]]:
        """As many of them as can stand side by side."""
        found: list[tuple[float, str]] = []
        for wanted in (5, 4, 3, 2):
            found = self.marks(wanted, least)
            if all(self(b) - self(a) >= (width_of(v) + width_of(w)) / 2 for (a, v), (b, w) in pairwise(found)):
                break
        return found


def scale_over(
    values: Sequence[float], start: float, end: float, *, zero: bool = False, log: bool = False, most: float = math.inf
) -> Scale:
    """A scale that holds all values with a little air; from 0 where the distance from nothing matters, and not beyond
    the most that there can be."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if log:
        return Scale(low / 1.2, high * 1.2, start, end, log=True)
    air = 0.05 * (high - low) or 0.05 * abs(high) or 0.5
    return Scale(min(0.0, low) if zero else low - air, max(high, min(high + air, most)), start, end)


@dataclass(frozen=True)
class Frame:
    """The rectangle that a chart draws in."""

    left: float = 52.0
    top: float = 12.0
    right: float = WIDTH - 12.0
    bottom: float = 218.0

    def axes(
        self, x: Scale, y: Scale, x_label: str, y_label: str, below: Sequence[tuple[float, str]] | None = None
    ) -> Markup:
        """A grid behind, numbers beside it, and what they mean; `below` are the marks of the horizontal axis, where
        they are not its round values."""
        parts = []
        for value, words in y.marks():
            parts.append(line(self.left, y(value), self.right, y(value), "grid"))
            parts.append(text(self.left - 6, y(value) + 4, words, "end"))
        for value, words in x.marks_apart() if below is None else below:
            over = x(value) + width_of(words) / 2 > WIDTH
            parts.append(line(x(value), self.bottom, x(value), self.bottom + 4, "axis"))
            parts.append(text(x(value), self.bottom + 17, words, "end" if over else "middle"))
        middle = (self.top + self.bottom) / 2
        y_label = shortened(y_label, self.bottom - self.top)
        parts.append(line(self.left, self.bottom, self.right, self.bottom, "axis"))
        parts.append(text((self.left + self.right) / 2, self.bottom + 34, x_label, class_="label"))
        parts.append(text(13, middle, y_label, class_="label", transform=f"rotate(-90 13 {middle:g})"))
        return Markup("").join(parts)


@dataclass(frozen=True)
class Entry:
    """A line of the legend; a click on it hides everything that carries its key."""

    key: str
    name: str
    mark: Markup  # drawn in a box of 18 x 10


def legend(entries: Sequence[Entry], top: float, left: float = 10.0) -> tuple[Markup, float]:
    """The entries side by side, in as many rows as they need; and where the drawing ends."""
    if not entries:
        return Markup(""), top
    parts, x, y = [], left, top + 4
    for entry in entries:
        words = shortened(entry.name, WIDTH - left - 40)
        width = 28 + width_of(words) + 10
        if x > left and x + width > WIDTH:
            x, y = left, y + 19
        hit = element("rect", x=-3, y=-6, width=width - 6, height=19, class_="hit")
        button = {"role": "button", "tabindex": 0, "aria_pressed": "true", "aria_label": f"show {entry.name}"}
        place = {"class_": "key", "data_key": entry.key, "transform": f"translate({x:g} {y:g})"}
        parts.append(element("g", hit, entry.mark, text(24, 9, words, "start", "name"), **place, **button))
        x += width
    return Markup("").join(parts), y + 17


def color(number: int) -> str:
    return f"c{number % COLOR_COUNT}"


def dash(number: int) -> str | None:
    return DASHES[number // COLOR_COUNT % len(DASHES)] or None


def heading(title: str, lines: Sequence[str]) -> Markup:
    """A drawing that is nothing but words: a title, and lines below it, each as long as it needs."""
    shown = [(part, "title") for part in wrapped(title, WIDTH * 0.7)]  # its letters are larger
    shown += [(part, "tick") for words in lines for part in wrapped(words, WIDTH * 0.9)]
    rows = [text(10, 20 + 18 * place, words, "start", kind) for place, (words, kind) in enumerate(shown)]
    size = f"0 0 {WIDTH:g} {14 + 18 * len(rows):g}"
    return element("svg", *rows, xmlns="http://www.w3.org/2000/svg", viewBox=size, class_="chart")


def drawing(title: str, description: str, height: float, plot: Markup, keys: Markup) -> Markup:
    """The whole picture: the title above it, the plot as one image for whoever cannot see it, the legend below."""
    words = shortened(title, WIDTH * 0.8)  # its letters are larger
    return element(
        "svg", text(10, 17, words, "start", "title"),
        element("g", plot, role="img", aria_label=f"{title}. {description}", transform="translate(0 24)"),
        element("g", keys, transform="translate(0 24)") if keys else Markup(""),
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH:g} {height + 26:g}", class_="chart",
    )  # fmt: skip
