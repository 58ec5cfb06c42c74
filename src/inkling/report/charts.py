"""Charts as inline SVG, made by hand: a curve needs a few hundred characters, not a plotting library.

Lines are told apart by colour, by dash and by marker, so that a black-and-white print still reads; each is named at its
own end instead of in a legend. Colours are CSS variables with a light-page default: the page decides light or dark.
Points that no axis can hold (NaN, infinite, not positive on a logarithmic axis) are gaps. Of thousands of points only
those that can be seen are drawn: per pixel column the first, the last, the lowest and the highest.

    pixel = origin + length · (t(value) − t(low)) / (t(high) − t(low))      t = log₁₀ on a logarithmic axis, or identity

Left out: bars, two y axes, anything that moves.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from inkling.figures import Chart, Line
from inkling.report.terminal import one_line, safe

COLOURS = ("#1d5fa8", "#c2410c", "#0f7a5c", "#7a3fc4", "#8a6100", "#b8256e")
DASHES = ("", "7 3", "2 3", "9 3 2 3", "14 4", "4 2 1 2")
INK, MUTED, GRID = "var(--ink, #1c2128)", "var(--muted, #5d6672)", "var(--grid, #e3e6ea)"
TOP, BOTTOM = 34.0, 48.0  # margins in pixels; the left one holds the numbers of the y axis, the right one the names
LABEL_GAP = 16.0
LETTER = 6.7  # mean width of a 12 pixel letter
HUGE = 1e300  # beyond this differences overflow, and beyond its inverse powers of ten vanish
NEARLY_LINEAR = 0.8  # decades: a logarithmic axis shorter than this gets the ticks of a linear one


@dataclass(frozen=True)
class Axis:
    """From values to pixels. `low` and `high` are in transformed units (log₁₀ on a logarithmic axis)."""

    low: float
    high: float
    origin: float
    length: float  # negative for y, which grows upwards
    log: bool
    whole: bool  # only whole numbers were measured (steps, layers), so there are no ticks between them

    def place(self, value: float) -> float:
        t = math.log10(value) if self.log else value
        return self.origin + self.length * ((t - self.low) / (self.high - self.low))

    def shows(self, value: float) -> bool:
        return _drawable(value, self.log)


@dataclass(frozen=True)
class Label:
    """A name at the right end of the plot; `y` is where it belongs, `marker` its line's index, None for a level."""

    text: str
    x: float
    y: float
    marker: int | None


def svg(chart: Chart, width: int = 720, height: int = 360) -> str:
    """The chart as one <svg> element. It grows higher than `height` only when the names need the room."""
    names = [one_line(line.name) for line in chart.lines] + [one_line(name) for name, _ in chart.levels]
    right = 24 + min(0.34 * width, LETTER * max(map(len, names), default=0) + 20)
    height = max(height, int(LABEL_GAP * len(names) + TOP + BOTTOM))
    plot_height = height - TOP - BOTTOM
    xs = [x for line in chart.lines for x in line.x]
    ys = [y for line in chart.lines for values in (line.y, line.low, line.high) for y in values]
    y_axis = _axis([*ys, *(y for _, y in chart.levels)], TOP + plot_height, -plot_height, chart.log_y)
    y_marks = list(_marks(y_axis, max(2, int(plot_height / 48)))) if y_axis else []
    left = 12 + (LETTER + 0.5) * max((len(text) for _, text in y_marks), default=0)
    x_axis = _axis(xs, left, max(40.0, width - left - right), chart.log_x)
    if x_axis is None or y_axis is None:
        height = min(height, 96)
    described = f"<title>{_escape(chart.title)}</title><desc>{_escape(_description(chart))}</desc>"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="12">{described}'
    )
    if x_axis is None or y_axis is None:
        middle = _text(width / 2, height / 2, "nothing to show", anchor="middle", fill=MUTED)
        return f"{opening}{middle}</svg>"
    parts = [*_frame(chart, x_axis, y_axis, y_marks)]
    labels: list[Label] = []
    end = left + x_axis.length
    for name, level in chart.levels:
        if y_axis.shows(level):
            y = y_axis.place(level)
            parts.append(
                f'<line x1="{left:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{MUTED}" '
                'stroke-width="1.2" stroke-dasharray="1 4" stroke-linecap="round"/>'
            )
            labels.append(Label(one_line(name), end, y, None))
    seen = [_seen(line, x_axis, y_axis) for line in chart.lines]
    parts += [_band(runs, x_axis, y_axis, index) for index, runs in enumerate(seen)]  # below every curve
    for index, (line, runs) in enumerate(zip(chart.lines, seen, strict=True)):
        if runs:
            parts += _curve(runs, x_axis, y_axis, index)
            last = max((point for run in reversed(runs) for point in reversed(run)), key=lambda point: point.x)
            labels.append(Label(one_line(line.name), x_axis.place(last.x), y_axis.place(last.y), index))
    parts += _labels(labels, end, TOP, TOP + plot_height, width)
    return f"{opening}{''.join(parts)}</svg>"


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


