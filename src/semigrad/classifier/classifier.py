"""`semigrad.load(folder)`: a trained model that answers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from semigrad.classifier.inputs import Part, as_array, pictures, read_parts, rows
from semigrad.data.dataset import ready
from semigrad.data.tables import features_of
from semigrad.errors import InputError
from semigrad.folder.run_folder import CONFIG, MODEL
from semigrad.folder.saved import Form, load_weights
from semigrad.training.calibration import warmed
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

    def predict(self, x: Any) -> np.ndarray:
        """(N,) names of classes for N examples: an array, or paths of pictures."""
        names = np.array(self.classes, dtype=object)
        answers: np.ndarray = names[self.predict_proba(x).argmax(1)]
        return answers

    def predict_proba(self, x: Any) -> np.ndarray:
        """(N, classes) probabilities for N examples: an array of features (N, D) or images, uint8 or floats in [0, 1];
        a path of a picture, or a list of paths; for a model of a table, rows as dictionaries or a DataFrame."""
        return np.concatenate([self.answer(part) for part in self._parts(x)])

    def answer(self, part: Part) -> np.ndarray:
        """(N, classes) probabilities at the model's temperature."""
        if not len(part.examples):
            return np.empty((0, len(self.classes)))
        predicted = probabilities(self.net, [ready(part.examples, self.device)])
        return warmed(predicted, self.form.temperature)

    def parts(self, path: Path) -> Iterator[Part]:
        """The examples in a file or folder; see `inputs.read_parts`."""
        return read_parts(path, self.form)

    def _parts(self, x: Any) -> Iterator[Part]:
        if isinstance(x, str | os.PathLike):
            x = [x]
        if isinstance(x, Sequence) and x and all(isinstance(path, str | os.PathLike) for path in x):
            for part in pictures([os.fspath(path) for path in x], self.form, Path()):
                if part.lost:
                    raise InputError([f"{file} cannot be read: {reason}." for file, reason in part.lost.items()])
                yield part
        elif self.form.columns is not None and (hasattr(x, "columns") or isinstance(x, Sequence)):
            yield from rows(features_of(self.form.columns, x))
        else:
            array = x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else np.asarray(x)
            yield from rows(as_array("x", array, self.form))


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
    folder = Path(path)
    for name in (CONFIG, MODEL):
        if not (folder / name).is_file():
            raise InputError(f"{folder} holds no trained model: there is no {name} in it. Give the folder of a run.")
    net, form = load_weights(folder)
    place = pick_device(device)
    return Classifier(net.eval().to(place), form, place)
