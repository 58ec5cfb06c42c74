"""A text in pieces: each has a shade, a note that shows when it is pointed at, and can be picked.

Ten thousand pieces are built once, in the page; after that only what changes is sent. Pointing at a piece (or going to
it with the arrow keys) shows its note at once; where `on_ask` is given, the server is asked a moment later and tells
more (`tell`): the likeliest continuations, each with its share as a bar. All text arrives as text.

Shades (studio.css): "" none, s1–s5 surprise, f1–f4 for, a1–a4 against, p prompt; "u" behind a space underlines: "s3 u".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nicegui.element import Element

from inkling.pictures.harmless import safe


@dataclass(frozen=True)
class Piece:
    text: str
    shade: str = ""
    note: str = ""

    def sent(self) -> list[str]:
        return [safe(self.text), self.shade, safe(self.note)]


@dataclass(frozen=True)
class Choice:
    """A token that could stand at a place, with its share of the probability."""

    text: str
    share: float
    chosen: bool = False

    def sent(self) -> list[Any]:
        return [safe(self.text), self.share, self.chosen]


class MarkedText(Element, component="marked_text.js"):
    def __init__(
        self,
        pieces: Iterable[Piece] = (),
        *,
        label: str,
        on_ask: Callable[[int], Any] | None = None,
        on_pick: Callable[[int], Any] | None = None,
    ) -> None:
        """`label` says what the text is, for readers who do not see it."""
        super().__init__()
        self._props["pieces"] = [piece.sent() for piece in pieces]
        self._props["label"] = label
        self._props["asks"] = on_ask is not None
        self._props["picks"] = on_pick is not None
        if on_ask is not None:
            self.on("ask", lambda event: on_ask(int(event.args)))
        if on_pick is not None:
            self.on("pick", lambda event: on_pick(int(event.args)))

    def set_pieces(self, pieces: Iterable[Piece]) -> None:
        self._props["pieces"] = [piece.sent() for piece in pieces]
        self.update()

    def append(self, pieces: Iterable[Piece]) -> None:
        """Adds pieces at the end, sending nothing but them."""
        new = [piece.sent() for piece in pieces]
        first = len(self._props["pieces"])
        self._props["pieces"].extend(new)  # not sent by itself, but with an update that is still on its way
        self.run_method("append", new, first)

    def tell(self, index: int, choices: Sequence[Choice], title: str = "") -> None:
        """What else could stand at a place: shown while the place is pointed at."""
        self.run_method("tell", index, safe(title), [choice.sent() for choice in choices])
