"""Two models side by side on a text: each token shaded by its surprise, or each word by who knows more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from nicegui import ui

from inkling.studio.components.marked_text import Choice, MarkedText, Piece
from inkling.studio.frame import show
from inkling.studio.pages.compare_text import TextChoice
from inkling.studio.state import Studio
from inkling.studio.views_compare import Reading, Shown, SideBySide, lay_side_by_side, legends
from inkling.studio.work import Latest, aside, told

if TYPE_CHECKING:
    from inkling.explain.surprise import Surprise

LONG_CHARS = 2_500  # a longer text scrolls in a box of its own
MODES = {"surprise": "What surprises each", "saved": "Who knows more"}


class Sides:
    def __init__(self, studio: Studio, text: TextChoice, names: list[str]) -> None:
        self._studio, self._text = studio, text
        self._pointed = Latest()
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("line"):
                self._first = ui.select(names, label="First model", value=names[0])
                self._second = ui.select(names, label="Second model", value=names[min(1, len(names) - 1)])
                for select in (self._first, self._second):
                    select.props("outlined dense").classes("grow")
                self._begin = ui.button("Compare", icon="compare_arrows", on_click=told(self._compare))
                self._begin.props("unelevated no-caps color=primary")
            self._bar = ui.linear_progress(show_value=False).props('indeterminate aria-label="Reading the text"')
            self._bar.set_visibility(False)
        self._results = ui.element("div")

    async def _compare(self) -> None:
        names = str(self._first.value), str(self._second.value)
        self._bar.set_visibility(True)
        self._begin.disable()
        try:
            text_name, documents, was_cut = await self._text.documents()
            found = await aside(self._read, names, documents, text_name)
        finally:
            self._bar.set_visibility(False)
            self._begin.enable()
        self._results.clear()
        with self._results:
            self._show(found, was_cut)

    def _read(self, names: tuple[str, str], documents: Sequence[str], text_name: str) -> SideBySide:
        models = [self._studio.shelf.language_model(name) for name in names]
        return lay_side_by_side(models, names, documents, text_name)

    def _show(self, found: SideBySide, was_cut: bool) -> None:
        a, b = found.first.surprise, found.second.surprise
        ui.label(found.comparison.summary()).classes("text-block compare-said").props("role=status")
        if was_cut:
            ui.label(f"Only the first {len(a.text):,} characters are looked at.").classes("quiet")
        modes = ui.toggle(MODES, value="surprise").props('unelevated no-caps dense aria-label="Colour by"')
        modes.classes("compare-toggle")
        surprise, differences = legends((a.model, b.model))
        is_long = len(a.text) > LONG_CHARS
        with ui.element("div").bind_visibility_from(modes, "value", value="surprise"):
            _legend("Surprise in bits", surprise)
            with ui.element("div").classes("panel compare-sides" + " compare-long" * is_long):
                for reading in (found.first, found.second):
                    with ui.element("div").classes("compare-side"):
                        _figures(reading.surprise)
                        self._marked(reading)
        with ui.element("div").bind_visibility_from(modes, "value", value="saved"):
            _legend("", differences)
            with ui.element("div").classes("panel" + " compare-long" * is_long):
                label = f"{a.text_name}, {found.comparison.unit} by {found.comparison.unit}, by who knows more"
                MarkedText((Piece(*shown) for shown in found.differences), label=label)
        for table in found.comparison.tables():
            show(table)

    def _marked(self, reading: Reading) -> None:
        async def ask(piece: int) -> None:
            choices = await self._pointed(reading.likeliest, piece)
            if choices is not None:
                shown = [Choice(choice.text, choice.share, choice.chosen) for choice in choices]
                text.tell(piece, shown, f"{reading.surprise.model} expects here")

        asked: Callable[[int], Awaitable[None]] = told(ask)
        label = f"{reading.surprise.text_name} as {reading.surprise.model} sees it"
        text = MarkedText((Piece(*shown) for shown in reading.pieces), label=label, on_ask=asked)


def _figures(surprise: Surprise) -> None:
    with ui.element("div").classes("compare-head"):
        ui.label(surprise.model).classes("compare-name")
        with ui.element("div").classes("line"):
            ui.label(f"{surprise.bits_per_byte:.3f}").classes("figure-value")
            unknown = int(surprise.unknown.sum())
            ui.label(
                f"bits per byte · {surprise.total_bits:,.0f} bits · {len(surprise.bits):,} tokens"
                + (f", {unknown:,} unknown" if unknown else "")
            ).classes("figure-name grow")
        if surprise.normalisation != "none":
            ui.label(f"Shown as the model saw it, normalised by {surprise.normalisation}.").classes("quiet")


def _legend(title: str, shades: Sequence[Shown]) -> None:
    with ui.element("div").classes("compare-shades marked"):
        if title:
            ui.label(title)
        for words, shade, _ in shades:
            with ui.element("span").classes(shade):
                ui.label(words)
