"""The learning curve of a run as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from semigrad.files import read_json
from semigrad.records import METRICS, RESULT, read_metrics


def learning_curve(folder: Path) -> Path:
    """Loss terms above, pseudo-label quality and measured errors below, against the step; written into the folder."""
    lines = read_metrics(folder / METRICS)
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
    hidden = {"step", "seconds", "lr"}
    shares = [name for name in _names(lines) if name.startswith("pseudo_label")]
    errors = [name for name in _names(lines) if name.endswith("_error")]
    for name in _names(lines):
        if name not in hidden and name not in shares + errors:
            above.plot(*_series(lines, name), label=name, linewidth=2.2 if name == "loss" else 1.2)
    above.set(ylabel="loss terms", title=folder.name)
    above.legend(frameon=False)
    for name in shares:
        steps, values = _series(lines, name)
        below.plot(steps, [100 * value for value in values], label=name.replace("_", " "))
    for name in errors:
        below.plot(*_series(lines, name), "o-", markersize=3, label=name.replace("_", " "))
    _mark_result(below, folder, lines)
    below.set(xlabel="step", ylabel="per cent", ylim=(0, 100))
    if below.get_legend_handles_labels()[0]:
        below.legend(frameon=False)
    path = folder / "curve.png"
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
    return path


def _mark_result(axes: Any, folder: Path, lines: list[dict[str, Any]]) -> None:
    result = read_json(folder / RESULT) if (folder / RESULT).exists() else {}
    if result.get("error") is not None and lines:
        label = f"test error after training: {result['error']:.2f}"
        axes.plot([lines[-1]["step"]], [result["error"]], "k*", markersize=11, clip_on=False, label=label)


def _names(lines: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for line in lines for name in line))


def _series(lines: list[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    having = [line for line in lines if name in line]
    return [line["step"] for line in having], [line[name] for line in having]
