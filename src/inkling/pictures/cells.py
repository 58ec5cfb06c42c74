"""The cells of a heat map: one scale, shades of one hue, and signs that need no colour.

    strength = |value| / max(|low|, |high|)   where the scale has both signs,   (value − low) / (high − low)   otherwise
    shade    = round(10 · strength)           drawn as more or less ink over the paper

More ink is more: dark on a light page, bright on a dark one. Values below zero have a second hue and, in each cell, a
minus, so that the sign survives a black-and-white print; one that rounds to the shade of zero has none. An empty cell
(None, NaN, infinite) is bare paper. All cells of a shade are one path, neighbours in a row one stretch of it; of a
matrix with more than `MOST_CELLS` rows or columns the means of blocks are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inkling.figures import HeatMap
from inkling.pictures.axes import GRID, HUGE, INK, MUTED, PAPER, drawable, text, text_width, tick_text
from inkling.pictures.harmless import one_line
from inkling.pictures.letters import cell_text

MORE, LESS = "var(--more, #0b3a75)", "var(--less, #7d2c06)"
NUMBER = "var(--number, #1c2128)"  # letters on the fainter half
SHADES = 10
# The faintest tells a zero from an empty cell. The step after the sixth is wider: no letter could be read on what lies
# between, neither a dark nor a light one (test_cells.py measures the contrast on light and dark pages).
INKS = (0.05, 0.14, 0.23, 0.32, 0.41, 0.49, 0.56, 0.74, 0.83, 0.92, 1.0)
DEEP = 7  # from this shade on, letters are of paper
MOST_CELLS = 200
SMALL = 12
SMALLEST_MINUS = 4.5  # pixels from one to the next
TILE = 9.0  # pixels from which cells stand apart as tiles
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    low: float
    high: float

    @property
    def is_signed(self) -> bool:
        return self.low < 0

    @property
    def most(self) -> float:
        return max(abs(self.low), abs(self.high))

    def shades(self, values: Matrix) -> NDArray[np.int64]:
        """−SHADES … SHADES for each value, 0 for what is no number; values beyond the ends get the last shade."""
        known = np.nan_to_num(values)
        strength = known / self.most if self.is_signed else (known - self.low) / (self.high - self.low)
        lowest = -1.0 if self.is_signed else 0.0
        return np.rint(SHADES * np.clip(strength, lowest, 1.0)).astype(np.int64)


def matrix(shown: HeatMap) -> Matrix:
    """The values as an array, NaN where there is none; rows of unequal length are filled up."""
    rows = [np.asarray(row, dtype=float).reshape(-1) for row in shown.values]  # None becomes NaN
    found = np.full((len(rows), max(map(len, rows), default=0)), math.nan)
    for index, row in enumerate(rows):
        found[index, : len(row)] = row
    found[~(np.abs(found) < HUGE)] = math.nan
    found[np.abs(found) < 1 / HUGE] = 0.0
    return found


def scale_of(maps: Sequence[HeatMap], values: Sequence[Matrix]) -> Scale | None:
    """One scale for all maps: the ends they ask for, else from zero, or −most to +most where a value is negative."""
    known = [one[np.isfinite(one)] for one in values]
    known = [one for one in known if one.size]
    if not known:
        return None
    least, most = min(float(one.min()) for one in known), max(float(one.max()) for one in known)
    lows = [one.low for one in maps if one.low is not None and drawable(one.low)]
    highs = [one.high for one in maps if one.high is not None and drawable(one.high)]
    size = max([abs(least), abs(most), *map(abs, highs)])
    low = min(lows) if lows else -size if least < 0 else 0.0
    high = max(highs) if highs else max(size if low < 0 and not lows else most, low)
    return Scale(low, high if high - low > 1e-9 * abs(low) + 1 / HUGE else low + max(1.0, abs(low)))


def coarse(values: Matrix, limit: int) -> tuple[Matrix, int, int]:
    """Means of blocks so that no side has more than `limit` cells, and how many rows and columns a block has."""
    down, across = (max(1, math.ceil(side / limit)) for side in values.shape)
    if down == across == 1:
        return values, 1, 1
    rows, columns = math.ceil(values.shape[0] / down), math.ceil(values.shape[1] / across)
    padded = np.full((rows * down, columns * across), math.nan)
    padded[: values.shape[0], : values.shape[1]] = values
    blocks = padded.reshape(rows, down, columns, across)
    known = np.isfinite(blocks)
    count = known.sum(axis=(1, 3))
    total = np.where(known, blocks, 0.0).sum(axis=(1, 3))
    return np.where(count > 0, total / np.maximum(count, 1), math.nan), down, across


def coarse_sentence(down: int, across: int) -> str:
    return f"Each cell drawn is the mean of {down} × {across} values." if down * across > 1 else ""


def cells(values: Matrix, scale: Scale, x: float, y: float, width: float, height: float) -> Iterator[str]:
    """The cells, each `width` × `height` pixels, from (x, y) on; with their numbers where these fit."""
    shades = scale.shades(values)
    known = np.isfinite(values)
    numbers = _numbers(values, scale, width, height)
    tiles = min(width, height) >= TILE
    gap = 1.0 if tiles else 0.0
    # The unit is a cell, which makes for short numbers; what is filled ends a gap before the next.
    edges = "auto" if tiles else "crispEdges"
    yield f'<g transform="translate({x:.1f} {y:.1f}) scale({width:.5g} {height:.5g})" shape-rendering="{edges}">'
    for shade in np.unique(shades[known]):
        path = []
        for row, start, stop in runs((shades == shade) & known, whole=not tiles):
            across, down = f"{stop - start - gap / width:.3g}", f"{1 - gap / height:.3g}"
            path.append(f"M{start} {row}h{across}v{down}h-{across}")
        yield f'<path d="{"".join(path)}" {_paint(int(shade))}/>'
    yield "</g>"
    if not numbers:
        yield from _minuses(shades, known, x, y, width, height)
    for row, texts in enumerate(numbers):
        for column, shown in enumerate(texts):
            if shown:
                fill = PAPER if abs(shades[row, column]) >= DEEP else NUMBER
                middle = x + (column + 0.5) * width - gap / 2, y + (row + 0.5) * height + 4 - gap / 2
                yield text(*middle, shown, anchor="middle", fill=fill, size=11)


def runs(mask: NDArray[np.bool_], whole: bool = True) -> Iterator[tuple[int, int, int]]:
    """(row, start, stop) of the stretches of True; with `whole` off, each cell alone."""
    if not whole:
        yield from ((int(row), int(column), int(column) + 1) for row, column in np.argwhere(mask))
        return
    edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
    starts, stops = np.argwhere(edges == 1), np.argwhere(edges == -1)  # in the same order, row by row
    for (row, start), (_, stop) in zip(starts, stops, strict=True):
        yield int(row), int(start), int(stop)


def _minuses(
    shades: NDArray[np.int64], known: NDArray[np.bool_], x: float, y: float, width: float, height: float
) -> Iterator[str]:
    """A minus in the middle of every negative cell: one dashed line for a stretch of them.

    Where cells are smaller than a minus can be, only every k-th row has them, k cells apart.
    """
    k = max(1, math.ceil(SMALLEST_MINUS / min(width, height)))
    dash = f"{k * width / 2:.2f}"
    thickness = min(1.6, max(0.8, height / 6))
    rows = (np.arange(len(shades)) % k == k // 2)[:, None]
    for stroke, chosen in ((NUMBER, (shades < 0) & (shades > -DEEP)), (PAPER, shades <= -DEEP)):
        path = ""
        for row, start, stop in runs(chosen & known & rows):
            path += f"M{_short(x + (start + 0.25) * width)} {_short(y + (row + 0.5) * height)}"
            path += f"h{_short((stop - start) * width)}"
        if path:
            paint = f'stroke="{stroke}" stroke-width="{thickness:.2g}" stroke-dasharray="{dash} {dash}"'
            yield f'<path d="{path}" fill="none" {paint}/>'


def _numbers(values: Matrix, scale: Scale, width: float, height: float) -> list[list[str]]:
    """The texts of the cells of a small matrix, or none when one of them would not fit."""
    if max(values.shape) > SMALL or height < 15:
        return []
    most = float(np.nanmax(np.abs(values)))
    whole = bool((values[np.isfinite(values)] % 1 == 0).all())
    texts = [[cell_text(float(value), most, whole) for value in row] for row in values]
    widest = max(text_width(shown) for row in texts for shown in row) * 11 / 12
    return texts if widest + 5 <= width else []


def scale_bar(scale: Scale, unit: str, empty: bool, x: float, y: float, height: float) -> Iterator[str]:
    """The legend: the shades from low (below) to high, with numbers; and what an empty cell is, if there are any."""
    steps = 2 * SHADES if scale.is_signed else SHADES
    most = scale.most
    ends = (-most, most) if scale.is_signed else (scale.low, scale.high)
    if unit:
        yield text(x, y - 10, one_line(unit), fill=INK, room=104)
    each = height / (steps + 1)
    for step in range(steps + 1):
        shade = step - SHADES if scale.is_signed else step
        top = y + height - (step + 1) * each
        yield f'<rect x="{x:.1f}" y="{top:.1f}" width="14" height="{each + 0.3:.1f}" {_paint(shade)}/>'
        if shade < 0:
            stroke = PAPER if shade <= -DEEP else NUMBER
            line = f"M{x + 4:.1f} {top + each / 2:.1f}h6"
            yield f'<path d="{line}" fill="none" stroke="{stroke}" stroke-width="1"/>'
    yield (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="14" height="{height:.1f}" fill="none" stroke="{GRID}" stroke-width="1"/>'
    )
    for value in (ends[0], (ends[0] + ends[1]) / 2, ends[1]):
        at = y + height - each / 2 - (height - each) * (value - ends[0]) / (ends[1] - ends[0])
        yield f'<line x1="{x + 14:.1f}" x2="{x + 18:.1f}" y1="{at:.1f}" y2="{at:.1f}" stroke="{MUTED}"/>'
        yield text(x + 22, at + 4, _end_text(value), fill=MUTED)
    if empty:
        yield (
            f'<rect x="{x:.1f}" y="{y + height + 12:.1f}" width="14" height="12" fill="none" stroke="{MUTED}" '
            'stroke-width="0.7" stroke-dasharray="2 2"/>'
        )
        yield text(x + 22, y + height + 22, "no value", fill=MUTED)


def _end_text(value: float) -> str:
    """Three digits, which is what the ends of a scale are worth."""
    size = abs(value)
    if size and (size >= 1e6 or size < 1e-3):
        return tick_text(value, 10.0 ** (math.floor(math.log10(size)) - 2))
    return (f"{value:,.0f}" if size >= 1000 else f"{value:.3g}").replace("-", "−")


def range_sentence(shown: HeatMap, values: Matrix) -> str:
    """For those who hear it: the size, the range, and where the largest value stands."""
    rows, columns = values.shape
    known = np.isfinite(values)
    if not known.any():
        return f"{rows} × {columns} cells, all empty."
    row, column = divmod(int(np.nanargmax(values)), columns)
    unit = f" {shown.unit}" if shown.unit else ""
    place = " · ".join(
        f"{label} {names[index] if index < len(names) else index + 1}"
        for label, names, index in ((shown.row_label, shown.rows, row), (shown.column_label, shown.columns, column))
    )
    empty = int((~known).sum())
    masked = f", {empty:,} of them empty" if empty else ""
    return (
        f"{rows} × {columns} cells{masked}, from {np.nanmin(values):.4g} to {np.nanmax(values):.4g}{unit}, "
        f"the highest at {place}."
    )


def _paint(shade: int) -> str:
    return f'fill="{LESS if shade < 0 else MORE}" fill-opacity="{INKS[abs(shade)]:g}"'


def _short(pixel: float) -> str:
    return f"{pixel:.1f}".removesuffix(".0")
