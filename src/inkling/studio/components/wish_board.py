"""A board on which wishes are drawn: tokens at the left, what they can output and look at at the right.

Drag from a token to a direction or to a token, or choose one and then the other (with the keyboard: Enter on both). The
board only says what was linked; whoever uses it decides what that means and hands the new state back (`show`). Lines of
found weights are drawn behind, as strong as the weights. All text arrives as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nicegui.element import Element

from inkling.pictures.harmless import safe


class WishBoard(Element, component="wish_board.js"):
    def __init__(self, *, label: str, on_wish: Callable[[int, int], Any], on_look: Callable[[int, int], Any]) -> None:
        """`on_wish` is told a token and a direction that were linked, `on_look` two tokens, all from 0."""
        super().__init__()
        self._props["label"] = label
        for name in ("tokens", "directions", "wishes", "looks", "weights"):
            self._props[name] = []
        self.on("wish", lambda event: on_wish(int(event.args[0]), int(event.args[1])))
        self.on("look", lambda event: on_look(int(event.args[0]), int(event.args[1])))

    def show(self, board: Mapping[str, Any], weights: Sequence[Sequence[float]] = ()) -> None:
        """`board` as of `Wishes.board`, and the weights (token × token) that were found for it."""
        self._props["tokens"] = [safe(token) for token in board["tokens"]]
        self._props["directions"] = [safe(name) for name in board["directions"]]
        self._props["wishes"], self._props["looks"] = board["wishes"], board["looks"]
        self._props["weights"] = [list(row) for row in weights]
        self.update()
