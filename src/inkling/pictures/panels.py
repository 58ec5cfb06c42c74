"""Small heat maps side by side, with one scale for all: what differs between them differs in what they show.

Maps with the same names share them: those of rows stand left of the first map of a line, those of columns below the
lowest of each column. Left out: maps of their own scale (that would be separate pictures).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from inkling.figures import Panels
from inkling.pictures.axes import INK, MUTED, nothing, text, text_width, whole
from inkling.pictures.cells import (
    MOST_CELLS,
    cells,
    coarse,
    coarse_sentence,
    matrix,
    range_sentence,
    scale_bar,
    scale_of,
)
from inkling.pictures.harmless import one_line
from inkling.pictures.heatmaps import SCALE_ROOM, every_nth, names_below, names_beside

GAP = 18.0
HEAD = 22.0  # above each map, for its title
SMALL_TEXT = 10.0
NAME_ROOM = 56.0
LARGEST_CELL, SMALLEST_CELL = 40.0, 1.6
TALLEST = 1.6  # a map is at most so many times as high as it is wide


def svg(panels: Panels, width: int = 720) -> str:
    """All maps as one <svg> element, `panels.across` in a line."""
    whole_values = [matrix(one) for one in panels.maps]
    described = " ".join(
        f"{one.title}: {range_sentence(one, values)}" for one, values in zip(panels.maps, whole_values, strict=True)
    )
    scale = scale_of(panels.maps, whole_values)
    if scale is None:
        return nothing(panels.title, f"{described} {panels.reading}".strip(), width)
    across = max(1, min(panels.across, len(panels.maps)))
    share_rows, share_columns = _same([one.rows for one in panels.maps]), _same([one.columns for one in panels.maps])
    beside = min(
        NAME_ROOM, 8 + max(text_width(one_line(n)) for one in panels.maps for n in one.rows or ("",)) * 10 / 12
    )
    margins = beside if share_rows else beside * across
    plot = max(30.0, (width - SCALE_ROOM - margins - GAP * across) / across)

    limit = max(8, min(MOST_CELLS, int(plot / SMALLEST_CELL)))
    drawn = [coarse(values, limit) for values in whole_values]
    blocks = max(((down, wide) for _, down, wide in drawn), default=(1, 1))
    if max(blocks) > 1:
        scale = scale_of(panels.maps, [values for values, _, _ in drawn]) or scale
    sizes = [_cell(values.shape, plot) for values, _, _ in drawn]

    parts: list[str] = []
    y = 8.0
    end = 0.0
    for first in range(0, len(panels.maps), across):
        line = range(first, min(first + across, len(panels.maps)))
        tallest = max(drawn[i][0].shape[0] * sizes[i][1] for i in line)
        lowest = 0.0
        x = beside if share_rows else 0.0
        for i in line:
            shown, (values, down, wide) = panels.maps[i], drawn[i]
            rows, columns = values.shape
            if not share_rows:
                x += beside
            top = y + HEAD
            parts.append(text(x, y + 14, one_line(shown.title), fill=INK, room=plot + GAP / 2))
            if np.isfinite(values).any():
                parts += cells(values, scale, x, top, *sizes[i])
            else:
                parts.append(text(x, top + 16, "nothing to show", fill=MUTED, size=SMALL_TEXT))
                end = max(end, x + min(plot, 90.0))
            if i == first or not share_rows:
                names = every_nth(shown.rows, down, rows)
                parts += names_beside(names, x, top, sizes[i][1], beside - 8, SMALL_TEXT)
            last_of_column = i + across >= len(panels.maps)
            if last_of_column or not share_columns:
                names = every_nth(shown.columns, wide, columns)
                floor = top + rows * sizes[i][1]
                below, named = names_below(names, x, floor, sizes[i][0], NAME_ROOM, SMALL_TEXT)
                parts += named
                lowest = max(lowest, below + rows * sizes[i][1] - tallest)
            end = max(end, x + max(columns * sizes[i][0], min(plot, text_width(one_line(shown.title)))))
            x += plot + GAP
        y += HEAD + tallest + max(0.0, lowest) + 10

    empty = any(not np.isfinite(values).all() for values, _, _ in drawn)
    units = [one.unit for one in panels.maps]
    bar = min(150.0, max(72.0, y - HEAD - 50))
    parts += scale_bar(scale, units[0] if _same(units) else "", empty, end + 24, 8 + HEAD, bar)
    y = max(y, 8 + HEAD + bar + (34 if empty else 10))
    labels = _labels(panels)
    said = coarse_sentence(*blocks) if max(blocks) > 1 else ""
    for sentence in filter(None, (labels, said)):
        parts.append(text(0, y + 12, sentence, fill=MUTED, room=width))
        y += 18
    spoken = " ".join(filter(None, [f"{len(panels.maps)} maps on one scale.", described, said, panels.reading]))
    return whole(panels.title, spoken, width, y + 6, parts)


def _cell(shape: tuple[int, ...], plot: float) -> tuple[float, float]:
    rows, columns = max(1, shape[0]), max(1, shape[1])
    across = min(LARGEST_CELL, plot / columns)
    down = min(across, 26.0 if max(rows, columns) <= 12 else math.inf, TALLEST * plot / rows)
    if rows < columns / 3:  # a few rows would be threads
        down = min(max(down, 8.0), 26.0)
    return across, down


def _labels(panels: Panels) -> str:
    """What rows and columns are, said once for all maps that agree."""
    pairs = [(one.row_label, one.column_label) for one in panels.maps]
    if not _same(pairs) or not any(pairs[0]):
        return ""
    rows, columns = (one_line(label) for label in pairs[0])
    return " · ".join(f"{way}: {label}" for way, label in (("rows ↓", rows), ("columns →", columns)) if label)


def _same(found: Sequence[object]) -> bool:
    return all(one == found[0] for one in found)
