"""Numbers from outside as arrays of float64, or one sentence; and a matrix as a picture.

Entries stay below 1e100 in size, so that no square or product of two overflows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.errors import UsageError
from inkling.figures import HeatMap

Floats = NDArray[np.float64]

LARGEST = 1e100


def real_array(given: Any, what: str, dimensions: int, largest: float = LARGEST) -> Floats:
    """`given` as an array with at least one entry, all of them real and finite."""
    wanted = "a list of numbers" if dimensions == 1 else "a matrix: rows of equally many numbers"
    try:
        found = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{what} is not rectangular; give {wanted}.") from error
    if found.size == 0:
        raise UsageError(f"{what} is empty; give {wanted}.")
    if found.dtype.kind not in "fiu":
        raise UsageError(f"{what} holds {found.dtype} and not real numbers; give {wanted}.")
    if found.ndim != dimensions:
        raise UsageError(f"{what} has shape {found.shape}; give {wanted}.")
    floats = found.astype(np.float64)
    if not np.isfinite(floats).all():
        raise UsageError(f"{what} holds NaN or an infinite number; give finite numbers only.")
    if float(np.abs(floats).max()) > largest:
        raise UsageError(f"{what} holds a number beyond {largest:g} in size; scale it down.")
    return floats


def real_number(given: Any, what: str, *, above: float = -math.inf, least: float = -math.inf) -> float:
    bounds = f" above {above:g}" if above > -math.inf else f" of at least {least:g}" if least > -math.inf else ""
    wanted = f"give a finite number{bounds}"
    if isinstance(given, bool | np.bool_ | str | bytes):
        raise UsageError(f"{what} is {given!r}; {wanted}.")
    try:
        found = float(given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{what} is of type {type(given).__name__}; {wanted}.") from error
    if not math.isfinite(found) or found <= above or found < least:
        raise UsageError(f"{what} is {found:g}; {wanted}.")
    return found


def index(given: Any, what: str, count: int) -> int:
    """A whole number from 0 to count − 1."""
    try:
        found = operator.index(given)
    except TypeError as error:
        raise UsageError(f"{what} {given!r} is not a whole number; give one from 0 to {count - 1}.") from error
    if isinstance(given, bool) or not 0 <= found < count:
        raise UsageError(f"{what} {given!r} does not exist; in Python they are counted from 0 to {count - 1}.")
    return found


def listing(items: Sequence[Any]) -> str:
    """a; a and b; a, b and c."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def matrix_map(
    title: str,
    values: Floats,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    labels: tuple[str, str] = ("row", "column"),
    unit: str = "",
    reading: str = "",
    causal: bool = False,
    top: float | None = None,
) -> HeatMap:
    """A matrix as a heat map; with `causal` what lies above the diagonal is left empty."""
    height, width = values.shape
    cells: list[list[float | None]] = [
        [None if causal and j > i else float(values[i, j]) for j in range(width)] for i in range(height)
    ]
    return HeatMap(
        title,
        *labels,
        tuple(rows) or tuple(str(i + 1) for i in range(height)),
        tuple(columns) or tuple(str(j + 1) for j in range(width)),
        cells,
        unit,
        reading,
        low=None if top is None else 0.0,
        high=top,
    )
