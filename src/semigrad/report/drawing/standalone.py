"""Drawings that stand by themselves: their colors are in them, and nothing is that only a page needs."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

SVG = "http://www.w3.org/2000/svg"
ENLARGED = 2
"""How many times larger than on its own grid a drawing is shown."""
GAP = 10
"""Below each of several drawings."""
INVISIBLE = {"hover", "hit"}
"""Classes of what only the pointer meets."""
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that a page may hold and XML forbids, such as the control characters in a class's name."""
PAGE_ONLY = re.compile("data-|aria-|role$|tabindex$|class$")

ElementTree.register_namespace("", SVG)


def asset(name: str) -> str:
    """A style or script of our own."""
    return (resources.files("semigrad.report") / "templates" / name).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Rule:
    """What a selector of chart.css says; whatever stands before its last word is the drawing itself."""

    tag: str  # empty: any
    classes: frozenset[str]
    weight: tuple[int, int]
    settings: dict[str, str]

    def fits(self, tag: str, classes: set[str]) -> bool:
        return self.tag in ("", tag) and self.classes <= classes


@cache
def light_rules() -> list[Rule]:
    """The rules of all drawings in the light colors, stronger ones later."""
    colors = dict(re.findall(r"--(\w+): (#\w+)", asset("light.css")))
    text = re.sub(r"var\(--(\w+)\)", lambda found: colors[found[1]], asset("chart.css"))
    return sorted(_rules(text), key=lambda rule: rule.weight)


def _rules(text: str) -> Iterator[Rule]:
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
        pairs = [setting.split(":", 1) for setting in body.split(";") if setting.strip()]
        settings = {name.strip(): value.strip().removesuffix("px") for name, value in pairs}
        for selector in selectors.split(","):
            tag, *classes = selector.split()[-1].split(".")
            yield Rule(tag, frozenset(classes), (selector.count("."), len(tag)), settings)


def stand_alone(drawing: str) -> ElementTree.Element:
    """A drawing of a page with its look written into every element."""
    root = ElementTree.fromstring(NO_XML.sub("\ufffd", drawing))
    for node in list(root.iter()):
        for child in list(node):
            if INVISIBLE & _classes(child):
                node.remove(child)
    described = [label for node in root.iter() if node.get("role") == "img" and (label := node.get("aria-label"))]
    for node in root.iter():
        tag, classes = node.tag.removeprefix(f"{{{SVG}}}"), _classes(node)
        for rule in light_rules():
            if rule.fits(tag, classes):
                node.attrib.update(rule.settings)
        for name in [name for name in node.attrib if PAGE_ONLY.match(name)]:
            del node.attrib[name]
    _add_ground(root, described)
    return root


def _classes(node: ElementTree.Element) -> set[str]:
    return set((node.get("class") or "").split())


def _add_ground(root: ElementTree.Element, described: list[str]) -> None:
    """A white page below the drawing, its size, and its description in words."""
    *_, width, height = (root.get("viewBox") or "").split()
    ground = ElementTree.Element(f"{{{SVG}}}rect", width=width, height=height, fill="#ffffff")
    words = ElementTree.Element(f"{{{SVG}}}desc")
    words.text = " ".join(described)
    root[:0] = [words, ground]
    root.attrib |= _size(float(width), float(height))


def _size(width: float, height: float) -> dict[str, str]:
    return {
        "viewBox": f"0 0 {width:g} {height:g}",
        "width": f"{ENLARGED * width:g}",
        "height": f"{ENLARGED * height:g}",
    }


def stacked(drawings: Sequence[str]) -> ElementTree.Element:
    """Drawings of a page below one another, as one that stands by itself."""
    root, bottom, width = ElementTree.Element(f"{{{SVG}}}svg"), 0.0, 0.0
    for drawing in drawings:
        part = stand_alone(drawing)
        *_, wide, high = map(float, part.attrib.pop("viewBox").split())
        part.tag = f"{{{SVG}}}g"
        part.set("transform", f"translate(0 {bottom:g})")
        root.append(part)
        bottom, width = bottom + high + GAP, max(width, wide)
    root.attrib |= _size(width, bottom)
    return root


def as_text(root: ElementTree.Element) -> bytes:
    found: bytes = ElementTree.tostring(root, "utf-8")
    return found
