"""The command line: `semigrad VERB ...`. Results go to stdout, everything else to stderr.

Exit codes: 0 done; 2 something given is wrong (said in one message, no traceback); 128 + n stopped by signal n."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence

from semigrad.errors import InputError, unknown
from semigrad.signals import Stopped

VERBS = {
    "train": ("semigrad.cli.train", "train on some data, write a run folder, report the error"),
    "evaluate": ("semigrad.cli.evaluate", "measure a finished run's model on its test part again"),
    "list": ("semigrad.cli.listing", "what there is: methods, models, data, recipes"),
    "download": ("semigrad.cli.download", "fetch CIFAR or SVHN"),
    "check-metagrad": ("semigrad.cli.check_metagrad", "the ways to the meta-gradient against each other on a network"),
    "demo": ("semigrad.cli.demo", "labeled-only against the meta-gradient on digits with 40 labels"),
    "theory": ("semigrad.cli.theory", "the paper's theorems: every claim beside what is measured"),
}

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
            stream.reconfigure(errors="replace")  # a terminal that cannot show ± shows something else
    if not given or given[0] in ("-h", "--help", "help"):
        print(HELP.format(verbs="\n".join(f"  {verb:<14} {what}" for verb, (_, what) in VERBS.items())))
        return 0 if given else 2
    if given[0] == "--version":
        import semigrad

        print(semigrad.__version__)
        return 0
    try:
        if given[0] not in VERBS:
            raise InputError(unknown("command", given[0], VERBS))
        module = importlib.import_module(VERBS[given[0]][0])
        code: int = module.main(given[1:])
        sys.stdout.flush()
        return code
    except InputError as error:
        for problem in error.problems:
            print(f"semigrad: {problem}", file=sys.stderr)
        return 2
    except Stopped as stopped:
        print(f"semigrad: {stopped}", file=sys.stderr)
        return 128 + stopped.signal
    except KeyboardInterrupt:
        print("semigrad: stopped at once; what was saved before is kept.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to complain of at exit
        return 141
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"semigrad: {where}{error.strerror or error}.", file=sys.stderr)
        return 2
