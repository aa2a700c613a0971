"""Finished runs as small records, one JSON file each, so that no run is ever computed twice.

A record is known by the key of its run and the fingerprint of its data: `<key>-<fingerprint>.json`, with the first 8
letters of the fingerprint. Own data are named by the last part of their path alone (`folder:photos@40`), so that a key
is the same on every machine and no record tells where somebody's files lie. What a feature figure needs stands in a
second file, `<key>-<fingerprint>.features.json`: it is several times larger than the record, and few runs have it."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semigrad.data.split import DataSpec
from semigrad.errors import InputError
from semigrad.experiments.experiment import Experiment, Place, Scale
from semigrad.folder.files import make_folder, read_json, write_whole
from semigrad.folder.metrics import ERRORS, read_metrics
from semigrad.folder.run_folder import METRICS, RUN, RunFolder
from semigrad.folder.saved import load_run
from semigrad.run import Run, from_layers
from semigrad.training.facts import is_part

DEFAULT_STORE = Path("docs/results/runs")
CURVE_LINES = 60
FIELDS = ("key", "run", "data", "made", "result", "curve")
LARGEST_CONFUSION = 20  # classes; the matrix of 100 would be most of a record
PARTS = ("labeled", "unlabeled", "test")  # whose features are compared
DAMAGE = (AttributeError, InputError, KeyError, OverflowError, TypeError, ValueError)
"""What reading a damaged record raises."""
Identity = tuple[str, str, str | None]


@dataclass(frozen=True)
class Record:
    """What is kept of a finished run: everything but the weights."""

    key: str
    run: dict[str, Any]  # as `Run.to_dict` has it, own data by their name alone
    data: dict[str, Any]  # title, fingerprint, counts, split; when the test part was read; a network of the user's own
    made: dict[str, Any]  # versions, date, seconds, device, threads
    result: dict[str, Any]  # as in result.json; no confusion matrix above 20 classes
    curve: list[dict[str, float]]  # at most 60 lines of metrics.jsonl
    features: dict[str, Any] | None = None  # see `features.describe_features`; None: not looked at

    @property
    def own_network(self) -> str | None:
        """The class of the user's own network, where it replaced the run's model."""
        name: str | None = self.data.get("own_network")
        return name

    @property
    def identity(self) -> Identity:
        """Which run this is: equal keys may be of other data under the same name, or of a network of the user's own."""
        return self.key, self.data["fingerprint"], self.own_network


