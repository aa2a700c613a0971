"""A model card, written from what the run left on record."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semigrad.classifier.classifier import Classifier
from semigrad.folder.backbone import BACKBONE
from semigrad.folder.files import read_json
from semigrad.folder.run_folder import FIT, MODEL, RESULT, RUN
from semigrad.names import shown

MOST_CLASSES, MOST_COLUMNS = 50, 200  # that are named


def model_card(run: Path, model: Classifier) -> str:
    """Markdown with the header that model hubs read."""
    record, result, fitted = (read_json(run / name) if (run / name).is_file() else {} for name in (RUN, RESULT, FIT))
    lines = [
        "---",
        "library_name: semigrad",
        "tags:",
        "- semi-supervised-learning",
        f"- {'image' if len(model.form.shape) == 3 else 'tabular'}-classification",
        "---",
        "",
        f"# A classifier of {len(model.classes)} classes",
        "",
        *_training(record),
        *_figures(result, fitted),
        *_adjusted(model),
        "",
        "## Use",
        "",
        "```python",
        "import semigrad",
        'model = semigrad.load("PATH OF THIS FOLDER")',
        f"model.predict({_example(model)})",
        "```",
        "",
        f"It takes {_input(model)}.{_backbone(model)}",
        "",
        *_columns(model),
        "## Classes",
        "",
        ", ".join(escaped(name) for name in model.classes[:MOST_CLASSES])
        + (f" and {len(model.classes) - MOST_CLASSES} more" if len(model.classes) > MOST_CLASSES else ""),
        "",
        "## How sure it is",
        "",
        model.confidence,
        "",
    ]
    return "\n".join(lines)


def _training(record: Mapping[str, Any]) -> list[str]:
    if not record:
        return ["Trained with Semigrad; the record of the run is not there."]
    try:
        run, split = record["run"], record["split"]
        told = record["data"]["title"], run["method"]["name"], run["model"]["name"]
        title, method, network = (escaped(_sound(text, str)) for text in told)
        counted = split["labeled"], split["unlabeled"], run["steps"], run["seed"]
        labeled, unlabeled, steps, seed = (_sound(number, int) for number in counted)
        return [
            f"Trained with Semigrad on {title}: {labeled:,} labeled and {unlabeled:,} unlabeled examples, method "
            f"{method}, network {network}, {steps:,} steps, seed {seed}.",
            "",
            "```json",
            json.dumps(run).replace("<", "\\u003c"),  # the same JSON, without markup
            "```",
        ]
    except (KeyError, TypeError):
        return ["Trained with Semigrad; the record of the run is damaged."]


def _sound(value: Any, kind: type) -> Any:
    """What a file says, where it is of the kind that was written there."""
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _figures(result: Mapping[str, Any], fitted: Mapping[str, Any]) -> list[str]:
    """The errors that were measured."""
    parts = [(name, result.get(name)) for name in ("test", "validation")]
    lines = [
        f"- {name} error {part['error']:.2f} % (95 % interval over {part['examples']:,} examples "
        f"{part['error_interval'][0]:.2f} to {part['error_interval'][1]:.2f})"
        for name, part in parts
        if isinstance(part, Mapping)
    ]
    lines += _held_out(fitted)
    return ["", "## Figures", "", *(lines or ["No error was measured: there were no examples held out."])]


def _held_out(fitted: Mapping[str, Any]) -> list[str]:
    """The error of models like this one on labels that were held out of them, where `fit` measured it."""
    errors, chosen = fitted.get("errors"), fitted.get("chosen")
    if not isinstance(errors, Mapping) or not isinstance(chosen, str):
        return []
    if not isinstance(error := errors.get(chosen), int | float):
        return []
    lowest = f", the lowest of {len(errors)} methods that were compared" if len(errors) > 1 else ""
    return [f"- error of models of the same settings on labels that were held out of them: {error:.2f} %{lowest}"]


def _adjusted(model: Classifier) -> list[str]:
    """What was done to its answers after training."""
    if model.form.adjusted is None:
        return []
    return [
        "",
        "Its logits were adjusted after training to the shares of the classes among the labels: rare classes are "
        "answered more often than these shares would have it.",
    ]


def _input(model: Classifier) -> str:
    if model.form.columns is not None:
        return (
            "rows of a table with these columns, in any order (a .csv or .parquet file, a DataFrame, dictionaries); "
            f"they become {model.form.shape[0]} features"
        )
    if len(model.form.shape) == 1:
        return f"rows of {model.form.shape[0]} numbers"
    channels, height, width = model.form.shape
    kind = {1: "gray", 3: "color"}.get(channels, f"{channels}-channel")
    return f"{kind} images of {height} x {width}, as arrays, paths of picture files or open PIL images"


def _backbone(model: Classifier) -> str:
    """What is in the folder of a model that was trained on features."""
    if model.form.backbone is None:
        return ""
    return f" `{BACKBONE}` is a frozen network that makes features of them, `{MODEL}` what was trained on these."


def _example(model: Classifier) -> str:
    if model.form.columns is not None:
        return '"rows.csv"'
    return '"picture.jpg"' if len(model.form.shape) == 3 else "x"


def _columns(model: Classifier) -> list[str]:
    """The columns of a table model, one by one."""
    if model.form.columns is None:
        return []
    rows = []
    for column in model.form.columns.columns[:MOST_COLUMNS]:
        known = ", ".join(escaped(name) for name in column.categories[:MOST_CLASSES])
        more = len(column.categories) - MOST_CLASSES
        known += f" and {more:,} more" if more > 0 else ""
        known = known or f"missing ones become {column.fill:g}" + (
            ", and a feature says so" if column.indicator else ""
        )
        rows.append(f"| {escaped(column.name)} | {column.kind} | {known} |")
    more = len(model.form.columns.columns) - MOST_COLUMNS
    return [
        "| column | kind | categories that are known |",
        "| --- | --- | --- |",
        *rows,
        *([f"| and {more:,} more, in config.json | | |"] if more > 0 else []),
        "",
        "A category that is not among them counts as none: zeros in all features of its column.",
        "",
    ]


def escaped(text: str) -> str:
    """Text in which Markdown and HTML find nothing to do."""
    one_line = " ".join(shown(text).split())
    return re.sub(r"([\\`*_{}\[\]<>()#+\-.!|~$&:])", r"\\\1", one_line).replace("\\<", "&lt;").replace("\\>", "&gt;")
