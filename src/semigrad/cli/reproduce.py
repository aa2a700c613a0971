"""`semigrad reproduce NAME`: a table or figure of the paper, computed again at the scale of this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.table import Table

from semigrad.cli.show import print_table

if TYPE_CHECKING:
    from semigrad.experiments import Cell
    from semigrad.experiments.store import Outcome, Store
from semigrad.cli.options import POSITIONAL, parse
from semigrad.errors import InputError
from semigrad.settings.fields import Count
from semigrad.settings.settings import GPUName


@dataclass(frozen=True)
class Options:
    """Compute a table or figure of the paper again: table1 to table5, figure-accuracy, figure-labels, figure-features,
    and beyond the paper ablation-beta, ablation-operator, ablation-cheaper, ablation-steps, meta-plugin, realistic.
    Runs on record are not computed again, and an interrupted reproduction goes on where it stopped."""

    name: Annotated[str, POSITIONAL]
    """Which one."""
    scale: Literal["smoke", "laptop", "overnight", "paper"] = "laptop"
    """smoke: seconds, to see that everything runs; laptop: faithful miniatures in minutes; overnight: natural images
    with several seeds; paper: its own settings."""
    seeds: int | None = None
    """Seeds 0, 1, ... of each row; none: as many as the scale has. More can be added later."""
    only: tuple[str, ...] = ()
    """Rows and columns to train; none: all. Of the others, what is on record is shown."""
    jobs: Count = 2
    """Runs at a time, each with one thread."""
    device: str = "cpu"
    """Where to compute: cpu, cuda, cuda:1, ..., or auto. The scale of the paper wants a GPU."""
    ray: str | None = None
    """Spread the runs over the Ray cluster at this address instead (needs ray; local: a cluster of this machine)."""
    out: Path | None = None
    """Where the tables and the page go; none: results/NAME-SCALE."""
    pictures: Path | None = None
    """A folder for every chart of the page as an SVG and a PNG file of its own."""
    runs: Path = Path("runs/reproduce")
    """Where the runs go, with their weights."""
    records: Path | None = None
    """Where the small records of finished runs are, and go; none: docs/results/runs here, and those that come with
    the package are read too."""
    recorded: bool = False
    """Train nothing: show what is on record, whether the data are here or not."""
    dry_run: bool = False
    """Only say what would be run, with which settings, and about how long it would take."""
    on: GPUName | None = None
    """With --dry-run: what it would take on such GPUs, as many as --jobs, projected from published rates."""
    json: bool = False
    """End stdout with one line of JSON."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad reproduce")
    if options.on and not options.dry_run:
        raise InputError("--on says what runs would take elsewhere: it goes with --dry-run.")
    if options.recorded and (options.dry_run or options.only):
        raise InputError("--recorded shows all that is on record: it goes with neither --dry-run nor --only.")

    from semigrad.experiments.shipped import shipped_records
    from semigrad.experiments.store import Store

    if options.records:
        return carry_out(options, Store(options.records))
    with shipped_records() as shipped:
        return carry_out(options, Store(shipped=shipped))


def carry_out(options: Options, store: Store) -> int:
    from semigrad.experiments import EXPERIMENTS, find_experiment
    from semigrad.experiments.plan import plan_rows
    from semigrad.experiments.reproduce import pending, recorded, reproduce
    from semigrad.folder.files import check_writable
    from semigrad.training.setup import pick_device

    experiment = find_experiment(options.name, EXPERIMENTS)
    if store.shipped:
        tell(f"Records that come with the package are read from {store.shipped.name}.")
    elif not store.path.exists():
        tell(
            f"There are no records at {store.path}. Those that come with the source are in its docs/results/runs: copy "
            "that folder, or name it with --records."
        )
    if options.recorded:
        check_writable([folder_of(options), *([options.pictures] if options.pictures else [])])
        outcome = recorded(experiment, options.scale, store=store, seeds=options.seeds)
        if not outcome.records:
            raise InputError(
                f"Nothing of {options.name} at scale {options.scale} is on record in {' and '.join(store.places)}. "
                "Choose another scale, or leave --recorded out to train it."
            )
        return present(options, outcome, store)
    chosen, waiting = pending(experiment, options.scale, store=store, seeds=options.seeds, only=options.only)
    if options.dry_run:
        return describe(options, chosen, waiting)
    check_writable([folder_of(options), store.path, *([options.pictures] if options.pictures else [])])
    if options.ray is None:
        pick_device(options.device)
    tell(cost(plan_rows(_different(waiting)), options.jobs))
    outcome = reproduce(
        experiment, options.scale, store=store, seeds=options.seeds, only=options.only, jobs=options.jobs,
        out=options.runs, device=options.device, ray=options.ray, tell=tell,
    )  # fmt: skip
    return present(options, outcome, store)


