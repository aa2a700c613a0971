"""`semigrad list methods|models|data|recipes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from rich.table import Table

from semigrad.cli.options import POSITIONAL, parse
from semigrad.cli.show import print_table


@dataclass(frozen=True)
class Options:
    """What there is."""

    what: Annotated[Literal["methods", "models", "data", "recipes"], POSITIONAL]
    """Which list."""


def main(words: Sequence[str]) -> int:
    options = parse(Options, words, "semigrad list")
    if options.what == "methods":
        print_table(methods_table())
        return 0
    table = Table("name", "what it is", box=None, header_style="bold")
    for name, text in entries(options.what).items():
        table.add_row(name, text)
    print_table(table)
    return 0


def methods_table() -> Table:
    """Every method and modifier with its idea, its paper, and what it asks of the data."""
    from semigrad.methods import METHODS, MODIFIERS

    table = Table("name", "idea", "paper", box=None, header_style="bold")
    for name, cls in METHODS.items():
        table.add_row(name, _summary(cls) + (" (Images only.)" if cls().traits.needs_images else ""), cls.paper)
    table.add_section()
    for name, modifier in MODIFIERS.items():
        table.add_row(f"HOST+{name}", _summary(modifier), modifier.paper)
    return table


def entries(what: str) -> dict[str, str]:
    """Name and one line on it."""
    if what == "recipes":
        from semigrad.settings.recipes import RECIPES

        return {name: ", ".join(_flat(layer)) or "as where nothing is said" for name, layer in RECIPES.items()}
    if what == "data":
        from semigrad.data import SOURCES

        return {name + (":PATH" if s.needs_path else ""): s.summary for name, s in SOURCES.items()}
    from semigrad.models import known_names, model_class

    return {name: _summary(cls) for name in known_names() if (cls := model_class(name))}


def _summary(cls: type) -> str:
    return (cls.__doc__ or "").split("\n")[0]


def _flat(layer: dict[str, Any]) -> list[str]:
    """Settings as `name=value`, a method's and a model's name for itself, a modifier's in front of its fields."""
    words = []
    for name, value in layer.items():
        if isinstance(value, dict):
            own = _flat({k: v for k, v in value.items() if k != "name"})
            words += [value["name"], *own] if "name" in value else [f"{name}.{word}" for word in own]
        else:
            words.append(f"{name}={value}")
    return words
