"""The runs of an experiment spread over a Ray cluster: each task trains one run and returns its small record."""

from __future__ import annotations

import dataclasses
import importlib
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from semigrad.errors import InputError
from semigrad.experiments.features import describe_features
from semigrad.experiments.store import Record, record_of
from semigrad.run import Run
from semigrad.settings import Execution
from semigrad.training.loop import train
from semigrad.training.signals import Stopped, interruptible


def train_on_cluster(
    address: str,
    runs: Sequence[Run],
    with_features: bool,
    device: str,
    keep: Callable[[Run, Record], None],
    failed: Callable[[Run, InputError], None],
    alive: Callable[[int], None],
    silence: float,
) -> None:
    """Train every run somewhere on the cluster at `address` ("local": a cluster of this machine alone) with one thread;
    `keep` hears of each record as it comes, `failed` of runs that cannot be trained, and `alive` of how many are still
    to come when there was neither for `silence` seconds. Every machine needs semigrad, and the data where this one has
    them. A run that is stopped there is lost: only finished ones come back."""
    if device.startswith("cuda:"):
        raise InputError(f"On a cluster, Ray chooses the card: give --device cuda instead of {device}.")
    ray = _import_ray()
    _connect(ray, address)
    try:
        with interruptible() as stop:
            if device == "auto":
                device = "cuda" if ray.cluster_resources().get("GPU") else "cpu"
            task = ray.remote(num_cpus=1, num_gpus=int(device == "cuda"))(train_away)
            waiting = {task.remote(run, with_features, device): run for run in runs}
            heard = time.monotonic()
            while waiting:
                done, _ = ray.wait(list(waiting), timeout=0.2)
                if stop.number:
                    raise Stopped(stop.number, "Stopped; finished runs are on record. The same command goes on.")
                if done:
                    heard = time.monotonic()
                elif time.monotonic() - heard > silence:
                    alive(len(waiting))
                    heard = time.monotonic()
                for reference in done:
                    run, result = waiting.pop(reference), _result(ray, reference)
                    failed(run, result) if isinstance(result, InputError) else keep(run, result)
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    """Join a cluster; Ray itself would wait for minutes where nobody answers."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    try:
        if colon:
            socket.create_connection((host, int(port)), timeout=5).close()
        ray.init(address, log_to_driver=False, configure_logging=False)
    except (OSError, OverflowError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"Cannot reach a Ray cluster at {address!r}: {reason}") from error


def train_away(run: Run, with_features: bool, device: str) -> Record:
    """Train in a folder that is thrown away, and return what goes on record."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        train(run, folder, execution=Execution(device=device, threads=1))
        features = describe_features(folder) if with_features else None
        return dataclasses.replace(record_of(folder), features=features)


def _result(ray: Any, reference: Any) -> Record | InputError:
    """What a task returned, or what a user can put right about it."""
    try:
        record: Record = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, InputError):
            return error.cause
        raise
    return record


def _import_ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise InputError("Ray is not installed. Install it with: pip install 'semigrad[ray]'") from error
