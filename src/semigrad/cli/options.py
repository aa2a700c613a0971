"""Options: the fields of dataclasses on the command line, each with exactly one word behind it, or none for a switch.

A field `unlabeled_batch` is the option `--unlabeled-batch 32`; one that is true or false is the switch `--nesterov` or
`--no-nesterov`; a list is written with commas, `--milestones 0.5,0.75`, and nothing as `none`."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
import re
import shutil
import sys
import textwrap
import types
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, Union, get_args, get_origin

from semigrad.errors import nearest, unknown
from semigrad.settings.fields import choices, hints_of, in_words, matches, refuse, value_problems


class Positional:
    """Marks a field that has no name on the command line: `run: Annotated[Path, POSITIONAL]`."""


POSITIONAL = Positional()
SWITCH_WORDS = {"true", "false", "on", "off", "yes", "no"}

Parsed = TypeVar("Parsed")


@dataclass(frozen=True)
class Option:
    """A field on the command line."""

    name: str  # behind the dashes: "unlabeled-batch", "model.drop"
    field: str
    hint: Any
    default: Any
    text: str  # what it means

    @property
    def is_switch(self) -> bool:
        return self.hint is bool

    @property
    def is_positional(self) -> bool:
        return get_origin(self.hint) is Annotated and POSITIONAL in self.hint.__metadata__

    @property
    def takes_many(self) -> bool:
        return self.is_positional and get_origin(get_args(self.hint)[0]) is tuple

    @property
    def shown(self) -> str:
        """As it is spoken of."""
        return self.field.upper() if self.is_positional else f"--{self.name}"


def options_of(holder: Any, prefix: str = "", without: Container[str] = ()) -> list[Option]:
    """The fields of a dataclass, or of an instance, whose values are then the defaults."""
    cls = holder if isinstance(holder, type) else type(holder)
    hints, texts, found = hints_of(cls), field_texts(cls), []
    for field in dataclasses.fields(cls):
        if field.name not in without and field.name in hints:
            default = field.default if isinstance(holder, type) else getattr(holder, field.name)
            name = prefix + field.name.replace("_", "-")
            found.append(Option(name, field.name, hints[field.name], default, texts.get(field.name, "")))
    return found


@cache
def field_texts(cls: type) -> Mapping[str, str]:
    """The docstring below each field of a dataclass."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if dataclasses.is_dataclass(base) and (body := _source(base)) is not None:
            for field, text in zip(body.body, body.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(text):
                    texts[field.target.id] = " ".join(ast.literal_eval(text.value).split())  # type: ignore[attr-defined]
    return texts


def _source(cls: type) -> ast.ClassDef | None:
    """How a class was written; None where that is not known, as for one that was typed in."""
    try:
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, SyntaxError):
        return None
    return body if isinstance(body, ast.ClassDef) else None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


# --- words to values and back ---


Behind = Mapping[str, str | bool | None]
"""Option -> its word, None where there is none; whether a switch is on. The last one counts."""


@dataclass(frozen=True)
class Line:
    """A command line in its parts; what the words mean is not looked at."""

    alone: list[str]  # words that belong to no option
    behind: Behind
    asks_help: bool
    problems: list[str]


def take_apart(words: Sequence[str], switches: Container[str]) -> Line:
    """Every option has the next word, unless it is a switch or the word stands behind `=`."""
    alone: list[str] = []
    behind: dict[str, str | bool | None] = {}
    problems: list[str] = []
    asks_help, waiting = False, list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word in ("-h", "--help"):
            asks_help = True
        elif word == "--":
            alone += reversed(waiting)
            break
        elif not word.startswith("--"):
            alone.append(word)
        else:
            given, equals, value = word.removeprefix("--").partition("=")
            name, on = switch_of(given.replace("_", "-"), switches)
            if on is not None:
                behind[name] = on
                if equals or (waiting and waiting[-1].lower() in SWITCH_WORDS):
                    problems.append(f"--{given} takes no value: write {' or '.join(switch_words(name))}.")
                    del waiting[len(waiting) - (not equals) :]
            elif equals:
                behind[name] = value
            else:
                behind[name] = waiting.pop() if waiting and not waiting[-1].startswith("--") else None
    return Line(alone, behind, asks_help, problems)


