"""What the commands that serve have in common."""

from __future__ import annotations

from importlib.util import find_spec

from inkling.errors import InklingError


def needs(package: str, extra: str) -> None:
    """Says what to install where a package of an extra is not there."""
    if find_spec(package) is None:
        raise InklingError(
            f"{package} is not installed, which this needs; install it with pip install 'inkling-lab[{extra}]'."
        )
