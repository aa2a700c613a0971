"""A trained model in other formats. The graph takes examples as they are (images as bytes, features as numbers) and
gives logits and probabilities: scaling, normalization and temperature are inside. Before anything is left behind it is
asked the same as the original about real examples."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from semigrad.classifier.card import model_card
from semigrad.classifier.classifier import Classifier, load
from semigrad.errors import InputError
from semigrad.folder.backbone import BACKBONE
from semigrad.folder.files import check_writable, make_folder, write_json, write_whole
from semigrad.folder.run_folder import CONFIG, MODEL
from semigrad.folder.saved import load_origin
from semigrad.settings.fields import refuse

EXAMPLES = 200  # that are compared
LARGEST_DIFFERENCE = 1e-4  # of a probability
CARD = "README.md"
FACTS = "export.json"

Answers = Callable[[np.ndarray], np.ndarray]
"""(N, *shape) examples -> (N, classes) probabilities."""


class Whole(nn.Module):
    """A classifier from its raw input to its probabilities."""

    def __init__(self, net: nn.Module, images: bool, temperature: float | None) -> None:
        super().__init__()
        self.net = net.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        self.images, self.temperature = images, temperature or 1.0

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        logits = self.net(x.float() / 255 if self.images else x)
        return logits, (logits / self.temperature).softmax(1)


@dataclass(frozen=True)
class Export:
    """What was left, and how far its answers are from the original's."""

    path: Path
    examples: int
    compared_on: str  # which examples these were
    difference: float  # largest, of a probability


def export(run: Path, kind: str, out: Path | None = None, given: Path | None = None) -> Export:
    """Write a run's model as `onnx` (one file), as `torch-export` (one file), or as `safetensors`: a folder with
    config.json and a model card, as model hubs expect it. `out` is where; none: in the run's folder. What was there
    before stays until the comparison is done, which is on what is `given`; none: on the run's own data."""
    if kind not in FORMATS:
        raise InputError(f"There is no format {kind!r}. Known: {', '.join(FORMATS)}.")
    format_ = FORMATS[kind]
    model, place = load(run, "cpu"), out or run / format_.usual_name
    refuse(place_problems(place, format_))
    check_writable([place.parent])
    make_folder(place.parent)
    examples, source = some_examples(run, model) if given is None else (given_examples(given, model), str(given))
    with tempfile.TemporaryDirectory(prefix=".export-", dir=place.parent) as scratch:
        made = Path(scratch) / place.name
        answers = format_.write(run, model, made)
        difference = float(np.abs(answers(examples) - original(model, examples)).max())
        for few in (1, 3):  # a graph that was traced with a fixed number of examples fails here
            answers(examples[:few])
        if not difference <= LARGEST_DIFFERENCE:  # what is not finite is no agreement either
            raise InputError(
                f"As {kind} the model gives other probabilities than it does here, by up to {difference:.1e}: nothing "
                "was left. Choose another format."
            )
        facts = {"format": kind, "compared_on": source, "examples": len(examples), "largest_difference": difference}
        beside = made / FACTS if format_.folder else _facts_of(made)
        write_json(beside, {**facts, **description(model)})
        if format_.folder:
            make_folder(place)
        for file in made.iterdir() if format_.folder else (made, beside):
            file.replace(place / file.name if format_.folder else place.with_name(file.name))
    return Export(place, len(examples), source, difference)


def _facts_of(file: Path) -> Path:
    """What is written beside an export in one file."""
    return file.with_name(f"{file.name}.json")


def place_problems(place: Path, format_: Format) -> list[str]:
    """Why nothing can be exported there."""
    advice = "Choose another place with --out."
    if not format_.folder:
        if place.is_dir():
            return [f"{place} is a folder. {advice}"]
        ours = not place.exists() or not place.stat().st_size or _facts_of(place).is_file()
        return [] if ours else [f"{place} exists and is no export of ours: it would be lost. {advice}"]
    if place.exists() and not place.is_dir():
        return [f"{place} is no folder. {advice}"]
    if place.is_dir() and any(place.iterdir()) and not (place / FACTS).is_file():
        return [f"{place} is not empty and holds no export of ours. {advice}"]
    return []


def some_examples(run: Path, model: Classifier) -> tuple[np.ndarray, str]:
    """Examples to compare on, as the graph takes them: of the run's own test part, else of its training part; noise
    where there are none. And which they are, in words."""
    if model.form.backbone is not None:
        return noise(model), "made-up examples: the run was trained on features of what it takes"
    try:
        dataset = load_origin(run).dataset
    except (InputError, OSError):
        return noise(model), "made-up examples: the run's data are not here"
    part = dataset.test or dataset.train
    positions = np.unique(np.linspace(0, len(part) - 1, EXAMPLES).astype(int))
    return part.raw(positions).numpy(), "the run's own data"


