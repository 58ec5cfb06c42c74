"""Heads made to order: wishes drawn on a board or written in words, and K, Q and V that fulfil them, or why none can.

The words are what counts; the board shows them and changes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from nicegui import ui

from inkling.errors import InklingError
from inkling.studio.components.wish_board import WishBoard
from inkling.studio.pages.attention_sections import Sections
from inkling.studio.views_attention import Drawn, Wishes, drawn
from inkling.studio.work import Child, Latest, say_error

BEGIN = Wishes()
AT_ONCE = 9  # tokens whose head is found within a moment
EXAMPLES = (
    ("One reads a part of another", "d+b, a, c+b", "1=b-c, 2=b", ""),
    ("One collects from two", "a+x, b+y, c", "3=x+y", ""),
    ("Look at a token you choose", "a, b", "1=3b", "1=2"),
    ("Impossible: equal tokens, different wishes", "a, a", "1=a, 2=2a", ""),
)
NO_WISH = "Nothing is wished for yet: drag from a token to what it should output, or write it, such as 1=b-c."


class Construct:
    def __init__(self) -> None:
        self._latest = Latest()
        self._child: Child | None = None
        ui.label(
            "Tokens are sums of directions that you name. Say what some of them should output: K, Q and V are found "
            "that do it, or it is said why none can."
        ).classes("quiet kind-meaning")
        with ui.element("div").classes("panel"):
            with ui.element("div").classes("line top"):
                self.tokens = self._field("Tokens", BEGIN.tokens)
                self.wishes = self._field("Wishes: token=output", BEGIN.wishes)
                self.looks = self._field("Must look at: token=tokens", BEGIN.looks, "searched")
            self.board = WishBoard(
                label="Board of wishes: choose a token, then what it should output or look at",
                on_wish=self._wish,
                on_look=self._look,
            )
            with ui.element("div").classes("line"):
                with ui.element("div").classes("dial grow"):
                    ui.label("β").classes("dial-name").tooltip("Length of each direction; scores are β².")
                    self.beta = ui.slider(min=0.5, max=6, step=0.1, value=BEGIN.beta)
                    self.beta.props('aria-label="β of the head" dense').on_value_change(self._changed)
                    field = ui.number(value=BEGIN.beta, min=0.001, max=1000)
                    field.props('outlined dense hide-bottom-space step=any aria-label="β of the head, as a number"')
                    field.bind_value(self.beta)
                self.linear = ui.switch("V may be any linear map", on_change=self._changed)
                with ui.dropdown_button("Examples", auto_close=True).props("outline no-caps dense"):
                    for name, *words in EXAMPLES:
                        ui.item(name, on_click=lambda words=words: self._take(*words))
            with ui.element("div").classes("census-waiting") as self.waiting:
                ui.linear_progress(show_value=False).props('indeterminate rounded aria-label="Searching"')
                with ui.element("div").classes("line"):
                    ui.label("Searching where each of so many tokens should look …").classes("quiet grow")
                    ui.button("Cancel", on_click=lambda: self._cancel(by_hand=True)).props("outline dense no-caps")
            self.waiting.set_visibility(False)
            self.verdict = ui.label().classes("order-verdict").props("role=status data-testid=verdict")
            self.command = ui.label().classes("command")
        self.sections = Sections()
        ui.context.client.on_delete(lambda: self._cancel(by_hand=False))

    def _field(self, title: str, value: str, placeholder: str = "") -> ui.input:
        found = ui.input(title, value=value, placeholder=placeholder, on_change=self._changed)
        return found.props("outlined dense stack-label debounce=250 maxlength=2000").classes("grow mono-field")

    async def open(self) -> None:
        await self._changed()

    def _state(self) -> Wishes:
        beta = 0.0 if self.beta.value is None else float(self.beta.value)
        tokens, wishes, looks = (str(field.value or "") for field in (self.tokens, self.wishes, self.looks))
        return Wishes(tokens, wishes, looks, beta, bool(self.linear.value))

    def _take(self, tokens: str, wishes: str, looks: str) -> None:
        self.tokens.value, self.wishes.value, self.looks.value = tokens, wishes, looks

    def _wish(self, token: int, direction: int) -> None:
        self._drawn(lambda state: state.with_wish(token, direction))

    def _look(self, token: int, at: int) -> None:
        self._drawn(lambda state: state.with_look(token, at))

    def _drawn(self, change: Callable[[Wishes], Wishes]) -> None:
        """What was drawn is written into the fields, and goes its way from there."""
        try:
            state = change(self._state())
        except InklingError as error:
            say_error(str(error))
            return
        self._take(state.tokens, state.wishes, state.looks)

    async def _changed(self) -> None:
        self._cancel()  # nobody wants the answer to what stood there before
        state = self._state()
        try:
            board = state.board()
            self.board.show(board)
            if not state.wishes.strip():
                self._say(NO_WISH, None)
                return
            self.command.text = state.command
            if len(board["tokens"]) > AT_ONCE:
                found = await self._search(state)
            else:
                found = await self._latest(drawn, state)
        except InklingError as error:
            self._say(str(error).replace("--", ""), False)
            return
        if found is None or state != self._state():
            return
        self.board.show(board, found.weights)
        self._say(found.sentence, found.met)
        self.sections.show(found.sections, whole=True)

    async def _search(self, state: Wishes) -> Drawn | None:
        """Many tokens take seconds to minutes: a process that can be ended."""
        child = self._child = Child("order", asdict(state), lambda done, say: None)
        self.waiting.set_visibility(True)
        self.verdict.text = ""
        self.verdict.classes(remove="met unmet")
        self.sections.fade()
        try:
            found: Drawn | None = Drawn(**await child.result())
        except InklingError:
            if self._child is not child:  # another question took its place
                return None
            raise
        finally:
            if self._child is child:
                self._child = None
                self.waiting.set_visibility(False)
        return found

    def _cancel(self, by_hand: bool = False) -> None:
        if self._child is not None:
            child = self._child
            if not by_hand:
                self._child = None
                self.waiting.set_visibility(False)
            child.cancel()

    def _say(self, sentence: str, met: bool | None) -> None:
        self.verdict.text = sentence
        self.verdict.classes(remove="met unmet", add="" if met is None else "met" if met else "unmet")
        if met is None:
            self.sections.clear()
            self.command.text = ""
        else:
            self.sections.fade()
