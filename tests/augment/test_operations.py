"""Each operation against Pillow where it has it, else against plain loops."""

import math

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from semigrad.augment import operations as o

NAMES = (
    "identity", "autocontrast", "equalize", "brightness", "contrast", "color", "sharpness", "posterize", "solarize",
    "invert", "blur", "smooth", "rescale", "rotate", "shear_x", "shear_y", "translate_x", "translate_y",
)  # fmt: skip
GEOMETRIC = ("rescale", "rotate", "shear_x", "shear_y", "translate_x", "translate_y")
every_operation = pytest.mark.parametrize("name", NAMES)


def pictures(count=4, channels=3, height=12, width=10, seed=0):
    """Levels of 8 bits, smooth enough to have shape, in [30, 220] so that stretching changes something."""
    rng = np.random.default_rng(seed)
    return rng.integers(30, 221, (count, channels, height, width)).astype(np.uint8)


def images(*args, **sizes):
    return torch.from_numpy(pictures(*args, **sizes)).double() / 255


def pillow(picture):
    return Image.fromarray(picture.transpose(1, 2, 0)) if len(picture) == 3 else Image.fromarray(picture[0])


def from_pillow(image):
    array = np.asarray(image).astype(float) / 255
    return array.transpose(2, 0, 1) if array.ndim == 3 else array[None]


STRENGTHS = torch.tensor([0.0, 0.3, 0.77, 1.0], dtype=torch.float64)
BY_PILLOW = {
    "autocontrast": lambda x, s: ImageOps.autocontrast(x),
    "brightness": lambda x, s: ImageEnhance.Brightness(x).enhance(0.05 + 0.9 * s),
    "contrast": lambda x, s: ImageEnhance.Contrast(x).enhance(0.05 + 0.9 * s),
    "color": lambda x, s: ImageEnhance.Color(x).enhance(0.05 + 0.9 * s),
    "sharpness": lambda x, s: ImageEnhance.Sharpness(x).enhance(0.05 + 0.9 * s),
    "posterize": lambda x, s: ImageOps.posterize(x, min(4 + int(5 * s), 8)),
    "solarize": lambda x, s: ImageOps.solarize(x, 255 * s),
    "invert": lambda x, s: Image.blend(x, ImageOps.invert(x), s),
    "blur": lambda x, s: Image.blend(x, x.filter(ImageFilter.Kernel((3, 3), [1] * 9)), s),
    "smooth": lambda x, s: Image.blend(x, x.filter(ImageFilter.SMOOTH), s),
}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", BY_PILLOW)
def test_it_is_what_pillow_does(name, channels):
    given = pictures(channels=channels)
    found = getattr(o, name)(images(channels=channels), STRENGTHS)
    for i, strength in enumerate(STRENGTHS.tolist()):
        expected = from_pillow(BY_PILLOW[name](pillow(given[i]), strength))
        exact = name in ("posterize", "solarize")
        assert np.abs(found[i].numpy() - expected).max() <= (1e-12 if exact else 2.01 / 255), strength  # it rounds
    if not (channels == 1 and name == "color"):  # which has nothing to take away
        assert not torch.allclose(found, images(channels=channels), atol=0.01)


def test_equalize_spreads_the_values_by_their_rank():
    given = pictures(2, 3, 5, 6)
    given[1, 2] = 77  # one value
    found = o.equalize(torch.from_numpy(given).double() / 255, torch.zeros(2))
    for i in range(2):
        for c in range(3):
            values = given[i, c].ravel()
            least = (values <= values.min()).sum()
            for place, value in enumerate(values):
                share = ((values <= value).sum() - least) / max(30 - least, 1)
                expected = 77 / 255 if (i, c) == (1, 2) else share
                assert float(found[i, c].flatten()[place]) == pytest.approx(expected, abs=1e-12)


def test_a_flat_image_survives_stretching():
    flat = torch.full((2, 1, 8, 8), 0.4)
    assert torch.equal(o.autocontrast(flat, torch.ones(2)), flat)
    assert torch.equal(o.equalize(flat, torch.ones(2)), flat)


def bilinear(image, matrix):
    """Every pixel by hand: its source, measured from the middle, and the four pixels around that; outside is zero."""
    height, width = image.shape[1:]
    out = np.zeros_like(image)
    for row in range(height):
        for column in range(width):
            x, y = matrix @ [column - (width - 1) / 2, row - (height - 1) / 2, 1.0]
            x, y = x + (width - 1) / 2, y + (height - 1) / 2
            left, top = math.floor(x), math.floor(y)
            for a, share_x in ((left, 1 - (x - left)), (left + 1, x - left)):
                for b, share_y in ((top, 1 - (y - top)), (top + 1, y - top)):
                    if 0 <= a < width and 0 <= b < height:
                        out[:, row, column] += share_x * share_y * image[:, b, a]
    return out


