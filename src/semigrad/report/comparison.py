"""Several rows over the same seeds: mean ± standard deviation, paired differences to the first row, a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from semigrad.core.statistics import difference, summarize
from semigrad.report.drawing.style import COLORS, INK, light, save, tidy

Errors = Mapping[str, Sequence[float]]
"""Row -> error of each seed in per cent, the same seeds in every row; the first row is the baseline."""


def comparison_table(title: str, rows: Errors) -> Table:
    baseline = next(iter(rows))
    table = Table(title=title, title_justify="left")
    for heading in ("method", "test error, %", "seeds", f"difference to {baseline}"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name, errors in rows.items():
        apart = difference(dict(enumerate(errors)), dict(enumerate(rows[baseline])))
        table.add_row(name, str(summarize(errors)), str(len(errors)), "" if name == baseline else str(apart))
    table.caption = "mean ± deviation over seeds; paired difference with its 95 % interval"
    table.caption_justify = "left"
    return table


def comparison_picture(title: str, rows: Errors, path: Path) -> Path:
    """A bar for each row, a dot for each seed, the dots of one seed joined: the differences are paired."""
    figure = Figure(figsize=(1.4 + 1.6 * len(rows), 4), layout="constrained")
    axes = figure.subplots()
    tidy(axes)
    for place, errors in enumerate(rows.values()):
        axes.bar(place, np.mean(errors), width=0.6, color=light(COLORS[place % len(COLORS)]))
    for seed in zip(*rows.values(), strict=True):
        axes.plot(range(len(rows)), seed, "o-", color=INK, markersize=4, linewidth=0.8, alpha=0.8)
    axes.set_xticks(range(len(rows)), [f"{name}\n{summarize(errors)} %" for name, errors in rows.items()])
    axes.set_ylim(bottom=0)
    axes.set_ylabel("test error, %", color=INK)
    axes.set_title(title, loc="left", fontsize=11, color=INK)
    return save(figure, path)
