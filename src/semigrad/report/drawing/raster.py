"""Our stand-alone drawings as PNG: the few kinds of elements that they are made of, drawn by matplotlib."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from semigrad.report.drawing.standalone import SVG
from semigrad.report.drawing.style import save

POINT = 72.0
"""Dots on an inch where a unit of the drawing is a point, which widths of lines and letters are given in."""
PIXELS = 3
"""Of a unit of the drawing."""
ANCHORS = {"start": "left", "middle": "center", "end": "right"}
Place = tuple[float, float]


def save_png(root: ElementTree.Element, path: FilePath) -> FilePath:
    """Write a drawing of `stand_alone`."""
    *_, width, height = map(float, (root.get("viewBox") or "").split())
    figure = Figure(figsize=(width / POINT, height / POINT))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    Painter(axes).draw(root, (0.0, 0.0))
    return save(figure, path, PIXELS * POINT)


@dataclass
class Painter:
    """Draws element after element, later ones on top."""

    axes: Axes
    drawn: int = 0

    def draw(self, node: ElementTree.Element, origin: Place) -> None:
        self.drawn += 1
        tag = node.tag.removeprefix(f"{{{SVG}}}")
        if tag in ("svg", "g"):
            moved = _numbers(node, "translate") or [0.0, 0.0]
            for child in node:
                self.draw(child, (origin[0] + moved[0], origin[1] + moved[1]))
        elif tag == "text":
            self._write(node, origin)
        elif tag != "desc":
            self._fill_and_stroke(node, _outline(tag, node), origin)

    def _fill_and_stroke(self, node: ElementTree.Element, outline: Path, origin: Place) -> None:
        dashes = [float(part) for part in (node.get("stroke-dasharray") or "").split()]
        width = float(node.get("stroke-width", 1))
        patch = PathPatch(
            Path(outline.vertices + np.array(origin), outline.codes), facecolor=_color(node, "fill", "#000000"),
            edgecolor=_color(node, "stroke", "none"), linewidth=width if node.get("stroke") else 0,
            linestyle=(0, [dash / width for dash in dashes]) if dashes else "-", capstyle="butt",
            joinstyle=node.get("stroke-linejoin", "miter"), zorder=self.drawn,
        )  # fmt: skip
        self.axes.add_patch(patch)

    def _write(self, node: ElementTree.Element, origin: Place) -> None:
        x, y = float(node.get("x", 0)), float(node.get("y", 0))
        turn, *center = _numbers(node, "rotate") or [0.0, x, y]
        x, y = _turned((x, y), (center[0], center[1]), math.radians(turn))
        weight = int(node.get("font-weight", 400))
        halo = node.get("stroke")
        self.axes.text(
            x + origin[0], y + origin[1], node.text or "", color=_color(node, "fill", "#000000"), rotation=-turn,
            rotation_mode="anchor", ha=ANCHORS[node.get("text-anchor", "start")], va="baseline",
            fontsize=float(node.get("font-size", 12)), fontweight="bold" if weight >= 600 else "normal",
            parse_math=False, zorder=self.drawn,
            path_effects=[withStroke(linewidth=float(node.get("stroke-width", 1)), foreground=halo)] if halo else None,
        )  # fmt: skip


def _outline(tag: str, node: ElementTree.Element) -> Path:
    def at(*names: str) -> list[float]:
        return [float(node.get(name, 0)) for name in names]

    if tag == "path":
        return _path(node.get("d", ""))
    if tag == "circle":
        x, y, radius = at("cx", "cy", "r")
        return Path.circle((x, y), radius)
    if tag == "line":
        x1, y1, x2, y2 = at("x1", "y1", "x2", "y2")
        return Path([(x1, y1), (x2, y2)])
    x, y, width, height = at("x", "y", "width", "height")
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return Path(corners, closed=True)


def _path(commands: str) -> Path:
    """Moves and straight lines, from the page's corner or from where the last one ended."""
    places: list[Place] = []
    codes: list[int] = []
    x = y = 0.0
    for command, given in re.findall(r"([MLmlz])([^MLmlz]*)", commands):
        if command == "z":
            places.append(places[-1])
            codes.append(int(Path.CLOSEPOLY))
            continue
        first, second = (float(part) for part in given.split())
        x, y = (x + first, y + second) if command.islower() else (first, second)
        places.append((x, y))
        codes.append(int(Path.MOVETO if command in "Mm" else Path.LINETO))
    return Path(places, codes)


def _numbers(node: ElementTree.Element, what: str) -> list[float]:
    """Those of one kind of transform; none: it has no such."""
    found = re.fullmatch(rf"{what}\((.*)\)", node.get("transform", ""))
    return [float(part) for part in found[1].split()] if found else []


def _turned(place: Place, center: Place, angle: float) -> Place:
    x, y = place[0] - center[0], place[1] - center[1]
    cosine, sine = math.cos(angle), math.sin(angle)
    return center[0] + cosine * x - sine * y, center[1] + sine * x + cosine * y


def _color(node: ElementTree.Element, name: str, default: str) -> Sequence[float]:
    value = node.get(name, default)
    if value == "none":
        return (0.0, 0.0, 0.0, 0.0)
    color: Sequence[float] = to_rgba(value, float(node.get(f"{name}-opacity", 1)))
    return color
