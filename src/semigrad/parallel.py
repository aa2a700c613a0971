"""Several runs at a time, each in a process of its own with one thread; finished ones are not computed again."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from semigrad.loop import train
from semigrad.records import RunFolder
from semigrad.run import Run
from semigrad.settings import Execution


def train_all(
    runs: Mapping[Path, Run], jobs: int, tell: Callable[[Path, dict[str, Any]], None]
) -> dict[Path, dict[str, Any]]:
    """Train every run into its folder, going on with what was begun; `tell` hears of each result as it comes."""
    results: dict[Path, dict[str, Any]] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        waiting = {pool.submit(_train_one, run, path): path for path, run in runs.items()}
        try:
            for done in as_completed(waiting):
                path = waiting[done]
                results[path] = done.result()
                tell(path, results[path])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def _train_one(run: Run, path: Path) -> dict[str, Any]:
    begun = RunFolder(path)["run.json"].exists()
    return train(run, path, resume=begun, execution=Execution(device="cpu", threads=1))
