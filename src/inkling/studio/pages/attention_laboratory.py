"""The laboratory: sliders, and what n keys and a query give, exact beside simulated.

While a slider moves, an answer from fewer samples comes within a moment, and says how few; a little after it has come
to rest, the one that the command gives; where that takes seconds, from a process that can be ended.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from nicegui import ui

from inkling.errors import InklingError
from inkling.studio.pages.attention_sections import Sections
from inkling.studio.views_attention import MOST_KEYS, Answer, command_of, draft, is_long, setting_of, settled
from inkling.studio.waiting import Waiting
from inkling.studio.work import Latest

if TYPE_CHECKING:
    from inkling.attention.laboratory import Setting

REST_SECONDS = 0.35  # without a change, after which the whole answer is worked out
KINDS = {
    "copy": "Copy",
    "average": "Average",
    "noise": "Noise",
    "heads": "Two heads",
    "same": "Two heads, same query",
}
MEANINGS = {
    "copy": "One head looks at one key, q = βμ_a: how much of v_a arrives?",
    "average": "One head looks at two keys, q = β(μ_a + μ_b), and gives half of each value.",
    "noise": "One head looks at two keys, one of them uncertain in length: the output swings.",
    "heads": "Two heads, one key each: the output holds still, unless head 1 loses its key.",
    "same": "Two heads with the query of one: they are wrong together, and nothing is gained.",
}
NOISES = {"copy": 0.0, "average": 0.0, "noise": 0.5, "heads": 0.5, "same": 0.5}  # as the commands begin
SAMPLES = {20_000: "20,000", 200_000: "200,000", 1_000_000: "1,000,000"}
SLIDERS = (  # name, title, least, most of the slider, step, begins at, most of the field, what it is
    ("keys", "Keys", 2, 200, 1, 20, MOST_KEYS, "How many keys there are, n."),
    ("beta", "β", 0, 40, 0.5, 10, 1e6, "How sharp queries are: q is β times the means of the keys looked at."),
    ("noise", "Noise", 0, 2, 0.05, 0.5, 1e6, "Variance of key a along its own mean."),
    ("alpha", "α", 0, 0.1, 0.001, 0, 1e6, "Variance of every key in every direction."),
    ("coherence", "Coherence", 0, 0.95, 0.05, 0, 1, "Largest |cosine| between the means of two keys; 0: orthonormal."),
)


class Laboratory:
    def __init__(self) -> None:
        self._quick, self._whole = Latest(keeps_up=True), Latest()
        self._changes = 0
        self._values: dict[str, ui.slider | ui.number | ui.switch | ui.select | ui.toggle] = {}
        self.kind = ui.toggle(KINDS, value="heads", on_change=self._new_kind).props(
            'unelevated no-caps toggle-color=primary aria-label="Experiment"'
        )
        self.kind.classes("kinds")
        self.meaning = ui.label(MEANINGS["heads"]).classes("quiet kind-meaning")
        with ui.element("div").classes("bench"):
            with ui.element("div").classes("panel bench-controls"):
                for row in SLIDERS:
                    self._slider(*row)
                self._more()
            with ui.element("div").classes("bench-results"):
                self._results()

    def _slider(
        self, name: str, title: str, least: float, most: float, step: float, value: float, limit: float, what: str
    ) -> None:
        with ui.element("div").classes("dial"):
            ui.label(title).classes("dial-name").tooltip(what)
            slider = ui.slider(min=least, max=most, step=step, value=value).props(f'aria-label="{title}" dense')
            field = ui.number(value=value, min=1 if name == "keys" else -1e6 if name == "beta" else 0, max=limit)
            field.props(f'outlined dense hide-bottom-space step=any aria-label="{title}, as a number"')
            field.bind_value(slider)
        slider.on_value_change(self._changed)
        self._values[name] = slider

    def _more(self) -> None:
        def number(name: str, title: str, value: int | None, least: int, what: str = "") -> None:
            field = ui.number(title, value=value, min=least, precision=0, on_change=self._changed)
            field.props("outlined dense hide-bottom-space debounce=250")
            if what:
                field.props(f'placeholder="{what}" stack-label clearable')
            self._values[name] = field

        scaled = ui.switch("Divide scores by √d", on_change=self._changed)
        self._values["scaled"] = scaled.tooltip("As transformers do: β then counts for less the more dimensions.")
        more = ui.expansion("More settings").props("dense dense-toggle").classes("more")
        with more, ui.element("div").classes("fields"):
            number("dimension", "Dimensions", None, 1, "as many as keys")
            number("a", "Key a", 1, 1)
            number("b", "Key b", 2, 1)
            number("seed", "Seed", 0, 0)
            samples = ui.select(SAMPLES, value=200_000, label="Samples", on_change=self._changed)
            self._values["samples"] = samples.props("outlined dense")

    def _results(self) -> None:
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("tiles"):
                self.tiles = [_Tile() for _ in range(4)]
            with ui.element("div").classes("line said-line"):
                self.busy = ui.spinner(size="1rem").props("aria-hidden=true")
                self.said = ui.label().classes("quiet grow number").props("aria-live=polite data-testid=samples")
            self._waiting = Waiting()
            self.wrong = ui.label().classes("wrong").props("role=alert")
            self.wrong.set_visibility(False)
            self.command = ui.label().classes("command").props("data-testid=lab-command")
        self.pictures = Sections()

    async def open(self) -> None:
        await self._changed()

    def setting(self) -> Setting:
        values = {name: element.value for name, element in self._values.items()}
        return setting_of({**values, "kind": self.kind.value})

    async def _new_kind(self) -> None:
        kind = str(self.kind.value)
        self.meaning.text = MEANINGS[kind]
        self._values["b"].set_visibility(kind != "copy")
        if self._values["noise"].value in (0, 0.5):  # nobody chose another
            self._values["noise"].value = NOISES[kind]
        self.pictures.clear()
        await self._changed()

    async def _changed(self) -> None:
        self._changes += 1
        mine = self._changes
        self._waiting.cancel()
        try:
            setting, samples = self.setting(), int(self._values["samples"].value)
            answer = await self._quick(draft, setting)
            if answer is None:
                return
            self._draw(answer, setting, samples)
            await asyncio.sleep(REST_SECONDS)
            if mine != self._changes:
                return
            if is_long(setting, samples):
                await self._work_out(setting, samples, mine)
                return
            answer = await self._whole(settled, setting, samples)
            if answer is not None and mine == self._changes:
                self._draw(answer, setting, samples)
        except InklingError as error:
            if mine == self._changes:
                self._complain(str(error))

    async def _work_out(self, setting: Setting, samples: int, mine: int) -> None:
        """In a child, with a button that ends it."""
        found = await self._waiting.result("experiment", {**asdict(setting), "samples": samples}, "Exact figures …")
        if mine != self._changes:
            return
        if found is None:
            self.busy.set_visibility(False)
            self.said.text = "Cancelled: these figures are from fewer samples. Change something to begin again."
            return
        self._draw(Answer.of_json(found), setting, samples)

    def _complain(self, sentence: str) -> None:
        self.wrong.text = sentence
        self.wrong.set_visibility(True)
        self.busy.set_visibility(False)
        self.said.text = "No figures for these settings; those below are older."
        self.pictures.fade()

    def _draw(self, answer: Answer, setting: Setting, samples: int) -> None:
        self.wrong.set_visibility(False)
        self.busy.set_visibility(not answer.whole)
        self.said.text = f"{answer.samples:,} samples" + (
            "" if answer.whole else f" while you move; {samples:,} follow …"
        )
        self.command.text = command_of(setting, samples)
        for tile, figure in zip(self.tiles, [*answer.figures, None, None], strict=False):
            tile.show(figure)
        self.pictures.show(answer.sections, answer.whole)


class _Tile:
    """One main figure: exact in large letters, simulated below."""

    def __init__(self) -> None:
        with ui.element("div").classes("tile") as self.box:
            self.name = ui.label().classes("figure-name")
            self.value = ui.label().classes("figure-value")
            self.below = ui.label().classes("quiet number")
            self.off = ui.label().classes("quiet number")

    def show(self, figure: Mapping[str, Any] | None) -> None:
        self.box.set_visibility(figure is not None)
        if figure is None:
            return
        known = not math.isnan(figure["exact"])
        self.name.text = figure["name"]
        self.value.text = f"{figure['exact']:.4f}" if known else "…"
        off = f"{figure['deviation']:+.1f} standard errors" if known else "exact follows …"
        error = f"{figure['standard_error']:.1g}" if figure["standard_error"] >= 1e-12 else "0"
        self.below.text = f"simulated {figure['simulated']:.4f} ± {error}".replace("-", "−")
        self.off.text = off.replace("-", "−")
