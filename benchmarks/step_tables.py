"""What `benchmarks.step` found, as tables, beside what was aimed at."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_CONV_LARGE = {"finite difference": 0.92, "forward mode": 0.88, "lookahead": 0.74,
               "lookahead, last 3 layers, 1/4 of the labels": 0.60}  # fmt: skip
TARGETS: dict[str, dict[str, float]] = {
    "conv-large": _CONV_LARGE,
    "small-conv": dict.fromkeys(("finite difference", "forward mode", "lookahead"), 0.5),
    "feeding": {"CIFAR-10": 0.05, "JPEG": 0.5},
    "memory": dict.fromkeys(("finite difference", "forward mode", "lookahead"), 1.0),
    "command": {"whole": 1.3},
}
"""What a ratio was to be at most, set before anything was measured."""


def heading(found: dict[str, Any]) -> list[str]:
    words = f"{found['processor']}, {found['threads']} threads, torch {found['torch']}, {found['clock']} time"
    words += f", code {found['code']}"
    return ["# The cost of a step", "", f"`make bench`: {words}. Medians, and the middle half of all rounds.", ""]


def step_tables(found: dict[str, Any]) -> list[str]:
    lines = []
    for case in found.values():
        words = f"{case['model']} on {case['data']}, batch {case['batch']}"
        rate = f"{case['rounds']} rounds, matrix products at {case['matrix rate'] / 1e9:.0f} GFLOP/s"
        lines += ["", f"{words} ({rate})", "", "| step | time | to the reference | target | to its limit |"]
        lines += ["| --- | --- | --- | --- | --- |"]
        for name, row in case["rows"].items():
            time_, ratio, wanted = row["seconds"], row["to reference"], target(case["model"], name)
            lines.append(f"| {name} | {milliseconds(time_)} | {spread(ratio)} | {wanted} | {row['to limit']:.2f} |")
    return lines


def feeding_table(found: dict[str, Any]) -> list[str]:
    lines = ["", "| per image, processor time | plain Pillow | ours | ratio | target |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for name, row in found.items():
        plain, ours = (row["seconds per image"][who]["median"] for who in ("plain", "ours"))
        times = f"{1e6 * plain:.0f} µs | {1e6 * ours:.0f} µs | {spread(row['to plain'], 3)}"
        lines.append(f"| {name} | {times} | {target('feeding', re.split('[, ]', name)[0])} |")
    return lines


def memory_table(found: dict[str, Any]) -> list[str]:
    lines = ["", "| peak memory of a step | " + " | ".join(found) + " | target |", "| --- " * (2 + len(found)) + "|"]
    for name in dict.fromkeys(name for case in found.values() for name in case):
        cells = [memory(case[name]) if name in case else "" for case in found.values()]
        lines.append(f"| {name} | {' | '.join(cells)} | {target('memory', name)} |")
    return lines


def memory(row: dict[str, Any]) -> str:
    return f"{row['bytes'] / 2**20:.0f} MiB ({row['to reference']:.2f})"


def command_table(found: dict[str, Any]) -> list[str]:
    lines = []
    for name, row in found.items():
        seconds = {what: row[what]["median"] for what in ("seconds", "of steps", "torch alone", "to the end")}
        words = "{seconds:.1f} s from the shell to the printed result, {of steps:.1f} s of them steps".format(**seconds)
        words += ", {torch alone:.1f} s loading torch ({to the end:.1f} s with page and picture)".format(**seconds)
        words += f": {spread(row['to steps'])}"
        lines += ["", f"`semigrad {name}`: {words}; target {target('command', 'whole')}"]
    return lines


def profile_tables(found: dict[str, Any]) -> list[str]:
    """Where time goes; what takes less than 1 % of every row of a case is left out."""
    lines = []
    for case, rows in found.items():
        kinds = next(iter(rows.values()))["shares"]
        seen = [kind for kind in kinds if any(row["shares"][kind] >= 0.01 for row in rows.values())]
        lines += ["", f"| {case}: where time goes | {' | '.join(seen)} | calls of operations |"]
        lines += ["| --- " * (2 + len(seen)) + "|"]
        for name, row in rows.items():
            shares = " | ".join(f"{100 * row['shares'][kind]:.0f} %" for kind in seen)
            lines.append(f"| {name} | {shares} | {row['calls']:,} |")
    return lines


def target(what: str, row: str) -> str:
    """In words, where there is one."""
    wanted = TARGETS.get(what, {}).get(row)
    return "" if wanted is None else f"≤ {wanted:.2f}"


def spread(found: dict[str, float], digits: int = 2) -> str:
    return f"{found['median']:.{digits}f} ({found['low']:.{digits}f} to {found['high']:.{digits}f})"


def milliseconds(found: dict[str, float]) -> str:
    return spread({name: 1000 * value for name, value in found.items()}, 1) + " ms"


TABLES: dict[str, Callable[[Any], list[str]]] = {
    "step": step_tables,
    "feeding": feeding_table,
    "memory": memory_table,
    "command": command_table,
    "profile": profile_tables,
}
