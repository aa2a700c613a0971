"""The learning curve of a run as a picture."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from semigrad.folder.files import read_json
from semigrad.folder.metrics import read_metrics
from semigrad.folder.run_folder import METRICS, RESULT, RUN
from semigrad.report.style import COLORS, INK, save, tidy

Lines = Sequence[Mapping[str, Any]]
Draw = Callable[[Axes, Lines, list[str]], None]


def learning_curve(folder: Path) -> Path:
    """Loss terms, pseudo-label quality and measured errors against the step, as far as the run has them."""
    lines, result = read_metrics(folder / METRICS), _content(folder / RESULT)
    names = list(dict.fromkeys(name for line in lines for name in line))
    shares = [name for name in names if name.startswith("pseudo_label")]
    errors = [name for name in names if name.endswith("_error")]
    terms = [name for name in names if name not in {"step", "seconds", "lr", "loss", *shares, *errors}]
    draw_errors = functools.partial(_errors, result=result)
    panels: list[tuple[Draw, list[str]]] = [(_losses, terms), (_shares, shares), (draw_errors, errors)]
    panels = [(draw, shown) for draw, shown in panels if shown] or panels[:1]
    figure = Figure(figsize=(8, 1 + 2.2 * len(panels)), layout="constrained")
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (draw, shown) in zip(rows, panels, strict=True):
        tidy(axes)
        draw(axes, lines, shown)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, labelcolor=INK) if shown else None
    rows[-1].set_xlabel("step", color=INK)
    figure.suptitle(_title(folder, result), x=0.02, ha="left", fontsize=11, color=INK)
    return save(figure, folder / "curve.png")


def _losses(axes: Axes, lines: Lines, names: list[str]) -> None:
    for name, color in zip(names, _colors(names), strict=True):
        _curve(axes, *_series(lines, name), name, color)
    if names and all(value > 0 for name in names for value in _series(lines, name)[1]):
        axes.set_yscale("log")  # a consistency term is a hundred times smaller than a cross-entropy
    axes.set_ylabel("loss terms", color=INK)


def _shares(axes: Axes, lines: Lines, names: list[str]) -> None:
    for name, color in zip(names, _colors(names), strict=True):
        steps, values = _series(lines, name)
        _curve(axes, steps, 100 * values, name.removeprefix("pseudo_label_"), color)
    axes.set_ylim(0, 100)
    axes.set_ylabel("pseudo-labels, %", color=INK)


def _errors(axes: Axes, lines: Lines, names: list[str], result: Mapping[str, Any]) -> None:
    for name, color in zip(names, _colors(names), strict=True):
        axes.plot(*_series(lines, name), "o-", color=color, markersize=4, label=name.removesuffix("_error"))
    if test := result.get("test"):
        low, high = test["error_interval"]
        reach = [[test["error"] - low], [high - test["error"]]]
        axes.errorbar(
            [result["steps"]], [test["error"]], yerr=reach, fmt="*", color=INK, markersize=10, capsize=3, clip_on=False,
            label="test, after training",
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    axes.set_ylabel("error, %", color=INK)


def _curve(axes: Axes, steps: np.ndarray, values: np.ndarray, label: str, color: str) -> None:
    """Every value, faint, and on top their running mean over a fortieth of the run."""
    width = max(1, len(values) // 40)
    weights = np.convolve(np.ones_like(values), np.ones(width), "same")
    smooth = np.convolve(values, np.ones(width), "same") / weights
    marker = "o" if len(values) < 10 else None
    if width > 1:
        axes.plot(steps, values, color=color, linewidth=0.8, alpha=0.35)
    axes.plot(steps, smooth, color=color, linewidth=1.8, marker=marker, markersize=4, label=label)


def _series(lines: Lines, name: str) -> tuple[np.ndarray, np.ndarray]:
    having = [line for line in lines if name in line]
    return np.array([line["step"] for line in having]), np.array([line[name] for line in having], float)


def _colors(names: Sequence[str]) -> list[str]:
    return [COLORS[number % len(COLORS)] for number in range(len(names))]


def _title(folder: Path, result: Mapping[str, Any]) -> str:
    content = _content(folder / RUN)
    run = content.get("run", {})
    method = run.get("method", {}).get("name", folder.name)
    data = content.get("data", {}).get("title", "")
    part = f" ({data})" if " of " in data else ""
    title = f"{method} on {run.get('data', '?')}{part}, seed {run.get('seed', '?')}"
    if test := result.get("test"):
        low, high = test["error_interval"]
        title += f": test error {test['error']:.2f} % (95 % interval {low:.2f} to {high:.2f})"
    return title


def _content(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}
