"""Crop and flip against plain loops; an example gives the same result whatever batch it is in."""

import numpy as np
import torch

from semigrad.augment import crop, flip


def images(count=6, dtype=torch.uint8):
    return torch.randint(0, 255, (count, 3, 9, 7), generator=torch.Generator().manual_seed(0)).to(dtype)


def test_crop_cuts_the_padded_image_where_the_draw_says():
    x, rng = images(), np.random.default_rng(0)
    down, right = torch.from_numpy(rng.random(6)), torch.from_numpy(rng.random(6))
    cut = crop(x, 2, down, right)
    for i in range(6):
        padded = np.zeros((3, 13, 11), np.uint8)
        padded[:, 2:-2, 2:-2] = x[i]
        top, left = int(down[i] * 5), int(right[i] * 5)
        assert np.array_equal(cut[i], padded[:, top : top + 9, left : left + 7])
    assert cut.dtype == x.dtype


def test_crop_mirrors_what_it_cut_out():
    x, draws = images(), torch.from_numpy(np.random.default_rng(3).random((6, 3)))
    down, right, mirror = draws.unbind(1)
    assert torch.equal(crop(x, 2, down, right, mirror), flip(crop(x, 2, down, right), mirror))
    assert not torch.equal(crop(x, 2, down, right, mirror), crop(x, 2, down, right))


def test_crop_does_not_depend_on_how_images_stand_in_memory():
    x, draws = images(), torch.from_numpy(np.random.default_rng(4).random((6, 3)))
    wide = torch.cat([x, x], dim=3)
    for same in (x.to(memory_format=torch.channels_last), wide[..., :7]):
        assert not same.is_contiguous()
        for used in (draws[:, :2], draws):  # without and with a mirror
            assert torch.equal(crop(same, 2, *used.unbind(1)), crop(x, 2, *used.unbind(1)))


def test_no_images_stay_none():
    none = torch.empty(0)
    assert crop(images()[:0], 2, none, none, none).shape == flip(images()[:0], none).shape == (0, 3, 9, 7)


def test_every_place_is_reached_equally_often():
    x = torch.arange(9 * 7, dtype=torch.float64).reshape(1, 1, 9, 7).expand(4000, 1, 9, 7)
    draws = torch.from_numpy(np.random.default_rng(1).random((4000, 2)))
    corners = crop(x + 1, 1, draws[:, 0], draws[:, 1])[:, 0, 4, 3]
    _, counts = corners.unique(return_counts=True)
    assert len(counts) == 9
    assert counts.min() > 4000 / 9 * 0.8


def test_the_middle_draw_leaves_the_image_as_it_is():
    middle = torch.full((6,), 0.5)
    assert torch.equal(crop(images(), 4, middle, middle), images())


def test_flip_mirrors_below_one_half():
    x = images()
    draw = torch.tensor([0.0, 0.49, 0.5, 0.99, 0.2, 0.7])
    flipped = flip(x, draw)
    for i, mirrored in enumerate([True, True, False, False, True, False]):
        assert np.array_equal(flipped[i], np.asarray(x[i])[:, :, ::-1] if mirrored else x[i])


def test_an_example_does_not_depend_on_its_batch():
    x, draws = images(dtype=torch.float32) / 255, torch.from_numpy(np.random.default_rng(2).random((6, 3)))

    def view(rows):
        d = draws[rows]
        return flip(crop(x[rows], 3, d[:, 0], d[:, 1]), d[:, 2])

    assert torch.equal(view([4]), view([0, 1, 2, 3, 4, 5])[4:5])
    assert torch.equal(view([5, 4]), view([0, 1, 2, 3, 4, 5])[[5, 4]])
