"""`python -m inkling` and the `inkling` command."""

from __future__ import annotations

import sys


def main() -> None:
    from inkling.cli.app import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
