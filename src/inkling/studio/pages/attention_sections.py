"""Exhibits of an answer that changes while one looks at it."""

from __future__ import annotations

from collections.abc import Mapping

from nicegui import ui


class Sections:
    """Exhibits by their titles: what changes is exchanged in its place, what has no answer yet stays, faded."""

    def __init__(self) -> None:
        self.box = ui.element("div").classes("sections")
        self.parts: dict[str, ui.html] = {}

    def clear(self) -> None:
        self.box.clear()
        self.parts.clear()

    def fade(self) -> None:
        for part in self.parts.values():
            part.classes("stale")

    def show(self, sections: Mapping[str, str], whole: bool) -> None:
        for title in [title for title in self.parts if title not in sections]:
            if whole:
                self.parts.pop(title).delete()
            else:
                self.parts[title].classes("stale")
        for place, (title, markup) in enumerate(sections.items()):
            if title in self.parts:
                self.parts[title].classes(remove="stale")
                self.parts[title].content = markup
            else:
                with self.box:
                    self.parts[title] = ui.html(markup, tag="section").classes("exhibit")
                if whole:
                    self.parts[title].move(target_index=place)
