"""What to label next: test error over rounds of labeling, for each strategy.

    python benchmarks/label_next.py                          # digits, labeled-only and FixMatch, five seeds
    python benchmarks/label_next.py --data svhn --methods supervised --start 100 --rounds 3 --steps 800 --seeds 3
    python benchmarks/label_next.py --only-page              # the page again, from the records

The second one: 33 trainings of compact-conv with 100, 200 and 400 labels, and 30 choices among 20,000 pictures; 15 to
25 minutes of one core, as estimated. `SEMIGRAD_DATA` says where SVHN is.

Every seed begins with labels drawn at random, equally many of each class, and the same for every strategy. A round
trains on them, lets the strategy choose as many more as there are, and gives those their true labels: the number of
labels doubles. Records go to `docs/results/label-next.json` round by round; what is there is not computed again, so
that the same command goes on where it was stopped, or with more seeds. Other settings are refused: rounds would be
mixed that cannot be compared. The page `docs/results/label-next.md` is written from the records."""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core.statistics import difference, summarize
from semigrad.data import open_dataset
from semigrad.data.arrays import fingerprint
from semigrad.data.dataset import Dataset
from semigrad.data.given import word_for
from semigrad.data.split import DataSpec, Split, make_split
from semigrad.experiments.scales.miniature import AS_PUBLISHED
from semigrad.folder.files import make_folder, write_whole
from semigrad.folder.saved import load_model
from semigrad.labeling.candidates import candidates_of
from semigrad.labeling.choosing import STRATEGIES, choose
from semigrad.report.drawing.charts import Chart, Series, line_chart
from semigrad.report.drawing.standalone import as_text, stand_alone
from semigrad.run import configure
from semigrad.settings import Execution
from semigrad.settings.fields import refuse
from semigrad.training.loop import train

RESULTS = Path(__file__).parent.parent / "docs" / "results"
KEPT, PAGE = RESULTS / "label-next.json", RESULTS / "label-next.md"
PICTURES = RESULTS / "label-next"
BASELINE = "random"
Records = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """Test error over rounds of labeling."""

    data: str = "digits"
    """The data, by name."""
    methods: tuple[str, ...] = ("supervised", "fixmatch")
    """What is trained in every round."""
    strategies: tuple[str, ...] = tuple(STRATEGIES)
    """Who chooses."""
    seeds: int = 5
    """Seeds 0, 1, ...: of the first labels, the weights and every draw."""
    start: int = 10
    """Labels of the first round."""
    rounds: int = 5
    """Rounds, the first one included."""
    steps: int = 300
    """Steps of every training."""
    batch: int = 32
    """Labeled examples of a step; as many unlabeled ones."""
    only_page: bool = False
    """Write the page from the records that there are, and train nothing."""


def main(options: Options) -> int:
    kept: Records = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not options.only_page:
        settle(options, kept)
        torch.set_num_threads(1)
        dataset = open_dataset(options.data)
        for method in options.methods:
            for seed in range(options.seeds):
                first: dict[int, Trained] = {}
                for strategy in options.strategies:
                    follow(options, dataset, kept, method, strategy, seed, first)
    write_page(kept)
    return 0


def settle(options: Options, kept: Records) -> None:
    """What is on record for these data and methods must have been made with these settings."""
    settings = {name: getattr(options, name) for name in ("steps", "batch", "start", "rounds")}
    tables = {method: kept.setdefault(options.data, {}).setdefault(method, {}) for method in options.methods}
    refuse([
        f"{KEPT} has {options.data}, {method}, with {table['settings']}; asked for: {settings}. Ask for the same, or "
        "take that part out of the file."
        for method, table in tables.items() if table.get("settings", settings) != settings
    ])  # fmt: skip
    for table in tables.values():
        table["settings"] = settings


def follow(
    options: Options, dataset: Dataset, kept: Records, method: str, strategy: str, seed: int, first: dict[int, Trained]
) -> None:
    """All rounds of one strategy with one seed; the first one is the same for every strategy, and trained once."""
    rounds: list[dict[str, Any]] = kept[options.data][method].setdefault(strategy, {}).setdefault(str(seed), [])
    labeled = make_split(dataset, DataSpec(options.data, labels=options.start), seed).labeled
    for number in range(options.rounds):
        if number < len(rounds):
            labeled = np.union1d(labeled, rounds[number]["chosen"]).astype(np.int64)
            continue
        trained = first.get(number) or train_on(options, dataset, labeled, method, seed)
        first |= {0: trained} if number == 0 else {}
        more = len(labeled) if number + 1 < options.rounds else 0
        chosen = [] if not more else choose_next(dataset, labeled, trained, strategy, seed, more)
        error = trained.error
        rounds.append({"labels": len(labeled), "error": error, "chosen": chosen})
        write_whole(KEPT, (json.dumps(kept) + "\n").encode())
        print(f"{method}, {strategy}, seed {seed}, {len(labeled)} labels: {error:.1f} %", file=sys.stderr, flush=True)
        labeled = np.union1d(labeled, chosen).astype(np.int64)


@dataclass(frozen=True)
class Trained:
    net: nn.Module
    error: float  # on the test part, in per cent


