"""Pages read back: their structure as an HTML parser sees it, every drawing as XML, and runs to make pages of."""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
from PIL import Image

SVG = "{http://www.w3.org/2000/svg}"
VOID = {"meta", "img", "br", "wbr", "link", "input"}
NASTY = "<img src=x onerror=alert(1)>"


@dataclass
class Reader(HTMLParser):
    """Every element with its attributes, and the text of the page; complains about elements that do not close."""

    elements: list[tuple[str, dict]] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def read_page(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text())
    reader.close()
    assert reader.open == []
    return reader


def drawings(path: Path) -> list[ElementTree.Element]:
    """Every inline SVG, parsed as strictly as XML is."""
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", path.read_text(), re.DOTALL)]


def titles(path: Path) -> list[str]:
    return [next(svg.iter(f"{SVG}text")).text for svg in drawings(path)]


def image_folder(root: Path, classes: tuple[str, ...], pool: int = 12) -> Path:
    """Small pictures in the layout of `folder:`, a brightness for each class."""
    rng = np.random.default_rng(0)
    for part, count in (("labeled", 4), ("test", 3)):
        for number, name in enumerate(classes):
            (root / part / name).mkdir(parents=True)
            for place in range(count):
                picture(rng, number).save(root / part / name / f"{place}.png")
    (root / "unlabeled").mkdir()
    for place in range(pool):
        picture(rng, place % len(classes)).save(root / "unlabeled" / f"{place}.png")
    return root


def picture(rng, number: int) -> Image.Image:
    return Image.fromarray((rng.random((12, 12, 3)) * 60 + 90 * number).astype(np.uint8))
