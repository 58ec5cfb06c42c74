"""What the page Compare shows of two models on one text: pieces with shades and notes, and what could stand at each."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inkling.studio.continuations import Possible, likeliest_at

if TYPE_CHECKING:
    from inkling.explain.surprise import Comparison, Surprise
    from inkling.models.contracts import LanguageModel

MOST_CHARS = 50_000  # of a text that is looked at character by character
LIKELIEST = 5

Shown = tuple[str, str, str]  # text, shade, note


@dataclass(frozen=True)
class Reading:
    """A text as one model sees it. `firsts[i]` is the number of the token that piece i begins with."""

    model: LanguageModel[Any]
    surprise: Surprise
    ids: NDArray[np.int32]  # of all documents, end to end
    offsets: NDArray[np.int64]  # of the documents among them
    pieces: tuple[Shown, ...]
    firsts: tuple[int, ...]
    _known: dict[int, list[Possible]] = field(default_factory=dict)

    def likeliest(self, piece: int, count: int = LIKELIEST) -> list[Possible]:
        """What could stand where a piece begins, the token that does marked. Takes a moment: call it aside."""
        if piece not in self._known:
            token = self.firsts[piece]
            document = bisect_right(self.offsets, token) - 1
            start, end = int(self.offsets[document]), int(self.offsets[document + 1])
            self._known[piece] = likeliest_at(self.model, self.ids[start:end].tolist(), token - start, count)
        return self._known[piece]


@dataclass(frozen=True)
class SideBySide:
    """Two models on one text; `differences` are the words or lines, shaded by who knows more."""

    first: Reading
    second: Reading
    comparison: Comparison
    differences: tuple[Shown, ...]


def lay_side_by_side(
    models: Sequence[LanguageModel[Any]], names: Sequence[str], documents: Sequence[str], text_name: str
) -> SideBySide:
    from inkling.errors import UsageError
    from inkling.explain.surprise import compare

    if not any(documents):
        raise UsageError("There is no text to compare on; paste some, hand in a file, or have one made.")
    if names[0] == names[1]:
        raise UsageError(f"Both sides are '{names[0]}'; choose two different runs.")
    first, second = (read(model, name, documents, text_name) for model, name in zip(models, names, strict=True))
    comparison = compare(first.surprise, second.surprise)
    return SideBySide(first, second, comparison, difference_pieces(comparison))


def read(model: LanguageModel[Any], name: str, documents: Sequence[str], text_name: str) -> Reading:
    from inkling.explain.surprise import level, surprise

    found = surprise(model, documents, model_name=name, text_name=text_name)
    seen = [model.chain(text) for text in documents] if model.chain.names else documents
    encodings = model.tokeniser.encode(seen)
    pieces: list[Shown] = []
    firsts: list[int] = []
    token = 0
    for mark in found.marks():
        shade = level(mark.bits)
        classes = " ".join(([f"s{shade}"] if shade else []) + (["u"] if mark.unknown else []))
        more = ", a word it does not know" if mark.unknown else f", {mark.tokens} tokens" if mark.tokens > 1 else ""
        pieces.append((_ended(mark.text, mark.ends_document), classes, f"{mark.bits:.2f} bits{more}"))
        firsts.append(token)
        token += mark.tokens
    return Reading(model, found, encodings.ids, encodings.offsets, tuple(pieces), tuple(firsts))


def difference_pieces(comparison: Comparison) -> tuple[Shown, ...]:
    """Cool where the first model knows more, warm where the second does."""
    from inkling.explain.surprise import saved_level

    a, b = comparison.first.model, comparison.second.model
    costs = zip(comparison.first_bits.tolist(), comparison.second_bits.tolist(), strict=True)
    pieces: list[Shown] = []
    for mark, (first, second) in zip(comparison.marks(), costs, strict=True):
        shade = saved_level(mark.bits)
        classes = f"f{shade}" if shade > 0 else f"a{-shade}" if shade < 0 else ""
        note = f"{a}: {first:.2f} bits\n{b}: {second:.2f} bits\n{a if mark.bits >= 0 else b} saves {abs(mark.bits):.2f}"
        pieces.append((_ended(mark.text, mark.ends_document), classes, note))
    return tuple(pieces)


def legends(names: tuple[str, str]) -> tuple[list[Shown], list[Shown]]:
    """The shades with what they mean: of surprise, and of who knows more."""
    from inkling.explain.surprise import LEVEL_BITS, SAVED_LEVEL_BITS

    surprise: list[Shown] = [
        (words, f"s{shade}" if shade else "", "") for shade, words in enumerate(_ranges(LEVEL_BITS))
    ]
    saved = list(enumerate(_ranges(SAVED_LEVEL_BITS)))[1:]
    differences: list[Shown] = [
        *((f"{names[0]} saves {words}" if shade == 1 else words, f"f{shade}", "") for shade, words in saved),
        *((f"{names[1]} saves {words}" if shade == 1 else words, f"a{shade}", "") for shade, words in saved),
    ]
    return surprise, differences


def _ranges(levels: Sequence[float]) -> list[str]:
    """'below 1', '1–2', … '16 or more'."""
    between = [f"{low:g}–{high:g}" for low, high in pairwise(levels)]
    return [f"below {levels[0]:g}", *between, f"{levels[-1]:g} or more bits"]


def cut(documents: Sequence[str], most: int = MOST_CHARS) -> list[str]:
    """The first documents, up to `most` characters of all; of the last perhaps its beginning."""
    kept: list[str] = []
    for text in documents:
        if most <= 0:
            break
        kept.append(text[:most])
        most -= len(text)
    return kept


def split(text: str, lengths: Sequence[int]) -> list[str]:
    """Documents again, from their text laid end to end and their lengths."""
    found: list[str] = []
    start = 0
    for length in lengths:
        if start >= len(text):
            break
        found.append(text[start : start + length])
        start += length
    return found


def _ended(text: str, ends_document: bool) -> str:
    """The next document begins on a line of its own."""
    return text if not ends_document or text.endswith("\n") else f"{text}\n"
