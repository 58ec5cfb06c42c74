"""Figures and curves that change several times a second while a training goes on.

NiceGUI goes through the whole page for every element that changes, some forty milliseconds in a browser without a
graphics card; on two cores that are busy training, five times a second of that would be felt. These two draw by
themselves: what is new is sent to a method of theirs (and not kept in `_props`, which would be such a change), and only
that is painted. NiceGUI's own `run_method` sends `return …`, which a page first fails to run and then runs wrapped in a
function; `_tell` sends an expression, and what is long as JSON, which a browser reads faster than code. A message
wakes half a dozen threads of a browser whatever is in it, so figures that come one after another are sent a few at a
time, and the page shows them as far apart as they came, painted by a thread of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nicegui.element import Element

DIGITS = 5
BRUSH = "/live_brush.js"  # what paints figures: a file beside this one, served by `site.py`
Figures = Mapping[str, tuple[str, str]]  # key → what it says, and its name


@dataclass(frozen=True)
class Curve:
    """One line of a plot; lines of one `number` have one colour."""

    name: str
    number: int
    points: Sequence[Sequence[float]]
    faint: bool = False

    def sent(self) -> list[Any]:
        rounded = [[round(x, 2), float(f"{y:.{DIGITS}g}")] for x, y in self.points]
        return [self.name, self.number, self.faint, rounded]


def _tell(element: Element, method: str, *arguments: Any) -> None:
    """Has the page call a method of the element."""
    sent = json.dumps(json.dumps(arguments, separators=(",", ":")))
    element.client.run_javascript(f"runMethod({element.id}, {json.dumps(method)}, JSON.parse({sent}))")


class LivePlot(Element, component="live_plot.js"):
    """Curves over common axes, with a legend, and the values where somebody points."""

    def __init__(self, label: str) -> None:
        super().__init__()
        self._props["label"] = label

    def show(self, x_name: str, y_name: str, curves: Sequence[Curve]) -> None:
        _tell(self, "show", x_name, y_name, [curve.sent() for curve in curves])


class LiveFigures(Element, component="live_figures.js"):
    """Numbers with their names below. A figure that is not said is not shown."""

    def __init__(self, keys: Sequence[str], apart_seconds: float) -> None:
        super().__init__()
        self._props["keys"] = list(keys)
        self._props["apart"] = 1000 * apart_seconds
        self._props["brush"] = BRUSH
        self._said: tuple[Figures, ...] = ()

    def say(self, *several: Figures) -> None:
        """What is to be shown from now on; or several, one after another, that are followed by others soon."""
        if several != self._said:
            self._said = several
            _tell(self, "say", several)
