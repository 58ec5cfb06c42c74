"""write"""

from __future__ import annotations

from inkling.studio.frame import empty
from inkling.studio.state import Studio


def build(studio: Studio) -> None:
    empty("Nothing here yet.")