def _drawable(value: float, log: bool) -> bool:
    return abs(value) < HUGE and (value > 1 / HUGE or not log)


def _axis(values: Sequence[float], origin: float, length: float, log: bool) -> Axis | None:
    """An axis that holds all values which can be drawn, with a little room; None when there are none."""
    shown = [float(value) for value in values if _drawable(value, log)]
    if not shown:
        return None
    low, high = min(shown), max(shown)
    whole = all(value.is_integer() for value in shown)
    if log:
        low, high = math.log10(low), math.log10(high)
    span = high - low
    if span <= 1e-9 * max(abs(low), abs(high)) or span < 1e-290:  # one value: put it in the middle
        room = 0.5 if log else 0.1 * abs(low) if abs(low) > 1e-280 else 1.0
    else:
        room = 0.04 * span if length < 0 else 0.0  # curves may touch the sides but not the floor
    bottom = low - room
    if not log and length < 0 and low >= 0 > bottom:
        bottom = 0.0  # nothing below zero was measured, so the axis does not suggest it
    return Axis(bottom, high + room, origin, length, log, whole)


def ticks(low: float, high: float, count: int, whole: bool = False) -> list[float]:
    """About `count` round values (1, 2 or 5 times a power of ten) from `low` to `high`, or only `whole` ones."""
    raw = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor, limit in ((1, 1.42), (2, 3.17), (5, 7.08), (10, 11)) if raw <= limit * power)
    step = max(step, 1.0) if whole else step
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, first + 4 * count + 4) if index * step <= high + 1e-9 * step]


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """Values for an axis from 10^low to 10^high: powers of ten, with 2 and 5 between them where there is room."""
    if high - low < NEARLY_LINEAR:
        return [value for value in ticks(10.0**low, 10.0**high, count) if value > 0]
    powers = range(math.ceil(low - 1e-9), math.floor(high + 1e-9) + 1)
    every = max(1, math.ceil(len(powers) / count))
    if every == 1 and 3 * len(powers) <= 1.5 * count:
        wide = range(powers.start - 1, powers.stop + 1)
        found = [factor * 10.0**power for power in wide for factor in (1, 2, 5)]
        return [value for value in found if low - 1e-9 <= math.log10(value) <= high + 1e-9]
    return [10.0**power for power in powers if power % every == 0]


def tick_text(value: float, step: float) -> str:
    """A tick's number with just the decimals that tell it from its neighbours; very large or small as powers of ten."""
    size = abs(value)
    if size and (size >= 1e6 or size < 1e-4):
        power = math.floor(math.log10(size) + 1e-9)
        digits = max(0, min(6, power - math.floor(math.log10(step) + 1e-9))) if step else 0
        factor = value / 10.0**power
        raised = "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        plain = f"{factor:.{digits}f}".replace("-", "−")
        return raised if plain == "1" else f"−{raised}" if plain == "−1" else f"{plain}·{raised}"
    decimals = max(0, min(8, -math.floor(math.log10(step) + 1e-9))) if step else 0
    return f"{value:,.{decimals}f}".replace("-", "−")


def _frame(chart: Chart, x_axis: Axis, y_axis: Axis, y_marks: list[tuple[float, str]]) -> Iterator[str]:
    """Grid, ticks and the names of the axes. The y name stands on top: nobody should tilt the head."""
    left, floor, end = x_axis.origin, y_axis.origin, x_axis.origin + x_axis.length
    for value, text in y_marks:
        y = y_axis.place(value)
        yield f'<line x1="{left:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}" stroke-width="1"/>'
        yield _text(left - 10, y + 4, text, anchor="end", fill=MUTED)
    yield (
        f'<line x1="{left:.1f}" x2="{end:.1f}" y1="{floor:.1f}" y2="{floor:.1f}" stroke="{MUTED}" stroke-width="1"/>'
    )
    for value, text in _marks(x_axis, max(2, int(x_axis.length / 78))):
        x = x_axis.place(value)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{floor:.1f}" y2="{floor + 5:.1f}" stroke="{MUTED}"/>'
        yield _text(x, floor + 18, text, anchor="middle", fill=MUTED)
    yield _text(0, 16, one_line(chart.y_label), fill=INK)
    yield _text(left + x_axis.length / 2, floor + 40, one_line(chart.x_label), anchor="middle", fill=INK)


def _marks(axis: Axis, count: int) -> Iterator[tuple[float, str]]:
    values = log_ticks(axis.low, axis.high, count) if axis.log else ticks(axis.low, axis.high, count, whole=axis.whole)
    for index, value in enumerate(values):
        if axis.log and axis.high - axis.low >= NEARLY_LINEAR:
            step = 10.0 ** math.floor(math.log10(value) + 1e-9)
        else:
            step = abs(value - values[index + 1 if index + 1 < len(values) else index - 1])
        yield value, tick_text(value, step)


