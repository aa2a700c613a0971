"""What `semigrad doctor` finds and misses of faults that were planted, on real data.

    python benchmarks/doctor.py                       # digits, SVHN, CIFAR-10, CIFAR-100 and a folder of Tiny-ImageNet
    python benchmarks/doctor.py --only digits,svhn

Into a part of each data set go: exact copies of labeled and of unlabeled pictures in the test part; the same saved as
JPEG, and moved by a pixel; wrong labels; pictures of another data set among the unlabeled ones; in the folder, broken
files; and, in a copy of each array, two classes with each other's labels. What stands for each is how many of those
planted are named, and how many others are. Others need not be false: real data have duplicates and wrong labels of
their own. Records go to `docs/results/doctor.json`, the tables to `docs/results/doctor.md`."""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from semigrad.cli import guarded
from semigrad.cli.options import parse
from semigrad.core import generator
from semigrad.data import data_root, open_dataset
from semigrad.data.dataset import Dataset
from semigrad.doctor.examining import Report, examine
from semigrad.folder.files import write_whole
from semigrad.settings import Execution
from semigrad.training.loop import train

RESULTS = Path(__file__).parent.parent / "docs" / "results"
KEPT, PAGE = RESULTS / "doctor.json", RESULTS / "doctor.md"
NAMES = ("digits", "svhn", "cifar10", "cifar100", "tiny-imagenet")
PLANTED = 20  # of each kind
WRONG = 0.05  # share of labels
FIXMATCH = {"name": "fixmatch", "threshold": 0.95}  # its paper's
EXCHANGED = (0, 1)  # classes


@dataclass(frozen=True)
class Options:
    """Faults planted in real data."""

    only: tuple[str, ...] = ()
    """Only these: digits, svhn, cifar10, cifar100, tiny-imagenet; none: all."""
    labeled: int = 500
    """Labeled examples of each; digits has as many as it allows."""
    unlabeled: int = 1500
    """Unlabeled ones."""
    test: int = 1000
    """Test examples."""
    steps: int = 300
    """Steps of a run whose features are used too; 0: pixels alone, and what features gave stays on record."""