def given_examples(path: Path, model: Classifier) -> np.ndarray:
    """The first of those in whatever `semigrad predict` takes."""
    found: list[np.ndarray] = []
    for part in model.parts(path):
        found += list(part.examples.numpy())
        if len(found) >= EXAMPLES:
            break
    if not found:
        raise InputError(f"Nothing in {path} can be read.")
    return np.stack(found[:EXAMPLES])


def noise(model: Classifier) -> np.ndarray:
    rng, shape = np.random.default_rng(0), (EXAMPLES, *model.form.shape)
    if len(model.form.shape) == 3:
        return rng.integers(0, 256, shape, dtype=np.uint8)
    return rng.standard_normal(shape, dtype=np.float32)


@torch.no_grad()
def original(model: Classifier, examples: np.ndarray) -> np.ndarray:
    """What the classifier itself says."""
    return model.predict_proba(examples)


def description(model: Classifier) -> dict[str, Any]:
    """What somebody who has the graph alone needs to know: for a model of a table also the features in their order, and
    how columns become them."""
    images, columns = len(model.form.shape) == 3, model.form.columns
    return {
        "classes": list(model.classes),
        "input": {
            "name": "x",
            "shape": ["batch", *model.form.shape],
            "dtype": "uint8" if images else "float32",
            "meaning": "pixels from 0 to 255, channels first" if images else "features as they are",
        },
        "outputs": ["logits", "probabilities"],
        "temperature": model.form.temperature,
        **({} if columns is None else {"features": columns.feature_names, "columns": columns.to_dict()["columns"]}),
    }


# --- formats ---


def write_onnx(run: Path, model: Classifier, out: Path) -> Answers:
    """One file, the class names among its metadata."""
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401 (torch's exporter needs it)
    except ImportError as error:
        raise InputError(
            f"ONNX needs the extra onnx ({error.name} is missing): pip install 'semigrad[onnx]'."
        ) from error
    whole, x = graph(model)
    with quietly():
        program = torch.onnx.export(
            whole, (x,), dynamo=True, external_data=False, input_names=["x"],
            output_names=["logits", "probabilities"], dynamic_shapes=({0: torch.export.Dim("batch")},), verbose=False,
        )  # fmt: skip
    assert program is not None
    proto = program.model_proto
    for name, value in description(model).items():
        onnx.helper.set_model_props(
            proto, {**{p.key: p.value for p in proto.metadata_props}, name: json.dumps(value, ensure_ascii=False)}
        )
    onnx.checker.check_model(proto)
    write_whole(out, proto.SerializeToString())
    session = onnxruntime.InferenceSession(out.read_bytes(), providers=["CPUExecutionProvider"])
    return lambda examples: np.asarray(session.run(["probabilities"], {"x": examples})[0])


def write_torch_export(run: Path, model: Classifier, out: Path) -> Answers:
    """One .pt2 file for torch.export.load, with description.json among its extra files."""
    whole, x = graph(model)
    with quietly():
        program = torch.export.export(whole, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},), strict=False)
        content = io.BytesIO()
        extra = {"description.json": json.dumps(description(model), ensure_ascii=False)}
        torch.export.save(program, content, extra_files=extra)
        write_whole(out, content.getvalue())
        again = torch.export.load(io.BytesIO(out.read_bytes())).module()
    return lambda examples: again(torch.from_numpy(examples))[1].detach().numpy()


def write_folder(run: Path, model: Classifier, out: Path) -> Answers:
    """config.json, model.safetensors and README.md, the card; `semigrad.load` reads it."""
    make_folder(out)
    card = model_card(run, model).encode()
    write_whole(out / CARD, card)
    for name in (CONFIG, MODEL, *([BACKBONE] if model.form.backbone else [])):
        write_whole(out / name, (run / name).read_bytes())
    again = load(out, "cpu")
    return lambda examples: original(again, examples)


@dataclass(frozen=True)
class Format:
    write: Callable[[Path, Classifier, Path], Answers]
    usual_name: str
    folder: bool = False


FORMATS = {
    "onnx": Format(write_onnx, "model.onnx"),
    "torch-export": Format(write_torch_export, "model.pt2"),
    "safetensors": Format(write_folder, "hub", folder=True),
}


def graph(model: Classifier) -> tuple[Whole, Tensor]:
    """The module to trace and two examples to trace it with: a single one would be taken for a constant."""
    images = len(model.form.shape) == 3
    x = torch.zeros(2, *model.form.shape, dtype=torch.uint8 if images else torch.float32)
    return Whole(model.net, images, model.form.temperature).eval(), x


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Without the exporters' remarks, which are for those who write them."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
