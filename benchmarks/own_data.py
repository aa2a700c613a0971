"""Somebody's own data from `fit` to `predict` to `export`, beside scikit-learn's semi-supervised classifiers.

    python benchmarks/own_data.py                                    # a quarter of an hour on two cores
    python benchmarks/own_data.py --rows "semigrad fit --method auto"  # as long again: several methods compared
    python benchmarks/own_data.py --seeds 1 --steps 20 --kept /tmp/own-data.json   # a short look

A folder of JPEGs (five classes of Tiny-ImageNet below $SEMIGRAD_DATA, ten labels a class, read at 32 x 32), two tables
as CSV and digits as an array, 90 % of the labels taken away; the commands are those that a user would type.
scikit-learn's rows and the splits of tables and digits are those of `benchmarks/tables.py`. What is measured goes on
record in docs/results/own-data.json, and from there to docs/results/own-data.md; what is on record is not measured
again. Nearly all of the time is that which `fit` is given: a minute for each of four data sets and three seeds."""

from __future__ import annotations

import csv
import itertools
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core import generator
from semigrad.core.statistics import difference, summarize
from semigrad.data import data_root, open_dataset
from semigrad.errors import InputError
from semigrad.folder.files import read_json, write_json, write_whole
from semigrad.settings.fields import refuse
from semigrad.training.facts import source
from semigrad.training.verdict import LABELED_ONLY

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results" / "own-data.json"
PICTURES = "tiny-imagenet-20"
CLASSES, LABELED, UNLABELED = 5, 10, 100  # of the folder: classes, and pictures of each
FIT, AUTO = "semigrad fit", "semigrad fit --method auto"
OURS = {FIT: [], AUTO: ["--method", "auto"]}
THEIRS = (
    "LogisticRegression labeled only", "SelfTraining(LogisticRegression)", "LabelSpreading knn", "LabelSpreading rbf",
)  # fmt: skip


@dataclass(frozen=True)
class Options:
    """Own data, from fit to predict to export."""

    data: tuple[str, ...] = ()
    """Only these: photos, wine, breast_cancer, digits; none: all."""
    rows: tuple[str, ...] = ()
    """Only these rows of the table; none: all but `semigrad fit --method auto`."""
    seeds: int = 3
    """Seeds 0, 1, ..., each with other labels."""
    budget: str = "1m"
    """Time that fit is given."""
    steps: int | None = None
    """Steps of every run of fit, for a short look; none: as many as the time allows."""
    jobs: int = 2
    """Runs of a fit at a time."""
    kept: Path = KEPT
    """The record; the page is beside it."""


@dataclass(frozen=True)
class Given:
    """One data set with one choice of labels."""

    path: Path  # what fit is given
    new: Path  # what predict is asked about
    truth: list[str]  # the names of the classes there, in the order of the answers
    arrays: tuple[np.ndarray, np.ndarray, np.ndarray]  # the same for scikit-learn: rows, labels with -1, new rows
    names: tuple[str, ...]  # of its classes
    more: tuple[str, ...] = ()  # words for fit


def main(options: Options) -> int:
    check_words(options)
    records = read_json(options.kept) if options.kept.exists() else {}
    lengths = {record["budget"] for record in records.values() if record["row"] in OURS}
    if others := sorted(lengths - {length_of(options)}):
        raise InputError(
            f"{options.kept} has runs of fit that were given {others[0]}, and its page is of one length. Give these a "
            "file of their own with --kept."
        )
    wanted = options.rows or (FIT, *THEIRS)
    for data, seed in itertools.product(options.data or tuple(MAKERS), range(options.seeds)):
        missing = {row: key for row in wanted if (key := key_of(data, seed, row, options)) not in records}
        if missing:
            with tempfile.TemporaryDirectory() as scratch:
                given = MAKERS[data](Path(scratch), seed)
                for row, key in missing.items():
                    found = by_hand(given, row, seed, options) if row in OURS else by_theirs(given, row, seed)
                    records[key] = {"data": data, "seed": seed, "row": row, "budget": length_of(options), **found}
                    write_json(options.kept, records)
                    print(f"{key}: {found['error']:.2f} % wrong, {found['seconds']:.0f} s", flush=True)
    write_whole(options.kept.with_suffix(".md"), page(list(records.values())).encode())
    print(f"{options.kept.with_suffix('.md')}")
    return 0