def switch_of(name: str, switches: Container[str]) -> tuple[str, bool | None]:
    """The switch that is meant, and whether it is turned on or off; None where the option is no switch."""
    if name in switches:
        return name, True
    before, dot, last = name.rpartition(".")
    opposite = f"{before}{dot}{last.removeprefix('no-')}"
    return (opposite, False) if last.startswith("no-") and opposite in switches else (name, None)


def switch_words(name: str) -> tuple[str, str]:
    """`--model.norm` and `--model.no-norm`."""
    before, dot, last = name.rpartition(".")
    return f"--{name}", f"--{before}{dot}no-{last}"


def values_of(options: Iterable[Option], behind: Behind, problems: list[str]) -> dict[str, Any]:
    """Field -> value for the options that were given; a word that is missing or means nothing there is a problem."""
    values = {}
    for option in (option for option in options if option.name in behind):
        word = behind[option.name]
        value = word if isinstance(word, bool | None) else read_word(word, option.hint)
        if word is None:
            problems.append(f"{option.shown} needs a word behind it.")
        elif not matches(value, option.hint):
            problems.append(_misread(option, str(word)))
        else:
            values[option.field] = value
    return values


def _misread(option: Option, word: str) -> str:
    near = nearest(word, choices(option.hint))
    return f"{option.shown} takes {in_words(option.hint)}; given: {word!r}." + (f" {near}" if near else "")


CALLED_NONE = re.compile(r"\\*none", re.IGNORECASE)


