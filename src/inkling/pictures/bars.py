"""Bars over named positions, one beside the other for each series, with error bars where they are known.

Bars stand on zero, which is always on the axis: their lengths are what is compared. Series differ in colour and in
hatch, so that a black-and-white print still reads; hatches are plain lines cut to the bar, as an SVG pattern would need
an id. Of many names every k-th is written. Left out: stacked bars, logarithmic heights (a bar has no length there).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from inkling.figures import Bars, Series
from inkling.pictures.axes import (
    BOTTOM,
    INK,
    LABEL_GAP,
    MUTED,
    PAPER,
    TOP,
    Axis,
    Label,
    axis_over,
    colour,
    draw_labels,
    drawable,
    escape,
    left_margin,
    level_lines,
    nothing,
    right_margin,
    text,
    text_width,
    thinned,
    whole,
    y_frame,
    y_marks,
)
from inkling.pictures.harmless import one_line

HATCHES = ("", "/", "-", "\\", "x", "|")
HATCH_GAP = 6.0
MOST_TOOLTIPS = 400  # bars; of more, nobody points at each, and each costs a hundred characters
TURNED_ROOM = 96.0  # pixels for names that are turned


def svg(bars: Bars, width: int = 720, height: int = 360) -> str:
    """The bars as one <svg> element. It grows higher than `height` where names need the room."""
    count = max([len(bars.names), *(len(series.heights) for series in bars.series)], default=0)
    heights = [h for series in bars.series for h in series.heights]
    shown = [*heights, *(v for series in bars.series for v in (*series.low, *series.high))]
    described = _description(bars)
    if not any(drawable(h) for h in heights):
        return nothing(bars.title, described, width)
    series_names = [one_line(series.name) for series in bars.series if len(bars.series) > 1 or series.name]
    beside = series_names + [one_line(name) for name, _ in bars.levels]
    right = right_margin(beside, width) if beside else 16.0
    names = [one_line(name) for name in bars.names] + [""] * (count - len(bars.names))

    plot_height = max(height - TOP - BOTTOM, LABEL_GAP * len(beside))
    y_axis = axis_over([0.0, *shown, *(level for _, level in bars.levels)], TOP + plot_height, -plot_height)
    assert y_axis is not None  # zero is on it
    numbers = y_marks(y_axis)
    left = left_margin(numbers)
    end = max(left + 40.0, width - right)
    pitch = (end - left) / count
    written, upright = thinned(names, pitch)
    below = 18.0 if upright else 12 + min(TURNED_ROOM, max(map(text_width, names)))

    parts = list(y_frame(y_axis, left, end, numbers, bars.y_label))
    levels, labels = level_lines(bars.levels, y_axis, left, end)
    for index, series in enumerate(bars.series):
        parts += _series(bars, index, series, y_axis, left, pitch, tooltips=len(heights) <= MOST_TOOLTIPS)
        if series_names:
            sample = partial(_sample, index=index)
            labels.append(Label(one_line(series.name), end, TOP + LABEL_GAP * (index + 0.5), sample))
    zero = y_axis.place(0.0)
    parts.append(f'<line x1="{left:.1f}" x2="{end:.1f}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="{MUTED}"/>')
    parts += levels
    for index, series in enumerate(bars.series):
        parts += _errors(series, index, len(bars.series), y_axis, left, pitch)
    parts += _names(names, left, pitch, y_axis.origin, written, upright)
    parts.append(text((left + end) / 2, y_axis.origin + below + 22, one_line(bars.x_label), anchor="middle", fill=INK))
    parts += draw_labels(labels, end, TOP, TOP + plot_height, width)
    return whole(bars.title, described, width, y_axis.origin + below + 30, parts)


def _slot(index: int, position: int, of: int, left: float, pitch: float) -> tuple[float, float]:
    """Left edge and width of a bar: the bars of a position fill most of it, the rest is the gap to the next."""
    filled = pitch * (0.76 if pitch > 6 else 0.9)
    each = min(filled / of, 56.0)
    return left + pitch * (position + 0.5) + each * (index - of / 2), each


def _series(
    bars: Bars, index: int, series: Series, y_axis: Axis, left: float, pitch: float, tooltips: bool
) -> Iterator[str]:
    zero = y_axis.place(0.0)
    hatching = []
    outline = []
    for position, height in enumerate(series.heights):
        if not drawable(height):
            continue
        x, each = _slot(index, position, len(bars.series), left, pitch)
        top, bottom = sorted((zero, y_axis.place(height)))
        shape = f"M{x:.1f} {top:.1f}h{each * 0.94:.1f}V{bottom:.1f}H{x:.1f}z"
        if tooltips:
            name = bars.names[position] if position < len(bars.names) else ""
            hint = " ".join(filter(None, (f"{one_line(name)}:", one_line(series.name), f"{height:.4g}")))
            yield f'<path d="{shape}" fill="{colour(index)}"><title>{escape(hint)}</title></path>'
        else:
            outline.append(shape)
        hatching += list(hatch(HATCHES[index % len(HATCHES)], x, top, each * 0.94, bottom - top))
    if outline:
        yield f'<path d="{"".join(outline)}" fill="{colour(index)}"/>'
    if hatching:
        yield f'<path d="{"".join(hatching)}" fill="none" stroke="{PAPER}" stroke-width="1.3" pointer-events="none"/>'


def hatch(kind: str, x: float, y: float, width: float, height: float, gap: float = HATCH_GAP) -> Iterator[str]:
    """Lines of one kind across a box. Lines of all boxes lie on one lattice, as if cut from one sheet."""
    if kind in ("/", "x"):  # x + y = k
        for k in range(math.ceil((x + y) / gap), math.ceil((x + y + width + height) / gap)):
            start = max(x, k * gap - y - height)
            stop = min(x + width, k * gap - y)
            yield f"M{start:.1f} {k * gap - start:.1f}l{stop - start:.1f} {start - stop:.1f}"
    if kind in ("\\", "x"):  # x − y = k
        for k in range(math.ceil((x - y - height) / gap), math.ceil((x - y + width) / gap)):
            start = max(x, k * gap + y)
            stop = min(x + width, k * gap + y + height)
            yield f"M{start:.1f} {start - k * gap:.1f}l{stop - start:.1f} {stop - start:.1f}"
    if kind == "-":
        for k in range(math.ceil(y / gap), math.ceil((y + height) / gap)):
            yield f"M{x:.1f} {k * gap:.1f}h{width:.1f}"
    if kind == "|":  # from the bar's own middle, so that each shows the same
        near = min(gap, width / 2)
        for k in range(1, math.ceil(width / near - 1e-6)):
            yield f"M{x + k * near:.1f} {y:.1f}v{height:.1f}"


def _errors(series: Series, index: int, of: int, y_axis: Axis, left: float, pitch: float) -> Iterator[str]:
    """Error bars on a rim of paper, so that they can be seen before their own bar."""
    strokes = []
    for position, (low, high) in enumerate(zip(series.low, series.high, strict=False)):
        if drawable(low) and drawable(high):
            x, each = _slot(index, position, of, left, pitch)
            middle, cap = x + each * 0.47, min(4.0, each * 0.3)
            bottom, top = y_axis.place(low), y_axis.place(high)
            strokes.append(f"M{middle:.1f} {bottom:.1f}V{top:.1f}")
            if cap > 1.2:
                strokes += [f"M{middle - cap:.1f} {end:.1f}h{2 * cap:.1f}" for end in (bottom, top)]
    if strokes:
        path = "".join(strokes)
        thin = pitch / of < 8
        for stroke, thickness in ((PAPER, 2.4 if thin else 3.6), (INK, 0.9 if thin else 1.4)):
            yield f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{thickness}" pointer-events="none"/>'


def _names(
    names: Sequence[str], left: float, pitch: float, floor: float, written: range, upright: bool
) -> Iterator[str]:
    for position in written:
        x = left + pitch * (position + 0.5)
        if upright:
            if written.step > 1:  # say which bar is meant
                yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{floor:.1f}" y2="{floor + 5:.1f}" stroke="{MUTED}"/>'
            room = pitch * written.step - 6
            yield text(x, floor + 18, names[position], anchor="middle", fill=MUTED, room=room)
        else:
            yield text(x + 4, floor + 8, names[position], anchor="end", fill=MUTED, room=TURNED_ROOM, turned=True)


def _sample(x: float, y: float, index: int) -> str:
    """A piece of the series beside its name."""
    lines = "".join(hatch(HATCHES[index % len(HATCHES)], x - 5, y - 5.5, 11, 11, gap=4))
    hatched = f'<path d="{lines}" fill="none" stroke="{PAPER}" stroke-width="1.3"/>' if lines else ""
    return f'<rect x="{x - 5:.1f}" y="{y - 5.5:.1f}" width="11" height="11" fill="{colour(index)}"/>{hatched}'


def _description(bars: Bars) -> str:
    sentences = [f"{bars.y_label} over {bars.x_label}, {len(bars.names)} positions."]
    for series in bars.series:
        found = [(h, position) for position, h in enumerate(series.heights) if drawable(h)]
        if found:
            (low, at_low), (high, at_high) = min(found), max(found)
            sentences.append(
                f"{series.name or 'Bars'}: lowest {low:.4g}{_at(bars, at_low)}, highest {high:.4g}{_at(bars, at_high)}."
            )
    sentences += [f"{name}: {value:.4g}." for name, value in bars.levels]
    return " ".join([*sentences, bars.reading]).strip()


def _at(bars: Bars, position: int) -> str:
    return f" at {bars.names[position]}" if position < len(bars.names) else ""
