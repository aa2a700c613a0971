"""The pictures of `semigrad theory`, one for each part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from semigrad.report.drawing.style import save, tidy
from semigrad.theory.consistency import Shares
from semigrad.theory.lemma1 import Ratios
from semigrad.theory.remarks import NETWORKS, Course
from semigrad.theory.theorem1 import MULTIPLES, Descent
from semigrad.theory.theorem2 import Rate

PAPER, SHARPENED, MEASURED = "tab:red", "tab:blue", "black"


def _panels(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Figure, np.ndarray]:
    """A figure and its axes (rows, columns)."""
    figure = Figure(figsize=size, layout="constrained")
    panels: np.ndarray = figure.subplots(rows, columns, squeeze=False, **options)
    for axes in panels.flat:
        tidy(axes)
    return figure, panels


def _by_network(rows: Sequence[Any]) -> dict[str, list[Any]]:
    names = dict.fromkeys(row.network for row in rows)
    return {name: [row for row in rows if row.network == name] for name in names}


def lemma1_picture(rows: Sequence[Ratios], path: Path) -> Path:
    """Measured Lipschitz ratios of ∇H over the batch size, below the two bounds."""
    groups = _by_network(rows)
    figure, panels = _panels(1, len(groups), (5.2 * len(groups), 4.2))
    for axes, (name, ratios) in zip(panels[0], groups.items(), strict=True):
        sizes = [row.batch for row in ratios]
        axes.plot(sizes, [row.paper for row in ratios], "-", color=PAPER, label="paper: 4α²M²L0")
        axes.plot(sizes, [row.sharpened for row in ratios], "-", color=SHARPENED, label="sharpened: 4α²M²L0 / B")
        axes.plot(sizes, [row.largest for row in ratios], "k^", markersize=8, label="measured: worst pair found")
        for row in ratios:
            label = "measured: random pairs" if row is ratios[0] else None
            axes.plot([row.batch] * len(row.pairs), row.pairs, ".", color="gray", alpha=0.5, label=label)
        axes.set(xscale="log", yscale="log", xlabel="unlabeled batch size B", xticks=sizes, xticklabels=sizes)
        axes.set(ylabel="Lipschitz ratio of ∇H", title=f"{name} (M, L0 {ratios[0].constants.basis})")
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=9)
    return save(figure, path)


def theorem1_picture(rows: Sequence[Descent], path: Path) -> Path:
    """The change of G in one step over α²β, with both bounds and the first increase: a row for each network."""
    groups = _by_network(rows)
    columns = max(len(group) for group in groups.values())
    figure, panels = _panels(len(groups), columns, (4.4 * columns, 2.9 * len(groups)), sharex=True)
    for line, group in zip(panels, groups.values(), strict=True):
        for axes, row in zip(line, group, strict=True):
            _draw_descent(axes, row)
        line[0].set_ylabel("G(θ_{t+1}) / G(θ_t) − 1")
    for axes in panels[-1]:
        axes.set_xlabel("α²β, in units of the paper's bound 1/(4M²L0)")
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return save(figure, path)


def _draw_descent(axes: Any, row: Descent) -> None:
    axes.axhline(0, color="gray", linewidth=0.6)
    for number, change in enumerate(row.change):
        axes.plot(
            MULTIPLES, change, color="gray", alpha=0.35, linewidth=0.8, label=None if number else "unlabeled batches"
        )
    axes.axvline(1, color=PAPER, label="the paper's bound")
    axes.axvline(2 * row.batch, color=SHARPENED, label="sharpened: 2B ×")
    if math.isfinite(row.first_increase):
        axes.axvline(row.first_increase, color=MEASURED, linestyle="--", label="first increase of G")
    axes.set(xscale="log", title=f"{row.network}, {row.constants.basis}, B = {row.batch}")
    axes.set_yscale("symlog", linthresh=1e-6)
    axes.set(yticks=[-1, -1e-2, -1e-4, 0, 1e-4, 1e-2, 1], ylim=(-3, 30))


def theorem2_picture(rates: Sequence[Rate], path: Path) -> Path:
    """min E‖∇G‖² over T beside C/√T, on log-log axes."""
    columns = math.ceil(len(rates) / 2)
    figure, panels = _panels(2, columns, (4.4 * columns, 7.2), sharey=True)
    for axes in panels.flat[len(rates) :]:
        axes.set_axis_off()
    for axes, rate in zip(panels.flat, rates, strict=False):
        steps = np.arange(1, len(rate.gradients) + 1)
        shown = np.unique(np.geomspace(1, len(steps), 400).astype(int)) - 1
        for number, seed in enumerate(rate.gradients.T):
            label = None if number else "‖∇G(θ_t)‖², seeds"
            axes.plot(steps[shown], seed[shown], color="gray", alpha=0.4, linewidth=0.7, label=label)
        axes.plot(steps[shown], rate.smallest[shown], color=MEASURED, linewidth=2, label="min E‖∇G‖²")
        if math.isfinite(rate.paper):
            axes.plot(steps, rate.paper / np.sqrt(steps), color=PAPER, label=f"paper: C/√T, C = {rate.paper:.0f}")
        axes.plot(steps, rate.sharpened / np.sqrt(steps), color=SHARPENED, label=f"sharpened: C = {rate.sharpened:.1f}")
        axes.set(xscale="log", yscale="log", xlabel="steps T", title=f"{rate.network} ({rate.basis})\n{rate.setting}")
        axes.title.set_fontsize(10)
        axes.legend(frameon=False, fontsize=8, loc="lower left")
    for line in panels:
        line[0].set_ylabel("squared norm of ∇G")
    low = min(float(rate.gradients.min()) for rate in rates)
    panels[0][0].set_ylim(bottom=low / 40)  # room for the legends
    return save(figure, path)


def remarks_picture(courses: Sequence[Course], path: Path) -> Path:
    """M and ‖∇²G‖ along training runs, for several weight decays."""
    figure, panels = _panels(2, len(NETWORKS), (5.2 * len(NETWORKS), 6), sharex=True)
    for column, (name, group) in enumerate(_by_network(courses).items()):
        above, below = panels[:, column]
        for course in group:
            label = f"weight decay {course.weight_decay:g}"
            above.plot(course.steps, course.jacobian, "o-", markersize=3, label=label)
            below.plot(course.steps, course.lipschitz, "o-", markersize=3, label=label)
        above.set(title=name, ylabel="M: largest ‖J‖ of the sample", ylim=(0, None))
        below.set(xlabel="step", ylabel="‖∇²G‖", ylim=(0, None))
        above.legend(frameon=False, fontsize=9)
    return save(figure, path)


def consistency_picture(shares: Sequence[Shares], path: Path) -> Path:
    """Norms of the parts of the consistency gradient along training."""
    names = {
        "total": "consistency gradient",
        "meta": "meta: (4s/B)·Jᵀ J g",
        "modes": "modes: (2/B)·Jᵀ(f_train − f_eval)",
        "projection": "projection",
    }
    figure, panels = _panels(1, len(shares), (5.4 * len(shares), 4.2), sharey=True)
    for axes, share in zip(panels[0], shares, strict=True):
        for name, label in names.items():
            values = np.array(share.norms[name])
            values[values < 1e-6 * np.max(share.norms["total"])] = np.nan  # nothing but rounding
            axes.plot(share.steps, values, "o-", markersize=3, label=label, linewidth=2.4 if name == "total" else 1.2)
        axes.set(yscale="log", xlabel="step", title=f"small-conv with dropout {share.drop:g}, digits@40")
    panels[0][0].set_ylabel("norm")
    panels[0][0].legend(frameon=False, fontsize=9)
    return save(figure, path)
