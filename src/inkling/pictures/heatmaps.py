"""A matrix as a heat map: rows from top to bottom, names beside and below, its scale at the right.

Cells are square where the matrix is nearly so. Up to 12 × 12 their numbers are written into them. How cells are shaded,
and how a sign is told without colour, is in `cells.py`. Left out: clustering and reordering of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from inkling.figures import HeatMap
from inkling.pictures.axes import INK, MUTED, TOP, every_kth, nothing, text, text_width, thinned, whole
from inkling.pictures.cells import (
    MOST_CELLS,
    SMALL,
    cells,
    coarse,
    coarse_sentence,
    matrix,
    range_sentence,
    scale_bar,
    scale_of,
)
from inkling.pictures.harmless import one_line

SCALE_ROOM = 118.0  # pixels for the scale at the right
TURNED_ROOM = 84.0
SCALE_HEIGHT = 150.0


def svg(shown: HeatMap, width: int = 720, height: int = 560) -> str:
    """The heat map as one <svg> element, at most about `height` high."""
    values = matrix(shown)
    described = f"{shown.row_label} by {shown.column_label}. {range_sentence(shown, values)}"
    scale = scale_of([shown], [values])
    if scale is None:
        return nothing(shown.title, f"{described} {shown.reading}".strip(), width)
    drawn, down, across = coarse(values, MOST_CELLS)
    if down * across > 1:
        scale = scale_of([shown], [drawn]) or scale
    rows, columns = drawn.shape
    row_names, column_names = every_nth(shown.rows, down, rows), every_nth(shown.columns, across, columns)

    left = 10 + min(0.26 * width, max(map(text_width, row_names), default=0))
    cell_width, cell_height = cell_size(rows, columns, width - left - SCALE_ROOM, height - TOP - 70)
    bottom = TOP + rows * cell_height
    end = left + columns * cell_width
    parts = [text(0, 16, f"{one_line(shown.row_label)} ↓" if shown.row_label else "", fill=INK)]
    parts += cells(drawn, scale, left, TOP, cell_width, cell_height)
    parts += names_beside(row_names, left, TOP, cell_height, left - 8)
    below, named = names_below(column_names, left, bottom, cell_width, TURNED_ROOM)
    parts += named
    label = one_line(shown.column_label)
    if label:
        middle = max((left + end) / 2, text_width(label) / 2)
        parts.append(text(middle, bottom + below + 22, f"{label} →", anchor="middle", fill=INK))
    said = coarse_sentence(down, across)
    floor = bottom + below + 30
    if said:
        parts.append(text(0, floor + 12, said, fill=MUTED))
        floor += 20
    empty = not np.isfinite(drawn).all()
    bar = min(SCALE_HEIGHT, max(rows * cell_height, 72.0))
    parts += scale_bar(scale, shown.unit, empty, end + 24, TOP, bar)
    total = max(floor, TOP + bar + (30 if empty else 10))
    return whole(shown.title, " ".join(filter(None, [described, said, shown.reading])), width, total, parts)


def cell_size(rows: int, columns: int, wide: float, high: float) -> tuple[float, float]:
    """Pixels of a cell so that all fit: room for numbers in a small matrix, squares in one that is nearly square."""
    if max(rows, columns) <= SMALL:
        return min(56.0, wide / columns), min(32.0, high / rows)
    across, down = min(28.0, wide / columns), min(28.0, high / rows)
    if 0.4 <= rows / columns <= 2.5:
        across = down = min(across, down)
    if across >= 2:  # whole tenths: all cells look alike
        across = int(across * 10) / 10
    return across, int(down * 10) / 10 if down >= 2 else down


def every_nth(names: Sequence[str], step: int, count: int) -> list[str]:
    """A harmless name for each of `count` rows or columns, of which one stands for `step`."""
    found = [one_line(name) for name in names[::step]][:count]
    return found + [""] * (count - len(found))


def names_beside(
    names: Sequence[str], x: float, y: float, pitch: float, room: float, size: float = 12
) -> Iterator[str]:
    """The names of rows, left of `x`; every k-th where they stand close."""
    for index in every_kth(names, (size + 2.5) / pitch):
        if names[index]:
            base = y + (index + 0.5) * pitch + size / 3
            yield text(x - 6, base, names[index], anchor="end", fill=MUTED, room=room, size=size if size != 12 else 0)


def names_below(
    names: Sequence[str], x: float, y: float, pitch: float, room: float, size: float = 12
) -> tuple[float, list[str]]:
    """The names of columns below `y`, turned if they are long, every k-th where they stand close; and their height."""
    if not any(names):
        return 0.0, []
    written, upright = thinned(names, pitch, size)
    found = []
    for index in written:
        middle = x + (index + 0.5) * pitch
        chosen = size if size != 12 else 0
        if upright:
            place, wide = (middle, y + size + 4), pitch * written.step - 4
            found.append(text(*place, names[index], anchor="middle", fill=MUTED, room=wide, size=chosen))
        elif names[index]:
            place = middle + size / 3, y + 6
            found.append(text(*place, names[index], anchor="end", fill=MUTED, room=room, size=chosen, turned=True))
    widest = max(map(text_width, names)) * size / 12
    return (size + 6 if upright else 8 + min(room, widest)), found
