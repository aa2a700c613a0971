"""Where a result comes from: the command that makes it again, its settings, versions and hashes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from semigrad.cli.words import command_of
from semigrad.data import SOURCES
from semigrad.data.split import DataSpec
from semigrad.report.drawing.charts import Cell, Table
from semigrad.run import Run
from semigrad.training.facts import is_part
from semigrad.training.plan import duration


def again(run: Run, own_network: str | None, other_data: bool) -> tuple[str, str]:
    """How to have the run again: a sentence, and the command behind it; none for what only the user's code can start.
    `other_data`: what the run names is here, and is not what it was trained on."""
    started = "This run was started from Python with"
    if own_network:
        return f"{started} a network of the user's own ({own_network}): no command gives it again.", ""
    if DataSpec.parse(run.data).name not in SOURCES:
        return f"{started} data of the user's own, called {run.data}: no command gives it again.", ""
    if other_data:
        return (
            f"The same run again needs the data as they were; what {run.data} names here is something else:",
            command_of(run),
        )
    return "The same run again:", command_of(run)


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names with dots, and their values."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


class ErrorWords(NamedTuple):
    """The test error in words."""

    figure: str
    interval: str


def error_words(result: Mapping[str, Any]) -> ErrorWords | None:
    """The test error, and how sure it is; None where nothing was measured."""
    if not (test := result["test"] if result else None):
        return None
    low, high = test["error_interval"]
    over = f"95 % interval {low:.2f} to {high:.2f} % over {test['examples']:,} examples"
    return ErrorWords(f"{test['error']:.2f} %", over)


def headline(run: Run, content: Mapping[str, Any], result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a reader wants to know first, as far as it is known."""
    data, split, seconds = content.get("data") or {}, content.get("split") or {}, result.get("seconds")
    test, validation = result.get("test") or {}, result.get("validation") or {}
    part = f" ({data['title']})" if is_part(data) else ""
    facts = [
        ("method", run.method_name),
        ("data", f"{run.data}{part}"),
        ("labeled / unlabeled", f"{split['labeled']:,} / {split['unlabeled']:,}" if split else None),
        ("network", content.get("own_network") or run.model_name),
        ("steps", f"{run.steps:,}"),
        ("seed", str(run.seed)),
        ("training took", seconds and duration(seconds)),
        ("top-5 error", _percent(test.get("error_top5"))),
        ("calibration error", _percent(test.get("calibration_error"))),
        ("validation error", _percent(validation.get("error"))),
    ]
    return [(name, value) for name, value in facts if value]


def _percent(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f} %"


def settings_table(run: Run) -> Table:
    """Every setting; those that are not the default of these data say so."""
    defaults, rows = dict(flat(run.plain.to_dict())), []
    for name, value in flat(run.to_dict()):
        default = defaults[name]
        rows.append((Cell(name), Cell(_written(value)), Cell("" if value == default else _written(default))))
    return Table(("setting", "value", "default, where it differs"), rows)


def facts_table(content: Mapping[str, Any], result: Mapping[str, Any], date: str) -> Table:
    """Versions, hashes, counts, time."""
    facts = [
        ("key of the run", content.get("key")),
        ("finished", date),
        ("seconds of training", result.get("seconds")),
        ("who answers", result.get("evaluated")),
        ("test part read", content.get("test_read")),
    ]
    for part in ("data", "split", "environment"):
        facts += [(f"{part}: {name}", value) for name, value in flat(content.get(part) or {})]
    facts.append(("own network", content.get("own_network")))
    rows = [(Cell(name), Cell(_written(value))) for name, value in facts if value not in (None, [], "")]
    return Table(("fact", "value"), rows)


def _written(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