def read_word(word: str, hint: Any) -> Any:
    """The value that a word stands for in a field of that type; the word itself where it stands for none."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return read_word(word, arguments[0])
    if origin in (Union, types.UnionType):
        if word.lower() == "none" and type(None) in arguments:
            return None
        read = [read_word(word, argument) for argument in arguments if argument is not type(None)]
        return next((value for value in read if not isinstance(value, str)), _text(word))
    if origin is tuple:
        return tuple(read_word(part, arguments[0]) for part in split_list(word))
    try:
        return _path(word) if hint is Path else hint(word) if hint in (int, float) else _text(word)
    except ValueError:
        return word


def _text(word: str) -> str:
    """What is called none is written with a backslash in front, since the word alone stands for nothing."""
    return word.removeprefix("\\") if CALLED_NONE.fullmatch(word) else word


def _path(word: str) -> Path:
    if not word or "\0" in word:
        raise ValueError(word)
    os.fsencode(word)  # not every text can be the name of a file
    return Path(word).expanduser()


def write_word(value: Any) -> str:
    """The word that stands for a value, for `read_word` to read back."""
    if isinstance(value, tuple | list):
        return ",".join(re.sub(r"([\\,])", r"\\\1", write_word(item)) for item in value)
    if isinstance(value, str) and CALLED_NONE.fullmatch(value):
        return f"\\{value}"
    return "none" if value is None else str(value)


def split_list(word: str) -> list[str]:
    """Parts between commas; a comma that belongs to a name stands behind a backslash."""
    parts = [""] if word else []
    for piece in re.findall(r"\\.|,|[^\\,]+|\\$", word, re.DOTALL):
        if piece == ",":
            parts.append("")
        else:
            parts[-1] += piece[1:] if piece.startswith("\\") and len(piece) > 1 else piece
    return parts


# --- a verb whose options are one dataclass ---


def parse(cls: type[Parsed], words: Sequence[str], verb: str) -> Parsed:
    """The options of a verb, read and checked; everything wrong is said together. Prints help where it is asked for,
    and leaves."""
    options = options_of(cls)
    named = [option for option in options if not option.is_positional]
    line = take_apart(words, {option.name for option in named if option.is_switch})
    if line.asks_help:
        show_help(usage_of(verb, options), inspect.cleandoc(cls.__doc__ or ""), {"options": options})
    problems = line.problems + unknown_options(line, named, verb)
    values = values_of(named, line.behind, problems)
    values |= _positional(options, line.alone, problems)
    refuse(problems)
    found = cls(**values)
    refuse(value_problems(found))
    return found


def unknown_options(line: Line, known: Iterable[Option], verb: str) -> list[str]:
    """A sentence for every option that nobody knows."""
    names = {option.name for option in known}
    others = [name for name in line.behind if name not in names]
    return [unknown("option", name, names, see=f"{verb} --help", prefix="--") for name in others]


def _positional(options: Sequence[Option], words: Sequence[str], problems: list[str]) -> dict[str, Any]:
    """Values of the fields without a name, in their order."""
    values: dict[str, Any] = {}
    left = list(words)
    for option in options:
        if option.takes_many:
            hint = get_args(get_args(option.hint)[0])[0]
            values[option.field] = read = tuple(read_word(word, hint) for word in left)
            wrong = [word for word, value in zip(left, read, strict=True) if not matches(value, hint)]
            problems += [f"{option.shown} takes {in_words(hint)}; given: {word!r}." for word in wrong]
            left = []
        elif option.is_positional and left:
            word = left.pop(0)
            values[option.field] = value = read_word(word, option.hint)
            if not matches(value, option.hint):
                problems.append(_misread(option, word))
        elif option.is_positional and option.default is dataclasses.MISSING:
            problems.append(f"{option.shown} is missing: {option.text}")
    problems += stray_words(left)
    return values


def stray_words(words: Sequence[str], advice: str = "") -> list[str]:
    """A sentence for words that belong to nothing."""
    if named := next((word for word in words if re.match(r"-[A-Za-z]{2}", word)), None):
        advice = f"Options have two dashes: -{named}."
    return [f"{' '.join(word or repr(word) for word in words)}: nothing takes this. {advice}".rstrip()] if words else []


# --- help ---

INDENT = 30


def usage_of(verb: str, options: Iterable[Option]) -> str:
    places = [f"{option.shown}{' ...' if option.takes_many else ''}" for option in options if option.is_positional]
    return " ".join([verb, *places, "[options]"])


def show_help(usage: str, text: str, groups: Mapping[str, Sequence[Option]]) -> NoReturn:
    """Print what there is, and leave."""
    width = min(shutil.get_terminal_size().columns, 120)
    paragraphs = [textwrap.fill(" ".join(part.split()), width) for part in text.split("\n\n")]
    lines = [f"usage: {usage}", "", *paragraphs]
    for title, options in groups.items():
        lines += ["", f"{title}:"] if options else []
        lines += [line for option in options for line in _help_lines(option, width)]
    print("\n".join(lines))
    sys.exit(0)


def _help_lines(option: Option, width: int) -> list[str]:
    head = f"  {_spelled(option)}"
    text = option.text
    if option.default not in (dataclasses.MISSING, ()):
        text += f" (default: {_default(option)})"
    below = textwrap.wrap(text, max(width - INDENT, 30), initial_indent="", subsequent_indent="") or [""]
    if len(head) + 2 > INDENT:
        return [head, *(" " * INDENT + line for line in below)]
    first, *rest = below
    return [f"{head:<{INDENT}}{first}", *(" " * INDENT + line for line in rest)]


def _spelled(option: Option) -> str:
    if option.is_positional:
        return option.shown
    return ", ".join(switch_words(option.name)) if option.is_switch else f"--{option.name} {_placeholder(option.hint)}"


def _default(option: Option) -> str:
    if isinstance(option.default, bool):
        return "on" if option.default else "off"
    return write_word(option.default)


def _placeholder(hint: Any) -> str:
    """What stands for the word in a help text."""
    origin, arguments = get_origin(hint), get_args(hint)
    if words := choices(hint):
        others = [_placeholder(part) for part in arguments if part is not type(None) and not choices(part)]
        return "|".join([*(other for other in others if origin is not Annotated), *words])
    if origin is Annotated:
        return _placeholder(arguments[0])
    if origin is tuple:
        return f"{_placeholder(arguments[0])},..."
    if origin in (Union, types.UnionType):
        return "|".join("none" if part is type(None) else _placeholder(part) for part in arguments)
    return {int: "N", float: "X", Path: "PATH"}.get(hint, "NAME")
