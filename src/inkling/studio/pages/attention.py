"""Attention: a laboratory with sliders, heads made to order by drawing wishes, and the heads of a trained model.

Three parts, one beside the other as tabs: `attention_laboratory.py`, `attention_construct.py`, `attention_model.py`.
"""

from __future__ import annotations

from nicegui import ui

from inkling.studio.pages.attention_construct import Construct
from inkling.studio.pages.attention_laboratory import Laboratory
from inkling.studio.pages.attention_model import InModel
from inkling.studio.state import Studio

LABORATORY, CONSTRUCT, MODEL = "Laboratory", "Made to order", "In a model"


async def build(studio: Studio) -> None:
    with ui.tabs().props("no-caps inline-label align=left outside-arrows").classes("parts") as tabs:
        ui.tab(LABORATORY, icon="science")
        ui.tab(CONSTRUCT, icon="architecture")
        ui.tab(MODEL, icon="travel_explore")
    with ui.tab_panels(tabs, value=LABORATORY, animated=False).props("keep-alive").classes("part-panels"):
        with ui.tab_panel(LABORATORY):
            laboratory = Laboratory()
        with ui.tab_panel(CONSTRUCT):
            construct = Construct()
        with ui.tab_panel(MODEL):
            model = InModel(studio)
    openings = {LABORATORY: laboratory.open, CONSTRUCT: construct.open, MODEL: model.open}
    opened: set[str] = set()

    async def open_part(name: str) -> None:
        """A part does its first work when somebody looks at it."""
        if name not in opened:
            opened.add(name)
            await openings[name]()

    tabs.on_value_change(lambda event: open_part(str(event.value)))
    await ui.context.client.connected()
    await open_part(LABORATORY)
