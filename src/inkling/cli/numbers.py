"""Numbers that a command is given as text: vectors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inkling.attention.arrays import Floats

MOST_VECTORS = 2000  # of as many numbers, that a query or a matrix is solved for: seconds
MOST_BYTES = 100_000_000  # of a file of vectors


def read_vectors(flag: str, given: str) -> Floats:
    """Rows of numbers from a file, or written out with ; between rows."""
    import numpy as np

    from inkling.errors import InklingError, UsageError

    path = Path(given)
    try:
        is_file = path.is_file()
    except OSError:  # a name that no file can have
        is_file = False
    shown = given if len(given) <= 80 else f"{given[:80]}…"
    if is_file:
        if path.stat().st_size > MOST_BYTES:
            raise InklingError(f"{shown} has more than 100 MB; give a smaller matrix.")
        rows = path.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    else:
        rows = given.split(";")
    found: list[list[float]] = []
    for number, row in enumerate(rows, start=1):
        cells = row.replace(",", " ").split()
        if not cells:
            continue
        try:
            found.append([float(cell) for cell in cells])
        except ValueError:
            if is_file:
                raise UsageError(f"In row {number} of {shown} something is not a number; give numbers.") from None
            raise UsageError(
                f"{flag} is '{shown}', which is neither a file that exists nor numbers; give one of these, with ; "
                "between vectors that are written out."
            ) from None
        if max(len(found), len(cells)) > MOST_VECTORS:
            raise UsageError(f"{flag}, '{shown}', is too large; give at most {MOST_VECTORS:,} vectors and dimensions.")
    if not found or len({len(row) for row in found}) > 1:
        lengths = sorted({len(row) for row in found})
        said = f"has rows of {lengths[0]} and of {lengths[-1]} numbers" if found else "has no numbers"
        raise UsageError(f"{flag}, '{shown}', {said}; give vectors of one length.")
    return np.array(found)
