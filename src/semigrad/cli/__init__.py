"""The command line: `semigrad VERB ...`. Results go to stdout, everything else to stderr.

Exit codes: 0 done; 2 something given is wrong (said in one message, no traceback); 128 + n stopped by signal n."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from semigrad.errors import InputError, unknown

VERBS = {
    "train": ("semigrad.cli.train", "train on some data, write a run folder, report the error"),
    "evaluate": ("semigrad.cli.evaluate", "measure a finished run's model on its test part again"),
    "list": ("semigrad.cli.listing", "what there is: methods, models, data, recipes"),
    "download": ("semigrad.cli.download", "fetch CIFAR or SVHN"),
    "demo": ("semigrad.cli.demo", "labeled-only against the meta-gradient on digits with 40 labels"),
}

HELP = """usage: semigrad VERB ...

Trains classifiers from few labels and many unlabeled examples.

{verbs}

semigrad VERB --help tells more.  Try: semigrad train digits@40
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help", "help"):
        print(HELP.format(verbs="\n".join(f"  {verb:<10} {what}" for verb, (_, what) in VERBS.items())))
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
        return code
    except InputError as error:
        for problem in error.problems:
            print(f"semigrad: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("semigrad: stopped at once; the last checkpoint is kept.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
