"""`python -m semigrad`, the same as the command `semigrad`."""

import sys

from semigrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
