"""Picture files: finding them below a folder, and turning one into upright 8-bit pixels of a wanted size."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from semigrad.errors import InputError
from semigrad.names import shown

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""What a file may hold, whatever its name is: some of Pillow's other formats start programs of their own."""
MOST_PIXELS = 50_000_000
"""Of a picture; decoding takes up to 16 bytes for each."""
LARGE = 8_000_000
"""Pixels above which pictures are decoded one at a time."""

_alone = threading.Lock()

Box = tuple[float, float, float, float]
"""Left, top, right and bottom of a part of a picture, in its pixels."""


def is_picture(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def subfolders(folder: Path) -> list[Path]:
    """The folders in this one, by name, linked ones too; but no hidden one, and no link that leads back above."""
    here = folder.resolve()
    return sorted(
        entry
        for entry in folder.iterdir()
        if entry.is_dir() and not entry.name.startswith(".") and not here.is_relative_to(entry.resolve())
    )


def find(folder: Path) -> tuple[list[str], list[str]]:
    """The pictures below the folder, at any depth, in one order everywhere; and the other files.

    Hidden files are passed over. Links to folders are not followed, so the walk ends whatever they point at."""
    return walk(folder)[:2]


def walk(folder: Path) -> tuple[list[str], list[str], list[str]]:
    """The same, and the folders that were looked into."""
    pictures: list[str] = []
    others: list[str] = []
    walked = []
    for parent, folders, files in os.walk(folder, onerror=_not_looked_into):
        walked.append(parent)
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                (pictures if is_picture(name) else others).append(os.path.join(parent, name))
    return _in_order(pictures), _in_order(others), walked


def _in_order(files: list[str]) -> list[str]:
    return sorted(files, key=lambda path: path.split(os.sep))


def none_of(files: Sequence[str]) -> str:
    """Why these other files do not count, in words: none of them has the ending of a picture."""
    if not files:
        return "it is empty"
    named = shown(os.path.basename(files[0]))
    count = "1 file there is" if len(files) == 1 else f"{len(files):,} files there are"
    return f"{count} none of {', '.join(SUFFIXES)}, such as {named}"


def _not_looked_into(error: OSError) -> None:
    """What is forbidden, or gone meanwhile, is passed over; a disk that fails must not leave pictures out unnoticed."""
    if not isinstance(error, PermissionError | FileNotFoundError):
        raise InputError(f"Cannot look into {error.filename}: {error.strerror}. Put it right, or move it away.")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without Pillow's warnings about odd metadata: what cannot be decoded raises, the rest is not worth a line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


Head = tuple[int, int, bool]
"""Width, height, and whether the picture is gray."""


def inspect(path: str) -> Head:
    """What the head of the file says."""
    with _opened(path) as image:
        return head(image)


def head(image: Image.Image) -> Head:
    return *image.size, _gray(image)


def decode(path: str | BinaryIO, gray: bool = False, enough: int | None = None) -> Image.Image:
    """The picture in a file, upright, as 8-bit gray or RGB.

    A JPEG may be decoded at a half, a quarter or an eighth of its size, as long as both edges keep `enough` pixels."""
    with _opened(path) as image:
        large = math.prod(image.size) > LARGE
        if enough is not None:
            image.draft(None, (enough, enough))
        with _alone if large else contextlib.nullcontext():
            image.load()
            return upright(image, gray)


def as_it_is(path: str | BinaryIO) -> Image.Image:
    """The picture in a file, upright, with the pixels that it has."""
    with _opened(path) as image:
        image.load()
        return ImageOps.exif_transpose(image)


def upright(image: Image.Image, gray: bool) -> Image.Image:
    """The picture, turned in place as its camera was held, as 8-bit gray or RGB."""
    ImageOps.exif_transpose(image, in_place=True)
    return _eight_bit(image).convert("L" if gray else "RGB")


def cut(picture: Image.Image, box: Box, size: int) -> np.ndarray:
    """That part of the picture, antialiased, as uint8 (channels, size, size).

    The filter sees the pixels around the box: the result is that of resizing the whole and cropping."""
    pixels = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR, box))
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def centered(width: int, height: int, share: float = 1.0) -> Box:
    """The square in the middle whose side is this share of the shorter edge."""
    side = share * min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def _opened(path: str | BinaryIO) -> Image.Image:
    if isinstance(path, str) and not os.path.isfile(path):  # opening a pipe would wait for ever
        raise OSError("not a file")
    try:
        image = Image.open(path, formats=FORMATS)
    except UnidentifiedImageError:
        raise OSError("no known picture format") from None
    if math.prod(image.size) > MOST_PIXELS:
        image.close()
        raise OSError(f"{image.width:,} x {image.height:,} pixels, more than {MOST_PIXELS:,}")
    return image


def _gray(image: Image.Image) -> bool:
    return image.mode in ("1", "L") or image.mode.startswith("I")


def _eight_bit(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16-bit gray: 65535 is white
        return Image.fromarray((np.asarray(image).clip(0, 65535) / 257).round().astype(np.uint8))
    if image.mode == "F":
        raise OSError("float pixels, whose white nobody knows")
    if image.mode.endswith(("A", "a")) or "transparency" in image.info:  # on white: hidden colors are arbitrary
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image
