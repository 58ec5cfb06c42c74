"""A child at work, as a page shows it: how far it is, what it does, and a button that ends it."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from inkling.errors import InklingError
from inkling.pictures.harmless import one_line
from inkling.studio.work import Child


class Waiting:
    """Hidden while nothing is worked on. The child ends with the page."""

    def __init__(self) -> None:
        self._child: Child | None = None
        with ui.element("div").classes("waiting") as self.box:
            self._bar = ui.linear_progress(0.0, show_value=False).props('rounded size=6px aria-label="Progress"')
            with ui.element("div").classes("line"):
                self._said = ui.label().classes("quiet grow").props("role=status")
                ui.button("Cancel", on_click=self.cancel).props("flat dense no-caps")
        self.box.visible = False
        ui.context.client.on_delete(self.cancel)

    @property
    def busy(self) -> bool:
        return self._child is not None

    async def result(self, job: str, arguments: dict[str, Any], sentence: str) -> Any:
        """What the job gives back; None if it was cancelled."""
        self._tell(None, sentence)
        self.box.visible = True
        self._child = child = Child(job, arguments, self._tell)
        try:
            return await child.result()
        except InklingError:
            if child.cancelled:
                return None
            raise
        finally:
            if self._child is child:  # else another was begun in its place
                self._child = None
                self.box.visible = False

    def cancel(self) -> None:
        if self._child is not None:
            self._child.cancel()

    def _tell(self, done: float | None, sentence: str) -> None:
        self._bar.props("indeterminate" if done is None else "", remove="" if done is None else "indeterminate")
        self._bar.value = done or 0.0
        if sentence:
            self._said.text = one_line(sentence)
