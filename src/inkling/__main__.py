"""`python -m inkling` and the `inkling` command."""

from __future__ import annotations

import os
import sys


def main() -> None:
    # NumPy multiplies only small matrices here (torch does the large ones), and its threads spin while they wait: with
    # another program on one of the cores, the bigram reference ran ten times slower with two threads than with one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from inkling.cli.app import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
