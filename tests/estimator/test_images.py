"""Images in color, in every order and type that is allowed, mean the same to the estimator."""

import numpy as np
import pytest
import torch

from semigrad.errors import InputError
from tests.estimator.tables import quick, same_weights

LAYOUTS = {
    "bytes, channels last": lambda images: images,
    "bytes, channels first": lambda images: images.transpose(0, 3, 1, 2),
    "floats, channels last": lambda images: images / 255,
    "floats, channels first": lambda images: images.transpose(0, 3, 1, 2) / 255,
    "single precision, channels last": lambda images: (images / 255).astype(np.float32),
    "single precision, channels first": lambda images: (images.transpose(0, 3, 1, 2) / 255).astype(np.float32),
}


def colors(count=120, height=8, width=10):
    """Noise that is brightest in one channel, which is the class; (N, H, W, 3), labels with -1, all labels."""
    draw = np.random.default_rng(0)
    truth = np.arange(count) % 3
    images = draw.integers(0, 120, (count, height, width, 3))
    images[np.arange(count), :, :, truth] += 100
    return images.astype(np.uint8), np.where(np.arange(count) < 30, truth, -1), truth


@pytest.fixture(scope="module")
def plain():
    images, y, _ = colors()
    return quick().fit(images, y)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_the_same_run(layout, plain):
    images, y, _ = colors()
    given = LAYOUTS[layout](images)
    estimator = quick().fit(given, y)
    assert (estimator.n_features_in_, estimator.example_shape_) == (240, (3, 8, 10))
    assert same_weights(estimator, plain)
    assert np.array_equal(estimator.predict_proba(given), plain.predict_proba(images))
    assert np.array_equal(estimator.transduction_, plain.transduction_)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_fitted_estimator_is_asked_in_any_layout(layout, plain):
    images, _, _ = colors()
    assert np.array_equal(plain.predict_proba(LAYOUTS[layout](images)), plain.predict_proba(images))


@pytest.mark.parametrize("layout", ["bytes, channels last", "floats, channels first"])
def test_the_channels_are_the_colors(layout):
    """Rows of pixels in the place of channels would have nothing to learn from."""
    images, y, truth = colors()
    given = LAYOUTS[layout](images)
    estimator = quick(method="supervised", steps=60).fit(given, y)
    assert estimator.score(given[30:], truth[30:]) > 0.9
    means = [value for value in estimator.network_.buffers() if value.numel() == 3]
    expected = images.reshape(-1, 3).mean(axis=0) / 255
    assert any(np.allclose(value.flatten().numpy(), expected, atol=1e-5) for value in means)


def test_images_may_be_a_list(plain):
    images, y, _ = colors()
    assert same_weights(plain, quick().fit(list(images), y))
    for asked in (tuple(torch.from_numpy(images)), [image.tolist() for image in images / 255]):
        assert np.array_equal(plain.predict_proba(asked), plain.predict_proba(images))
    with pytest.raises(InputError, match=r"X has images of 2 shapes, \(8, 9, 3\) among them"):
        plain.predict([*images[:3], images[3][:, :9]])


def test_what_is_no_image_in_color_is_refused(plain):
    images, y, _ = colors()
    with pytest.raises(InputError, match="both could be the channels"):
        quick().fit(images[:, :3], y)
    with pytest.raises(InputError, match="there is no axis of 1 or 3 channels"):
        quick().fit(np.concatenate([images, images], axis=3), y)
    with pytest.raises(InputError, match=r"values outside \[0, 1\]"):
        quick().fit(images.astype(np.float32), y)
    with pytest.raises(InputError, match=r"examples of \(1, 8, 10\); fitted on examples of \(3, 8, 10\)"):
        plain.predict(images[..., 0])
