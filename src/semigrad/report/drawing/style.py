"""How our pictures look, and how they are written."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from semigrad.folder.files import write_whole

INK = "#333333"
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito's, told apart by nearly all eyes."""


def light(color: str) -> tuple[float, ...]:
    """The color for areas: half way to white."""
    return tuple(0.5 + 0.5 * part for part in to_rgb(color))


def tidy(axes: Axes) -> None:
    """A light grid behind, no frame above and to the right."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#999999")
    axes.tick_params(color="#999999", labelcolor=INK, which="both")
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def save(figure: Figure, path: Path, dpi: float = 130) -> Path:
    """Write a PNG, whole or not at all; equal figures give equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    write_whole(path, buffer.getvalue())
    return path
