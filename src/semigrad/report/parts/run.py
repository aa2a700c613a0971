"""The parts of a run's page: curves from its metrics, the answers on its test part, what its network sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from semigrad.errors import InputError
from semigrad.experiments.store import PARTS
from semigrad.folder.metrics import ERRORS, PSEUDO_LABELS, errors_in, names_in, prepares, terms_in
from semigrad.report.drawing.charts import Bar, Cell, Chart, Series, Table, bar_chart, line_chart, number
from semigrad.report.drawing.maps import MATRIX_LIMIT, confused_pairs, confusion_chart, feature_map, reliability_chart
from semigrad.report.drawing.svg import written
from semigrad.report.parts.inside import Inside, map_features
from semigrad.report.parts.pictures import Picture, least_sure, surest, surest_mistakes
from semigrad.report.parts.section import Section, attempt
from semigrad.training.evaluate import Confusion, calibration_error, entries_of, reliability
from semigrad.training.verdict import Verdict

Lines = Sequence[Mapping[str, Any]]
HELPED = "Whether the unlabeled data helped"
PREPARATION = "Steps up to 0 are the method's preparation, before training proper."
HISTOGRAM_CLASSES = 25
LINE_POINTS = 200


def held_out(fitted: Mapping[str, Any]) -> Section:
    """What `fit` compared: every method on labels that it was not trained on."""
    section = Section("held-out", HELPED)
    verdicts = {str(name): Verdict.of(given) for name, given in fitted["verdicts"].items()}
    if not verdicts:
        return _not_compared(section, fitted.get("errors") or {})
    first = next(iter(verdicts.values()))
    rows = [(Cell("labeled-only"), number(first.labeled_only, ".1f"), Cell(""), Cell(""))]
    for name, each in verdicts.items():
        change = f"{each.difference:+.1f} ± {each.half:.1f}".replace("-", "−")
        rows.append((Cell(name), number(each.method, ".1f"), Cell(change), Cell(each.sentence)))
    header = ("method", "wrong, %", "to labeled-only", "what that says")
    section.lead.append((f"{first.examples:,} labels, each held out once", Table(header, rows)))
    section.notes.append(
        "Cross-validation over the labels: every model was trained without the labels it was asked about. The model of "
        f"this page is {fitted['chosen']}, trained on all of them."
    )
    return section


def _not_compared(section: Section, errors: Mapping[str, Any]) -> Section:
    """Labeled-only by itself, or nothing at all."""
    rows = [(Cell("labeled-only"), number(error, ".1f")) for error in errors.values()]
    if rows:
        section.lead.append(("The labels, each held out once", Table(("method", "wrong, %"), rows)))
        section.notes.append("No other method was compared with it.")
    else:
        section.missing.append("Nothing was compared: no class has two labels, one of which could be held out.")
    return section


def curves(lines: Lines, result: Mapping[str, Any]) -> Section:
    """Losses, rate, measured errors over the steps."""
    section = Section("curves", "How training went")
    if len(lines) < 2:
        section.missing.append("Learning curves: left out, because metrics.jsonl holds fewer than two lines.")
        return section
    section.charts.extend(error_curves(lines, result) + _loss_curve(lines) + term_curves(lines) + _rate_curve(lines))
    return section


def error_curves(lines: Lines, result: Mapping[str, Any]) -> list[Chart]:
    """The errors that were measured on the way, and the one after training; none where none were."""
    shown = [series(lines, name, ERRORS[name].label) for name in errors_in(lines)]
    if not shown:
        return []
    if test := result.get("test"):
        low, high = test["error_interval"]
        shown.append(Series("test, after training, 95 % interval", [result["steps"]], [test["error"]], [(low, high)]))
    caption = "Nothing is chosen by these curves: the result is that of the last step."
    return [line_chart("errors", "Error", shown, "step", "error, %", zero=True, most=100, caption=caption)]


def _loss_curve(lines: Lines) -> list[Chart]:
    if "loss" not in names_in(lines):
        return []
    return [line_chart("loss", "Loss", [series(lines, "loss")], "step", "sum of the terms", smooth=True, log=True,
                       caption=_preparation(lines))]  # fmt: skip


def term_curves(lines: Lines) -> list[Chart]:
    """The terms of the loss in one chart; none where there are none."""
    shown = [series(lines, name) for name in terms_in(lines)]
    if not shown:
        return []
    return [line_chart("terms", "Loss, term by term", shown, "step", "loss term", smooth=True, log=True,
                       named=True, caption=_preparation(lines))]  # fmt: skip


def _rate_curve(lines: Lines) -> list[Chart]:
    if "lr" not in names_in(lines):
        return []
    return [line_chart("rate", "Learning rate", [series(lines, "lr")], "step", "learning rate", zero=True,
                       caption=_preparation(lines))]  # fmt: skip


def _preparation(lines: Lines) -> str:
    return PREPARATION if any(map(prepares, lines)) else ""


def series(lines: Lines, name: str, label: str = "", factor: float = 1.0) -> Series:
    """A figure over the steps, thinned evenly where there are many lines; the last one stays."""
    having = [line for line in lines if isinstance(line.get(name), int | float)]
    every = -(-len(having) // LINE_POINTS) or 1
    kept = having[::-1][::every][::-1]
    return Series(label or name, [line["step"] for line in kept], [factor * line[name] for line in kept])


def answers(result: Mapping[str, Any], inside: Inside | None, classes: Sequence[str]) -> Section:
    """Confusion, reliability, the most common mistakes."""
    section = Section("answers", "Answers on the test part")
    test = result.get("test")
    if not test:
        section.missing.append("Answers on the test part: left out, because the run has measured none.")
        return section
    attempt(section, "Confusion matrix", lambda: _add_confusion(section, test, classes))
    attempt(section, "Reliability diagram", lambda: _add_reliability(section, test, inside))
    return section


def _add_confusion(section: Section, test: Mapping[str, Any], classes: Sequence[str]) -> None:
    confusion = test["confusion"]
    fits = bool(confusion) and len(classes) > entries_of(confusion)[:, :2].max(initial=-1)
    if not fits or (isinstance(confusion, list) and len(confusion) != len(classes)):
        raise InputError("There is no confusion matrix in the record, or it does not fit the classes.")
    if isinstance(confusion, list) and len(classes) <= MATRIX_LIMIT:
        section.charts.append(confusion_chart(confusion, classes))
    else:
        section.missing.append(f"Confusion matrix: left out, because {len(classes)} classes cannot be seen in one.")
    section.tables.append(("What is mistaken for what most often", confused_pairs(confusion, classes)))
    section.tables.append(("Class by class", _class_table(confusion, classes)))


def _class_table(confusion: Confusion, classes: Sequence[str]) -> Table:
    entries, rows = entries_of(confusion), []
    hits = entries[entries[:, 0] == entries[:, 1]]
    columns = [
        np.bincount(part[:, column], part[:, 2], len(classes)).astype(int)
        for part, column in ((entries, 0), (entries, 1), (hits, 0))
    ]
    for name, there, given, right in zip(classes, *columns, strict=True):
        found = number(100 * right / there, ".1f") if there else Cell("none there")
        true = number(100 * right / given, ".1f") if given else Cell("never answered")
        rows.append((Cell(name), Cell(f"{there:,}", float(there)), Cell(f"{given:,}", float(given)), found, true))
    return Table(("class", "examples", "answers", "recall, %", "precision, %"), rows)


def _add_reliability(section: Section, test: Mapping[str, Any], inside: Inside | None) -> None:
    if bins := test.get("reliability"):
        source = f"over {test['examples']:,} examples"
        section.charts.append(reliability_chart(bins, test["calibration_error"], source))
        return
    if inside is None or "test" not in inside.parts:
        raise InputError("The record is from before such figures were kept, and the network could not be run again.")
    seen = inside.parts["test"]
    right = seen.answers == seen.truth
    error = 100 * calibration_error(seen.confidence, right)
    bins = [asdict(entry) for entry in reliability(seen.confidence, right)]
    section.charts.append(reliability_chart(bins, error, f"measured again over {seen.share}"))


def pseudo_labels(lines: Lines, inside: Inside | None) -> Section:
    """How good the pseudo-labels were over time, and how the answers on the pool are spread over the classes."""
    section = Section("pseudo-labels", "Pseudo-labels")
    if len(lines) > 1:
        section.charts.extend(pseudo_label_curves(lines))
    if not section.charts:
        section.missing.append("Pseudo-labels over time: left out, because this method makes none that were recorded.")
    if inside is not None and "unlabeled" in inside.parts:
        attempt(section, "Answers on the unlabeled pool", lambda: section.charts.append(_histogram(inside)))
    return section


def pseudo_label_curves(lines: Lines) -> list[Chart]:
    """What is known of the pseudo-labels, in one chart; none where none were made."""
    known = names_in(lines)
    shown = [series(lines, name, label, 100) for name, label in PSEUDO_LABELS.items() if name in known]
    if not shown:
        return []
    caption = (
        "Accuracy and mean confidence of the pseudo-labels, where they were made. Accuracy below confidence: the "
        "method believes itself too much. A method that uses only some says their share of the batch."
    )
    return [line_chart("pseudo-labels", "Pseudo-labels of each batch", shown, "step", "%", top=100, smooth=True,
                       named=True, caption=caption)]  # fmt: skip


def _histogram(inside: Inside) -> Chart:
    seen = inside.parts["unlabeled"]
    known, count = seen.truth >= 0, len(inside.classes)
    given = np.bincount(seen.answers, minlength=count)
    true = np.bincount(seen.truth[known], minlength=count)
    complete = bool(known.all())
    order = list(range(count))
    caption = f"The trained network's answers on {seen.share} unlabeled examples"
    caption += " beside the true classes." if complete else "; their true classes are not (all) known."
    if count > HISTOGRAM_CLASSES:
        key = np.abs(given - true) if complete else given
        order = sorted(np.argsort(-key, kind="stable")[:HISTOGRAM_CLASSES].tolist())
        caption += f" The {HISTOGRAM_CLASSES} of {count} classes with the largest {'gaps' if complete else 'counts'}."
    values = [(float(given[c]), float(true[c])) if complete else (float(given[c]),) for c in order]
    bars = [Bar(inside.classes[c], value) for c, value in zip(order, values, strict=True)]
    groups = ("answers", "truth") if complete else ("answers",)
    return bar_chart("pool", "Classes of the unlabeled pool", bars, groups, "examples", rows="class", write=written,
                     caption=caption)  # fmt: skip


def features(inside: Inside) -> Section:
    section = Section("features", "Feature map")
    attempt(section, "Feature map", lambda: section.charts.append(_map(inside)))
    return section


def _map(inside: Inside) -> Chart:
    points, classes, names = map_features(inside)
    parts = np.array([PARTS.index(name) for name in names])
    caption = (
        "t-SNE of what the last layer sees: near points look alike to the network; distances between groups mean "
        "little. Squares are labeled, dots unlabeled, rings test examples; colors are true classes."
    )
    return feature_map(points, classes, parts, inside.classes, f"{len(points)} examples", caption=caption)


def examples(inside: Inside) -> Section:
    """Pictures of what the network is sure and unsure of, and of its surest mistakes."""
    section = Section("examples", "Examples")
    if not inside.images:
        section.missing.append("Pictures of examples: left out, because the data are rows of features.")
        return section
    shown = [
        ("unlabeled", "Unlabeled, surest answers", surest),
        ("unlabeled", "Unlabeled, least sure", least_sure),
        ("test", "Test mistakes it was surest of", surest_mistakes),
    ]
    for part, title, choose in shown:
        if part in inside.parts:
            _add_pictures(section, f"{title} (of {inside.parts[part].share})", inside, part, choose)
    return section


def _add_pictures(
    section: Section, title: str, inside: Inside, part: str, choose: Callable[[Inside, str], list[Picture]]
) -> None:
    def add() -> None:
        section.pictures.append((title, choose(inside, part)))

    attempt(section, title, add)
