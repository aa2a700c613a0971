"""The command line: `semigrad VERB ...`. Results go to stdout, everything else to stderr.

Exit codes: 0 done; 1 done, but some runs of a reproduction could not be trained; 2 something given is wrong (said in
one message, no traceback); 128 + n stopped by signal n."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence

from semigrad.errors import InputError, unknown
from semigrad.names import SHOWN, printable
from semigrad.training.signals import Stopped

VERBS = {
    "fit": ("semigrad.cli.fit", "your own data: compare with labeled-only, train, say whether unlabeled data helped"),
    "train": ("semigrad.cli.train", "train on some data, write a run folder, report the error"),
    "evaluate": ("semigrad.cli.evaluate", "measure a finished run's model on its test part again"),
    "predict": ("semigrad.cli.predict", "what a trained model says of your pictures or rows"),
    "serve": ("semigrad.cli.serve", "a trained model as a page and a small HTTP service"),
    "export": ("semigrad.cli.export", "a trained model as ONNX, as torch.export's file, or as a folder for model hubs"),
    "doctor": ("semigrad.cli.doctor", "what is wrong with data: duplicates, leaks, broken files, odd labels"),
    "embed": ("semigrad.cli.embed", "the features of a frozen network, to train a head on in seconds"),
    "label-next": ("semigrad.cli.label_next", "which unlabeled examples to label next, as a sheet and a page"),
    "add-labels": ("semigrad.cli.add_labels", "answers on such a sheet put back into your labels"),
    "report": ("semigrad.cli.report", "one HTML page of a run, or of several in comparison"),
    "reproduce": ("semigrad.cli.reproduce", "the paper's tables and figures, at four scales"),
    "list": ("semigrad.cli.listing", "what there is: methods, models, data, recipes"),
    "download": ("semigrad.cli.download", "fetch CIFAR or SVHN"),
    "check-metagrad": ("semigrad.cli.check_metagrad", "the ways to the meta-gradient against each other on a network"),
    "demo": ("semigrad.cli.demo", "labeled-only against the meta-gradient on digits with 40 labels"),
    "theory": ("semigrad.cli.theory", "the paper's theorems: every claim beside what is measured"),
}

SEVERAL = os.environ.get("WORLD_SIZE", "1") != "1" and "RANK" in os.environ
"""Whether torchrun started this process together with others."""

HELP = """usage: semigrad VERB ...

Trains classifiers from few labels and many unlabeled examples.

{verbs}

semigrad VERB --help tells more.  Try: semigrad train digits@40
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=SHOWN)  # a terminal that cannot show ± shows something else
    if SEVERAL and os.environ["RANK"] != "0":
        be_silent()
    code = guarded(lambda: carry_out(given))
    if arguments is None and code == 128 + signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process ends anyway, and Python would say where it was
    return code


def carry_out(given: Sequence[str]) -> int:
    verb, *words = given or [""]
    if verb in ("", "-h", "--help", "help"):
        print(HELP.format(verbs="\n".join(f"  {verb:<14} {what}" for verb, (_, what) in VERBS.items())))
        return 0 if given else 2
    if verb == "--version":
        import semigrad

        print(semigrad.__version__)
        return 0
    if verb not in VERBS:
        raise InputError(unknown("command", verb, VERBS))
    if SEVERAL and verb != "train":
        raise InputError(f"Several processes together can only train: start semigrad {verb} without torchrun.")
    code: int = importlib.import_module(VERBS[verb][0]).main(words)
    return code


def guarded(work: Callable[[], int]) -> int:
    """The exit code of some work; whatever ends it is said in a few words on stderr."""
    try:
        try:
            code = work()
        except SystemExit as left:  # after a help text
            code = left.code if isinstance(left.code, int) else 0
        flush_stdout()
        return code
    except BrokenPipeError:
        with contextlib.suppress(OSError):
            flush_stdout()
        return 141
    except (Exception, KeyboardInterrupt) as error:
        code, lines = explain(error)
        say(lines, error)
        with contextlib.suppress(InputError, OSError):
            flush_stdout()
        return code


def say(lines: list[str], error: BaseException) -> None:
    """Why this command ends. Of several processes that end together, one says it."""
    who = "semigrad"
    if SEVERAL:
        from semigrad.training.joining import speaks, started_together

        here = started_together()
        who += "" if here.first else f" (process {here.rank} of {here.count}, from 0)"
        lines = lines if speaks(error) else []
    for line in lines:
        print(printable(f"{who}: {line}"), file=sys.stderr)


def be_silent() -> None:
    """All but the first of several processes: what they would say, that one says."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (until the end)
    warnings.simplefilter("ignore")


def flush_stdout() -> None:
    """Say now what would else be said at exit, where nobody could explain it. There may be no stdout at all."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        forget_stdout()
        if isinstance(error, BrokenPipeError):
            raise
        raise InputError(f"Cannot write to stdout: {error.strerror}.") from error


def forget_stdout() -> None:
    """Nothing more to complain of at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def explain(error: BaseException) -> tuple[int, list[str]]:
    """The exit code and the words for what ended a command; a fault of our own is raised again."""
    reason = str(error).partition("\n")[0]
    if isinstance(error, InputError):
        return 2, error.problems
    if isinstance(error, Stopped):
        return 128 + error.signal, [error.text]
    if isinstance(error, KeyboardInterrupt):
        return 130, ["stopped at once; what was saved before is kept."]
    if isinstance(error, OSError):
        return 2, [f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or reason}."]
    if isinstance(error, MemoryError) or "out of memory" in reason or "allocate memory" in reason:
        return 2, [f"Out of memory ({reason}). A smaller batch or network needs less."]
    raise error
