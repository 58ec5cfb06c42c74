"""Attention in a trained model: the maps of all its heads on your text, window by window, and the census of heads.

Maps are worked out for the window that is looked at and for no other. The census (`inkling attention inspect`) runs in
a process of its own; where there is no run with heads, a small model is trained for it in ten seconds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from nicegui import ui

from inkling.errors import InklingError
from inkling.studio.components.map_canvas import MapCanvas
from inkling.studio.frame import empty, heading
from inkling.studio.intake import Received, upload
from inkling.studio.pages.attention_sections import Sections
from inkling.studio.state import Studio
from inkling.studio.views_attention import Maps, look_at, tokenise
from inkling.studio.work import Child, Latest, aside, told

if TYPE_CHECKING:
    from inkling.models.gpt_model import Transformer

TEXT = (
    "The baker bakes the loaf in winter. The sailor steers the boat and anchors every net in spring. "
    "The baker bakes the loaf. The sailor steers the boat."
)
WINDOW = 64  # tokens
MOST_WINDOW = 256
MOST_CHARS = 200_000
SMALL = "a small model"


class InModel:
    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        self.names = studio.transformers()
        self._texts, self._looks = Latest(), Latest()
        self._ids: list[int] = []
        self._roles: dict[str, list[str]] = {}
        self._received: Received | None = None
        self._of_file = ""
        self.canvas: MapCanvas | None = None
        if self.names:
            self._build_maps()
        else:
            empty(
                "There is no run of a transformer here, so there are no heads to look into. Train one, or let a small "
                "model be trained below.",
                "inkling train gpt FILE --minutes 1",
            )
        self.census = _Census(self)

    def _build_maps(self) -> None:
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("line"):
                self.run = ui.select(self.names, value=self.names[0], label="Model", on_change=self._read)
                self.run.props("outlined dense").classes("grow")
                self.length = ui.number("Window, tokens", value=WINDOW, min=3, max=MOST_WINDOW, precision=0)
                self.length.props("outlined dense hide-bottom-space debounce=400").classes("window-length")
                self.length.on_value_change(self._read)
            self.text = ui.textarea("Your text", value=TEXT, on_change=self._typed)
            self.text.props(f"outlined debounce=350 maxlength={MOST_CHARS} input-style=max-height:11rem").classes(
                "own-text"
            )
            with ui.expansion("Or hand in a file").props("dense dense-toggle").classes("more"):
                upload(self.studio, "Drop a text here", self._file)
        with ui.element("div").classes("panel") as self.panel:
            with ui.element("div").classes("line"):
                self.back = ui.button(icon="chevron_left", on_click=lambda: self._move(-1))
                self.back.props('flat round dense aria-label="Window before"')
                self.place = ui.slider(min=1, max=1, step=1, value=1).props('aria-label="Window of the text" dense')
                self.place.classes("window-slider").on_value_change(self._show)
                self.on = ui.button(icon="chevron_right", on_click=lambda: self._move(1))
                self.on.props('flat round dense aria-label="Next window"')
                self.where = ui.label().classes("quiet number").props("aria-live=polite data-testid=window")
            self.wrong = ui.label().classes("wrong").props("role=alert")
            self.area = ui.element("div")
            ui.label(
                "Each row is a place in the text, its cells the weights on itself and on what stands before it; "
                "shades go with the square root of the weight. Point at a cell, or click a map to enlarge it."
            ).classes("quiet")

    async def open(self) -> None:
        if self.names:
            await self._read()

    @property
    def source(self) -> dict[str, Any]:
        """The text as a census reads it: the file that was handed in, or what stands in the field."""
        if self._received is not None:
            return {"files": [str(self._received.path)]}
        return {"text": str(self.text.value or "")}

    async def _typed(self) -> None:
        if self.text.value != self._of_file:
            self._received = None
        await self._read()

    async def _file(self, received: Received) -> None:
        found = await Child("look-at-file", {"path": str(received.path)}, lambda done, say: None).result()
        self._received, self._of_file = received, found["text"]
        self.text.value = found["text"]
        ui.notify(f"{received.name}: {len(found['text']):,} characters" + (", the beginning" if found["cut"] else ""))

    async def _read(self) -> None:
        """Another model, another text, or another length of windows."""
        try:
            found = await self._texts(self._tokens, str(self.run.value), str(self.text.value or ""))
            if found is None:
                return
            self._ids, most = found
            self.length.max = min(MOST_WINDOW, most)
        except InklingError as error:
            self._complain(str(error))
            return
        self.place.props(f"max={self._windows}")
        changed = self.place.value != 1
        self.place.value = 1
        if not changed:  # or the slider has said so itself
            await self._show()

    def _tokens(self, name: str, text: str) -> tuple[list[int], int]:
        model = self.studio.shelf.transformer(name)
        return tokenise(model, text), model.config.context

    @property
    def _window(self) -> int:
        most = int(self.length.max)
        return max(3, min(most, int(self.length.value or WINDOW)))

    @property
    def _windows(self) -> int:
        return max(1, math.ceil(len(self._ids) / self._window))

    def _move(self, by: int) -> None:
        self.place.value = max(1, min(self._windows, int(self.place.value or 1) + by))

    async def _show(self) -> None:
        first = (min(self._windows, int(self.place.value or 1)) - 1) * self._window
        ids = self._ids[first : first + self._window]
        name = str(self.run.value)
        try:
            maps = await self._looks(self._maps, name, ids)
        except InklingError as error:
            self._complain(str(error))
            return
        if maps is None:
            return
        self.wrong.text = ""
        self.where.text = f"tokens {first + 1:,} to {first + len(ids):,} of {len(self._ids):,}"
        self.draw(maps, self._roles.get(name, []))

    def _maps(self, name: str, ids: list[int]) -> Maps:
        model: Transformer = self.studio.shelf.transformer(name)
        return look_at(model, ids)

    def draw(self, maps: Maps, roles: list[str]) -> None:
        if self.canvas is None:
            with self.area:
                self.canvas = MapCanvas(
                    maps, label="Attention maps of all heads; arrows and Enter choose one", roles=roles
                )
        else:
            self.canvas.show(maps, roles)

    def _complain(self, sentence: str) -> None:
        self.wrong.text = sentence
        self.where.text = ""

    async def know_roles(self, name: str, roles: list[str]) -> None:
        """What a census called the heads stands above their maps from now on."""
        self._roles[name] = roles
        if name == self.run.value and self._ids:
            await self._show()


class _Census:
    """What every head does, in words, tables and bars."""

    def __init__(self, owner: InModel) -> None:
        self.owner = owner
        self.child: Child | None = None
        heading("The census: what every head does, and what is lost without it")
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("fields"):
                self.texts = self._number("Texts or windows", 64, 2, 4096)
                if owner.names:
                    self.length = self._number("Tokens of each", 64, 3, 4096)
                self.noise = self._number("Noise on keys", 0.1, 0, 10, None)
                self.seed = self._number("Seed", 0, 0, 2**32 - 1)
                self.steps = self._number("Small model: steps", 500, 1, 100_000)
            with ui.element("div").classes("line census-buttons"):
                if owner.names:
                    self.start = ui.button("Census of this model", on_click=told(self._of_run))
                    self.start.props("unelevated no-caps")
                self.small = ui.button("Train a small model and look into it", on_click=told(self._of_small))
                self.small.props("outline no-caps" if owner.names else "unelevated no-caps")
            with ui.element("div").classes("census-waiting") as self.waiting:
                self.bar = ui.linear_progress(0, show_value=False).props('rounded aria-label="Census"')
                with ui.element("div").classes("line"):
                    self.said = ui.label().classes("quiet grow number").props("aria-live=polite")
                    ui.button("Cancel", on_click=self._cancel).props("outline dense no-caps")
            self.waiting.set_visibility(False)
        self.of = ui.label().classes("quiet").props("data-testid=census-of")
        self.sections = Sections()
        self.area = ui.element("div")
        ui.context.client.on_delete(self._cancel)  # nobody waits for it any more

    def _number(self, title: str, value: float, least: int, most: int, precision: int | None = 0) -> ui.number:
        found = ui.number(title, value=value, min=least, max=most, precision=precision)
        return found.props("outlined dense hide-bottom-space" + ("" if precision == 0 else " step=any"))

    def _cancel(self) -> None:
        if self.child is not None:
            self.child.cancel()

    async def _of_run(self) -> None:
        name = str(self.owner.run.value)
        run = await aside(self.owner.studio.run, name)
        length = self._whole(self.length)
        await self._count(name, {"run": str(run.path), "length": length, **self.owner.source})

    async def _of_small(self) -> None:
        await self._count(SMALL, {"run": None, "steps": self._whole(self.steps)})

    def _whole(self, field: ui.number) -> int:
        if field.value is None:
            raise InklingError(f"The field '{field.props['label']}' is empty; give a number.")
        return int(field.value)

    async def _count(self, name: str, arguments: dict[str, Any]) -> None:
        if self.child is not None:
            raise InklingError("A census is being taken; wait for it, or cancel it.")
        if self.noise.value is None:
            raise InklingError("The noise on keys is empty; give a share of their length, 0 or more.")
        given = {"texts": self._whole(self.texts), "seed": self._whole(self.seed), "key_noise": float(self.noise.value)}
        self.child = Child("census", {**arguments, **given}, self._progress)
        self._progress(0.0, "Starting …")
        self.waiting.set_visibility(True)
        self.sections.fade()
        try:
            found = await self.child.result()
        finally:
            self.child = None
            self.waiting.set_visibility(False)
        self.of.text = f"Of {name}, {found['json']['texts']} texts."
        self.sections.show(found["sections"], whole=True)
        self.area.clear()
        if name == SMALL:
            maps = {**found["maps"], "tokens": tuple(found["maps"]["tokens"])}
            with self.area, ui.element("div").classes("panel"):
                label = "Attention maps of the small model"
                MapCanvas(Maps(**maps), label=label, roles=found["roles"])
        else:
            await self.owner.know_roles(name, found["roles"])

    def _progress(self, done: float | None, sentence: str) -> None:
        self.bar.value = done or 0.0
        self.said.text = sentence
