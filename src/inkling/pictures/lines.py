"""Lines over common axes as inline SVG, made by hand: a curve needs a few hundred characters, not a plotting library.

Lines are told apart by colour, by dash and by marker, so that a black-and-white print still reads; each is named at its
own end instead of in a legend. Points that no axis can hold (NaN, infinite, not positive on a logarithmic axis) are
gaps. Of thousands of points only those that can be seen are drawn: per pixel column the first, the last, the lowest and
the highest. Left out: two y axes, anything that moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from inkling.figures import Chart, Line
from inkling.pictures.axes import (
    BOTTOM,
    LABEL_GAP,
    TOP,
    Axis,
    Label,
    axis_over,
    colour,
    draw_labels,
    left_margin,
    level_lines,
    marker,
    nothing,
    right_margin,
    whole,
    x_frame,
    y_frame,
    y_marks,
)
from inkling.pictures.harmless import one_line

DASHES = ("", "7 3", "2 3", "9 3 2 3", "14 4", "4 2 1 2")


def svg(chart: Chart, width: int = 720, height: int = 360) -> str:
    """The chart as one <svg> element. It grows higher than `height` only when the names need the room."""
    names = [one_line(line.name) for line in chart.lines] + [one_line(name) for name, _ in chart.levels]
    right = right_margin(names, width)
    height = max(height, int(LABEL_GAP * len(names) + TOP + BOTTOM))
    plot_height = height - TOP - BOTTOM
    xs = [x for line in chart.lines for x in line.x]
    ys = [y for line in chart.lines for values in (line.y, line.low, line.high) for y in values]
    y_axis = axis_over([*ys, *(y for _, y in chart.levels)], TOP + plot_height, -plot_height, chart.log_y)
    numbers = y_marks(y_axis)
    left = left_margin(numbers)
    x_axis = axis_over(xs, left, max(40.0, width - left - right), chart.log_x)
    if x_axis is None or y_axis is None:
        return nothing(chart.title, _description(chart), width)
    end = left + x_axis.length
    parts = [*y_frame(y_axis, left, end, numbers, chart.y_label), *x_frame(x_axis, y_axis.origin, chart.x_label)]
    drawn, labels = level_lines(chart.levels, y_axis, left, end)
    parts += drawn
    seen = [_seen(line, x_axis, y_axis) for line in chart.lines]
    parts += [_band(runs, x_axis, y_axis, index) for index, runs in enumerate(seen)]  # below every curve
    for index, (line, runs) in enumerate(zip(chart.lines, seen, strict=True)):
        if runs:
            parts += _curve(runs, x_axis, y_axis, index)
            last = max((point for run in reversed(runs) for point in reversed(run)), key=lambda point: point.x)
            place = x_axis.place(last.x), y_axis.place(last.y)
            labels.append(Label(one_line(line.name), *place, partial(marker, index=index)))
    parts += draw_labels(labels, end, TOP, TOP + plot_height, width)
    return whole(chart.title, _description(chart), width, height, parts)


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    low: float  # equal to y where there is no band
    high: float


def _seen(line: Line, x_axis: Axis, y_axis: Axis) -> list[list[Point]]:
    """The runs of drawable points between gaps, thinned to what the pixels can show."""
    runs: list[list[Point]] = [[]]
    banded = len(line.low) == len(line.high) == len(line.y)
    for index, (x, y) in enumerate(zip(line.x, line.y, strict=False)):
        if x_axis.shows(x) and y_axis.shows(y):
            low, high = (line.low[index], line.high[index]) if banded else (y, y)
            held = y_axis.shows(low) and y_axis.shows(high)
            runs[-1].append(Point(float(x), float(y), float(low if held else y), float(high if held else y)))
        elif runs[-1]:
            runs.append([])
    return [_thin(run, x_axis) for run in runs if run]


def _thin(run: list[Point], x_axis: Axis) -> list[Point]:
    if len(run) <= 2 * x_axis.length:
        return run
    kept: list[Point] = []
    start = 0
    columns = [int(x_axis.place(point.x)) for point in run]
    for stop in range(1, len(run) + 1):
        if stop == len(run) or columns[stop] != columns[start]:
            column = range(start, stop)
            lowest, highest = min(column, key=lambda i: run[i].y), max(column, key=lambda i: run[i].y)
            band_low, band_high = min(run[i].low for i in column), max(run[i].high for i in column)
            for i in sorted({start, lowest, highest, stop - 1}):
                is_banded = run[i].low != run[i].high
                kept.append(Point(run[i].x, run[i].y, band_low, band_high) if is_banded else run[i])
            start = stop
    return kept


def _band(runs: list[list[Point]], x_axis: Axis, y_axis: Axis, index: int) -> str:
    shapes = []
    for run in runs:
        if len(run) > 1 and any(point.low != point.high for point in run):
            above = [f"{x_axis.place(p.x):.1f},{y_axis.place(p.high):.1f}" for p in run]
            below = [f"{x_axis.place(p.x):.1f},{y_axis.place(p.low):.1f}" for p in reversed(run)]
            points = " ".join(above + below)
            shapes.append(f'<polygon points="{points}" fill="{colour(index)}" fill-opacity="0.16" stroke="none"/>')
    return "".join(shapes)


def _curve(runs: list[list[Point]], x_axis: Axis, y_axis: Axis, index: int) -> Iterator[str]:
    dash = DASHES[index % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    places = [[(x_axis.place(point.x), y_axis.place(point.y)) for point in run] for run in runs]
    for run, place in zip(runs, places, strict=True):
        if len(run) > 1:
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in place)
            thickness = 2 if len(run) < 500 else 1.2  # noise in a thick line is a wall
            paint = f'fill="none" stroke="{colour(index)}" stroke-width="{thickness}" stroke-linejoin="round"{dashed}'
            yield f'<path d="{path}" {paint}/>'
        elif run[0].low != run[0].high:  # a lone point shows its band as a bar
            (x, _), low, high = place[0], y_axis.place(run[0].low), y_axis.place(run[0].high)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour(index)}"/>'
    flat = [spot for place in places for spot in place]
    if len(flat) <= 24:
        spots = flat
    else:  # a few markers along the way, elsewhere for each line so that close curves do not hide them
        spots = [flat[int((k + 0.3 + 0.13 * (index % 6)) * len(flat) / 6) % len(flat)] for k in range(6)]
        spots += [place[0] for place in places if len(place) == 1]
    yield from (marker(x, y, index) for x, y in spots)


def _description(chart: Chart) -> str:
    """For those who hear the chart instead of seeing it."""
    sentences = [f"{chart.y_label} over {chart.x_label}."]
    for line in chart.lines:
        ys = [y for y in line.y if math.isfinite(y)]
        if ys:
            sentences.append(
                f"{line.name}: from {ys[0]:.4g} to {ys[-1]:.4g}, lowest {min(ys):.4g}, highest {max(ys):.4g}."
            )
    sentences += [f"{name}: {value:.4g}." for name, value in chart.levels]
    return " ".join([*sentences, chart.reading]).strip()
