"""Heads made to order: wishes drawn on a board or written in words, and K, Q and V that fulfil them, or why none can.

The words are what counts; the board shows them and changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nicegui import ui

from inkling.errors import InklingError
from inkling.studio.components.wish_board import WishBoard
from inkling.studio.pages.attention_sections import Sections
from inkling.studio.views_attention import Wishes
from inkling.studio.work import Latest, say_error

BEGIN = Wishes()
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
            self.verdict = ui.label().classes("order-verdict").props("role=status data-testid=verdict")
            self.command = ui.label().classes("command")
        self.sections = Sections()

    def _field(self, title: str, value: str, placeholder: str = "") -> ui.input:
        found = ui.input(title, value=value, placeholder=placeholder, on_change=self._changed)
        return found.props("outlined dense stack-label debounce=250 maxlength=2000").classes("grow mono-field")

    async def open(self) -> None:
        await self._changed()

    def _state(self) -> Wishes:
        beta = 0.0 if self.beta.value is None else float(self.beta.value)
        texts = (str(field.value or "") for field in (self.tokens, self.wishes, self.looks))
        return Wishes(*texts, beta=beta, linear=bool(self.linear.value))

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
        state = self._state()
        try:
            self.board.show(state.board())
            if not state.wishes.strip():
                self._say(NO_WISH, None)
                return
            self.command.text = state.command
            found = await self._latest(_drawn_order, state)
        except InklingError as error:
            self._say(str(error).replace("--", ""), False)
            return
        if found is None:
            return
        met, sentence, weights, sections = found
        self.board.show(state.board(), weights)
        self._say(sentence, met)
        self.sections.show(sections, whole=True)

    def _say(self, sentence: str, met: bool | None) -> None:
        self.verdict.text = sentence
        self.verdict.classes(remove="met unmet", add="" if met is None else "met" if met else "unmet")
        if met is None:
            self.sections.clear()
            self.command.text = ""
        else:
            self.sections.fade()


def _drawn_order(state: Wishes) -> tuple[bool, str, Sequence[Sequence[float]], dict[str, str]]:
    """Met or not, in a sentence, the weights, and the sections of the page."""
    from inkling.pictures.markup import section

    found = state.order()
    exhibits = found.page().exhibits[1:]  # the summary stands above
    return (
        found.design.met,
        found.design.summary(),
        found.design.weights.tolist(),
        {each.title: section(each) for each in exhibits},
    )