def check_words(options: Options) -> None:
    """Refuse what is not known, and pictures that are not there, before anything is measured."""
    problems = [
        f"There is no {what} {word!r} here. Known: {', '.join(known)}."
        for what, given, known in (("data set", options.data, MAKERS), ("row", options.rows, (*OURS, *THEIRS)))
        for word in given
        if word not in known
    ]
    others = [name for name in MAKERS if name != "photos"]
    if "photos" in (options.data or MAKERS) and not (data_root() / PICTURES).is_dir():
        problems.append(f"{data_root() / PICTURES} is not there. Leave it out with --data {','.join(others)}.")
    refuse(problems)


def key_of(data: str, seed: int, row: str, options: Options) -> str:
    return f"{data}, seed {seed}, {row}" + (f", {length_of(options)}" if row in OURS else "")


def length_of(options: Options) -> str:
    return options.budget if options.steps is None else f"{options.steps} steps"


# --- data as files ---


def photos(place: Path, seed: int) -> Given:
    """A folder of JPEGs as they are: a few labeled, more unlabeled, and new ones."""
    source = data_root() / PICTURES
    names = tuple(sorted(folder.name for folder in (source / "train").iterdir())[:CLASSES])
    for name in names:
        files = sorted((source / "train" / name).rglob("*.JPEG"), key=str)
        order = generator("own data", name, seed).permutation(len(files))[: LABELED + UNLABELED]
        for number, position in enumerate(order):
            part = Path("labeled", name) if number < LABELED else Path("unlabeled")
            copy(files[position], place / "photos" / part)
        for file in sorted((source / "val" / name).rglob("*.JPEG"), key=str):
            copy(file, place / "new" / name)
    truth = [file.parent.name for file in sorted((place / "new").rglob("*.JPEG"), key=lambda file: file.parts)]
    train, new = (pixels(place, part) for part in ("photos", "new"))
    return Given(place / "photos", place / "new", truth, (train[0], train[1], new[0]), names, ("--image-size", "32"))


def copy(file: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, folder)


