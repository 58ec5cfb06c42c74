"""What the commands that serve have in common."""

from __future__ import annotations

from importlib.util import find_spec

from inkling.errors import InklingError


def needs(extra: str, *packages: str) -> None:
    """Says what to install where packages of an extra are not there."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        raise InklingError(f"This needs {' and '.join(missing)}; install it with `pip install 'inkling-lab[{extra}]'`.")
