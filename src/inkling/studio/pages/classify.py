"""Classify: a text with its verdict and the words that moved it, changing as somebody types; below it, mistakes."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from inkling.pictures.harmless import one_line
from inkling.studio.components.marked_text import MarkedText, Piece
from inkling.studio.frame import empty, heading
from inkling.studio.pages.classify_mistakes import Browser
from inkling.studio.pages.classify_words import TALL_CHARS, Legend, scroll_to, write_lines
from inkling.studio.state import Studio
from inkling.studio.views_classify import MOST_CHARS, Judged, judge, pair_of
from inkling.studio.work import Latest, aside, told

TYPED_MS = 150
SHOWN_LABELS = 8  # of more, the likeliest
REVIEW_LABELS = {"negative", "positive"}


def build(studio: Studio) -> None:
    names = studio.classifiers()
    if not names:
        empty(
            "There is no classifier here yet. Train one on texts with labels, then open this page again.",
            "inkling data make reviews reviews.csv && inkling train dan reviews.csv",
        )
        return
    desk = Desk(studio, names)
    heading("Where it errs, and why")
    Browser(studio, desk)


class Desk:
    """The box to type in, the verdict, and why."""

    def __init__(self, studio: Studio, names: list[str]) -> None:
        self.studio = studio
        self._latest = Latest()
        self._edited: dict[str, Any] | None = None
        self._reviews = 1  # seed of the next example
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("line"):
                self.run = ui.select(names, value=names[0], label="Classifier").props("outlined dense")
                self.run.classes("grow classify-run").on_value_change(told(self._changed))
                self._example = ui.button("Try a generated review", on_click=told(self._take_example))
                self._example.props("flat no-caps").visible = self.knows_reviews()
            with ui.element("div").classes("columns classify-desk"):
                with ui.element("div"):
                    self.box = ui.textarea("Text", placeholder="Type or paste a text")
                    self.box.props(
                        f"outlined debounce={TYPED_MS} maxlength={MOST_CHARS} input-class=classify-box"
                    ).classes("classify-text")
                    self.box.on_value_change(told(self._judge))
                    self._origin = ui.element("div").classes("classify-origin")
                self._verdict = _Verdict()
            self._why = ui.element("div").classes("classify-why")
            with self._why:
                self._words = MarkedText(label="The text, its words coloured by their effect")
                self._legend = Legend()
                self._lines = ui.element("div")
            self._why.visible = False
        ui.timer(0.05, told(self._open), once=True)

    async def edit(self, mistake: dict[str, Any], run: str) -> None:
        """Puts a mistake into the box, to see what would have turned it."""
        self._edited = mistake
        if self.run.value != run and run in self.run.options:
            self.run.value = run
        self._origin.clear()
        with self._origin, ui.element("div").classes("line"):
            said = f"Row {mistake['row']}: {pair_of(mistake)}, {100 * mistake['probability']:.1f} %."
            ui.label(one_line(said)).classes("quiet")
            ui.button("As it was", on_click=self._restore).props("flat dense no-caps")
        self.box.value = mistake["text"]
        self.box.run_method("focus")
        scroll_to(self.run)

    def _restore(self) -> None:
        if self._edited is not None:
            self.box.value = self._edited["text"]

    def knows_reviews(self) -> bool:
        """Whether what is generated has the labels of this run."""
        return set(self.studio.run(self.run.value).info["data"].get("labels", ())) == REVIEW_LABELS

    async def _take_example(self) -> None:
        self._reviews += 1
        self._forget()
        self.box.value = await aside(_review, self._reviews)

    def _forget(self) -> None:
        self._edited = None
        self._origin.clear()

    async def _open(self) -> None:
        """Loads the model, and torch before it, while somebody looks at the page."""
        self._verdict.wait("Opening the model …")
        await aside(self.studio.shelf.classifier, self.run.value)
        await self._judge()

    async def _changed(self) -> None:
        self._example.visible = self.knows_reviews()
        await self._open()

    async def _judge(self) -> None:
        text = self.box.value or ""
        if not text.strip():
            text = ""
            self._forget()
        found = await self._latest(self._ask, self.run.value, text)
        if found is None:
            return
        self._verdict.show(found if text else None)
        self._why.visible = bool(text)
        self._words.set_pieces(Piece(*one) for one in (found.told.pieces if text else ()))
        self._words.classes(**{"add" if len(text) > TALL_CHARS else "remove": "classify-tall"})
        self._legend.show(found.told, found.reasons.verdict, found.reasons.runner_up)
        write_lines(self._lines, found.told)

    def _ask(self, name: str, text: str) -> Judged:
        from inkling.recipes.verdicts import choose_threshold

        return judge(self.studio.shelf.classifier(name), choose_threshold(self.studio.run(name), None), text)


class _Verdict:
    """The label, how sure it is, and a bar for every label."""

    def __init__(self) -> None:
        with ui.element("div").classes("classify-verdict").props("role=status aria-label=Verdict"):
            self._label = ui.label().classes("figure-value").props("data-testid=verdict")
            self._sure = ui.label().classes("figure-name")
            self._bars = ui.element("div").classes("classify-bars")
            self._rest = ui.label().classes("quiet")
        self._rows: list[tuple[ui.label, ui.linear_progress, ui.label]] = []

    def wait(self, sentence: str) -> None:
        self._label.text, self._sure.text = "", sentence
        self._bars.visible = self._rest.visible = False

    def show(self, found: Judged | None) -> None:
        if found is None:
            self.wait("The verdict appears here as you type.")
            return
        self._bars.visible = self._rest.visible = True
        from inkling.explain.weighing import percent

        self._label.text = one_line(found.reasons.verdict)
        unsure = ", below what held-out texts ask for: unsure" if found.unsure else ""
        self._sure.text = f"{percent(found.probability)} sure{unsure}"
        shown = found.probabilities
        if len(shown) > SHOWN_LABELS:
            shown = tuple(sorted(shown, key=lambda pair: -pair[1])[:SHOWN_LABELS])
        if len(self._rows) != len(shown):
            self._build(len(shown))
        for (label, probability), (name, bar, value) in zip(shown, self._rows, strict=True):
            name.text, bar.value, value.text = one_line(label), probability, f"{100 * probability:.1f} %"
            bar.props["aria-label"] = one_line(label)
        left = len(found.probabilities) - len(shown)
        self._rest.text = f"and {left:,} less likely" if left else ""

    def _build(self, count: int) -> None:
        self._bars.clear()
        with self._bars:
            self._rows = [
                (
                    ui.label().classes("name"),
                    ui.linear_progress(0.0, show_value=False).props("rounded size=10px instant-feedback"),
                    ui.label().classes("number"),
                )
                for _ in range(count)
            ]


def _review(seed: int) -> str:
    import numpy as np

    from inkling.text.world import reviews

    return reviews(np.random.default_rng(seed), 1)[0][0]