@dataclass
class Case:
    """Arrays with faults, and where these are."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    truth: np.ndarray  # of x, -1: foreign
    wrong: list[int] = field(default_factory=list)  # positions in x
    foreign: list[int] = field(default_factory=list)
    leaks: dict[str, list[int]] = field(default_factory=dict)  # kind: positions in x_test


def main(options: Options) -> int:
    torch.set_num_threads(1)
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in options.only or NAMES:
        before = kept.get(name, {}).get("found", {})
        kept[name] = on_folder() if name == "tiny-imagenet" else on_arrays(options, name, before)
        write_whole(KEPT, (json.dumps(kept, indent=1) + "\n").encode())
        print(f"{name}: {json.dumps(kept[name])}", file=sys.stderr, flush=True)
    write_whole(PAGE, page(kept).encode())
    return 0


# --- arrays ---


def on_arrays(options: Options, name: str, before: dict[str, Any]) -> dict[str, Any]:
    case = plant(name, open_dataset(name), options)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.npz"
        save(path, case, case.y)
        found = {**before, "pixels": tally(case, examine(str(path)))}
        mixed = Path(folder) / "mixed.npz"
        save(mixed, case, exchanged(case.y))
        found["pixels"]["classes exchanged"] = tally_classes(examine(str(mixed)))
        if options.steps:
            run = Path(folder) / "run"
            execution = Execution(device="cpu", threads=1, workers=0, checkpoint_every=options.steps)
            complete = Path(folder) / "complete.npz"
            save(complete, case, with_every_class(case))
            train(f"npz:{complete}", run, method=FIXMATCH, steps=options.steps, batch=32, execution=execution)
            found["features of a run"] = tally(case, examine(str(path), run=run, device="cpu"))
    return {"labeled": int((case.y >= 0).sum()), "unlabeled": int((case.y < 0).sum()), "test": len(case.y_test),
            "classes": len(np.unique(case.y_test)), "found": found}  # fmt: skip


def plant(name: str, dataset: Dataset, options: Options) -> Case:
    draw = generator(0, "doctor", name)
    assert dataset.test is not None
    assert dataset.test_labels is not None
    train_order, test_order = draw.permutation(len(dataset.train)), draw.permutation(len(dataset.test))
    labeled, unlabeled = min(options.labeled, len(train_order) // 2), options.unlabeled
    chosen, tested = train_order[: labeled + unlabeled], test_order[: options.test]
    x, y = images(dataset.train, chosen), dataset.labels[chosen].copy()
    y[labeled:] = -1
    case = Case(x, y, images(dataset.test, tested), dataset.test_labels[tested].copy(), dataset.labels[chosen])
    case.wrong = sorted(draw.choice(labeled, round(WRONG * labeled), replace=False).tolist())
    classes = len(dataset.classes)
    y[case.wrong] = (y[case.wrong] + draw.integers(1, classes, len(case.wrong))) % classes
    right = np.setdiff1d(np.arange(labeled), case.wrong)
    known, open_ones = draw.choice(right, 3 * PLANTED, replace=False), np.arange(labeled, labeled + 3 * PLANTED)
    changes: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "same": lambda image: image, "JPEG": as_jpeg, "moved": moved,
    }  # fmt: skip
    for number, (kind, change) in enumerate(changes.items()):
        for part, sources in (("labeled", known), ("unlabeled", open_ones)):
            copied = sources[number * PLANTED : (number + 1) * PLANTED]
            case.leaks[f"{kind}, {part}"] = list(range(len(case.x_test), len(case.x_test) + PLANTED))
            case.x_test = np.concatenate([case.x_test, np.stack([change(x[each]) for each in copied])])
            case.y_test = np.concatenate([case.y_test, dataset.labels[chosen[copied]]])
    foreign = foreigners(name, draw, x.shape)
    case.foreign = list(range(len(x), len(x) + len(foreign)))
    nobody = np.full(len(foreign), -1)
    case.x, case.y = np.concatenate([x, foreign]), np.concatenate([y, nobody])
    case.truth = np.concatenate([case.truth, nobody])
    return case


def save(path: Path, case: Case, y: np.ndarray) -> None:
    np.savez(path, x=case.x, y=y, x_test=case.x_test, y_test=case.y_test)


def exchanged(y: np.ndarray) -> np.ndarray:
    """Labels of which those of the first two classes have changed places."""
    return np.select([y == EXCHANGED[0], y == EXCHANGED[1]], [EXCHANGED[1], EXCHANGED[0]], y)


def with_every_class(case: Case) -> np.ndarray:
    """Labels with one more for each class that has none, which no run could be trained on."""
    y = case.y.copy()
    for number in np.setdiff1d(case.truth, y):
        y[np.flatnonzero((case.truth == number) & (y < 0))[0]] = number
    return y


def images(examples: Any, positions: np.ndarray) -> np.ndarray:
    """uint8 (N, H, W) or (N, H, W, C)."""
    values: np.ndarray = examples.raw(positions).numpy().transpose(0, 2, 3, 1)
    return values[..., 0] if values.shape[3] == 1 else values


def foreigners(name: str, draw: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Pictures of another data set: CIFAR-10 among digits and house numbers, house numbers among the CIFARs."""
    other = open_dataset("svhn" if name.startswith("cifar") else "cifar10").train
    values = images(other, draw.choice(len(other), PLANTED, replace=False))
    mode, side = "L" if len(shape) == 3 else "RGB", shape[1]
    return np.stack([np.asarray(Image.fromarray(each).convert(mode).resize((side, side))) for each in values])


def as_jpeg(image: np.ndarray) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=75)
    return np.asarray(Image.open(file))


