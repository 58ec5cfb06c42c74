"""Knowledge: ask a model; how sure it is, what else it might say, what a corpus says, and whether its word is good."""

from __future__ import annotations

from pathlib import Path

from nicegui import ui

from inkling.pictures.harmless import one_line
from inkling.studio.frame import empty, heading
from inkling.studio.pages.knowledge_corpus import CorpusPanel
from inkling.studio.pages.knowledge_measure import MeasurePanel
from inkling.studio.state import Studio
from inkling.studio.views_knowledge import Recalled, ask, candidates, recall, subject
from inkling.studio.work import Latest, aside, told

MOST_CANDIDATES = 8
CANDIDATES = 3


def build(studio: Studio) -> None:
    answerers = studio.answerers()
    names = {name: name for name in answerers}
    names |= {name: f"{name} (was not taught to answer)" for name in studio.transformers() if name not in names}
    if not names:
        empty(
            "There is no transformer here yet. Train one on texts and questions, then open this page again.",
            "inkling data make biographies lives.txt && "
            "inkling train gpt lives.txt --pairs lives.questions.tsv --minutes 1",
        )
        return
    Desk(studio, names)


class Desk:
    """The run, the question and the answer."""

    def __init__(self, studio: Studio, names: dict[str, str]) -> None:
        self.studio = studio
        self.recalled: Recalled | None = None
        self._latest = Latest()
        self._next = 0
        with ui.element("div").classes("panel"):
            self.run = ui.select(names, value=next(iter(names)), label="Model").props("outlined dense")
            self.run.classes("knowledge-run").on_value_change(told(self._open))
            with ui.element("div").classes("line knowledge-ask"):
                self.question = ui.input("Question").props("outlined dense maxlength=2000").classes("grow")
                self.question.on("keydown.enter", told(self._ask), args=[])
                options = list(range(1, MOST_CANDIDATES + 1))
                self.beam = ui.select(options, value=CANDIDATES, label="Candidates").props("outlined dense")
                self.beam.classes("knowledge-beam")
                self._button = ui.button("Ask", on_click=told(self._ask)).props("unelevated no-caps")
                self._another = ui.button("Another question", on_click=told(self._take)).props("flat no-caps")
            self._state = ui.label().classes("quiet").props("role=status")
            with ui.element("div").classes("columns knowledge-found") as self._found:
                with ui.element("div"):
                    self._answer = ui.label().classes("figure-value text-block").props("data-testid=answer")
                    self._sure = ui.label().classes("figure-name").props("data-testid=confidence")
                    self._known = ui.label().classes("quiet")
                self._bars = ui.element("div").classes("classify-bars knowledge-bars")
            self._found.visible = False
        heading("What the corpus says")
        self.corpus = CorpusPanel(studio)
        heading("Accuracy against confidence")
        self.measure = MeasurePanel(studio, self)
        self._another.visible = False
        ui.timer(0.05, told(self._open), once=True)

    async def _open(self) -> None:
        """Loads the model and looks for what it learned from; a question of the run's own stands in the box first."""
        name = str(self.run.value)
        self._state.text = "Opening the model …"
        self._found.visible = False
        self.recalled = None
        try:
            await aside(self.studio.shelf.language_model, name)
            self.recalled = await aside(recall, self.studio.run(name), [Path.cwd(), self.studio.folder.parent])
        finally:
            self._state.text = ""
        self.corpus.set_recorded(self.recalled.documents)
        self.measure.set_recorded(self.recalled.pairs)
        self._another.visible = bool(self.recalled.asked)
        self._next = 0
        if self.recalled.asked:
            self.question.value = next(iter(self.recalled.asked))
        elif name not in self.studio.answerers():
            self._state.text = "This run learned from text alone: it never saw where a question ends."

    async def _take(self) -> None:
        assert self.recalled is not None
        questions = list(self.recalled.asked)
        self._next = (self._next + 1) % len(questions)
        self.question.value = questions[self._next]
        await self._ask()

    async def _ask(self) -> None:
        question = (self.question.value or "").strip()
        self._state.text = "Asking …"
        try:
            model = await aside(self.studio.shelf.language_model, str(self.run.value))
            found = await self._latest(ask, model, question, int(self.beam.value or 1))
        finally:
            self._state.text = ""
        if found is None:
            return
        said = candidates(found)
        self._found.visible = True
        self._answer.text = one_line(found.text) or "(nothing)"
        cut = "" if found.ended else ": the answer did not end, and was cut off"
        self._sure.text = f"{percent(found.confidence)} sure{cut}"
        asked = self.recalled.asked if self.recalled else {}
        self._known.text = _compare(found.text, asked.get(question))
        self._draw(said)
        about = await aside(subject, question, asked)
        await self.corpus.hear(about, found.text, [text for text, _ in said[1:]])

    def _draw(self, said: list[tuple[str, float]]) -> None:
        self._bars.clear()
        with self._bars:
            for text, probability in said:
                ui.label(one_line(text) or "(nothing)").classes("name")
                bar = ui.linear_progress(probability, show_value=False).props("rounded size=10px instant-feedback")
                bar.props["aria-label"] = one_line(text)
                ui.label(percent(probability)).classes("number")


def percent(share: float) -> str:
    """Small shares with the digits that tell them apart."""
    return f"{100 * share:.1f} %" if share >= 0.001 or share == 0 else f"{100 * share:.1g} %"


def _compare(said: str, truth: str | None) -> str:
    if truth is None:
        return ""
    if said.strip() == truth.strip():
        return "The training pairs have this question, and this answer."
    return one_line(f"The training pairs have this question, with the answer “{truth}”.")
