"""Pictures made of letters, for a terminal: a curve is a sparkline, a bar a row of blocks, a small matrix its numbers.

Beside every drawing stand the figures it shows; what does not fit is counted, never silently dropped.
All names pass `one_line`. Left out: colours, and curves over two axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inkling.figures import Bars, Chart, Cloud, HeatMap, Line, Panels, Picture, Spots
from inkling.pictures.harmless import one_line

HEIGHTS = "▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉█"
SPARKLINE_COLUMNS = 48
BAR_COLUMNS = 32
BAR_ROWS = 24
SMALL = 12  # rows and columns of a matrix that is shown in numbers
NAME_LETTERS = 24


def subtitle(picture: Picture) -> str:
    """What stands dimly beside the title: the quantities and their units."""
    if isinstance(picture, HeatMap):
        unit = f", {picture.unit}" if picture.unit else ""
        return one_line(f"{picture.row_label} × {picture.column_label}{unit}")
    if isinstance(picture, Panels):
        return "1 map" if len(picture.maps) == 1 else f"{len(picture.maps)} maps"
    return one_line(f"{picture.y_label} over {picture.x_label}")


def lettered(picture: Picture, columns: int = 80) -> list[str]:
    """The picture in lines of at most about `columns` letters, without its title and reading; none if it is empty."""
    if isinstance(picture, Chart):
        return list(_curves(picture, columns))
    if isinstance(picture, Bars):
        return list(_bars(picture, columns))
    if isinstance(picture, Cloud):
        return list(_cloud(picture))
    if isinstance(picture, HeatMap):
        return list(_matrix(picture, columns))
    found = []
    for one in picture.maps:
        lines = list(_matrix(one, columns - 2)) or ["(nothing to show)"]
        found += [one_line(one.title), *(f"  {line}" for line in lines)]
    return found


def sparkline(values: Sequence[float], columns: int = SPARKLINE_COLUMNS) -> str:
    """The course of `values` in at most `columns` characters; each shows the mean of its share, a gap is a space."""
    shares = min(columns, len(values))
    means: list[float] = []
    for share in range(shares):
        part = [
            v for v in values[share * len(values) // shares : (share + 1) * len(values) // shares] if math.isfinite(v)
        ]
        means.append(math.fsum(v / len(part) for v in part) if part else math.nan)
    finite = [mean for mean in means if math.isfinite(mean)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    span = high / 2 - low / 2  # halves, as the difference of two large numbers may overflow
    heights = ((mean / 2 - low / 2) / span if span > 0 else 0.5 if mean == mean else mean for mean in means)
    return "".join(HEIGHTS[min(7, int(8 * height))] if math.isfinite(height) else " " for height in heights)


def figure(value: float) -> str:
    """A number for people: whole ones with commas, others with four digits."""
    if not math.isfinite(value):
        return "–"
    return f"{value:,.0f}" if abs(value) < 1e9 and value == int(value) else f"{value:.4g}"


def cell_text(value: float, most: float, whole: bool = False) -> str:
    """A number in a matrix whose largest size is `most`: three digits of that, so that all have equal decimals.

    In a matrix of whole numbers none has decimals.
    """
    if not math.isfinite(value):
        return ""
    if value == 0:
        return "0"
    if not 1e-3 <= most < 1e5:
        return f"{value:.2g}".replace("-", "−")
    decimals = 0 if whole else max(0, 2 - math.floor(math.log10(most) + 1e-9))
    shown = f"{value:.{decimals}f}".replace("-", "−")
    return "0" if not shown.strip("−0.") else shown


# ---------------------------------------------------------------------------------------------------------- lines


def _curves(chart: Chart, columns: int) -> Iterator[str]:
    names = [one_line(line.name) for line in chart.lines] + [one_line(name) for name, _ in chart.levels]
    width = max(map(len, names), default=0)
    room = max(8, min(SPARKLINE_COLUMNS, columns - width - 48))
    for line in chart.lines:
        yield f"{one_line(line.name):{width}}  {_course(line, room)}"
    yield from _levels(chart.levels, width)


def _levels(levels: Sequence[tuple[str, float]], width: int) -> Iterator[str]:
    for name, value in levels:
        yield f"{one_line(name):{width}}  {figure(value)}"


def _course(line: Line, columns: int) -> str:
    points = [(x, y) for x, y in zip(line.x, line.y, strict=False) if math.isfinite(x) and math.isfinite(y)]
    if not points:
        return "(no numbers)"
    ys = [y for _, y in points]
    lowest = min(points, key=lambda point: point[1])
    if len(ys) == 1:
        return f"{figure(ys[0])} at {figure(points[0][0])}"
    figures = f"{figure(ys[0])} → {figure(ys[-1])}"
    if len(ys) > 2:
        figures += f"  lowest {figure(lowest[1])} at {figure(lowest[0])}"
    return f"{sparkline(line.y, columns)}  {figures}"


# ----------------------------------------------------------------------------------------------------------- bars


def _bars(bars: Bars, columns: int) -> Iterator[str]:
    """A row for each bar: its name, the bar from a common zero, its height, and the ends of its error bar."""
    rows: list[tuple[str, str, float, str]] = []
    for index, name in enumerate(bars.names):
        for number, series in enumerate(bars.series):
            if index < len(series.heights):
                ends = ""
                if index < min(len(series.low), len(series.high)):
                    ends = f" ({figure(series.low[index])} to {figure(series.high[index])})"
                series_name = one_line(series.name) if len(bars.series) > 1 else ""
                rows.append((_short(name) if number == 0 else "", series_name, float(series.heights[index]), ends))
    finite = [height for _, _, height, _ in rows if math.isfinite(height)]
    if not finite:
        return
    low, high = min(0.0, *finite), max(0.0, *finite)
    shown = rows[: BAR_ROWS // len(bars.series) * len(bars.series) or BAR_ROWS] if len(rows) > BAR_ROWS else rows
    wide = max(len(name) for name, _, _, _ in shown), max(len(name) for _, name, _, _ in shown)
    room = max(8, min(BAR_COLUMNS, columns - sum(wide) - 34))
    for name, series_name, height, ends in shown:
        start = f"{name:{wide[0]}}  " + (f"{series_name:{wide[1]}}  " if wide[1] else "")
        yield f"{start}{_blocks(height, low, high, room)} {figure(height)}{ends}".rstrip()
    if len(shown) < len(rows):
        yield f"… and {len(rows) - len(shown):,} more"
    yield from _levels(bars.levels, max(map(len, (one_line(name) for name, _ in bars.levels)), default=0))


def _blocks(height: float, low: float, high: float, room: int) -> str:
    """A bar of `room` letters from zero; the left part is for heights below zero."""
    span = high / 2 - low / 2  # halves, as the difference of two large numbers may overflow
    if not math.isfinite(height) or span <= 0:
        return " " * room
    left = round(room * (-low / 2 / span))
    share = height / 2 / span  # of the room; first divided, then multiplied, or the largest numbers would overflow
    if height < 0:
        filled = min(left, max(1, round(-share * room)))
        return " " * (left - filled) + "█" * filled + " " * (room - left)
    eighths = min(8 * (room - left), round(8 * room * share))
    filled, rest = divmod(eighths, 8)
    return (" " * left + "█" * filled + EIGHTHS[rest] * (rest > 0)).ljust(room)[:room]


# --------------------------------------------------------------------------------------------------------- clouds


def _cloud(cloud: Cloud) -> Iterator[str]:
    names = [one_line(group.name) for group in cloud.groups] + [one_line(name) for name, _, _ in cloud.marks]
    width = max(map(len, names), default=0)
    for group in cloud.groups:
        yield f"{one_line(group.name):{width}}  {_middle(group)}"
    for name, x, y in cloud.marks:
        yield f"{one_line(name):{width}}  at ({figure(x)}, {figure(y)})"


def _middle(group: Spots) -> str:
    """Where the points of a group lie: mean, and root mean square distance from it."""
    points = [(x, y) for x, y in zip(group.x, group.y, strict=False) if math.isfinite(x) and math.isfinite(y)]
    if not points:
        return "(no points)"
    x, y = (math.fsum(point[axis] / len(points) for point in points) for axis in (0, 1))
    spread = math.hypot(*(math.hypot(px - x, py - y) / math.sqrt(len(points)) for px, py in points))
    count = "1 point" if len(points) == 1 else f"{len(points):,} points"
    return f"{count}, mean ({x:.4g}, {y:.4g}), spread {spread:.3g}"


# ------------------------------------------------------------------------------------------------------- matrices


def _matrix(shown: HeatMap, columns: int) -> Iterator[str]:
    values = [[math.nan if value is None else float(value) for value in row] for row in shown.values]
    finite = [value for row in values for value in row if math.isfinite(value)]
    if not finite:
        return
    across = max(map(len, values))
    if len(values) <= SMALL and across <= SMALL:
        most = max(map(abs, finite))
        names = [_short(name) for name in shown.rows[: len(values)]] + [""] * (len(values) - len(shown.rows))
        heads = [_short(name, 12) for name in shown.columns[:across]] + [""] * (across - len(shown.columns))
        whole = all(value.is_integer() for value in finite)
        cells = [[cell_text(value, most, whole) or "·" for value in row] + [""] * (across - len(row)) for row in values]
        wide = [max(len(row[j]) for row in [heads, *cells]) for j in range(across)]
        width = max(map(len, names), default=0)
        if width + sum(wide) + 2 * across <= columns:
            for name, row in zip(["", *names], [heads, *cells], strict=True):
                yield f"{name:{width}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(row, wide, strict=True))
            return
    empty = sum(map(len, values)) - len(finite)
    without = f", {empty:,} of {sum(map(len, values)):,} cells empty" if empty else ""
    yield f"{len(values):,} × {across:,}, from {figure(min(finite))} to {figure(max(finite))}{without}"


def _short(name: str, letters: int = NAME_LETTERS) -> str:
    shown = one_line(name)
    return shown if len(shown) <= letters else shown[: letters - 1] + "…"
