"""Any picture as SVG, and several as one file.

A picture inside a page or a notebook is an <svg> element whose colours the page may change. A file of its own has no
page: `stacked` puts pictures under each other on white, each with its title above and its reading below, and writes
the colours out, because drawing programs do not know CSS variables.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from inkling.figures import Bars, Chart, Cloud, HeatMap, Picture
from inkling.pictures import bars, clouds, heatmaps, lines, panels
from inkling.pictures.axes import INK, LETTER, MUTED, text, whole
from inkling.pictures.harmless import one_line

MARGIN = 24.0
LINE_HEIGHT = 17.0
TITLE_SIZE, HEAD_SIZE = 15.0, 20.0


def draw(picture: Picture) -> str:
    """The picture as one <svg> element."""
    if isinstance(picture, Chart):
        return lines.svg(picture)
    if isinstance(picture, Bars):
        return bars.svg(picture)
    if isinstance(picture, Cloud):
        return clouds.svg(picture)
    if isinstance(picture, HeatMap):
        return heatmaps.svg(picture)
    return panels.svg(picture)


def stacked(title: str, pictures: Sequence[Picture]) -> str:
    """One standalone SVG document with all pictures under each other, their titles above and readings below."""
    drawn = [draw(picture) for picture in pictures]
    sizes = [_size(one) for one in drawn]
    inner = max((width for width, _ in sizes), default=480.0)
    parts: list[str] = []
    y = MARGIN
    for line in _wrapped(one_line(title), inner, HEAD_SIZE):
        y += HEAD_SIZE
        parts.append(text(MARGIN, y, line, fill=INK, size=HEAD_SIZE))
        y += 6
    for picture, one, (_, height) in zip(pictures, drawn, sizes, strict=True):
        y += 18
        for line in _wrapped(one_line(picture.title), inner, TITLE_SIZE):
            y += TITLE_SIZE
            parts.append(text(MARGIN, y, line, fill=INK, size=TITLE_SIZE))
            y += 5
        y += 8
        parts.append(one.replace("<svg ", f'<svg x="{MARGIN:.0f}" y="{y:.0f}" ', 1))
        y += height + 4
        for line in _wrapped(one_line(" ".join(picture.reading.split())), inner, 12):
            y += LINE_HEIGHT
            parts.append(text(MARGIN, y, line, fill=MUTED))
        y += 10
    together = "; ".join(picture.title for picture in pictures) or "no pictures"
    return _coloured(whole(title, together, inner + 2 * MARGIN, y + MARGIN, parts)) + "\n"


def _size(drawn: str) -> tuple[float, float]:
    found = re.match(r'<svg [^>]*viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)
    assert found
    return float(found[1]), float(found[2])


def _wrapped(words: str, width: float, size: float) -> list[str]:
    return textwrap.wrap(words, max(12, int(width / (LETTER * size / 12)))) if words else []


def _coloured(drawn: str) -> str:
    """Variables replaced by their defaults. A quote in text from outside is escaped, so only attributes match."""
    return re.sub(r'="var\(--[\w-]+, (#[0-9a-f]{6})\)"', r'="\1"', drawn)
