"""One self-contained HTML file: of a run, or of several in comparison. It needs no network and opens from disk."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import semigrad
from semigrad.errors import InputError
from semigrad.experiments.sheets import moment
from semigrad.experiments.store import Outcome
from semigrad.folder.files import check_replaceable, make_folder, read_json, write_whole
from semigrad.folder.metrics import read_metrics
from semigrad.folder.run_folder import CONFIG, FIT, METRICS, RESULT, RUN, RunFolder
from semigrad.folder.saved import OtherData, load_run
from semigrad.names import SHOWN
from semigrad.report.drawing.charts import Chart
from semigrad.report.drawing.standalone import as_text, asset, stand_alone
from semigrad.report.gather import outcome_of, runs_below
from semigrad.report.parts import run as run_parts
from semigrad.report.parts.comparison import comparison_context
from semigrad.report.parts.inside import Inside, look_inside
from semigrad.report.parts.section import Section, attempt, whole
from semigrad.report.provenance import again, error_words, facts_table, headline, settings_table
from semigrad.run import Run

REPORT = "report.html"
LONGEST_NAME = 150
"""Bytes of a picture's name; systems take 255, and endings come behind it."""


def run_page(folder: Path | str, run: Run | None = None) -> Path:
    """Write the page of a run into its folder. What cannot be computed is left out, with a sentence that says why."""
    return write_page(Path(folder) / REPORT, "run.html", run_context(Path(folder), run))


def comparison_page(outcome: Outcome, path: Path) -> Path:
    """Write the page of a reproduction, as far as it has come."""
    return write_page(path, "comparison.html", comparison_context(outcome))


def make_report(folders: Sequence[Path], path: Path | None, pictures: Path | None) -> tuple[Path, list[Path]]:
    """The page of one run, or of several in comparison; and every chart as a file, where a folder is given for it."""
    folders = runs_below(folders)
    if len(folders) == 1:
        template, context, place = "run.html", run_context(folders[0]), folders[0] / REPORT
    else:
        template, context, place = "comparison.html", comparison_context(outcome_of(folders)), Path(REPORT)
    check_replaceable(path or place, b"<!doctype html", "page")
    written = write_page(path or place, template, context)
    return written, save_pictures(charts_of(context), pictures) if pictures else []


def comparison_pictures(outcome: Outcome, folder: Path) -> list[Path]:
    """Every chart of a reproduction's page as files."""
    return save_pictures(charts_of(comparison_context(outcome)), folder)


def charts_of(context: Mapping[str, Any]) -> list[Chart]:
    return [chart for section in context["sections"] for chart in section.charts]


def run_context(folder: Path, run: Run | None = None) -> dict[str, Any]:
    """Everything that the page of a run shows; the run is read from the folder where it is not at hand."""
    try:
        return _run_context(folder, run or load_run(folder))
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        files, reason = f"{RUN}, {RESULT} or {CONFIG}", f"{type(error).__name__}: {error}"
        raise InputError(f"{folder} is damaged: {files} is not as it was written ({reason}).") from error


def _run_context(folder: Path, run: Run) -> dict[str, Any]:
    here = RunFolder(folder)
    content, lines = read_json(here[RUN]), read_metrics(here[METRICS])
    result = here.result() if here.finished else {}
    sections = [whole("curves", "How training went", lambda: run_parts.curves(lines, result))]
    inside, other_data = _look(folder, run, sections[0])
    if here[FIT].exists():
        sections.insert(0, whole("held-out", run_parts.HELPED, lambda: run_parts.held_out(read_json(here[FIT]))))
    sentence, command = again(run, content.get("own_network"), other_data)
    classes = _classes(here, inside)
    sections.append(whole("answers", "Answers on the test part", lambda: run_parts.answers(result, inside, classes)))
    sections.append(whole("pseudo-labels", "Pseudo-labels", lambda: run_parts.pseudo_labels(lines, inside)))
    if inside is not None:
        sections.append(whole("features", "Feature map", lambda: run_parts.features(inside)))
        sections.append(whole("examples", "Examples", lambda: run_parts.examples(inside)))
    return {
        "title": f"{run.method_name} on {run.data}, seed {run.seed}",
        "error": error_words(result),
        "headline": headline(run, content, result),
        "finished": here.finished,
        "sections": sections,
        "again": sentence,
        "command": command,
        "settings": settings_table(run),
        "facts": facts_table(content, result, _date(here)),
        "folder": str(folder),
    }


def _look(folder: Path, run: Run, section: Section) -> tuple[Inside | None, bool]:
    """What the network sees; where that is not to be had, the first section says why. Also whether that is because the
    data are others."""
    found: list[Inside] = []
    what = "Everything that needs the network and the data"
    obstacle = attempt(section, what, lambda: found.append(look_inside(folder, run)))
    return found[0] if found else None, isinstance(obstacle, OtherData)


def _classes(here: RunFolder, inside: Inside | None) -> Sequence[str]:
    if inside is not None:
        return inside.classes
    return [str(name) for name in here.config().get("classes", [])] if here[CONFIG].exists() else []


def _date(here: RunFolder) -> str:
    if not here.finished:
        return "not yet"
    try:
        return moment(here.date.isoformat())
    except InputError as error:
        return f"not known: {error}"


def write_page(path: Path, template: str, context: Mapping[str, Any]) -> Path:
    """Fill a template, whose style and script are allowed by their hash and nothing else is."""
    style = Markup("").join(Markup(asset(name)) for name in ("light.css", "chart.css", "style.css"))
    script = Markup(asset("script.js"))
    policy = f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    page = (
        templates()
        .get_template(template)
        .render(**context, style=style, script=script, policy=policy, version=semigrad.__version__)
    )
    make_folder(path.parent)
    write_whole(path, page.encode(errors=SHOWN))
    return path


@cache
def templates() -> Environment:
    loader = PackageLoader("semigrad.report", "templates")
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # fmt: skip


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def file_name(name: str) -> str:
    """A chart's name as every system takes it; what is left out of a long one is told apart by a few letters."""
    plain = "".join(c if c.isalnum() or c in "-.@" else "-" for c in name).strip("-.")
    if len(plain.encode()) <= LONGEST_NAME:
        return plain
    beginning = plain.encode()[:LONGEST_NAME].decode(errors="ignore").rstrip("-.")
    return f"{beginning}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def save_pictures(charts: Sequence[Chart], folder: Path) -> list[Path]:
    """Every chart as an SVG and a PNG file that stand by themselves, in the light colors."""
    from semigrad.report.drawing.raster import save_png  # loads matplotlib

    make_folder(folder)
    paths = []
    for chart in charts:
        drawing = stand_alone(chart.svg)
        name = file_name(chart.name)
        paths += [folder / f"{name}.svg", folder / f"{name}.png"]
        write_whole(paths[-2], as_text(drawing))
        save_png(drawing, paths[-1])
    return paths
