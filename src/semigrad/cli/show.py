"""Results in words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table


def print_table(table: Table, whole: bool = False) -> None:
    """A table on stdout, as wide as the terminal; `whole`: as wide as it needs, so that nothing is cut. Through
    `print`: rich has an exit code of its own for a reader that leaves early."""
    console = Console(highlight=False, markup=False, width=1000 if whole else None)
    with console.capture() as text:
        console.print(table)
    print(text.get(), end="")


def describe_result(result: Mapping[str, Any]) -> list[str]:
    """Lines for the figures of a result.json."""
    lines = [
        describe_part(name, result[name], result["evaluated"]) for name in ("validation", "test") if result.get(name)
    ]
    return lines or [str(result.get("note", "No error was measured."))]


def describe_part(name: str, figures: Mapping[str, Any], evaluated: str) -> str:
    low, high = figures["error_interval"]
    top5 = "" if figures["error_top5"] is None else f", top-5 {figures['error_top5']:.2f} %"
    return (
        f"{name} error {figures['error']:.2f} %{top5} ({evaluated}; 95 % interval over {figures['examples']:,} "
        f"examples {low:.2f} to {high:.2f}); calibration error {figures['calibration_error']:.2f} %"
    )
