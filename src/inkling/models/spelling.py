"""What the spelling of an unknown word costs, so that no vocabulary wins by being small.

    nats(spelling) = −Σ ln p(byte | the 5 before it)  −  ln p(end | the last 5)

A Kneser-Ney model of order 6 over 256 bytes and an end symbol, so a proper distribution over all strings of bytes:
every string has a positive probability, and together they have probability 1. (The bytes of UTF-8 are a part of
those, so a little probability is spent on strings that are no text; it never makes a cost too small.)

It is fitted on the unknown pieces of the training text as often as they occur there, not once each. The unknown
pieces of a new text are drawn like those of the old: most have been seen before, the frequent ones more often, and
the longest n-grams, counted raw, then spell them cheaply. Those never seen are spelled by the shorter n-grams, where
Kneser-Ney counts contexts and not occurrences, which is nearly the same as counting each spelling once. Measured on
encyclopaedia text with 2,000 to 30,000 known words, occurrences were cheaper than types by 0.1 to 1.3 nats a word, and
order 6 cheaper than order 5 by 0.8 to 1.2.

A text without unknown pieces teaches nothing about them; then the pieces of the vocabulary, once each, stand in.
Left out: the position or the neighbours of the word; a unit larger than the byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError
from inkling.models.ngram import Counts, KneserNey
from inkling.text.tokens import Tokeniser

ORDER = 6
END = 256  # ends a spelling, and stands before it
SIZE = 257
CHUNK_SPELLINGS = 1 << 18  # counted at once, so that memory does not grow with the text
CACHE_SPELLINGS = 1 << 17  # some 15 MB; the rare words of a text are few, but come again


@dataclass(frozen=True)
class Speller:
    """Charges for spellings. Costs already worked out are kept, up to `CACHE_SPELLINGS` of them."""

    table: KneserNey
    known: dict[str, float] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def fit(cls, spellings: Mapping[str, int] | Iterable[str], tokeniser: Tokeniser | None = None) -> Speller:
        """`spellings` of the unknown pieces, with their counts or as they come; without any, `tokeniser`'s pieces."""
        counted = {spelling.encode("utf-8", "surrogatepass"): n for spelling, n in Counter(spellings).items() if n > 0}
        if not counted and tokeniser is not None:
            pieces = (tokeniser.piece(token) for token in range(tokeniser.size))
            counted = {piece: 1 for piece in pieces if piece}
        if not counted:
            raise InklingError(
                "There are no spellings to learn from; give the unknown pieces of a text, or a tokeniser with pieces."
            )
        # Sorted, so that the same counts give the same model to the last bit.
        ordered = sorted(counted)
        total: Counts | None = None
        for first in range(0, len(ordered), CHUNK_SPELLINGS):
            part = ordered[first : first + CHUNK_SPELLINGS]
            ids, offsets = _bytes_and_ends(part)
            weights = np.array([counted[spelling] for spelling in part], dtype=np.int64)
            counts = Counts.of(ids, offsets, weights, SIZE, ORDER, END)
            total = counts if total is None else total + counts
        assert total is not None
        return cls(KneserNey.smooth(total, END, "modified"))

    def nats(self, spellings: Sequence[str]) -> NDArray[np.float64]:
        """What each spelling costs, its end included."""
        fresh = [spelling for spelling in dict.fromkeys(spellings) if spelling not in self.known]
        costs: dict[str, float] = {}
        if fresh:
            ids, offsets = _bytes_and_ends([spelling.encode("utf-8", "surrogatepass") for spelling in fresh])
            sums = np.add.reduceat(self.table.nats(ids, offsets), offsets[:-1])
            costs = dict(zip(fresh, sums.tolist(), strict=True))
        known = self.known
        values = [costs[spelling] if spelling in costs else known[spelling] for spelling in spellings]
        if len(known) + len(costs) > CACHE_SPELLINGS:
            known.clear()  # simpler than forgetting one by one, and as good: common words are back at once
        if len(costs) <= CACHE_SPELLINGS:
            known.update(costs)
        return np.array(values, dtype=np.float64)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        return self.table.tensors()

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[np.generic]]) -> Speller:
        return cls(KneserNey.from_tensors(tensors, ORDER, SIZE, END))


def _bytes_and_ends(spellings: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The bytes of all spellings end to end, each with END after it, and where each begins."""
    lengths = np.array([len(spelling) for spelling in spellings], dtype=np.int64)
    offsets = np.append(0, np.cumsum(lengths + 1))
    ids = np.full(offsets[-1], END, dtype=np.int64)
    is_byte = np.ones(len(ids), dtype=np.bool_)
    is_byte[offsets[1:] - 1] = False
    ids[is_byte] = np.frombuffer(b"".join(spellings), dtype=np.uint8)
    return ids, offsets
