"""What stands below a text with coloured words: what the shades mean, and sentences about it."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from inkling.pictures.harmless import one_line
from inkling.studio.views_classify import DECIDED, Told, ranges

TALL_CHARS = 4_000  # a longer text scrolls in a box of its own


class Legend:
    """What the shades mean."""

    def __init__(self) -> None:
        self._row = ui.element("div").classes("marked classify-legend")
        self._shown: tuple[Any, ...] = ()

    def show(self, told: Told, verdict: str, other: str) -> None:
        decided = any(name == DECIDED for name, _ in told.lines)
        unknown = any(piece.shade.startswith("p") for piece in told.pieces)
        if self._shown == (told.levels, verdict, other, decided, unknown):
            return
        self._shown = (told.levels, verdict, other, decided, unknown)
        self._row.clear()
        with self._row:
            for label, letter in ((verdict, "f"), (other, "a")):
                with ui.element("div").classes("side-of"):
                    ui.label(f"nats for {one_line(label)}").classes("quiet")
                    for step, text in enumerate(ranges(told.levels), 1):
                        ui.label(text).classes(f"chip {letter}{step}")
            if decided:
                ui.label("sentence that decided").classes("chip u")
            if unknown:
                ui.label("unknown word").classes("chip p")


def write_lines(box: ui.element, told: Told) -> None:
    box.clear()
    with box:
        for name, text in told.lines:
            with ui.element("div").classes("classify-line"):
                ui.label(one_line(name)).classes("quiet")
                ui.label(one_line(text))


def scroll_to(element: ui.element) -> None:
    ui.run_javascript(f"getHtmlElement({element.id})?.scrollIntoView({{block: 'center'}})")