def folder_of(options: Options) -> Path:
    """Where the tables and the page go."""
    return options.out or Path("results") / f"{options.name}-{options.scale}"


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _different(cells: Sequence[Cell]) -> list[Cell]:
    """One cell for each run."""
    return list({cell.run.key: cell for cell in cells}.values())


def cost(rows: Sequence[dict[str, Any]], jobs: int) -> str:
    """How many runs are to be trained, and about how long that takes here."""
    from semigrad.training.plan import duration

    if not rows:
        return "Every run is on record: nothing to train."
    ends = [0.0] * min(jobs, len(rows))  # when each process is done
    for row in rows:
        ends[ends.index(min(ends))] += row["seconds"]
    at_a_time = "one at a time" if jobs == 1 else f"{jobs} at a time"
    return f"About {duration(max(ends))} for {len(rows)} {'run' if len(rows) == 1 else 'runs'}, {at_a_time}."


def describe(options: Options, chosen: Sequence[Cell], waiting: Sequence[Cell]) -> int:
    """The plan: a line for each run with its settings, and the cost of what is not on record."""
    from semigrad.experiments.gpus import GPUS
    from semigrad.experiments.plan import plan_rows

    gpu = GPUS[options.on] if options.on else None
    rows, lacking = plan_rows(chosen, on=gpu), {cell.run.key for cell in waiting}
    for row, cell in zip(rows, chosen, strict=True):
        row["on_record"] = cell.run.key not in lacking
    needed = {cell.run.key: row for row, cell in zip(rows, chosen, strict=True) if not row["on_record"]}
    total = cost(list(needed.values()), options.jobs) + (f" ({gpu.words})" if gpu else "")
    print_table(plan_table(f"{options.name} at scale {options.scale}", rows), whole=True)
    print(total)
    if options.json:
        print(json.dumps({"experiment": options.name, "scale": options.scale, "cost": total, "runs": rows}))
    return 0


def plan_table(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    from semigrad.training.plan import duration

    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    left = ("row", "column", "data", "network", "settings")
    headings = (*left[:3], "seed", *left[3:], "labels", "steps", "batch", "on record", "takes")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        counts = (f"{row['labels']:,}", f"{row['steps']:,}", f"{row['batch']}+{row['unlabeled_batch']}")
        known = "yes" if row["on_record"] else "no"
        place = (row["row"], row["column"], row["data"], str(row["seed"]), row["network"])
        table.add_row(*place, _settings(row), *counts, known, duration(row["seconds"]))
    return table


def _settings(row: dict[str, Any]) -> str:
    own = [f"{name} {row[name]}" for name in ("gamma", "beta") if row[name] is not None]
    optimizer = f"{row['optimizer']} {row['lr']}, momentum {row['momentum']}{' (Nesterov)' if row['nesterov'] else ''}"
    return ", ".join([optimizer, row["schedule"], f"weight decay {row['weight_decay']}", *own])


def present(options: Options, outcome: Outcome, store: Store) -> int:
    """Print the tables, write the files, and say where they are and which runs are missing."""
    from semigrad.experiments import tables
    from semigrad.folder.files import make_folder, write_json, write_whole
    from semigrad.report.page import comparison_page, comparison_pictures

    for table in tables.plain(outcome):
        print_table(table)
    for note in outcome.notes:
        print(note)
    out = folder_of(options)
    make_folder(out)
    texts = {"md": tables.markdown, "tex": tables.latex, "csv": tables.comma_separated}
    for ending, write in texts.items():
        write_whole(out / f"table.{ending}", write(outcome).encode())
    content = tables.to_plain(outcome)
    write_json(out / "outcome.json", content)
    page = comparison_page(outcome, out / "report.html")
    print(f"Page: {page}\nTables: {', '.join(str(out / f'table.{ending}') for ending in texts)}")
    if options.pictures:
        print(f"Pictures: {len(comparison_pictures(outcome, options.pictures))} in {options.pictures}")
    print(f"Records of the runs: {' and '.join(store.places)}")
    if options.json:
        print(json.dumps({**content, "out": str(out), "records": store.places[0]}))
    if outcome.failures:
        tell(missing([failure.name for failure in outcome.failures]))
    return 1 if outcome.failures else 0


def missing(runs: Sequence[str]) -> str:
    """Which runs the tables lack."""
    count = "1 run could not be trained and is" if len(runs) == 1 else f"{len(runs)} runs could not be trained and are"
    return f"{count} missing in the tables: {'; '.join(runs)}."
