"""The learning curve of a run as a picture: charts of its page below one another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from semigrad.folder.files import read_json
from semigrad.folder.metrics import read_metrics
from semigrad.folder.run_folder import METRICS, RESULT, RUN, RunFolder
from semigrad.report.drawing.raster import save_png
from semigrad.report.drawing.standalone import stacked
from semigrad.report.drawing.svg import heading
from semigrad.report.parts.run import error_curves, pseudo_label_curves, term_curves
from semigrad.report.provenance import error_words
from semigrad.training.facts import is_part


def learning_curve(folder: Path) -> Path:
    """Write the picture into the folder of the run."""
    return save_png(curve_drawing(folder), folder / "curve.png")


def curve_drawing(folder: Path) -> Element:
    """Measured errors, loss terms and the quality of pseudo-labels over the steps, as far as the run has them."""
    lines, content, result = read_metrics(folder / METRICS), _content(folder / RUN), _result(folder)
    charts = error_curves(lines, result) + term_curves(lines) + pseudo_label_curves(lines)
    notes = _notes(content, result) + ([] if charts else ["nothing recorded yet"])
    return stacked([heading(_title(folder, content), notes), *(chart.svg for chart in charts)])


def _title(folder: Path, content: Mapping[str, Any]) -> str:
    run = content.get("run", {})
    method = run.get("method", {}).get("name", folder.name)
    return f"{method} on {run.get('data', '?')}, seed {run.get('seed', '?')}"


def _notes(content: Mapping[str, Any], result: Mapping[str, Any]) -> list[str]:
    """What a reader must know beside the curves: data that are a part only, and the test error."""
    data, error = content.get("data", {}), error_words(result)
    part = [f"data: {data['title']}"] if is_part(data) else []
    return part + ([f"test error {error.figure}", error.interval] if error else [])


def _result(folder: Path) -> dict[str, Any]:
    here = RunFolder(folder)
    return here.result() if here[RESULT].exists() else {}


def _content(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}
