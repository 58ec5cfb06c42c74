"""The ids of many pieces at once.

A piece of at most 16 bytes is two integers of 64 bits (zeros behind it) and a length, so a table in arrays finds the
ids of all pieces of a block of text with a few operations on arrays, several times as fast as a dictionary of strings:

    slot = top bits of ((low · a) xor (high · b) + length) · c           a, b, c odd
    id   = first of the slot's chain whose integers and length are those of the piece; 0, the unknown id, ends a chain

Integers and lengths are compared, so the answer is that of a dictionary, whatever the slots. Longer pieces, one in
thousands in most languages, are looked up in a dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

KEY_BYTES = 16
SLOTS_PER_PIECE = 8
_A, _B, _C = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0xD6E8FEB86659FD93)
# By length: which bytes of the two integers belong to the piece.
_LOW = np.frombuffer(b"".join((b"\xff" * min(n, 8)).ljust(8, b"\0") for n in range(17)), np.uint64)
_HIGH = np.frombuffer(b"".join((b"\xff" * max(n - 8, 0)).ljust(8, b"\0") for n in range(17)), np.uint64)


class Vocabulary:
    """`pieces[i]` has the id i; id 0 stands for every piece that is not listed."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.long = {piece: i for i, piece in enumerate(pieces) if i and len(piece) > KEY_BYTES}
        self.lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        self.lengths[0] = -1  # no piece is the unknown one
        starts = np.cumsum(np.maximum(self.lengths, 0)) - np.maximum(self.lengths, 0)
        self.low, self.high = _keys(b"".join(pieces[1:]), starts, np.clip(self.lengths, 0, KEY_BYTES))
        self.shift = np.uint64(64 - max(1, (SLOTS_PER_PIECE * len(pieces)).bit_length()))
        self.first = np.zeros(1 << (64 - int(self.shift)), np.int32)
        self.next = np.zeros(len(pieces), np.int32)
        slots = self._slots(self.low, self.high, self.lengths)
        for i in range(len(pieces) - 1, 0, -1):  # so that the commoner of two stands first
            if self.lengths[i] <= KEY_BYTES:
                self.next[i], self.first[slots[i]] = self.first[slots[i]], i

    def ids(self, raw: bytes, starts: NDArray[np.int64]) -> NDArray[np.int32]:
        """Of the pieces of `raw` that begin at `starts`; each ends where the next begins, and the last with `raw`."""
        lengths = np.diff(starts, append=len(raw))
        low, high = _keys(raw, starts, np.minimum(lengths, KEY_BYTES))
        ids = self.first[self._slots(low, high, lengths)]
        wrong = np.flatnonzero((low != self.low[ids]) | (high != self.high[ids]) | (lengths != self.lengths[ids]))
        wrong = wrong[ids[wrong] > 0]
        while len(wrong):
            others = self.next[ids[wrong]]
            ids[wrong] = others
            is_other = (low[wrong] != self.low[others]) | (high[wrong] != self.high[others])
            wrong = wrong[(is_other | (lengths[wrong] != self.lengths[others])) & (others > 0)]
        for i in np.flatnonzero(lengths > KEY_BYTES).tolist():
            ids[i] = self.long.get(raw[starts[i] : starts[i] + lengths[i]], 0)
        return ids

    def _slots(
        self, low: NDArray[np.uint64], high: NDArray[np.uint64], lengths: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        mixed = ((low * _A) ^ (high * _B)) + lengths.view(np.uint64)
        return ((mixed * _C) >> self.shift).astype(np.int64)


def _keys(
    raw: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The first 16 bytes from each start as two integers, with zeros beyond `lengths` (of at most 16)."""
    padded = raw + bytes(KEY_BYTES)
    windows = np.ndarray((len(raw) + KEY_BYTES - 7,), np.uint64, padded, strides=(1,))  # eight bytes from each byte on
    return windows[starts] & _LOW[lengths], windows[starts + 8] & _HIGH[lengths]