@dataclass(frozen=True)
class Failure:
    """A run that could not be trained."""

    places: tuple[Place, ...]  # of the cells that show it
    seed: int
    reason: str

    @property
    def name(self) -> str:
        """Which run it is, in words."""
        cells = " and ".join(f"{row}, {column}" for row, column in self.places)
        return f"{cells}, seed {self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What a reproduction has so far."""

    experiment: Experiment
    scale: Scale
    records: Mapping[Place, Mapping[int, Record]]  # seed -> record in each place
    command: str  # that makes it
    date: str
    failures: tuple[Failure, ...] = ()

    @property
    def rows(self) -> tuple[str, ...]:
        """In the order of the tables; the first is the baseline where there is one."""
        return self.experiment.rows_at(self.scale)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know: of the experiment, of its scale, and of data that were there in part only."""
        records = [record for cell in self.records.values() for record in cell.values()]
        parts = sorted({(record.data["title"], record.data["test"]) for record in records if is_part(record.data)})
        said = tuple(
            f"Trained on a part of the data: {title}; tested on {tested:,} examples." for title, tested in parts
        )
        return self.experiment.notes_at(self.scale) + said

    def values(self, row: str, column: str) -> dict[int, float]:
        """Seed -> the figure that the column shows; empty for a missing cell."""
        name = self.experiment.measure(column)
        found = {seed: record.result.get(name) for seed, record in self.records.get((row, column), {}).items()}
        return {seed: float(value) for seed, value in sorted(found.items()) if value is not None}

    def seconds(self, row: str, column: str) -> list[float]:
        """What each run of a cell took."""
        return [float(record.made["seconds"]) for record in self.records.get((row, column), {}).values()]


def portable(run: Run) -> Run:
    """The run with own data, and another run to start from, named by the last part of their path, the same on every
    machine."""
    if run.start_from is not None:
        run = dataclasses.replace(run, start_from=os.path.basename(os.path.abspath(run.start_from)))
    if run.pretrained is not None:
        run = dataclasses.replace(run, pretrained=os.path.basename(run.pretrained))
    spec = DataSpec.parse(run.data)
    if spec.path is None:
        return run
    labels = run.data.rpartition("@")[2] if spec.labels is not None or spec.share is not None else ""
    name = f"{spec.name}:{os.path.basename(os.path.abspath(spec.path))}"  # not what a link points to on this machine
    return dataclasses.replace(run, data=f"{name}@{labels}" if labels else name)


def _tell_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Shipped:
    """Records that come with the package; see `shipped_records`."""

    path: Path  # of a folder
    name: str  # where a user finds them


@dataclass(frozen=True)
class Store:
    """A folder of records."""

    path: Path = DEFAULT_STORE
    tell: Callable[[str], None] = _tell_stderr  # hears of records that cannot be used
    shipped: Shipped | None = None  # a second folder of records, which are read and never written

    def check(self) -> None:
        """Raise where something else than a folder is there."""
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is no folder. Give a folder of records, or the name of a new one.")

    def find(self, run: Run, fingerprint: str | None) -> Record | None:
        """The record of this run on the data with this fingerprint; None for data that are not here: the newest
        record of the run, whatever its data."""
        key = portable(run).key
        known = [file for folder in self._folders for file in sorted(folder.glob(f"{key}-????????.json"))]
        files = [file for file in known if fingerprint is None or file.name == self._file(key, fingerprint).name]
        if known and not files:
            names = ", ".join(map(str, known))
            self.tell(f"On record with other data than those here: {names}. The run is computed with those here.")
        read = [record for file in files if (record := self._read_or_tell(file)) is not None]
        found = [record for record in read if fingerprint in (None, record.data["fingerprint"])]
        newest = max(found, key=lambda record: str(record.made["date"]), default=None)
        return None if newest is None else dataclasses.replace(newest, features=self._find_features(newest))

    def obstacles(self, run: Run, fingerprint: str) -> list[str]:
        """What stands where the record of a run is to be written."""
        key = portable(run).key
        files = (self._file(key, fingerprint), self._features_file(key, fingerprint))
        advice = "Remove it, or choose another place for records"
        return [f"{file} is a folder where a record is to be written. {advice}." for file in files if file.is_dir()]

    def add(self, folder: Path, features: Mapping[str, Any] | None = None) -> Record:
        """Write the record of the finished run in a folder."""
        record = dataclasses.replace(record_of(folder), features=None if features is None else dict(features))
        self.keep(record)
        return record

    def keep(self, record: Record) -> None:
        """Write a record, whole or not at all; what belongs beside it first."""
        make_folder(self.path)
        fingerprint = record.data["fingerprint"]
        if record.features is not None:
            beside = self._features_file(record.key, fingerprint)
            write_whole(beside, _lines({"fingerprint": fingerprint, **record.features}))
        write_whole(self._file(record.key, fingerprint), _lines({name: getattr(record, name) for name in FIELDS}))

    @property
    def places(self) -> list[str]:
        """Where records were read from, or else where new ones go."""
        read = [str(self.path)] if self.path.is_dir() else []
        return [*read, *([self.shipped.name] if self.shipped else [])] or [str(self.path)]

    @property
    def _folders(self) -> list[Path]:
        return [self.path] if self.shipped is None else [self.path, self.shipped.path]

    def _file(self, key: str, fingerprint: str) -> Path:
        return self.path / f"{key}-{fingerprint[:8]}.json"

    def _features_file(self, key: str, fingerprint: str) -> Path:
        return self.path / f"{key}-{fingerprint[:8]}.features.json"

    def _read_or_tell(self, file: Path) -> Record | None:
        try:
            return _read(file)
        except InputError as error:
            self.tell(f"{error} It is ignored: the run counts as not on record.")
            return None

    def _find_features(self, record: Record) -> dict[str, Any] | None:
        """What stands beside a record, where it is of the same data."""
        name = self._features_file(record.key, record.data["fingerprint"]).name
        file = next((folder / name for folder in self._folders if (folder / name).exists()), None)
        if file is None:
            return None
        try:
            content = _read_features(file)
        except InputError as error:
            self.tell(f"{error} It is ignored: the features count as not on record.")
            return None
        return content if content.pop("fingerprint", None) == record.data["fingerprint"] else None


def record_of(folder: Path) -> Record:
    """The record of the finished run in a folder."""
    run, here = portable(load_run(folder)), RunFolder(folder)
    if not here.finished:
        raise InputError(f"{folder} holds an unfinished run. Go on with semigrad train --resume --out {folder}.")
    written, result = read_json(here[RUN]), here.result()
    try:
        environment = {**written["environment"], "resumed_in": written.get("resumed_in", [])}
        own = {"own_network": name} if (name := written.get("own_network")) else {}
        record = Record(
            key=run.key,
            run=run.to_dict(),
            data={**written["data"], "split": written["split"], "test_read": written["test_read"], **own},
            made={"date": here.date.isoformat(timespec="seconds"), "seconds": result["seconds"], **environment},
            result=_without_large_confusion(result),
            curve=thin(read_metrics(here[METRICS])),
        )
        _check(record)
    except DAMAGE as error:
        raise InputError(f"The run in {folder} is damaged ({type(error).__name__}: {error}).") from error
    return record


def thin(lines: list[dict[str, float]], most: int = CURVE_LINES) -> list[dict[str, float]]:
    """At most so many lines, evenly chosen and as they were but for 5 digits; lines with a measured error go before
    others, and the last one is always there."""
    *before, last = range(len(lines)) or [0]
    measured = [number for number in before if ERRORS.keys() & lines[number].keys()]
    others = sorted({*before} - {*measured})
    kept = _evenly(measured, most - 1)
    chosen = [*kept, *_evenly(others, most - 1 - len(kept)), last]
    return [{name: _short(value) for name, value in lines[number].items()} for number in sorted(chosen) if lines]


def _evenly(numbers: list[int], most: int) -> list[int]:
    """So many of them, at equal distances, the last one included."""
    count = min(max(most, 0), len(numbers))
    return [numbers[round((position + 1) * len(numbers) / count) - 1] for position in range(count)]


def _short(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.5g}")


def _without_large_confusion(result: dict[str, Any]) -> dict[str, Any]:
    def small(part: Any) -> Any:
        confusion = part.get("confusion") if isinstance(part, dict) else None
        large = isinstance(confusion, dict) or len(confusion or []) > LARGEST_CONFUSION
        return {**part, "confusion": None} if large else part

    return {name: small(part) for name, part in result.items()}


def _read(file: Path) -> Record:
    """A record, checked: it is that of the run and the data that its name says."""
    content = read_json(file)
    try:
        record = Record(**{name: content[name] for name in FIELDS})
        described = from_layers(record.run["data"], [record.run]).key
        _check(record)
    except DAMAGE as error:
        raise InputError(f"The record {file} is damaged ({type(error).__name__}: {error}).") from error
    if described != record.key or file.stem != f"{record.key}-{record.data['fingerprint'][:8]}":
        raise InputError(f"The record {file} is damaged, or of another run than its name says.")
    return record


def _check(record: Record) -> None:
    """Raise where a record lacks what tables and pages are made of."""
    datetime.datetime.fromisoformat(record.made["date"])
    errors = (record.result["error"], record.result.get("error_top5"))
    _demand({
        "made.seconds": _is_finite(record.made["seconds"]),
        "data.title": isinstance(record.data["title"], str),
        "data.train": isinstance(record.data["train"], int),
        "data.official": isinstance(record.data.get("official"), int | None),
        "data.test": isinstance(record.data["test"], int),
        "data.fingerprint": isinstance(record.data["fingerprint"], str),
        "data.own_network": isinstance(record.own_network, str | None),
        "data.split.labeled": isinstance(record.data["split"]["labeled"], int),
        "result": all(error is None or _is_finite(error) for error in errors),
        "curve": all("step" in line and all(map(_is_number, line.values())) for line in record.curve),
    })  # fmt: skip


def _read_features(file: Path) -> dict[str, Any]:
    """What stands beside a record, checked: it has what tables and maps are made of."""
    content = read_json(file)
    try:
        pairs = [content["energy"][f"{first}-{second}"] for first, second in itertools.combinations(PARTS, 2)]
        mean, points = content["silhouette"]["mean"], [content["points"][part] for part in PARTS]
        columns = [[part[name] for name in ("x", "y", "class")] for part in points]
        _demand({
            "width": _is_finite(content["width"]),
            "counts": {*PARTS} <= content["counts"].keys(),
            "energy": all(_is_finite(pair[name]) for pair in pairs for name in ("share", "share_by_chance")),
            "silhouette": mean is None or _is_finite(mean),
            "points": all(len({*map(len, lists)}) == 1 for lists in columns)
            and all(_is_finite(value) for lists in columns for values in lists for value in values),
            "classes": isinstance(content.get("classes", []), list),
        })  # fmt: skip
    except DAMAGE as error:
        raise InputError(f"The record {file} is damaged ({type(error).__name__}: {error}).") from error
    return content


def _demand(sound: Mapping[str, bool]) -> None:
    if wrong := [name for name, is_sound in sound.items() if not is_sound]:
        raise ValueError(f"{', '.join(wrong)} cannot be right")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _lines(content: Mapping[str, Any]) -> bytes:
    """JSON with a line for each field, and for each line of a curve: small, and changes show up where they are."""

    def written(value: Any) -> str:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return "[\n  " + ",\n  ".join(json.dumps(item) for item in value) + "\n ]"
        return json.dumps(value)

    fields = [f" {json.dumps(name)}: {written(value)}" for name, value in content.items()]
    return ("{\n" + ",\n".join(fields) + "\n}\n").encode()
