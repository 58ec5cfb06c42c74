"""What a tokeniser is, and what it gives back.

A tokeniser cuts a text into pieces and names each piece by an id below `size`. Nothing is lost: a piece without an id
of its own becomes the id `unknown`, and its spelling is kept beside the ids, so `decode(encode(text)) == text`.
Pieces never cross a line end, so a file cut at its line ends gives the same tokens as the file in one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Encodings:
    """The tokens of several texts, laid end to end. Text i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: NDArray[np.int32]  # N
    offsets: NDArray[np.int64]  # texts + 1
    spellings: tuple[str, ...]  # of the unknown tokens, in order: as many as there are unknown ids

    def __len__(self) -> int:
        return len(self.offsets) - 1


class Tokeniser(Protocol):
    """Turns text into ids and back. `begin` is the id that stands before a text: the piece that ends a line."""

    @property
    def kind(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def unknown(self) -> int | None: ...
    @property
    def begin(self) -> int: ...
    @property
    def byte_lengths(self) -> NDArray[np.int64]:
        """UTF-8 bytes of each piece; 0 for the unknown id, whose length is that of its spelling."""
        ...

    def encode(self, texts: Sequence[str]) -> Encodings: ...
    def decode(self, ids: Sequence[int] | NDArray[np.int32], spellings: Sequence[str] = ()) -> str:
        """The text. An unknown id takes the next of `spellings`; with none left it is shown as U+FFFD."""
        ...

    def piece(self, token: int) -> bytes:
        """UTF-8 bytes of one piece (part of a character, perhaps); empty for the unknown id."""
        ...

    def to_json(self) -> str:
        """The whole tokeniser as the text of a `tokenizer.json` of the tokenizers library."""
        ...
