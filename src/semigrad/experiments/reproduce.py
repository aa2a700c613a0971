"""From an experiment to its outcome: what is on record is read, the rest is trained, and every run goes on record."""

from __future__ import annotations

import dataclasses
import datetime
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from semigrad.data.opening import open_data
from semigrad.data.split import DataSpec
from semigrad.errors import InputError, unknown
from semigrad.experiments.cluster import train_on_cluster
from semigrad.experiments.experiment import Cell, Experiment, Place, Scale
from semigrad.experiments.features import describe_features
from semigrad.experiments.store import Failure, Outcome, Record, Store, record_of
from semigrad.folder.files import check_writable, read_json
from semigrad.folder.metrics import read_metrics
from semigrad.folder.run_folder import METRICS, RUN, RunFolder
from semigrad.folder.saved import load_run
from semigrad.run import Run
from semigrad.training.parallel import train_all
from semigrad.training.setup import pick_device

DEFAULT_RUNS = Path("runs/reproduce")

Tell = Callable[[str], None]


def reproduce(
    experiment: Experiment,
    scale: Scale,
    *,
    store: Store,
    seeds: int | None = None,
    only: Sequence[str] = (),
    jobs: int = 2,
    out: Path = DEFAULT_RUNS,
    device: str = "cpu",
    ray: str | None = None,
    tell: Tell = lambda text: None,
    silence: float = 30.0,
) -> Outcome:
    """What an experiment gives at a scale. Runs on record are not computed; the others are trained into `out`, `jobs`
    at a time on `device`, or on the Ray cluster at the address `ray`, and go on record one by one.

    `only` names rows and columns that are to be trained; of the others, what is on record is shown. An interrupted
    reproduction goes on where it stopped. Runs that cannot be trained are among the outcome's failures. `tell` hears
    of every run that ends, and after `silence` seconds without one how far the others are."""
    work = Work(experiment, scale, experiment.cells(scale, seeds), store, tell)
    work.read_records()
    runs = work.missing(selected(experiment, scale, only))
    work.check_data(runs)
    if runs:
        work.check_places(runs, [store.path, out] if ray is None else [store.path])
        tell(f"To train: {len(runs)}; on record in {store.path}: {len(work.records)}.")
        if ray is None:
            work.train_here(runs, out, jobs, device, silence)
        else:
            train_on_cluster(
                ray, runs, work.looks_at_features, device, work.keep, work.note_failure,
                lambda waiting: tell(f"Still to come from the cluster: {waiting} of {len(runs)}."), silence,
            )  # fmt: skip
    return work.outcome(_command(experiment, scale, seeds, only))


def pending(
    experiment: Experiment, scale: Scale, *, store: Store, seeds: int | None = None, only: Sequence[str] = ()
) -> tuple[list[Cell], list[Cell]]:
    """The cells that are asked for, and those of them that would be trained if the data are those of the records;
    reads no data."""
    wanted = selected(experiment, scale, only)
    cells = [cell for cell in experiment.cells(scale, seeds) if wanted(cell)]
    work = Work(experiment, scale, cells, dataclasses.replace(store, tell=lambda text: None), lambda text: None)
    work.read_records(unseen=True)
    lacking = {run.key for run in work.missing(wanted)}
    return cells, [cell for cell in cells if cell.run.key in lacking]


def recorded(experiment: Experiment, scale: Scale, *, store: Store, seeds: int | None = None) -> Outcome:
    """What is on record of an experiment at a scale; trains nothing and reads no data."""
    work = Work(experiment, scale, experiment.cells(scale, seeds), store, lambda text: None)
    work.read_records(unseen=True)
    return work.outcome(_command(experiment, scale, seeds, ()))


def selected(experiment: Experiment, scale: Scale, only: Sequence[str]) -> Callable[[Cell], bool]:
    """Whether a cell is one of the rows and columns that are named, small letters or large; where no row is named it
    is every row, and so for columns."""
    rows = {row.lower(): row for row in experiment.rows_at(scale)}
    columns = {column.lower(): column for column in experiment.columns(scale)}
    both = {**columns, **rows}
    if problems := [unknown("row or column", name, both.values()) for name in only if name.lower() not in both]:
        raise InputError(problems)
    chosen = {both[name.lower()] for name in only}
    some_rows, some_columns = chosen & set(rows.values()), chosen & set(columns.values())
    return lambda cell: (not some_rows or cell.row in some_rows) and (not some_columns or cell.column in some_columns)


