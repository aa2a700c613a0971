"""`semigrad label-next RUN`: which unlabeled examples to label next, as a sheet to fill in and a page to look at."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from semigrad.cli.options import POSITIONAL, parse
from semigrad.errors import InputError
from semigrad.settings.fields import Count, Threads, Whole, Workers

Strategy = Literal["auto", "typical", "margin", "entropy", "random", "meta-gradient"]


@dataclass(frozen=True)
class Options:
    """Choose unlabeled examples for labeling: a CSV sheet with an empty column for the answer, and a page with the
    pictures and the reason for each."""

    run: Annotated[Path, POSITIONAL]
    """The folder of a finished run."""
    budget: Count = 20
    """How many to choose."""
    strategy: Strategy = "auto"
    """auto: typical below 10 labels of a class, else margin; meta-gradient is experimental."""
    out: Path | None = None
    """The sheet; none: label-next.csv in the run's folder, numbered. The page goes beside it."""
    page: bool = True
    """Write the page."""
    most: Count = 20_000
    """Unlabeled examples to choose from; of more, so many are drawn."""
    seed: Whole = 0
    """Of every draw."""
    device: str = "auto"
    """Where to compute."""
    threads: Threads | None = None
    """Threads of the processor; none: torch's own choice."""
    workers: Workers = 2
    """Processes that read ahead where examples are in files."""
    json: bool = False
    """End stdout with one line of JSON."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad label-next")

    import torch

    from semigrad.folder.files import check_writable, make_folder, write_whole
    from semigrad.labeling.candidates import open_candidates
    from semigrad.labeling.choosing import choose, default_strategy
    from semigrad.labeling.exchange import place_for
    from semigrad.labeling.merging import takes_answers
    from semigrad.labeling.sheet import sheet_of
    from semigrad.report.labels import labels_page

    if options.threads:
        torch.set_num_threads(options.threads)
    if options.out is not None and options.out.suffix.lower() != ".csv":
        raise InputError(f"The sheet is a CSV file, and {options.out} does not end in .csv. Give it that ending.")
    sheet = place_for(options.out, options.run / "label-next.csv")
    page = sheet.with_suffix(".html")
    if options.page and page.exists():
        raise InputError(f"{page} exists, and nothing is overwritten. Choose another place with --out.")
    run, candidates = open_candidates(
        options.run, options.device, seed=options.seed, most=options.most, workers=options.workers
    )
    check_writable([sheet.parent])
    strategy = options.strategy
    if strategy == "auto":
        strategy = default_strategy(len(candidates.labeled), len(candidates.classes))  # type: ignore[assignment]
    chosen = choose(candidates, options.budget, strategy, options.seed)
    make_folder(sheet.parent)
    write_whole(sheet, sheet_of(chosen, candidates.dataset))
    drawn = "" if candidates.total == len(candidates.unlabeled) else f" drawn from {candidates.total:,}"
    print(
        f"{len(chosen):,} of {len(candidates.unlabeled):,} unlabeled examples{drawn}, by --strategy {strategy}: {sheet}"
    )
    if options.page:
        print(f"Page: {labels_page(page, options.run, run, candidates, chosen, strategy)}")
    command = shlex.join(["semigrad", "add-labels", str(options.run), str(sheet)])
    where = (
        "on the page, which saves a sheet, or in the sheet's column answer" if options.page else "in its column answer"
    )
    none = f"{run.data} has no labels of yours that answers could be added to."
    print(f"Answer {where}; then: {command}" if takes_answers(run) else none)
    if options.json:
        examples = [{"example": candidates.dataset.train.name_of(each.position), "proposed": each.proposed,
                     "confidence": each.confidence, "reason": each.reason} for each in chosen]  # fmt: skip
        print(json.dumps({"sheet": str(sheet), "strategy": strategy, "examples": examples}))
    return 0
