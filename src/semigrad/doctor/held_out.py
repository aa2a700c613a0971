"""What networks say of labels that they have not learned: the folds that `semigrad fit` leaves beside a run, or the
run itself where it held labels out. Features of a network that has learned a label never doubt it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from semigrad.data.opening import divide
from semigrad.doctor.subject import Subject
from semigrad.fitting.planning import folds_beside
from semigrad.folder.run_folder import MODEL, RUN
from semigrad.folder.saved import load_model, load_run, open_again
from semigrad.run import Run
from semigrad.training.seeing import see
from semigrad.training.setup import pick_device


@dataclass(frozen=True)
class HeldOut:
    """Answers about labeled examples by networks that were trained without these labels."""

    words: str  # whose they are
    places: np.ndarray  # (N,) in the labeled part
    p: np.ndarray  # (N, classes)


def held_out(folder: Path, subject: Subject, device_name: str = "auto") -> HeldOut | None:
    """None where nothing was held out, and where the data are others, or have changed since."""
    run = load_run(folder)
    folds = dict(_folds(folder, run))
    asked = folds or ({folder: run} if run.validation or run.folds else {})
    if not asked or "labeled" not in subject.parts:
        return None
    first = next(iter(asked))
    whole, changed = open_again(first, asked[first])
    if changed or divide(run.data, run, whole)[0].classes != subject.classes:
        return None
    part = subject.parts["labeled"]
    place_of = {part.examples.name_of(int(position)): place for place, position in enumerate(part.positions)}
    places, answers, device = [], [], pick_device(device_name)
    for path, each in asked.items():
        dataset, split = divide(each.data, each, whole)
        found = [place_of.get(dataset.train.name_of(int(position)), -1) for position in split.validation]
        known = np.array(found) >= 0
        if known.any():
            net = load_model(path)[0].to(device)
            answers.append(see(net, dataset.train, split.validation[known], device).probabilities)
            places.append(np.array(found)[known])
    if not places:
        return None
    words = f"what the folds of {folder} say of labels that were held out of them" if folds else (
        f"what {folder} says of labels that were held out of it"
    )  # fmt: skip
    return HeldOut(words, np.concatenate(places), np.concatenate(answers))


def _folds(folder: Path, run: Run) -> Iterator[tuple[Path, Run]]:
    """The finished runs of `fit` that were trained as this one was, each without a fold of the labels."""
    beside = folds_beside(folder)
    for path in sorted(beside.iterdir()) if beside.is_dir() else []:
        if (path / RUN).is_file() and (path / MODEL).is_file():
            each = load_run(path)
            if each.folds and each.method == run.method and each.steps == run.steps:
                yield path, each
