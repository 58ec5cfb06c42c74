"""Rows of the ledger, run in a child one after the other: rows of one module share what they trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol


class Say(Protocol):
    def __call__(self, done: float | None, sentence: str, part: Any = None) -> None: ...


def claim(arguments: dict[str, Any], say: Say) -> list[str]:
    """`ids`, and perhaps `data` → the ids; each row is said when it is there, with its exhibits drawn."""
    from inkling.claims.ledger import Context, run, select
    from inkling.claims.rows import CLAIMS
    from inkling.pictures.markup import section

    chosen = select(CLAIMS, arguments["ids"])
    context = Context(Path(arguments["data"]) if arguments.get("data") else None, lambda words: say(None, words))
    for row in run(chosen, context):
        say(None, "", {**row.to_json(), "exhibits": [section(exhibit) for exhibit in row.exhibits]})
    return [one.id for one in chosen]
