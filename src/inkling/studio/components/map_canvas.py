"""The attention maps of every layer and head, on one canvas.

All maps stand in a grid; a click (or Enter) enlarges one, Escape goes back. Pointing at a place shows the token that
looks, the token it looks at and the weight, and shades the text below by what that token looks at. Only one window of
text is sent, its weights in half precision. All text arrives as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nicegui.element import Element

from inkling.studio.views_attention import Maps


class MapCanvas(Element, component="map_canvas.js"):
    def __init__(self, maps: Maps, *, label: str, roles: Sequence[str] = ()) -> None:
        """`roles` says what each head is called, layer by layer."""
        super().__init__()
        self._props["label"] = label
        self._props["maps"] = _sent(maps, roles)

    def show(self, maps: Maps, roles: Sequence[str] = ()) -> None:
        self._props["maps"] = _sent(maps, roles)
        self.update()


def _sent(maps: Maps, roles: Sequence[str]) -> dict[str, Any]:
    return {
        "tokens": list(maps.tokens),
        "layers": maps.layers,
        "heads": maps.heads,
        "packed": maps.packed,
        "roles": list(roles),
    }
