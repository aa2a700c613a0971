"""Trained models to ask: one on images, one on features, one on color pictures in files."""

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_wine

from tests.small_runs import go, small


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory):
    """With labels held out, so that it has a temperature."""
    folder = tmp_path_factory.mktemp("digits") / "run"
    go(small(method="supervised", steps=60, validation=100), folder)
    return folder


@pytest.fixture(scope="session")
def wine_run(tmp_path_factory):
    place = tmp_path_factory.mktemp("wine")
    x, y = load_wine(return_X_y=True)
    np.savez(place / "wine.npz", x=x, y=np.where(np.arange(len(y)) % 3, y, -1))
    go(small(f"npz:{place / 'wine.npz'}", model="mlp", method="supervised", steps=20), place / "run")
    return place / "run"


@pytest.fixture(scope="session")
def fruit_run(tmp_path_factory):
    """A table of numbers and categories, with a name that wants to be markup."""
    place = tmp_path_factory.mktemp("fruit")
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 2, 120)
    colors = np.where(rng.random(120) < 0.8, np.where(kinds, "red", "blue"), "<b>green</b>")
    sizes = np.where(np.arange(120) % 9, np.round(rng.normal(3.0 * kinds, 1.0), 3).astype(str), "")
    labels = np.where(np.arange(120) < 40, np.where(kinds, "apple", "plum"), "")
    rows = [",".join(row) for row in zip(sizes, colors, labels, strict=True)]
    (place / "fruit.csv").write_text("\n".join(["size,color,label", *rows]))
    go(small(f"csv:{place / 'fruit.csv'}", model="mlp", method="supervised", steps=60, validation=10), place / "run")
    return place / "run"


def stripes(kind: int, number: int) -> Image.Image:
    """A color picture of 24 x 20 whose stripes lie or stand."""
    pixels = np.random.default_rng([kind, number]).integers(0, 80, (20, 24, 3))
    pixels[(slice(None, None, 4), slice(None), 0) if kind else (slice(None), slice(None, None, 4), 0)] = 255
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture(scope="session")
def stripes_run(tmp_path_factory):
    place = tmp_path_factory.mktemp("stripes")
    for kind, name in enumerate(("standing", "lying")):
        (place / "data" / "labeled" / name).mkdir(parents=True)
        (place / "data" / "test" / name).mkdir(parents=True)
        for number in range(12):
            stripes(kind, number).save(place / "data" / "labeled" / name / f"{number}.png")
        for number in range(100, 110):
            stripes(kind, number).save(place / "data" / "test" / name / f"{number}.png")
    run = small(f"folder:{place / 'data'}", image_size=16, method="supervised", steps=60)
    go(run, place / "run")
    return place / "run"
