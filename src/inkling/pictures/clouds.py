"""Clouds of points in one plane: groups told apart by colour, by shape and by open or filled, and places with a name.

    one scale on both axes where the ranges differ by less than a factor of two, so that a circle is a circle

Each group is one path. Of more than `MOST_POINTS` points one is kept in each square of a lattice, the finest of a few
that leaves so many or fewer: nothing appears where there was no point, and no lone point is lost; how many were drawn
stands in the description. Left out: densities (a histogram says them better), sizes that mean something.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from inkling.figures import Cloud, Spots
from inkling.pictures.axes import (
    BOTTOM,
    HUGE,
    INK,
    LABEL_GAP,
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
    nothing,
    right_margin,
    text_width,
    whole,
    x_frame,
    y_frame,
    y_marks,
)
from inkling.pictures.harmless import one_line

MOST_POINTS = 6000
SIMILAR = 2.0  # ranges that differ less than this get one scale
Places = NDArray[np.float64]  # N×2


def svg(cloud: Cloud, width: int = 720, height: int = 460) -> str:
    """The cloud as one <svg> element."""
    groups = [_finite(group) for group in cloud.groups]
    named = [mark for mark in cloud.marks if drawable(mark[1]) and drawable(mark[2])]
    everything = np.concatenate([np.empty((0, 2)), *groups, *(np.array([[x, y]]) for _, x, y in named)])
    if not len(everything):
        return nothing(cloud.title, _description(cloud, groups, ""), width)
    names = [one_line(group.name) for group in cloud.groups]
    right = right_margin(names, width) if any(names) else 24.0
    height = max(height, int(LABEL_GAP * len(names) + TOP + BOTTOM))
    plot_height = height - TOP - BOTTOM
    y_axis = _roomy(everything[:, 1], TOP + plot_height, -plot_height)
    left = left_margin(y_marks(y_axis))
    x_axis = _roomy(everything[:, 0], left, max(40.0, width - left - right))
    x_axis, y_axis = one_scale(x_axis, y_axis)
    end = left + x_axis.length

    pixels = [_pixels(group, x_axis, y_axis) for group in groups]
    kept, said = thin(pixels)
    parts = [
        *y_frame(y_axis, left, end, y_marks(y_axis), cloud.y_label),
        *x_frame(x_axis, TOP + plot_height, cloud.x_label),
    ]
    total = sum(map(len, kept))
    size = 3.4 if total <= 300 else 2.6 if total <= 2000 else 2.0
    parts += [points(group, index, size) for index, group in enumerate(kept) if len(group)]
    parts += _marks(named, x_axis, y_axis)
    labels = [
        Label(name, end, TOP + LABEL_GAP * (index + 0.5), partial(_sample, index=index))
        for index, name in enumerate(names)
        if name
    ]
    parts += draw_labels(labels, end, TOP, TOP + plot_height, width)
    return whole(cloud.title, _description(cloud, groups, said), width, height, parts)


def one_scale(x_axis: Axis, y_axis: Axis) -> tuple[Axis, Axis]:
    """The axes with as many pixels for a unit of x as for one of y, if their ranges are similar; else unchanged."""
    x_range, y_range = x_axis.high - x_axis.low, y_axis.high - y_axis.low
    if not x_range / SIMILAR <= y_range <= x_range * SIMILAR:
        return x_axis, y_axis
    unit = min(x_axis.length / x_range, -y_axis.length / y_range)
    return _widened(x_axis, x_axis.length / unit), _widened(y_axis, -y_axis.length / unit)


def _widened(axis: Axis, span: float) -> Axis:
    middle = axis.low / 2 + axis.high / 2
    return replace(axis, low=middle - span / 2, high=middle + span / 2)


def _roomy(values: NDArray[np.float64], origin: float, length: float) -> Axis:
    axis = axis_over([float(values.min()), float(values.max())], origin, length)
    assert axis is not None
    span = axis.high - axis.low
    return _widened(replace(axis, whole=False), span * (1.02 if length < 0 else 1.06))


def _finite(group: Spots) -> Places:
    count = min(len(group.x), len(group.y))
    both = np.array([list(group.x)[:count], list(group.y)[:count]], dtype=float).T.reshape(count, 2)
    held: Places = both[(np.abs(both) < HUGE).all(axis=1)]
    return held


def _pixels(group: Places, x_axis: Axis, y_axis: Axis) -> Places:
    columns = (x_axis.place(group[:, 0]), y_axis.place(group[:, 1]))  # type: ignore[arg-type]
    return np.stack(columns, axis=1)


def thin(groups: Sequence[Places]) -> tuple[list[Places], str]:
    """At most `MOST_POINTS` of the pixels of all groups, one for each square and group, and a sentence that says so."""
    total = sum(map(len, groups))
    if total <= MOST_POINTS:
        return list(groups), ""
    for square in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64):
        kept = []
        for group in groups:
            _, first = np.unique((group // square).astype(np.int64), axis=0, return_index=True)
            kept.append(group[np.sort(first)])
        drawn = sum(map(len, kept))
        if drawn <= MOST_POINTS:
            break
    return kept, f"Of {total:,} points {drawn:,} are drawn: one of each group in a square of {square} pixels."


def points(places: Places, index: int, size: float) -> str:
    """All points of a group as one path: six shapes, every second one open."""
    shape = index % 6
    s = size
    outlines = {
        0: f"m{-s:g} 0a{s:g} {s:g} 0 1 0 {2 * s:g} 0a{s:g} {s:g} 0 1 0 {-2 * s:g} 0",  # circle
        1: f"m{-0.9 * s:g} {-0.9 * s:g}h{1.8 * s:g}v{1.8 * s:g}h{-1.8 * s:g}z",  # square
        2: f"m0 {-1.3 * s:g}l{1.2 * s:g} {2.2 * s:g}h{-2.4 * s:g}z",  # triangle
        3: f"m0 {-1.3 * s:g}l{1.3 * s:g} {1.3 * s:g}l{-1.3 * s:g} {1.3 * s:g}l{-1.3 * s:g} {-1.3 * s:g}z",  # diamond
        4: f"m0 {1.3 * s:g}l{1.2 * s:g} {-2.2 * s:g}h{-2.4 * s:g}z",  # triangle on its tip
        5: f"m{-s:g} {-s:g}l{2 * s:g} {2 * s:g}m0 {-2 * s:g}l{-2 * s:g} {2 * s:g}",  # cross
    }
    paint = f'fill="{colour(index)}" fill-opacity="0.8"'
    if index % 2:
        paint = f'fill="none" stroke="{colour(index)}" stroke-width="{max(1.0, 0.4 * s):.1f}" stroke-opacity="0.9"'
    if shape == 0 and not index % 2:  # a dot is a line of no length with round ends: short to say for thousands
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
        round_ends = f'stroke-linecap="round" stroke-width="{2 * s:g}"'
        return f'<path d="{dots}" fill="none" stroke="{colour(index)}" stroke-opacity="0.8" {round_ends}/>'
    return f'<path d="{"".join(f"M{x:.1f} {y:.1f}{outlines[shape]}" for x, y in places)}" {paint}/>'


def _sample(x: float, y: float, index: int) -> str:
    return points(np.array([[x, y]]), index, 3.6)


def _marks(named: Sequence[tuple[str, float, float]], x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    """Named places: a ringed cross, and the name where it covers no other name and no other mark."""
    left, end = x_axis.origin, x_axis.origin + x_axis.length
    top, bottom = y_axis.origin + y_axis.length, y_axis.origin
    places = [(x_axis.place(x), y_axis.place(y)) for _, x, y in named]
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    for x, y in places:
        cross = f"M{x - 6:.1f} {y:.1f}h12M{x:.1f} {y - 6:.1f}v12"
        for stroke, thickness in ((PAPER, 4.5), (INK, 1.8)):
            yield f'<path d="{cross}" fill="none" stroke="{stroke}" stroke-width="{thickness}"/>'
            ring = f'cx="{x:.1f}" cy="{y:.1f}" r="4.5"'
            yield f'<circle {ring} fill="none" stroke="{stroke}" stroke-width="{thickness}"/>'
    for (name, _, _), (x, y) in zip(named, places, strict=True):
        shown = one_line(name)
        wide = text_width(shown)
        choices = [
            (x + 10, y - 8, "start"),
            (x + 10, y + 16, "start"),
            (x - 10, y - 8, "end"),
            (x - 10, y + 16, "end"),
            (x, y - 14, "middle"),
            (x, y + 22, "middle"),
            (x, y - 28, "middle"),
            (x, y + 36, "middle"),
        ]
        boxes = []
        for at, base, anchor in choices:
            start = at - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
            boxes.append((start, base - 11, start + wide, base + 4))

        def cost(box: tuple[float, float, float, float]) -> float:
            outside = max(0.0, left - box[0]) + max(0.0, box[2] - end) + max(0.0, top - box[1])
            outside += max(0.0, box[3] - bottom)
            return 50 * outside + sum(_overlap(box, other) for other in taken)

        best = min(range(len(boxes)), key=lambda i: (cost(boxes[i]), i))
        taken.append(boxes[best])
        at, base, anchor = choices[best]
        yield (
            f'<text x="{at:.1f}" y="{base:.1f}" text-anchor="{anchor}" fill="{INK}" stroke="{PAPER}" stroke-width="3" '
            f'stroke-linejoin="round" paint-order="stroke" font-weight="600">{escape(shown)}</text>'
        )


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    return across * down if across > 0 and down > 0 else 0.0


def _description(cloud: Cloud, groups: Sequence[Places], thinned: str) -> str:
    sentences = [f"{cloud.y_label} over {cloud.x_label}."]
    for group, found in zip(cloud.groups, groups, strict=True):
        name = group.name or "Points"
        if len(found):
            x, y = (math.fsum(found[:, axis] / len(found)) for axis in (0, 1))
            sentences.append(f"{name}: {len(found):,} points around ({x:.4g}, {y:.4g}).")
        lost = min(len(group.x), len(group.y)) - len(found)
        if lost:
            sentences.append(f"{name}: {lost:,} points without a place are left out.")
    sentences += [f"{name} at ({x:.4g}, {y:.4g})." for name, x, y in cloud.marks]
    return " ".join(filter(None, [*sentences, thinned, cloud.reading]))