def _band(runs: list[list[Point]], x_axis: Axis, y_axis: Axis, index: int) -> str:
    shapes = []
    for run in runs:
        if len(run) > 1 and any(point.low != point.high for point in run):
            above = [f"{x_axis.place(p.x):.1f},{y_axis.place(p.high):.1f}" for p in run]
            below = [f"{x_axis.place(p.x):.1f},{y_axis.place(p.low):.1f}" for p in reversed(run)]
            points = " ".join(above + below)
            shapes.append(f'<polygon points="{points}" fill="{_colour(index)}" fill-opacity="0.16" stroke="none"/>')
    return "".join(shapes)


def _curve(runs: list[list[Point]], x_axis: Axis, y_axis: Axis, index: int) -> Iterator[str]:
    dash = DASHES[index % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    places = [[(x_axis.place(point.x), y_axis.place(point.y)) for point in run] for run in runs]
    for run, place in zip(runs, places, strict=True):
        if len(run) > 1:
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in place)
            thickness = 2 if len(run) < 500 else 1.2  # noise in a thick line is a wall
            paint = f'fill="none" stroke="{_colour(index)}" stroke-width="{thickness}" stroke-linejoin="round"{dashed}'
            yield f'<path d="{path}" {paint}/>'
        elif run[0].low != run[0].high:  # a lone point shows its band as a bar
            (x, _), low, high = place[0], y_axis.place(run[0].low), y_axis.place(run[0].high)
            yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{_colour(index)}"/>'
    flat = [spot for place in places for spot in place]
    if len(flat) <= 24:
        spots = flat
    else:  # a few markers along the way, elsewhere for each line so that close curves do not hide them
        spots = [flat[int((k + 0.3 + 0.13 * (index % 6)) * len(flat) / 6) % len(flat)] for k in range(6)]
        spots += [place[0] for place in places if len(place) == 1]
    yield from (_marker(x, y, index) for x, y in spots)


def _marker(x: float, y: float, index: int) -> str:
    """Six shapes; a rim in the colour of the page sets them off from the curve."""
    paint = f'fill="{_colour(index)}" stroke="var(--page, #ffffff)" stroke-width="1"'
    shape = index % 6
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.6" {paint}/>'
    corners = {
        1: ((-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)),
        2: ((0, -4.6), (4.4, 3.4), (-4.4, 3.4)),
        3: ((0, -4.9), (4.9, 0), (0, 4.9), (-4.9, 0)),
        4: ((0, 4.6), (4.4, -3.4), (-4.4, -3.4)),
        5: ((-4.6, -1.4), (4.6, -1.4), (4.6, 1.4), (-4.6, 1.4)),
    }[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" {paint}/>'


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near `wanted` (in its order), at least `gap` apart and within [low, high] where there is room.

    Neighbours that would overlap form a block, centred where its members wanted to be.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[list[int]] = []
    centres: list[float] = []
    for i in order:
        blocks.append([i])
        centres.append(wanted[i])
        while True:
            half = gap * (len(blocks[-1]) - 1) / 2
            centres[-1] = max(low + half, min(high - half, centres[-1]))
            if len(blocks) == 1 or centres[-1] - half - gap >= centres[-2] + gap * (len(blocks[-2]) - 1) / 2 - 1e-9:
                break
            members = blocks.pop(-2) + blocks.pop()
            centres[-2:] = [sum(wanted[member] for member in members) / len(members)]
            blocks.append(members)
    places = [0.0] * len(wanted)
    for members, centre in zip(blocks, centres, strict=True):
        for rank, member in enumerate(members):
            places[member] = centre + gap * (rank - (len(members) - 1) / 2)
    return places


def _labels(labels: list[Label], end: float, top: float, bottom: float, width: int) -> Iterator[str]:
    letters = max(3, int((width - end - 26) / LETTER))
    heights = spread([label.y for label in labels], LABEL_GAP, top, bottom)
    for label, y in zip(labels, heights, strict=True):
        text = label.text if len(label.text) <= letters else label.text[: letters - 1].rstrip() + "…"
        if abs(y - label.y) > 3 or end - label.x > 3:  # moved, or the line ended early: lead the eye
            yield (
                f'<path d="M{label.x:.1f} {label.y:.1f}L{end + 10:.1f} {y:.1f}" fill="none" stroke="{MUTED}" '
                'stroke-width="0.7" stroke-opacity="0.6"/>'
            )
        if label.marker is not None:
            yield _marker(end + 14, y, label.marker)
        tooltip = f"<title>{_escape(label.text)}</title>" if text != label.text else ""
        fill = INK if label.marker is not None else MUTED
        yield f'<text x="{end + 22:.1f}" y="{y + 4:.1f}" fill="{fill}">{tooltip}{_escape(text)}</text>'


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


def _colour(index: int) -> str:
    return f"var(--line-{index % len(COLOURS) + 1}, {COLOURS[index % len(COLOURS)]})"


def _text(x: float, y: float, text: str, *, fill: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}">{_escape(text)}</text>'


def _escape(text: str) -> str:
    return html.escape(safe(text))