def moved(image: np.ndarray) -> np.ndarray:
    """One pixel to the right; the first column stays."""
    return np.concatenate([image[:, :1], image[:, :-1]], axis=1)


Counts = list[int | None]
"""Planted, found, others that were named; None where the doctor says that it cannot tell."""


def tally(case: Case, report: Report) -> dict[str, Counts]:
    """By kind of fault."""
    found: dict[str, Counts] = {}
    every = {place for places in case.leaks.values() for place in places}
    for kind, planted in case.leaks.items():
        part = kind.split(", ")[1]
        named = numbers(report, f"{'same' if kind.startswith('same') else 'near'}-{part}-test", "test")
        found[f"{kind} in test"] = [len(planted), len(named & {*planted}), len(named - every)]
    for kind, planted, finding in (
        ("wrong labels", case.wrong, "label-suspects"), ("foreign pictures", case.foreign, "unlike-labeled"),
    ):  # fmt: skip
        named = numbers(report, finding, "labeled" if kind == "wrong labels" else "unlabeled")
        found[kind] = [len(planted), len(named & {*planted}), len(named - {*planted})]
    if not_checked(report):
        found["wrong labels"] = [len(case.wrong), None, None]
    return found


def tally_classes(report: Report) -> Counts:
    """Of the two classes with each other's labels."""
    if not_checked(report):
        return [len(EXCHANGED), None, None]
    named = [each.split(":")[0] for finding in report.findings if finding.kind == "classes-mixed-up"
             for each in finding.examples]  # fmt: skip
    right = {report.subject.classes[number] for number in EXCHANGED}
    return [len(EXCHANGED), len(right & {*named}), len({*named} - right)]


def not_checked(report: Report) -> bool:
    return any(each.kind == "labels-not-checked" for each in report.findings)


def numbers(report: Report, kind: str, part: str) -> set[int]:
    """The examples that a finding names."""
    return {int(re.match(rf"{part} (\d+)", each)[1]) for finding in report.findings if finding.kind == kind
            for each in finding.examples}  # type: ignore[index]  # fmt: skip


# --- a folder of pictures ---


def on_folder() -> dict[str, Any]:
    """Tiny-ImageNet as files: 20 classes, 25 labeled and 40 unlabeled of each, 20 test pictures."""
    source = data_root() / "tiny-imagenet-20"
    planted: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "photos"
        classes = sorted(folder.name for folder in (source / "train").iterdir())
        for name in classes:
            files = sorted((source / "train" / name).glob("*.JPEG"))
            tests = sorted((source / "val" / name).glob("*.JPEG"))
            for part, some in (("labeled", files[:25]), ("unlabeled", files[25:65]), ("test", tests[:20])):
                into = root / (part if part == "unlabeled" else f"{part}/{name}")
                into.mkdir(parents=True, exist_ok=True)
                for file in some:
                    (into / file.name).write_bytes(file.read_bytes())
        for name in classes:
            first, second, third, fourth = sorted((root / "labeled" / name).iterdir())[:4]
            other = classes[(classes.index(name) + 1) % len(classes)]
            put(planted, "wrong labels", root / "labeled" / other / f"wrong-{fourth.name}", fourth.read_bytes())
            fourth.unlink()
            there = root / "test" / name
            put(planted, "same, labeled in test", there / "same.JPEG", first.read_bytes())
            put(planted, "JPEG, labeled in test", there / "again.jpg", recoded(second, 75))
            put(planted, "moved, labeled in test", there / "moved.png", shifted(third))
        whole = next((root / "unlabeled").iterdir()).read_bytes()
        for number in range(5):
            put(planted, "cut short", root / "unlabeled" / f"cut{number}.jpg", whole[: 300 + 200 * number])
            put(planted, "EPS called .png", root / "unlabeled" / f"eps{number}.png", b"%!PS-Adobe-3.0 EPSF-3.0\n")
            put(planted, "no bytes", root / "unlabeled" / f"none{number}.png", b"")
        draw, cifar = generator(0, "doctor", "foreign"), open_dataset("svhn").train
        for number, pixels in enumerate(images(cifar, draw.choice(len(cifar), PLANTED, replace=False))):
            file = io.BytesIO()
            Image.fromarray(pixels).resize((64, 64)).save(file, "PNG")
            put(planted, "foreign pictures", root / "unlabeled" / f"foreign{number}.png", file.getvalue())
        report = examine(str(root))
    kinds = {"same": ["same-labeled-test"], "JPEG": ["near-labeled-test"], "moved": ["near-labeled-test"],
             "cut": ["broken"], "EPS": ["broken"], "no": ["broken"], "foreign": ["unlike-labeled"],
             "wrong": ["label-suspects"]}  # fmt: skip
    every = {name for names in planted.values() for name in names}
    found: dict[str, Counts] = {}
    for kind, names in planted.items():
        named = {re.split(r" = | \(|: ", each)[0] for finding in report.findings
                 if finding.kind in kinds[re.split(r"\W", kind)[0]] for each in finding.examples}  # fmt: skip
        found[kind] = [len(names), len(named & names), len(named - every)]
    if not_checked(report):
        found["wrong labels"] = [len(planted["wrong labels"]), None, None]
    return {"labeled": 25 * len(classes), "unlabeled": 40 * len(classes), "test": 20 * len(classes),
            "classes": len(classes), "found": {"pixels": found}}  # fmt: skip


