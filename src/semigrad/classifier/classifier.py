"""`semigrad.load(folder)`: a trained model that answers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from semigrad.classifier.inputs import Part, parts_of
from semigrad.data.dataset import ready
from semigrad.errors import InputError
from semigrad.folder.backbone import on_backbone
from semigrad.folder.run_folder import CONFIG, MODEL, RESULT, RUN
from semigrad.folder.saved import Form, load_weights
from semigrad.reading import as_path
from semigrad.training.calibration import FEWEST, warmed
from semigrad.training.evaluate import probabilities
from semigrad.training.setup import pick_device


@dataclass(frozen=True)
class Classifier:
    """A trained network with all that is needed to ask it: names of classes, how pictures become its input, and the
    temperature that makes its confidence honest."""

    net: nn.Module
    form: Form
    device: torch.device

    @property
    def classes(self) -> tuple[str, ...]:
        return self.form.classes

    @property
    def calibrated(self) -> bool:
        """Whether confidence was brought in line with labels that were held out of training."""
        return self.form.temperature is not None

    @property
    def confidence(self) -> str:
        """Where its confidence comes from, as a sentence."""
        held = self.form.held_out
        if self.calibrated:
            source = "labels" if held is None else f"{held:,} labels"
            return (
                f"Confidence is at temperature {self.form.temperature}, from {source} that were held out of training."
            )
        if held:
            few = f"{held:,} labels were held out of training, fewer than the {FEWEST} that it takes to correct it"
        else:
            few = "no labels were held out of training (--validation N) to compare it with"
        return f"Confidence is the network's own, which is often too sure: {few}."

    def predict(self, x: Any) -> np.ndarray:
        """(N,) names of classes for N examples, given as in `predict_proba`."""
        names = np.array(self.classes, dtype=object)
        answers: np.ndarray = names[self.predict_proba(x).argmax(1)]
        return answers

    def predict_proba(self, x: Any) -> np.ndarray:
        """(N, classes) probabilities for N examples: an array or tensor of features (N, D) or of images, uint8 or
        floats in [0, 1]; the path of a picture, of a folder of them or of an array (.npy, .npz with x), a list of paths
        of pictures, an open PIL image or a list of them. For a model of a table the path of another, a DataFrame, a
        dictionary of columns, a row as a dictionary or a list of rows; a category that no training row had counts as
        none, with a warning."""
        found = []
        for part in self.parts(x):
            if part.lost:
                raise InputError([f"{file} cannot be read: {reason}." for file, reason in part.lost.items()])
            for note in part.notes:
                warnings.warn(note, UserWarning, stacklevel=2)
            found.append(self.answer(part))
        return np.concatenate(found)

    def parts(self, x: Any) -> Iterator[Part]:
        """The examples in whatever `predict_proba` takes, some at a time; see `inputs.parts_of`."""
        return parts_of(x, self.form)

    def answer(self, part: Part) -> np.ndarray:
        """(N, classes) probabilities at the model's temperature."""
        if not len(part.examples):
            return np.empty((0, len(self.classes)))
        predicted = probabilities(self.net, [ready(part.examples, self.device)])
        if odd := np.flatnonzero(~np.isfinite(predicted).all(1)).tolist():
            raise InputError(
                f"The model has no answer to {len(odd):,} of {len(predicted):,} examples, first to "
                f"{part.names[odd[0]]}: its numbers are not finite there. Either these are far from all that it was "
                "trained on, or its weights are damaged."
            )
        return warmed(predicted, self.form.temperature)


def load(path: Path | str, device: str = "auto") -> Classifier:
    """The model of a finished run, or of a folder that `semigrad export` made.

    >>> run = configure("digits@40", method="supervised", steps=100)
    >>> result = train(run, folder / "run", execution=Execution(threads=1))
    >>> model = load(folder / "run")
    >>> import sklearn.datasets
    >>> images = sklearn.datasets.load_digits().images[:3] / 16  # (3, 8, 8), in [0, 1]
    >>> model.predict(images).shape, model.predict_proba(images).shape, model.classes[:3]
    ((3,), (3, 10), ('0', '1', '2'))
    """
    folder = as_path(path, "The folder of a run")
    if not is_model(folder):
        raise InputError(no_model(folder))
    net, form = load_weights(folder)
    if form.backbone is not None:
        net, form = on_backbone(net, form, folder)
    place = pick_device(device)
    return Classifier(net.eval().to(place), form, place)


def is_model(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (CONFIG, MODEL))


def no_model(folder: Path) -> str:
    """Why a folder cannot be asked, and which one near it can."""
    below = folder if folder.is_dir() else folder.parent
    near = [place for place in (below, *sorted(below.glob("*"))) if is_model(place)]
    advice = f", such as {near[0]}" if near else ""
    if not folder.exists():
        return f"{folder} does not exist. Give the folder of a run{advice}."
    if not folder.is_dir():
        return f"{folder} is no folder. Give the folder of a run{advice}."
    if (folder / RUN).is_file() and not (folder / RESULT).exists():
        return f"{folder} holds a run that is not finished. Go on with semigrad train --resume --out {folder}."
    missing = CONFIG if not (folder / CONFIG).is_file() else MODEL
    return f"{folder} holds no trained model: there is no {missing} in it. Give the folder of a run{advice}."
