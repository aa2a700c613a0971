"""`semigrad train DATA --seeds N`: one run with several seeds, one after the other, and what they have in common."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semigrad.cli.train import Output, json_line, train_one
from semigrad.settings import Execution
from semigrad.settings.fields import refuse

if TYPE_CHECKING:
    from semigrad.run import Run


def begun_seeds(out: Path) -> list[Path]:
    """The folders of seeds below this one, lowest first."""
    found = {int(match[1]): path for path in out.glob("seed*") if (match := re.fullmatch(r"seed(-?\d+)", path.name))}
    return [found[seed] for seed in sorted(found)]


def carry_out_seeds(run: Run, execution: Execution, output: Output) -> int:
    """Every seed from the run's own on; what is wrong with any folder is said before the first begins."""
    from semigrad.folder.run_folder import RunFolder, default_folder
    from semigrad.training.joining import restarts, started_together

    runs = [dataclasses.replace(run, seed=run.seed + number) for number in range(output.seeds or 1)]
    folders = {each.seed: output.out / f"seed{each.seed}" if output.out else default_folder(each) for each in runs}
    resume = output.resume or restarts()
    if started_together().first:
        refuse([line for each in runs for line in RunFolder(folders[each.seed]).problems(each, resume)])
    results = {}
    for each in runs:
        print(f"Seed {each.seed}:", flush=True)
        results[each.seed] = train_one(each, folders[each.seed], execution, output)
    for line in together(results):
        print(line)
    print(f"All of them on one page: semigrad report {' '.join(map(str, folders.values()))}")
    if output.json:
        print(json.dumps(_summary(runs, folders, results)))
    return 0


def together(results: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Mean ± standard deviation of the errors that were measured."""
    from semigrad.core.statistics import summarize

    lines = []
    for part in ("validation", "test"):
        errors = {seed: result[part]["error"] for seed, result in results.items() if result.get(part)}
        if errors:
            each = ", ".join(f"{error:.2f}" for error in errors.values())
            seeds = f"seed {min(errors)}" if len(errors) == 1 else f"seeds {min(errors)} to {max(errors)}"
            lines.append(f"{part} error {summarize([*errors.values()])} % (mean ± deviation over {seeds}: {each})")
    return lines


def _summary(runs: list[Run], folders: Mapping[int, Path], results: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    from semigrad.core.statistics import summarize

    errors = [result["error"] for result in results.values() if result["error"] is not None]
    over = summarize(errors)
    return {
        "error": over.mean if over else None,
        "deviation": over.deviation if over and over.seeds > 1 else None,
        "seeds": [json_line(run, folders[run.seed], results[run.seed]) for run in runs],
    }