def fingerprint_in(folder: Path) -> str | None:
    """Of the data of the run in a folder, None where there is no run; a damaged run is to be removed."""
    here = RunFolder(folder)
    if not here[RUN].exists():
        return None
    try:
        load_run(folder)
        if here.finished:
            record_of(folder)
        return str(read_json(here[RUN])["data"]["fingerprint"])
    except (InputError, KeyError, TypeError) as error:
        reason = " ".join(error.problems) if isinstance(error, InputError) else f"{here[RUN]} names no data."
        advice = f"Remove the folder {folder}, and the same command trains the run anew."
        raise InputError(f"{reason} {advice}") from error


Source = tuple[str, Path | None, int | None, bool]
"""What decides which examples a run reads: the data set, its path, and how pictures are cut."""


@dataclass
class Work:
    """A reproduction under way."""

    experiment: Experiment
    scale: Scale
    cells: list[Cell]
    store: Store
    tell: Tell
    records: dict[str, Record] = field(default_factory=dict)  # by the run's key
    fingerprints: dict[Source, str | InputError] = field(default_factory=dict)  # or why the data cannot be read
    failures: list[Failure] = field(default_factory=list)
    to_train: int = 0
    ended: int = 0

    @property
    def looks_at_features(self) -> bool:
        return self.experiment.kind == "features"

    def read_records(self, unseen: bool = False) -> None:
        """Find every run that is on record; `unseen`: without a look at the data, as if they were not here."""
        self.store.check()
        for run in _different(self.cells):
            record = self.store.find(run, None if unseen else self._fingerprint(run))
            if record is not None:
                self.records[run.key] = record

    def missing(self, wanted: Callable[[Cell], bool]) -> list[Run]:
        """The runs that have to be trained, each once; weights are not on record, so features that are not there need
        the run again."""
        runs = _different([cell for cell in self.cells if wanted(cell)])
        lacking = [run for run in runs if not self._complete(self.records.get(run.key))]
        self.to_train = len(lacking)
        return lacking

    def check_data(self, runs: Sequence[Run]) -> None:
        """All data that are missing, in one message."""
        absent: dict[Source, InputError] = {}
        for run in runs:
            known = self.fingerprints[_source(run)]
            if isinstance(known, InputError):
                absent[_source(run)] = known
        if not absent:
            return
        keys = {run.key for run in runs}
        problems = []
        for source, error in absent.items():
            cells = [cell for cell in self.cells if cell.run.key in keys and _source(cell.run) == source]
            columns = ", ".join(dict.fromkeys(cell.column for cell in cells))
            problems.append(f"{columns}: {' '.join(error.problems)}")
        advice = "Choose other columns with --only, or let the environment variable SEMIGRAD_DATA name their folder."
        raise InputError([f"{self.experiment.name} needs data that cannot be read here. {advice}", *problems])

    def check_places(self, runs: Sequence[Run], folders: Sequence[Path]) -> None:
        """Raise where what is trained could not be kept."""
        check_writable(folders)
        if problems := [line for run in runs for line in self.store.obstacles(run, str(self._fingerprint(run)))]:
            raise InputError(problems)

    def train_here(self, runs: Sequence[Run], out: Path, jobs: int, device: str, silence: float) -> None:
        """Train in folders below `out`, going on with what was begun there."""
        pick_device(device)  # one message where it is not there, not one for each run
        places = self._places(runs, out)
        train_all(
            places,
            jobs,
            lambda path, _: self.add(places[path], path),
            lambda path, error: self.note_failure(places[path], error),
            device,
            lambda paths: self.tell_under_way({path: places[path] for path in paths}),
            silence,
        )

    def tell_under_way(self, places: Mapping[Path, Run]) -> None:
        """How far the runs are that are being trained."""
        steps = {path: read_metrics(path / METRICS)[-1:] for path in places}
        far = [
            f"{self._name(run)} at step {steps[path][0]['step'] if steps[path] else 0:,} of {run.steps:,}"
            for path, run in places.items()
        ]
        self.tell(f"Under way: {'; '.join(far)}.")

    def _places(self, runs: Sequence[Run], out: Path) -> dict[Path, Run]:
        """A folder for each run that can be trained there."""
        places = {}
        for run in runs:
            try:
                places[self._folder(run, out)] = run
            except InputError as error:
                self.note_failure(run, error)
        return places

    def _folder(self, run: Run, out: Path) -> Path:
        """A folder of its own for each run, and another where it holds the same run on data that have changed."""
        folder, here = out / run.key, str(self._fingerprint(run))
        if fingerprint_in(folder) in (None, here):
            return folder
        beside = out / f"{run.key}-{here[:8]}"
        fingerprint_in(beside)
        return beside

    def add(self, run: Run, folder: Path) -> None:
        """Put a finished run on record."""
        try:
            features = describe_features(folder) if self.looks_at_features else None
        except InputError as error:
            self.note_failure(run, error)
        else:
            self._note(run, self.store.add(folder, features))

    def keep(self, run: Run, record: Record) -> None:
        """Put on record what another machine trained."""
        here = self._fingerprint(run)
        if record.data["fingerprint"] != here:
            raise InputError(f"The cluster trained {run.data} on other data than those here. Give both the same.")
        self.store.keep(record)
        self._note(run, record)

    def outcome(self, command: str) -> Outcome:
        places: dict[Place, dict[int, Record]] = {}
        for cell in self.cells:
            if cell.run.key in self.records:
                places.setdefault((cell.row, cell.column), {})[cell.run.seed] = self.records[cell.run.key]
        today = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        newest = max((str(record.made["date"]) for record in self.records.values()), default=today)
        return Outcome(self.experiment, self.scale, places, command, newest, tuple(self.failures))

    def note_failure(self, run: Run, error: InputError) -> None:
        """A run that cannot be trained is missing in its cells; the others go on."""
        places = tuple((cell.row, cell.column) for cell in self.cells if cell.run.key == run.key)
        failure = Failure(places, run.seed, " ".join(error.problems))
        self.failures.append(failure)
        self._tell_of(run, f"cannot be trained. {failure.reason}")

    def _note(self, run: Run, record: Record) -> None:
        self.records[run.key] = record
        error = record.result.get("error")
        figure = "no test part" if error is None else f"{error:.2f} % test error"
        self._tell_of(run, f"{figure}, {record.made['seconds']:.0f} s")

    def _tell_of(self, run: Run, text: str) -> None:
        self.ended += 1
        self.tell(f"[{self.ended}/{self.to_train}] {self._name(run)}: {text}")

    def _name(self, run: Run) -> str:
        cell = next(cell for cell in self.cells if cell.run.key == run.key)
        return f"{cell.row}, {cell.column}, seed {run.seed}"

    def _complete(self, record: Record | None) -> bool:
        return record is not None and (record.features is not None or not self.looks_at_features)

    def _fingerprint(self, run: Run) -> str | None:
        """Of the run's data as they are here; None where they are not."""
        source = _source(run)
        if source not in self.fingerprints:
            try:
                self.fingerprints[source] = open_data(run.data, run).fingerprint
            except InputError as error:
                self.fingerprints[source] = error
        known = self.fingerprints[source]
        return None if isinstance(known, InputError) else known


def _source(run: Run) -> Source:
    spec = DataSpec.parse(run.data)
    return spec.name, spec.path, run.image_size, run.resized_crop


def _different(cells: Sequence[Cell]) -> list[Run]:
    """Every run once, though several cells may show it."""
    return list({cell.run.key: cell.run for cell in cells}.values())


def _command(experiment: Experiment, scale: Scale, seeds: int | None, only: Sequence[str]) -> str:
    words = ["semigrad", "reproduce", experiment.name, "--scale", scale]
    words += [] if seeds is None else ["--seeds", str(seeds)]
    words += ["--only", ",".join(only)] if only else []
    return shlex.join(words)