def put(planted: dict[str, set[str]], kind: str, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    below = next(parent for parent in path.parents if parent.name == "photos")
    planted.setdefault(kind, set()).add(str(path.relative_to(below)))


def recoded(path: Path, quality: int) -> bytes:
    file = io.BytesIO()
    Image.open(path).convert("RGB").save(file, "JPEG", quality=quality)
    return file.getvalue()


def shifted(path: Path) -> bytes:
    file = io.BytesIO()
    Image.fromarray(moved(np.asarray(Image.open(path).convert("RGB")))).save(file, "PNG")
    return file.getvalue()


# --- the page ---


def page(kept: dict[str, Any]) -> str:
    lines = [
        "# What the doctor finds, measured\n",
        "Faults planted in real data, and how many of them `semigrad doctor` names. Written by `benchmarks/doctor.py`. "
        "Others are named too: real data have duplicates and odd labels of their own, and about 1 % of the unlabeled "
        "pictures are unlike labeled ones by chance. \"Not checked\": the doctor says that it cannot tell, because "
        "nearest neighbors err on more than a third of the labels, or no two classes have ten labels. The "
        "bounds for near duplicates and the rule for foreign pictures were chosen by looking at such tables: "
        "on data of another kind they may do worse.\n",
    ]  # fmt: skip
    for name, case in ((name, kept[name]) for name in NAMES if name in kept):
        lines += [f"## {name}\n", f"{case['labeled']:,} labeled, {case['unlabeled']:,} unlabeled and {case['test']:,} "
                  f"test pictures, {case['classes']} classes.\n"]  # fmt: skip
        ways = case["found"]
        lines.append("| fault | planted | " + " | ".join(f"found by {way} | others" for way in ways) + " |")
        lines.append("| --- | --- |" + " --- | --- |" * len(ways))
        for fault, (planted, *_) in ways["pixels"].items():
            lines.append(f"| {fault} | {planted} | {' | '.join(cells(way.get(fault)) for way in ways.values())} |")
        lines.append("")
    return "\n".join(lines)


def cells(counts: Counts | None) -> str:
    """How many were found, and how many others named; empty where nobody looked."""
    if counts is None:
        return " | "
    return "not checked | " if counts[1] is None else f"{counts[1]} | {counts[2]}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(guarded(lambda: main(parse(Options, sys.argv[1:], "python benchmarks/doctor.py"))))
