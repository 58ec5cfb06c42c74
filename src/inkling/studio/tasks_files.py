"""Reading a file that was handed in, in a child: what it is, and the beginning of its text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MOST_CHARS = 200_000


def look_at_file(arguments: dict[str, Any], say: Callable[[float | None, str], None]) -> dict[str, Any]:
    """`path` → its text (all documents, joined; at most `chars` characters) and what there is to say about it."""
    from inkling.recipes.data import TextConfig, documents, open_corpus

    most = min(int(arguments.get("chars", MOST_CHARS)), MOST_CHARS)
    say(None, "Reading …")
    corpus = open_corpus([arguments["path"]], TextConfig(), keep_line_ends=True, keep_empty=True)
    parts: list[str] = []
    size = 0
    for batch in documents(corpus):
        parts += batch
        size += sum(map(len, batch))
        if size > most:
            break
    text = "".join(parts)
    return {
        "text": text[:most],
        "lengths": [len(part) for part in parts],  # of the documents, before the text was cut
        "cut": len(text) > most,
        "bytes": corpus.size_bytes,
        "notes": list(corpus.notes),
    }
