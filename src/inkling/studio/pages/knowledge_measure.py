"""How far the answers of a model can be believed: all questions of a file asked, in a child, and what comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import ui

from inkling.errors import InklingError
from inkling.pictures.harmless import one_line
from inkling.studio.intake import OneFile
from inkling.studio.state import Studio
from inkling.studio.views_knowledge import Files
from inkling.studio.waiting import Waiting
from inkling.studio.work import told

if TYPE_CHECKING:
    from inkling.studio.pages.knowledge import Desk

PROMISED = 90


class MeasurePanel:
    def __init__(self, studio: Studio, desk: Desk) -> None:
        self.studio, self.desk = studio, desk
        self._recorded = Files()
        with ui.element("div").classes("panel"):
            ui.label(
                "Questions with their true answers, in two columns. Every question is asked, and every answer weighed "
                "by its confidence: does the model know when it knows?"
            ).classes("quiet")
            with ui.element("div").classes("line top knowledge-source"):
                self._handed = OneFile(studio, "Questions and answers (.tsv, .csv, …)", self._name_source)
                with ui.element("div").classes("grow"):
                    self._source = ui.label().props("data-testid=pairs")
                    self._back = ui.button("Use the training pairs", on_click=self._handed.forget).props(
                        "flat dense no-caps"
                    )
            with ui.element("div").classes("line"):
                self._promised = ui.number("Accuracy to promise (%)", value=PROMISED, min=1, max=99, step=1)
                self._promised.props("outlined dense").classes("knowledge-promise")
                self._start = ui.button("Measure", on_click=told(self._measure)).props("unelevated no-caps")
            self._waiting = Waiting()
        self._found = ui.element("div")
        self._name_source()

    def set_recorded(self, files: Files) -> None:
        self._recorded = files
        self._found.clear()
        self._name_source()

    def _name_source(self) -> None:
        self._back.visible = self._handed.file is not None and bool(self._recorded.paths)
        if self._handed.file is not None:
            self._source.text = f"Asked: {self._handed.file.name}"
        elif self._recorded.paths:
            said = f"Asked: {self._recorded.names}, which it learned from: the figures flatter it"
            self._source.text = one_line(said)
        else:
            why = f" ({self._recorded.missing})" if self._recorded.missing else ""
            self._source.text = one_line(f"The training pairs are not at hand{why}: hand in questions and answers.")

    def _names(self) -> dict[str, str]:
        """What files are called in sentences."""
        named = {path: Path(path).name for path in self._recorded.paths}
        return named | ({str(self._handed.file.path): self._handed.file.name} if self._handed.file else {})

    async def _measure(self) -> None:
        paths = (str(self._handed.file.path),) if self._handed.file else self._recorded.paths
        if not paths:
            raise InklingError(
                "There are no questions yet; hand in a table with a question and its answer in each row."
            )
        # Training pairs are named where they are read in the same way as what came; else the run's own record is asked.
        plain = {key for key, value in self._recorded.reading.items() if value not in (None, "stop")}
        arguments: dict[str, Any] = {
            "run": str(self.studio.run(str(self.desk.run.value)).path),
            "pairs": list(paths),
            "names": self._names() | self.desk.corpus.names,
            "reading": {} if self._handed.file else self._recorded.reading,
            "train_pairs": [] if plain else list(self._recorded.paths),
            "corpus": list(self.desk.corpus.paths),
            "beam": 1,
            "promised": (self._promised.value or PROMISED) / 100,
        }
        self._start.disable()
        try:
            found = await self._waiting.result("answers", arguments, "Beginning …")
        finally:
            self._start.enable()
        if found is not None:
            self._show(found)

    def _show(self, found: dict[str, Any]) -> None:
        figures = found["figures"]
        promise = figures["promise"]
        answered = promise["answered"]
        self._found.clear()
        with self._found:
            with ui.element("div").classes("panel"), ui.element("div").classes("line classify-figures"):
                for name, value in (
                    ("exactly right", f"{100 * figures['exact_match']:.1f} %"),
                    ("mean confidence", f"{100 * figures['mean_confidence']:.1f} %"),
                    ("off by, in points", f"{100 * figures['expected_calibration_error']:.1f}"),
                    (
                        f"answered, where {100 * promise['accuracy']:g} % is promised",
                        "–" if answered is None else f"{100 * answered['share']:.1f} %",
                    ),
                ):
                    with ui.element("div"):
                        ui.label(value).classes("figure-value")
                        ui.label(name).classes("figure-name")
            with ui.element("div").classes("panel").props("data-testid=measured"):
                _draw(found["said"])
                for section in (*found["charts"], *found["others"]):
                    _draw(section)


def _draw(section: str) -> None:
    ui.html(section, tag="section").classes("exhibit")  # drawn and escaped by pictures/markup.py