def pixels(place: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Pictures as rows for scikit-learn: 16 x 16 pixels, each the mean of 4 x 4."""
    data = open_dataset("folder", place / part)
    images = data.train.raw(np.arange(len(data.train))).numpy().astype(np.float64) / 255
    count, channels, side, _ = images.shape
    small = images.reshape(count, channels, 16, side // 16, 16, side // 16).mean((3, 5))
    return small.reshape(count, -1), data.labels


def table(name: str) -> Callable[[Path, int], Given]:
    """A table of scikit-learn's as CSV, most labels left empty."""

    def make(place: Path, seed: int) -> Given:
        from benchmarks.tables import TABLES, parts
        from benchmarks.tables import Options as Split

        bunch = TABLES[name]()
        names = tuple(str(word) for word in bunch.target_names)
        rows, labels, new, truth = parts(name, seed, Split())
        words = ["" if label < 0 else names[label] for label in labels]
        write_csv(
            place / "train.csv",
            [*bunch.feature_names, "label"],
            [[*r, w] for r, w in zip(rows.tolist(), words, strict=True)],
        )
        write_csv(place / "new.csv", list(bunch.feature_names), new.tolist())
        answers = [names[label] for label in truth]
        return Given(place / "train.csv", place / "new.csv", answers, (rows, labels, new), names)

    return make


def write_csv(path: Path, header: Sequence[str], rows: Any) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def digits(place: Path, seed: int) -> Given:
    """Images of 8 x 8 in an array."""
    from benchmarks.tables import Options as Split
    from benchmarks.tables import parts

    rows, labels, new, truth = parts("digits", seed, Split())
    np.savez(place / "train.npz", x=rows.reshape(-1, 8, 8) / 16, y=labels)
    np.savez(place / "new.npz", x=new.reshape(-1, 8, 8) / 16)
    names = tuple(map(str, range(10)))
    return Given(place / "train.npz", place / "new.npz", [names[label] for label in truth], (rows, labels, new), names)


MAKERS: dict[str, Callable[[Path, int], Given]] = {
    "photos": photos, "wine": table("wine"), "breast_cancer": table("breast_cancer"), "digits": digits,
}  # fmt: skip


# --- what is measured ---


def by_hand(given: Given, row: str, seed: int, options: Options) -> dict[str, Any]:
    """The three commands, one after the other, each in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        out, answers = Path(scratch) / "run", Path(scratch) / "answers.csv"
        words = ["--budget", options.budget, "--seed", seed, "--jobs", options.jobs, "--out", out]
        words += [*OURS[row], *given.more, *(["--steps", options.steps] if options.steps else [])]
        fit = timed("fit", given.path, *words)
        predict = timed("predict", out, given.new, "--out", answers)
        export = timed("export", out, "--format", "onnx")
        told, facts = read_json(out / "fit.json"), read_json(out / "model.onnx.json")
        with answers.open(newline="") as file:
            found = [line["class"] for line in csv.DictReader(file)]
    wrong = [answer != truth for answer, truth in zip(found, given.truth, strict=True)]
    return {
        "error": 100 * float(np.mean(wrong)),
        "seconds": fit["seconds"],
        "processor": fit["processor"],
        "predict_seconds": predict["seconds"],
        "export_seconds": export["seconds"],
        "export_difference": facts["largest_difference"],
        "code": source(),
        "chosen": told["chosen"],
        "steps": told["steps"],
        "held_out_errors": told["errors"],
        "verdicts": {name: verdict["sentence"] for name, verdict in told["verdicts"].items()},
    }


def timed(verb: str, *words: Any) -> dict[str, float]:
    """Seconds of a command by the clock, and of all its processes on the processor."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "semigrad", verb, *map(str, words)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise InputError(f"semigrad {verb} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(time.perf_counter() - started, 1), "processor": round(processor, 1)}


def by_theirs(given: Given, row: str, seed: int) -> dict[str, Any]:
    from benchmarks.tables import ROWS, measured

    rows, labels, new = given.arrays
    truth = np.array([given.names.index(name) for name in given.truth])
    right, seconds = measured(ROWS[row](seed), rows, labels, new, truth)
    return {"error": 100 * (1 - right), "seconds": round(seconds, 2), "processor": round(seconds, 2)}


# --- the page ---

BESIDE = (
    "Beside the best of scikit-learn's rows, best by these very errors, which is in its favor; differences seed by "
    "seed with a 95 % interval:"
)


def page(records: list[dict[str, Any]]) -> str:
    """What is on record, as Markdown."""
    seeds = len({record["seed"] for record in records})
    told = f"{seeds} seeds, each with other labels" if seeds > 1 else "1 seed"
    budgets = sorted({record["budget"] for record in records if record["row"] in OURS})
    codes = sorted({record["code"] for record in records if "code" in record})
    by = f" Code {', '.join(codes)}." if codes else ""
    lines = [
        "# Own data, from fit to predict to export",
        "",
        f"Made by `python benchmarks/own_data.py` from own-data.json: {told}; `fit` was given "
        f"{' or '.join(budgets)}. Test "
        "errors in per cent, mean ± standard deviation; of Semigrad's rows they are those of `semigrad predict`. On "
        f"pictures scikit-learn's classifiers get 16 x 16 pixels.{by}",
        "",
        *errors(records),
        "",
        *([BESIDE, "", *beside, ""] if (beside := beside_the_best(records)) else []),
        "## Commands",
        "",
        "Seconds by the clock; processor: of all processes of `fit`. The last column is how far the answers of the "
        "exported graph are from the model's.",
        "",
        *commands(records),
        "",
        "## Verdicts",
        "",
        "What `fit` said of the unlabeled data, from labels that were held out, seed by seed.",
        "",
        *verdicts(records),
    ]
    return "\n".join(lines) + "\n"


