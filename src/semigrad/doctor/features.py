"""What examples are compared by: pixels or columns reduced by principal components, or the features of a trained
network."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from semigrad.classifier.classifier import load
from semigrad.doctor.subject import Part, Subject
from semigrad.errors import InputError
from semigrad.folder.saved import load_weights
from semigrad.training.seeing import see

COMPONENTS = 100
SIDE = 16  # pictures are brought to this side first
FITTED = 5000  # examples that the components are computed from
CHUNK = 1000


@dataclass(frozen=True)
class Compared:
    """Features of some examples of each part."""

    words: str  # what they are
    places: dict[str, np.ndarray]  # which examples of the part
    features: dict[str, np.ndarray]  # (N, width)
    detail: dict[str, np.ndarray] = field(default_factory=dict)  # (N,) of pictures: log of what components leave over
    learned: float | None = None  # by a network that has seen labels: share of them that it answers as they stand


def reduced(subject: Subject, most: int) -> Compared:
    """Principal components of the training part, and how much of each example they leave over."""
    from sklearn.decomposition import PCA

    places = {name: part.some(most) for name, part in subject.parts.items()}
    plain = {name: _plain(subject.parts[name], chosen) for name, chosen in places.items()}
    training = np.concatenate([plain[name] for name in ("labeled", "unlabeled") if name in plain])
    some = training[np.unique(np.linspace(0, len(training) - 1, min(FITTED, len(training))).astype(int))]
    mean, deviation = some.mean(0), (1.0 if subject.images else some.std(0))
    scale = np.where(deviation > 0, deviation, 1.0)
    most_components = (some.shape[1] + 1) // 2 if subject.images else some.shape[1]
    width = min(COMPONENTS, len(some) - 1, most_components) if np.ptp(some, axis=0).any() else 0  # 0: all are the same
    axes: np.ndarray = np.empty((0, some.shape[1]))
    if width:
        axes = PCA(width, svd_solver="covariance_eigh").fit((some - mean) / scale).components_

    def project(values: np.ndarray) -> np.ndarray:
        centered = (values - mean) / scale
        along = centered @ axes.T
        return np.column_stack([along, np.linalg.norm(centered - along @ axes, axis=1)])

    what = f"pixels at {SIDE} x {SIDE}" if subject.images and max(subject.shape[1:]) > SIDE else "pixels"
    words = f"{what if subject.images else 'columns'}, reduced to {width + 1} numbers"
    features = {name: project(values) for name, values in plain.items()}
    detail = {name: np.log(rows[:, -1] + 1e-6) for name, rows in features.items()} if subject.images else {}
    return Compared(words, places, features, detail)


def _plain(part: Part, places: np.ndarray) -> np.ndarray:
    """float64 (N, D): columns, or pixels in [0, 1] of a small version."""
    rows = []
    for start in range(0, len(places), CHUNK):
        values = torch.from_numpy(part.values(places[start : start + CHUNK]))
        if values.ndim == 4:
            height, width = values.shape[2:]
            values = F.adaptive_avg_pool2d(values.float() / 255, (min(SIDE, height), min(SIDE, width)))
        rows.append(values.flatten(1).double().numpy())
    return np.concatenate(rows)


def seen_by(folder: Path, subject: Subject, most: int, device: str) -> Compared:
    """What a run's network makes of the examples, in front of its last layer. One that was trained on features is asked
    about features or, on top of the network that they come from, about pictures."""
    model = load(folder, device)
    trained, form = load_weights(folder)
    wanted = {model.form.shape: model.net, form.shape: trained.to(model.device)}
    if subject.shape not in wanted:
        given, *taken = (" x ".join(map(str, shape)) for shape in (subject.shape, *wanted))
        raise InputError(
            f"The examples are {given}, and the network of {folder} takes {' or '.join(taken)}. Give a run of these "
            "data."
        )
    net = wanted[subject.shape]
    places = {name: part.some(most) for name, part in subject.parts.items()}
    seen = {
        name: see(net, part.examples, part.positions[places[name]], model.device)
        for name, part in subject.parts.items()
    }
    learned = 0.0
    if "labeled" in seen:
        answers = seen["labeled"].probabilities.argmax(1)
        learned = float((answers == subject.parts["labeled"].labels[places["labeled"]]).mean())
    features = {name: each.features for name, each in seen.items()}
    return Compared(f"features of {folder}", places, features, learned=learned)
