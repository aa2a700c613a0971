"""From what a run says of its data to the examples themselves, and which of them are labeled, unlabeled, held out."""

from __future__ import annotations

from pathlib import Path

from semigrad.data import open_dataset
from semigrad.data.dataset import Dataset
from semigrad.data.pool import Pool
from semigrad.data.split import DataSpec, Split, make_split
from semigrad.errors import InputError
from semigrad.settings import Settings
from semigrad.settings.fields import refuse


def open_data(data: str, settings: Settings) -> Dataset:
    """Read the data set of that name (`cifar10@4000`), whole."""
    spec = DataSpec.parse(data)
    whole = data.partition(":")[2]
    if spec.path is not None and not spec.path.exists() and whole and Path(whole).expanduser().exists():
        raise InputError(
            f"{spec.path} does not exist. Behind the name {whole} say how many labels to use: {data}@100%."
        )
    image_size, resized_crop, label = settings.image_size, settings.resized_crop, settings.label
    return open_dataset(spec.name, spec.path, image_size=image_size, resized_crop=resized_crop, label=label)


def divide(data: str, settings: Settings, dataset: Dataset) -> tuple[Dataset, Split]:
    """The data set with the classes that are told apart, and which examples are labeled, unlabeled, held out."""
    restricted, pool, seed = tell_apart(settings, dataset), _pool(settings), settings.seed
    split = make_split(
        restricted, DataSpec.parse(data), seed,
        validation=settings.validation, fold=settings.fold, folds=settings.folds,
        include_labeled=settings.include_labeled,
    )  # fmt: skip
    return restricted, pool.cut(dataset, split, seed)


def tell_apart(settings: Settings, dataset: Dataset) -> Dataset:
    """The data set with the classes that are told apart."""
    refuse(_pool(settings).problems(dataset))
    return _pool(settings).restrict(dataset)


def _pool(settings: Settings) -> Pool:
    return Pool(settings.classes, settings.unlabeled, settings.mismatch)