def matrix_of(name, strength, height, width):
    signed = 2 * strength - 1
    angle = math.radians(30 * signed)
    half = 0.5 + 0.5 * strength
    return np.array({
        "rescale": [[half, 0, 0], [0, half, 0]],
        "rotate": [[math.cos(angle), -math.sin(angle), 0], [math.sin(angle), math.cos(angle), 0]],
        "shear_x": [[1, 0.3 * signed, 0], [0, 1, 0]],
        "shear_y": [[1, 0, 0], [0.3 * signed, 1, 0]],
        "translate_x": [[1, 0, -0.3 * signed * width], [0, 1, 0]],
        "translate_y": [[1, 0, 0], [0, 1, -0.3 * signed * height]],
    }[name])  # fmt: skip


@pytest.mark.parametrize("name", GEOMETRIC)
def test_geometry_by_hand(name):
    x = images(height=9, width=6)
    found = getattr(o, name)(x, STRENGTHS)
    for i, strength in enumerate(STRENGTHS.tolist()):
        assert np.allclose(found[i], bilinear(x[i].numpy(), matrix_of(name, strength, 9, 6)), atol=1e-12)


def test_rotation_turns_as_pillow_does():
    picture = pictures(1, 1, 21, 21)
    found = o.rotate(torch.from_numpy(picture).double() / 255, torch.ones(1, dtype=torch.float64))
    expected = from_pillow(pillow(picture[0]).rotate(30, Image.Resampling.BILINEAR))
    assert np.abs(found[0].numpy() - expected)[:, 5:-5, 5:-5].max() < 0.03  # it rounds positions; no border


def test_translation_moves_whole_pixels_and_fills_with_zero():
    x = images(1, 3, 10, 10)
    right = o.translate_x(x, torch.ones(1, dtype=torch.float64))
    up = o.translate_y(x, torch.zeros(1, dtype=torch.float64))
    assert torch.allclose(right[..., 3:], x[..., :-3], atol=1e-12)
    assert right[..., :3].abs().max() < 1e-12
    assert torch.allclose(up[:, :, :-3], x[:, :, 3:], atol=1e-12)


@pytest.mark.parametrize("name", [name for name in GEOMETRIC if name != "rescale"])
def test_the_middle_of_a_signed_range_changes_nothing(name):
    x = images()
    assert torch.allclose(getattr(o, name)(x, torch.full((4,), 0.5, dtype=torch.float64)), x, atol=1e-12)


@pytest.mark.parametrize(("channels", "fill"), [(1, 0.0), (3, 0.5)])
def test_cutout_fills_a_square_where_the_draws_say(channels, fill):
    x = images(channels=channels, height=9, width=12)
    place = torch.tensor([[0.5, 0.5], [0.0, 0.99], [0.3, 0.7], [0.6, 0.1]], dtype=torch.float64)
    found = o.cutout(x, STRENGTHS, place)
    for i, strength in enumerate(STRENGTHS.tolist()):
        side = min(int(strength * 5), 4)  # half of 9 is 4: sides 0 to 4
        expected = x[i].clone()
        top, left = int(place[i, 0] * 9) - side // 2, int(place[i, 1] * 12) - side // 2
        expected[:, max(top, 0) : max(top + side, 0), max(left, 0) : max(left + side, 0)] = fill
        assert torch.equal(found[i], expected)
    assert torch.equal(found[0], x[0])
    assert int((found[3] != x[3]).sum()) == channels * 4 * 3  # one column of the square is outside


@every_operation
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(5, 1, 8, 8), (5, 3, 7, 11), (5, 4, 2, 1)])
def test_images_stay_in_the_unit_interval_and_in_their_type(name, dtype, shape):
    x = torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = getattr(o, name)(x, torch.linspace(0, 1, 5).to(dtype))
    assert found.shape == x.shape
    assert found.dtype == dtype
    assert -1e-6 <= float(found.min()) <= float(found.max()) <= 1 + 1e-6


@every_operation
def test_the_given_images_are_not_written_to(name):
    x = images()
    getattr(o, name)(x, STRENGTHS)
    assert torch.equal(x, images())


def test_apply_gives_each_image_its_own_operation():
    x, pool = images(6), [o.invert, o.brightness, o.rotate, o.identity]
    which = torch.tensor([2, 0, 1, 2, 0, 3])
    strength = torch.linspace(0.1, 1, 6, dtype=torch.float64)
    found = o.apply(pool, x, which, strength)
    for i in range(6):
        assert torch.equal(found[i], pool[which[i]](x[i : i + 1], strength[i : i + 1])[0])
    assert o.apply(pool, x[:0], which[:0], strength[:0]).shape == (0, 3, 12, 10)
