"""Several runs at a time, each in a process of its own with one thread; finished ones are not computed again."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from semigrad.errors import Busy, InputError
from semigrad.folder.run_folder import RunFolder
from semigrad.run import Run
from semigrad.settings import Execution
from semigrad.settings.fields import refuse
from semigrad.training.loop import train
from semigrad.training.signals import Stop, Stopped, deaf_children, interruptible

Result = dict[str, Any]


def train_all(
    runs: Mapping[Path, Run],
    jobs: int,
    tell: Callable[[Path, Result], None],
    failed: Callable[[Path, InputError], None] | None = None,
    device: str = "cpu",
    alive: Callable[[list[Path]], None] = lambda under_way: None,
    silence: float = 30.0,
) -> dict[Path, Result]:
    """Train every run into its folder, going on with what was begun; `tell` hears of each result as it comes, and
    `alive` of the runs under way when there was none for `silence` seconds.

    A run that cannot be trained (it diverges) ends them all, unless there is `failed` to hear of it."""
    refuse([] if jobs >= 1 else [f"jobs must be at least 1; given: {jobs}."])
    results = {path: RunFolder(path).result() for path, run in runs.items() if _is_finished(run, path)}
    for path, result in results.items():
        tell(path, result)
    others, context = set(multiprocessing.active_children()), multiprocessing.get_context("spawn")
    jobs = min(jobs, max(len(runs), 1))
    with interruptible() as stop, ProcessPoolExecutor(jobs, context, _end_with_the_parent) as pool:
        with deaf_children():
            missing = {path: run for path, run in runs.items() if path not in results}
            paths = {pool.submit(_train_one, run, path, device): path for path, run in missing.items()}

        def under_way(running: list[Future[Result]]) -> None:
            alive([paths[future] for future in running[:jobs]])  # the pool counts the next one among them

        try:
            for future in _as_they_end(paths, stop, silence, under_way):
                path = paths[future]
                try:
                    results[path] = future.result()
                except InputError as error:
                    if failed is None:
                        raise
                    failed(path, error)
                else:
                    tell(path, results[path])
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            _end(set(multiprocessing.active_children()) - others)
            if isinstance(error, BrokenProcessPool):
                raise InputError(
                    "A training process died, for lack of memory perhaps. Everything before is saved: the same command "
                    "goes on; fewer at a time need less memory."
                ) from error
            raise
    return results


def _end(children: set[BaseProcess]) -> None:
    """Let processes save and end, and wait for them; who asks a second time does not wait."""
    for child in children:
        child.terminate()
    left = {child.sentinel for child in children}
    try:
        while left:
            left.difference_update(connection.wait(left))
    except KeyboardInterrupt:
        for child in children:
            child.kill()
        raise


def _as_they_end(
    futures: Iterable[Future[Result]], stop: Stop, silence: float, alive: Callable[[list[Future[Result]]], None]
) -> Iterator[Future[Result]]:
    waiting, heard = dict.fromkeys(futures), time.monotonic()
    while waiting:
        done = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED).done
        if stop.number:
            raise Stopped(stop.number, "Stopped; everything is saved. The same command goes on.")
        for future in done:
            del waiting[future]
            yield future
        if done:
            heard = time.monotonic()
        elif time.monotonic() - heard > silence:
            alive([future for future in waiting if future.running()])
            heard = time.monotonic()


def _is_finished(run: Run, path: Path) -> bool:
    folder = RunFolder(path)
    return folder.finished and not folder.problems(run, resume=True)


def _train_one(run: Run, path: Path, device: str) -> Result:
    """Go on with what is there; where another process trains it just now, wait for what that leaves."""
    gc.collect()  # the run before is held in cycles, its data and network with it
    while True:
        try:
            return train(run, path, resume=True, execution=Execution(device=device, threads=1))
        except Busy:
            time.sleep(1)
        except Stopped as stopped:
            os._exit(128 + stopped.signal)  # a worker that went on to wait for work would never be told again


def _end_with_the_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
