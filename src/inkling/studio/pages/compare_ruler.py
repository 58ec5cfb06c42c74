"""The ruler matrix: runs on a text, with baselines, verdicts and a chart, as `inkling evaluate --html` has them."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from inkling.errors import InklingError, UsageError
from inkling.studio.pages.compare_text import TextChoice
from inkling.studio.state import Studio
from inkling.studio.work import Child, told

CHOSEN_AT_FIRST = 4


class Ruler:
    def __init__(self, studio: Studio, text: TextChoice, names: list[str]) -> None:
        self._studio, self._text = studio, text
        self._child: Child | None = None
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("line"):
                self._runs = ui.select(names, label="Runs", value=names[:CHOSEN_AT_FIRST], multiple=True)
                self._runs.props("outlined dense use-chips").classes("grow")
                self._baselines = ui.checkbox("Baselines and compressors too", value=True)
                self._begin = ui.button("Measure", icon="straighten", on_click=told(self._measure))
                self._begin.props("unelevated no-caps color=primary")
            with ui.element("div").classes("line compare-wait") as self._progress:
                self._bar = ui.linear_progress(value=0, show_value=False).props('aria-label="Progress"').classes("grow")
                ui.button("Cancel", on_click=self._cancel).props("flat no-caps dense")
                self._sentence = ui.label().classes("quiet whole").props("role=status")
            self._progress.set_visibility(False)
        self._results = ui.element("div")
        ui.context.client.on_delete(self._cancel)  # nobody waits for it any more

    async def _measure(self) -> None:
        chosen = list(self._runs.value)
        if not chosen:
            raise UsageError("No run is chosen; choose at least one to measure.")
        runs = [str(self._studio.run(name).path) for name in chosen]
        async with self._text.file() as (name, path):
            arguments = {"runs": runs, "on": [str(path)], "baselines": bool(self._baselines.value)}
            self._child = child = Child("ruler", arguments, self._tell)
            self._tell(None, f"Reading {name} …")
            self._show_work(True)
            try:
                found = await child.result()
            except InklingError:
                if child.cancelled:  # whoever pressed the button knows
                    return
                raise
            finally:
                self._show_work(False)
        self._show(found)

    def _tell(self, done: float | None, sentence: str) -> None:
        self._bar.props(remove="indeterminate") if done is not None else self._bar.props("indeterminate")
        self._bar.value = done or 0
        self._sentence.text = sentence

    def _show_work(self, on: bool) -> None:
        self._progress.set_visibility(on)
        self._begin.set_enabled(not on)

    def _cancel(self) -> None:
        if self._child is not None:
            self._child.cancel()

    def _show(self, found: dict[str, Any]) -> None:
        self._results.clear()
        with self._results:
            for section in found["sections"]:
                ui.html(section, tag="section").classes("exhibit")
