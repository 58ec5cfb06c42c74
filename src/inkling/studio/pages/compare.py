"""Compare: one ruler for all models, and a text as two of them see it, character by character."""

from __future__ import annotations

from nicegui import ui

from inkling.studio.frame import empty, heading
from inkling.studio.pages.compare_ruler import Ruler
from inkling.studio.pages.compare_sides import Sides
from inkling.studio.pages.compare_text import TextChoice
from inkling.studio.state import Studio
from inkling.studio.work import aside


async def build(studio: Studio) -> None:
    names = await aside(studio.language_models)
    if not names:
        empty(
            "There is no language model to measure yet. Train one on the page Runs, or with this command:",
            "inkling data make text world.txt && inkling train bigram world.txt",
        )
        return
    heading("The text")
    text = TextChoice(studio)
    with ui.tabs().props("no-caps align=left inline-label").classes("compare-tabs") as tabs:
        sides = ui.tab("sides", "Two models side by side")
        ruler = ui.tab("ruler", "All on one ruler")
    with ui.tab_panels(tabs, value=sides).props("keep-alive").classes("compare-panels"):
        with ui.tab_panel(sides):
            Sides(studio, text, names)
        with ui.tab_panel(ruler):
            Ruler(studio, text, names)