def rows_by_data(records: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    present = {record["row"] for record in records}
    return [row for row in (*OURS, *THEIRS) if row in present], [d for d in MAKERS if d in {r["data"] for r in records}]


def errors(records: list[dict[str, Any]]) -> list[str]:
    rows, data = rows_by_data(records)
    lines = [f"| row | {' | '.join(data)} |", "| --- |" + " --- |" * len(data)]
    for row in rows:
        cells = [summarize([r["error"] for r in records if (r["row"], r["data"]) == (row, name)]) for name in data]
        lines.append(f"| {row} | {' | '.join('' if cell is None else str(cell) for cell in cells)} |")
    return lines


def beside_the_best(records: list[dict[str, Any]]) -> list[str]:
    """Of every data set a sentence for each row of ours: who makes fewer mistakes, it or the best of scikit-learn's."""
    rows, names = rows_by_data(records)
    lines = []
    for data, row in itertools.product(names, [row for row in rows if row in OURS]):
        found = {other: errors_by_seed(records, data, other) for other in THEIRS}
        ours = errors_by_seed(records, data, row)
        found = {other: errors for other, errors in found.items() if errors.keys() >= ours.keys()}
        best = min(found, key=lambda other: sum(found[other][seed] for seed in ours), default=None)
        if best and (points := difference(ours, found[best])):
            word = "more mistakes than" if points.mean > 0 else "fewer mistakes than" if points.mean else "as many as"
            over = "with 1 seed" if points.seeds == 1 else f"over {points.seeds} seeds"
            open_ = "" if abs(points.mean) > points.half else ", which is not told apart"  # nor is anything by one seed
            lines.append(f"- {data}: `{row}` makes {word} {best}, {points} points {over}{open_}")
    return lines


def errors_by_seed(records: list[dict[str, Any]], data: str, row: str) -> dict[int, float]:
    return {record["seed"]: record["error"] for record in records if (record["data"], record["row"]) == (data, row)}


def commands(records: list[dict[str, Any]]) -> list[str]:
    lines = ["| data | row | fit | processor | predict | export | difference |", "| --- |" + " --- |" * 6]
    rows, data = rows_by_data(records)
    for name in data:
        for row in (row for row in rows if row in OURS):
            own = [r for r in records if (r["row"], r["data"]) == (row, name)]
            if own:
                fields = ("seconds", "processor", "predict_seconds", "export_seconds")
                means = [f"{np.mean([r[field] for r in own]):.0f}" for field in fields]
                worst = max(r["export_difference"] for r in own)
                lines.append(f"| {name} | {row} | {' | '.join(means)} | {worst:.0e} |")
    return lines


def verdicts(records: list[dict[str, Any]]) -> list[str]:
    lines = []
    for record in sorted((r for r in records if r["row"] in OURS), key=lambda r: [*MAKERS].index(r["data"])):
        wrong = record.get("held_out_errors", {})
        told = [
            f"{name} {wrong[name]:.1f} % wrong, labeled-only {wrong[LABELED_ONLY]:.1f} %. {sentence}"
            for name, sentence in record["verdicts"].items()
        ]
        said = " ".join(told) or "Nothing was compared."
        taken = f"took {record['chosen'].replace(LABELED_ONLY, 'labeled-only')}, {record['steps']:,} steps"
        lines.append(f"- {record['data']}, seed {record['seed']}, {record['row']} ({taken}): {said}")
    return lines


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/own_data.py"))))