def train_on(options: Options, dataset: Dataset, labeled: np.ndarray, method: str, seed: int) -> Trained:
    """A network trained with these labels."""
    known = masked(dataset, labeled)
    unlabeled = {} if method == "supervised" else {"unlabeled_batch": options.batch}
    table = {"name": method, **AS_PUBLISHED.get(method, {})}
    run = configure(options.data, method=table, steps=options.steps, batch=options.batch, seed=seed, **unlabeled)
    run = dataclasses.replace(run, data=word_for(known))
    with tempfile.TemporaryDirectory() as folder:
        execution = Execution(device="cpu", threads=1, workers=0, checkpoint_every=options.steps)
        result = train(run, Path(folder) / "run", dataset=known, execution=execution)
        return Trained(load_model(Path(folder) / "run")[0], result["error"])


def choose_next(
    dataset: Dataset, labeled: np.ndarray, trained: Trained, strategy: str, seed: int, budget: int
) -> list[int]:
    """The positions that are to be labeled next."""
    rest = np.setdiff1d(np.arange(len(dataset.train)), labeled)
    split = Split(labeled, rest, labeled[:0])
    candidates = candidates_of(trained.net, masked(dataset, labeled), split, torch.device("cpu"), seed=seed)
    return [choice.position for choice in choose(candidates, budget, strategy, seed)]


def masked(dataset: Dataset, labeled: np.ndarray) -> Dataset:
    """The data set with these labels alone."""
    labels = np.full(len(dataset.labels), -1)
    labels[labeled] = dataset.labels[labeled]
    return dataclasses.replace(dataset, labels=labels, fingerprint=fingerprint(labels))


# --- the page ---


def write_page(kept: Records) -> None:
    parts = [
        "# What to label next, measured\n",
        "Test error over rounds of labeling, mean ± standard deviation over seeds. Written by "
        "`benchmarks/label_next.py` from `label-next.json`, whatever it says. Every seed begins with labels drawn at "
        "random, equally many of each class and the same for every strategy; a round trains, lets the strategy choose "
        "as many more as there are, and gives those their true labels.\n",
        "`margin`, `entropy` and `meta-gradient` spread over the network's answers as `semigrad label-next` does. "
        "Below each table: differences to `random` seed by seed, with 95 % intervals by Student's t; an interval that "
        "holds 0 says nothing. With this many comparisons, about one in twenty leaves 0 out by chance.\n",
    ]
    charts: list[Chart] = []
    for data, methods in kept.items():
        for method, table in methods.items():
            charts.append(curves(data, method, errors_of(table)))
            parts += section(data, method, table)
    make_folder(PICTURES)
    for chart in charts:
        write_whole(PICTURES / f"{chart.name}.svg", as_text(stand_alone(chart.svg)))
    write_whole(PAGE, "\n".join(parts).encode())


def errors_of(table: Mapping[str, Any]) -> dict[str, dict[int, dict[int, float]]]:
    """Strategy, labels, seed: test error in per cent."""
    found: dict[str, dict[int, dict[int, float]]] = {}
    for strategy in (name for name in STRATEGIES if name in table):
        for seed, rounds in table[strategy].items():
            for each in rounds:
                found.setdefault(strategy, {}).setdefault(each["labels"], {})[int(seed)] = each["error"]
    return found


def curves(data: str, method: str, errors: Mapping[str, Mapping[int, Mapping[int, float]]]) -> Chart:
    series = []
    for strategy, by_labels in errors.items():
        means = [float(np.mean(list(seeds.values()))) for seeds in by_labels.values()]
        series.append(Series(strategy, list(by_labels), means))
    title = f"{data}, {method}: test error by number of labels"
    return line_chart(f"{data}-{method}", title, series, "labels", "test error, %", log_x=True, zero=True)


def section(data: str, method: str, table: Mapping[str, Any]) -> list[str]:
    errors, settings = errors_of(table), table["settings"]
    labels = sorted({count for by_labels in errors.values() for count in by_labels})
    seeds = max((len(found) for by_labels in errors.values() for found in by_labels.values()), default=0)
    lines = [
        f"## {data}, {method}\n",
        f"{seeds} seeds, {settings['steps']} steps of {settings['batch']} labeled examples.\n",
        f"![test error by number of labels](label-next/{data}-{method}.svg)\n",
        "| test error, % | " + " | ".join(f"{count} labels" for count in labels) + " |",
        "| --- |" + " --- |" * len(labels),
    ]
    for strategy, by_labels in errors.items():
        cells = [str(summarize(list(by_labels.get(count, {}).values())) or "") for count in labels]
        lines.append(f"| {strategy} | {' | '.join(cells)} |")
    lines += ["", *compared(errors, labels[1:], BASELINE), ""]
    return [*lines, *compared({"meta-gradient": errors.get("meta-gradient", {}), "margin": errors.get("margin", {})},
                              labels[1:], "margin"), ""]  # fmt: skip


def compared(
    errors: Mapping[str, Mapping[int, Mapping[int, float]]], labels: Sequence[int], baseline: str
) -> list[str]:
    """Differences to one strategy, seed by seed."""
    lines = [
        f"| minus {baseline} | " + " | ".join(f"{count} labels" for count in labels) + " |",
        "| --- |" + " --- |" * len(labels),
    ]
    for strategy, by_labels in errors.items():
        if strategy != baseline:
            cells = [difference(by_labels.get(n, {}), errors.get(baseline, {}).get(n, {})) for n in labels]
            lines.append(f"| {strategy} | {' | '.join(str(cell or '') for cell in cells)} |")
    return lines


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/label_next.py"))))
