"""What a corpus says of an answer: the lines that have the name, and whether the answer stands there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nicegui import ui

from inkling.pictures.harmless import one_line
from inkling.studio.components.marked_text import MarkedText, Piece
from inkling.studio.intake import OneFile
from inkling.studio.state import Studio
from inkling.studio.views_knowledge import Files, mark_line, say_heard
from inkling.studio.waiting import Waiting
from inkling.studio.work import told


class CorpusPanel:
    def __init__(self, studio: Studio) -> None:
        self._recorded = Files()
        self._answer, self._others = "", list[str]()
        with ui.element("div").classes("panel"):
            ui.label(
                "The model answers from its weights alone. Afterwards the lines of a corpus are looked through: which "
                "have the name, and whether the answer stands beside it."
            ).classes("quiet")
            with ui.element("div").classes("line top knowledge-source"):
                self._handed = OneFile(studio, "A corpus, a document a line (.txt, .csv, …)", self._other)
                with ui.element("div").classes("grow"):
                    self._source = ui.label().props("data-testid=corpus")
                    self._back = ui.button("Use the training documents", on_click=self._handed.forget)
                    self._back.props("flat dense no-caps")
            with ui.element("div").classes("line"):
                self._about = ui.input("Name to look for").props("outlined dense").classes("grow")
                self._about.on("keydown.enter", told(self._look), args=[])
                ui.button("Look", on_click=told(self._look)).props("flat no-caps")
            self._waiting = Waiting()
            self._said = ui.label().classes("knowledge-said").props("role=status data-testid=heard")
            self._lines = ui.element("div").classes("knowledge-lines")
        self._name_source()

    @property
    def paths(self) -> tuple[str, ...]:
        """Where the corpus lies; nothing if there is none."""
        return (str(self._handed.file.path),) if self._handed.file else self._recorded.paths

    @property
    def names(self) -> dict[str, str]:
        """What its files are called in sentences."""
        named = {path: Path(path).name for path in self._recorded.paths}
        return {str(self._handed.file.path): self._handed.file.name} if self._handed.file else named

    def set_recorded(self, files: Files) -> None:
        self._recorded = files
        self._name_source()
        self._clear()

    async def hear(self, about: str, answer: str, others: Sequence[str]) -> None:
        """Looks for what a question was about beside what was said."""
        self._answer, self._others = answer, list(others)
        self._about.value = about
        self._clear()
        if not about:
            self._said.text = "What the question is about was not found out; write the name to look for."
        elif self.paths:
            await self._look()

    async def _other(self) -> None:
        self._name_source()
        self._clear()
        if self._answer and self._about.value and self.paths:
            await self._look()

    def _clear(self) -> None:
        self._said.text = ""
        self._lines.clear()

    def _name_source(self) -> None:
        self._back.visible = self._handed.file is not None and bool(self._recorded.paths)
        if self._handed.file is not None:
            self._source.text = f"Corpus: {self._handed.file.name}"
        elif self._recorded.paths:
            self._source.text = one_line(f"Corpus: {self._recorded.names}, as it was in the training")
        else:
            why = f" ({self._recorded.missing})" if self._recorded.missing else ""
            self._source.text = one_line(f"The training documents are not at hand{why}: hand in a corpus.")

    async def _look(self) -> None:
        about = (self._about.value or "").strip()
        self._waiting.cancel()
        self._clear()
        if not about or not self.paths:
            self._said.text = "Write the name to look for." if self.paths else "There is no corpus yet; hand one in."
            return
        phrases = [self._answer, *self._others]
        arguments = {
            "corpus": list(self.paths),
            "names": self.names,
            "reading": {} if self._handed.file else self._recorded.reading,
            "subject": about,
            "phrases": [phrase.strip() for phrase in phrases if phrase.strip()],
        }
        name = self._handed.file.name if self._handed.file else self._recorded.names
        heard = await self._waiting.result("lines-about", arguments, "Reading the corpus …")
        if heard is None or about != (self._about.value or "").strip():
            return
        self._clear()
        self._said.text = one_line(say_heard(heard, name, about, self._answer))
        with self._lines:
            for place, line in enumerate(heard["lines"], 1):
                pieces = mark_line(line, about, self._answer, self._others)
                MarkedText((Piece(*one) for one in pieces), label=f"Line {place} with the name")
            left = heard["named"] - len(heard["lines"])
            if left:
                ui.label(f"and {left:,} more lines").classes("quiet")
