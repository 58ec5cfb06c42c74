"""What all pictures share: axes and their ticks, text, colours, markers, and names that do not overlap.

    pixel = origin + length · (t(value) − t(low)) / (t(high) − t(low))      t = log₁₀ on a logarithmic axis, or identity

Colours are CSS variables with a light-page default, so that the page decides light or dark; they stand in presentation
attributes, as a page's policy may forbid `style`. No picture has an id (hatches are lines, not patterns), so that any
number of them, or one twice, can stand in a page.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from inkling.pictures.harmless import one_line, safe

COLOURS = ("#1d5fa8", "#c2410c", "#0f7a5c", "#7a3fc4", "#8a6100", "#b8256e")
INK, MUTED, GRID = "var(--ink, #1c2128)", "var(--muted, #5d6672)", "var(--grid, #e3e6ea)"
PAPER = "var(--page, #ffffff)"
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
        return drawable(value, self.log)


@dataclass(frozen=True)
class Label:
    """A name at the right end of the plot; `y` is where it belongs, `sample` draws what it names (a level has none)."""

    text: str
    x: float
    y: float
    sample: Callable[[float, float], str] | None


def drawable(value: float, log: bool = False) -> bool:
    return abs(value) < HUGE and (value > 1 / HUGE or not log)


def axis_over(values: Sequence[float], origin: float, length: float, log: bool = False) -> Axis | None:
    """An axis that holds all values which can be drawn, with a little room; None when there are none."""
    shown = [float(value) for value in values if drawable(value, log)]
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


def marks(axis: Axis, count: int) -> Iterator[tuple[float, str]]:
    """The ticks of an axis, each with its text."""
    values = log_ticks(axis.low, axis.high, count) if axis.log else ticks(axis.low, axis.high, count, whole=axis.whole)
    for index, value in enumerate(values):
        if axis.log and axis.high - axis.low >= NEARLY_LINEAR:
            step = 10.0 ** math.floor(math.log10(value) + 1e-9)
        else:
            step = abs(value - values[index + 1 if index + 1 < len(values) else index - 1])
        yield value, tick_text(value, step)


def y_marks(axis: Axis | None) -> list[tuple[float, str]]:
    return list(marks(axis, max(2, int(abs(axis.length) / 48)))) if axis else []


def left_margin(found: Sequence[tuple[float, str]]) -> float:
    """What the numbers of a y axis need."""
    return 12 + (LETTER + 0.5) * max((len(shown) for _, shown in found), default=0)


def right_margin(names: Sequence[str], width: float) -> float:
    """What names beside the plot need: a third of the picture at most."""
    return 24 + min(0.34 * width, max(map(text_width, names), default=0) + 20)


def y_frame(y_axis: Axis, left: float, end: float, found: Sequence[tuple[float, str]], label: str) -> Iterator[str]:
    """Grid and numbers of the y axis. Its name stands on top: nobody should tilt the head."""
    for value, shown in found:
        y = y_axis.place(value)
        yield f'<line x1="{left:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{GRID}" stroke-width="1"/>'
        yield text(left - 10, y + 4, shown, anchor="end", fill=MUTED)
    yield text(0, 16, one_line(label), fill=INK)


def x_frame(x_axis: Axis, floor: float, label: str) -> Iterator[str]:
    """The floor, ticks and numbers of the x axis, and its name below."""
    left, end = x_axis.origin, x_axis.origin + x_axis.length
    yield (
        f'<line x1="{left:.1f}" x2="{end:.1f}" y1="{floor:.1f}" y2="{floor:.1f}" stroke="{MUTED}" stroke-width="1"/>'
    )
    for value, shown in marks(x_axis, max(2, int(x_axis.length / 78))):
        x = x_axis.place(value)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{floor:.1f}" y2="{floor + 5:.1f}" stroke="{MUTED}"/>'
        yield text(x, floor + 18, shown, anchor="middle", fill=MUTED)
    yield text(left + x_axis.length / 2, floor + 40, one_line(label), anchor="middle", fill=INK)


def level_lines(
    levels: Sequence[tuple[str, float]], y_axis: Axis, left: float, end: float
) -> tuple[list[str], list[Label]]:
    """Named horizontal lines, such as a baseline, and the names they get at the right end."""
    parts, names = [], []
    for name, level in levels:
        if y_axis.shows(level):
            y = y_axis.place(level)
            parts.append(
                f'<line x1="{left:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{MUTED}" '
                'stroke-width="1.2" stroke-dasharray="1 4" stroke-linecap="round"/>'
            )
            names.append(Label(one_line(name), end, y, None))
    return parts, names


def marker(x: float, y: float, index: int) -> str:
    """Six shapes; a rim in the colour of the page sets them off from the curve."""
    paint = f'fill="{colour(index)}" stroke="{PAPER}" stroke-width="1"'
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


def draw_labels(labels: Sequence[Label], end: float, top: float, bottom: float, width: float) -> Iterator[str]:
    """The names right of the plot, moved apart where they would overlap."""
    heights = spread([label.y for label in labels], LABEL_GAP, top, bottom)
    for label, y in zip(labels, heights, strict=True):
        if abs(y - label.y) > 3 or end - label.x > 3:  # moved, or the line ended early: lead the eye
            yield (
                f'<path d="M{label.x:.1f} {label.y:.1f}L{end + 10:.1f} {y:.1f}" fill="none" stroke="{MUTED}" '
                'stroke-width="0.7" stroke-opacity="0.6"/>'
            )
        if label.sample is not None:
            yield label.sample(end + 13, y)
        yield text(end + 23, y + 4, label.text, fill=INK if label.sample else MUTED, room=width - end - 24)


def thinned(names: Sequence[str], pitch: float, size: float = 12) -> tuple[range, bool]:
    """Of names `pitch` pixels apart below an axis: the positions of those to write, and whether upright (else turned).

    The first of every 1, 2, 5, 10, 20, 50 … at which they do not touch. Upright where most fit (a long one is cut), or
    where they are short and would have to be thinned when turned as well.
    """
    widths = sorted(text_width(name) * size / 12 for name in names)
    if not widths:
        return range(0), True
    widest, common = widths[-1], widths[len(widths) // 2]
    upright = widest + 8 <= pitch or (pitch >= 56 and common + 8 <= pitch)
    need = size + 2.0
    if upright:
        need = 0.0
    elif pitch < need and widest <= 4.5 * LETTER:
        upright, need = True, widest + 8
    return every_kth(names, need / pitch), upright


def every_kth(names: Sequence[str], least: float) -> range:
    """Positions of every 1, 2, 5, 10 … names, `least` at least. Of numbers those that the step divides: 10, 20, 30."""
    every = 1
    while every < min(least, len(names)):
        every = int(every * (2.5 if str(every)[0] == "2" else 2))
    digits = (position for position in range(min(every, len(names))) if names[position].isdecimal())
    first = next((position for position in digits if int(names[position]) % every == 0), 0)
    return range(first, len(names), every)


def text_width(shown: str) -> float:
    """About how many pixels a text of 12 pixel letters takes in a wide font; Chinese and Japanese letters are wide."""
    return sum(map(_letter_width, shown))


def _letter_width(letter: str) -> float:
    if letter in "ijlftrI.,:;'|!()[]{} -":
        return 4.6
    if letter in "mwMW@%<>+=−~…→↓":
        return 10.6
    return 12.3 if unicodedata.east_asian_width(letter) in "WF" else 8.2 if letter.isupper() else 7.4


def cut(shown: str, room: float) -> str:
    """`shown`, or as much of it as `room` pixels hold, with a sign that there was more; three letters at least."""
    if text_width(shown) <= max(room, 3 * LETTER):
        return shown
    kept = shown
    while len(kept) > 2 and text_width(kept) > room - LETTER:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def text(
    x: float,
    y: float,
    shown: str,
    *,
    fill: str,
    anchor: str = "start",
    room: float = math.inf,
    size: float = 0,
    turned: bool = False,
) -> str:
    """A text; one that needs more than `room` pixels is cut, and whole in its tooltip. `turned` reads upwards."""
    short = cut(shown, room * 12 / (size or 12))
    tooltip = f"<title>{escape(shown)}</title>" if short != shown else ""
    sized = f' font-size="{size:g}"' if size else ""
    tilt = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="{fill}"{sized}{tilt}>{tooltip}{escape(short)}</text>'


def whole(title: str, description: str, width: float, height: float, parts: Sequence[str]) -> str:
    """The <svg> element around `parts`, on paper of its own, with words for those who hear it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="system-ui, sans-serif" font-size="12">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>{"".join(parts)}</svg>'
    )


def nothing(title: str, description: str, width: float) -> str:
    return whole(title, description, width, 96, [text(width / 2, 48, "nothing to show", anchor="middle", fill=MUTED)])


def colour(index: int) -> str:
    return f"var(--line-{index % len(COLOURS) + 1}, {COLOURS[index % len(COLOURS)]})"


def escape(shown: str) -> str:
    return html.escape(safe(shown))
