"""A part of a page, and what is said where it cannot be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from semigrad.errors import InputError
from semigrad.report.drawing.charts import Chart, Table
from semigrad.report.parts.pictures import Picture


@dataclass(frozen=True)
class Section:
    """A part of a page; `missing` are the sentences for what could not be made."""

    anchor: str
    title: str
    lead: list[tuple[str, Table]] = field(default_factory=list)  # tables that come first, in full width
    charts: list[Chart] = field(default_factory=list)
    tables: list[tuple[str, Table]] = field(default_factory=list)
    pictures: list[tuple[str, list[Picture]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def attempt(section: Section, what: str, make: Callable[[], None]) -> Exception | None:
    """A part that cannot be made is said to be missing; whatever happens, the rest of the page and the run stay.
    Returns what stood in the way."""
    try:
        make()
    except InputError as error:
        section.missing.append(f"{what}: left out. {error}")
        return error
    except Exception as error:  # a page is never worth a run: no fault in it may end what called it
        section.missing.append(f"{what}: left out, because of a fault ({type(error).__name__}: {error}).")
        return error
    return None


def whole(anchor: str, title: str, make: Callable[[], Section]) -> Section:
    """A section, or one that says why there is none."""
    found: list[Section] = []
    instead = Section(anchor, title)
    attempt(instead, title, lambda: found.append(make()))
    return found[0] if found else instead
