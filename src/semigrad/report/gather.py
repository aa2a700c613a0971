"""Finished runs as a comparison: which row, which column and which seed each of them is."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from semigrad.errors import InputError
from semigrad.experiments.experiment import Experiment, Plan
from semigrad.experiments.store import Outcome, Record, record_of
from semigrad.folder.run_folder import RUN
from semigrad.report.provenance import flat

MEASURING = ("test_every", "validate_every")
"""Settings that change no result."""
BASELINE = "supervised"
"""The method that others are compared with where it is among them; else it is the first that is given."""
OWN_NETWORK = "own network"


def runs_below(paths: Sequence[Path]) -> list[Path]:
    """The folders of runs that are meant: a folder that holds none itself stands for those right below it."""
    found = []
    for path in paths:
        inner = [] if (path / RUN).exists() else sorted(run.parent for run in path.glob(f"*/{RUN}"))
        found += inner or [path]
    return found


def outcome_of(folders: Sequence[Path]) -> Outcome:
    """Finished runs as a comparison: a row for each method and way to run it, a column for each data set."""
    records = [record_of(folder) for folder in folders]
    columns = column_titles(records)
    labels = row_labels([_description(*each) for each in zip(records, columns, strict=True)])
    found: dict[tuple[str, str], dict[int, Record]] = {}
    for folder, record, label, column in zip(folders, records, labels, columns, strict=True):
        seeds, seed = found.setdefault((label, column), {}), record.run["seed"]
        if seed in seeds:
            raise InputError(_given_twice(folder, record))
        seeds[seed] = record
    methods = {row: next(iter(seeds.values())).run["method"]["name"] for (row, _), seeds in found.items()}
    layers = {place: _layer(next(iter(seeds.values()))) for place, seeds in found.items()}
    experiment = Experiment(
        name="comparison", title=f"Comparison of {len(records)} runs", claim="", kind="table",
        rows=tuple(sorted(methods, key=lambda row: methods[row] != BASELINE)), published={},
        plans={"laptop": Plan(seeds=max(map(len, found.values())), runs=layers)},
    )  # fmt: skip
    command = shlex.join(["semigrad", "report", *map(str, folders)])
    return Outcome(experiment, "laptop", found, command, max(str(record.made["date"]) for record in records))


def _given_twice(folder: Path, record: Record) -> str:
    words = f"{folder} holds a run that was given twice. Give every run once."
    if not record.own_network:
        return words
    return f"{words} Networks of your own are told apart by the name of their class, here {record.own_network}."


def _layer(record: Record) -> dict[str, Any]:
    return {name: value for name, value in record.run.items() if name != "seed"}


def column_titles(records: Sequence[Record]) -> list[str]:
    """The data of each run; where other data have the same name, with a few letters of the fingerprint behind it."""
    seen: dict[str, set[str]] = {}
    for record in records:
        seen.setdefault(record.run["data"], set()).add(record.data["fingerprint"])

    def title(name: str, fingerprint: str) -> str:
        return name if len(seen[name]) == 1 else f"{name} ({fingerprint[:8]})"

    return [title(record.run["data"], record.data["fingerprint"]) for record in records]


def _description(record: Record, column: str) -> dict[str, Any]:
    """The settings that a run had: those of a model of ours are none of a network of the user's own."""
    described = {**record.run, "data": column}
    if record.own_network:
        del described["model"]
        described[OWN_NETWORK] = record.own_network
    return described


def row_labels(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The method of each run, a network of the user's own, and the settings in which it differs from others of the same
    method on the same data; how often it was measured is one only where nothing else tells two runs apart."""
    plain = [dict(flat(run)) for run in runs]
    labels = [_row_label(own, plain, {"data", "seed", *MEASURING}) for own in plain]
    places = {(label, own["data"], own["seed"]) for label, own in zip(labels, plain, strict=True)}
    return labels if len(places) == len(runs) else [_row_label(own, plain, {"data", "seed"}) for own in plain]


def _row_label(own: Mapping[str, Any], others: Sequence[Mapping[str, Any]], aside: Collection[str]) -> str:
    same = ("method.name", "data")
    alike = [other for other in others if all(other[name] == own[name] for name in same)]

    def shown(name: str) -> bool:
        return name == OWN_NETWORK or any(other.get(name, own[name]) != own[name] for other in alike)

    names = [name for name in own if name not in aside and shown(name)]
    return ", ".join([str(own["method.name"]), *(f"{name.removeprefix('method.')} {own[name]}" for name in names)])
