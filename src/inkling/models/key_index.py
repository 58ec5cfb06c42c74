"""Where keys stand in a sorted array of them: many at once, fast.

Binary search misses the processor's cache at nearly every step. A table with chains finds a key in one or two steps:

    slot  = top bits of key · 0x9E3779B97F4A7C15                   (Fibonacci hashing, Knuth vol. 3, 6.4)
    place = first of the slot's chain with that key

It takes up to 20 bytes a key and as long to build as some searches, so it is built when there have been that many.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
PATIENCE = 4  # the table is built after a search for each fourth key


class KeyIndex:
    """`find` gives the place of each wanted key in `keys` (sorted, different), −1 where there is none."""

    def __init__(self, keys: Ints) -> None:
        self.keys = keys
        self.searches = 0
        self._chains: tuple[NDArray[np.int32], NDArray[np.int32]] | None = None
        self._shift = np.uint64(63 - len(keys).bit_length())  # two to four slots a key

    def find(self, wanted: Ints) -> Ints:
        self.searches += len(wanted)
        if self._chains is None:
            if PATIENCE * self.searches < len(self.keys):
                return search(self.keys, wanted)
            self._chains = self._build()
        first, following = self._chains
        places = first[self._slots(wanted)]
        wrong = np.flatnonzero((places >= 0) & (self.keys[places] != wanted))
        while len(wrong):
            others = following[places[wrong]]
            places[wrong] = others
            wrong = wrong[(others >= 0) & (self.keys[others] != wanted[wrong])]
        return places.astype(np.int64)

    def _build(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The first place of each slot, and the place that follows each place in its chain; −1 for none."""
        slots = self._slots(self.keys)
        order = np.argsort(slots, kind="stable")
        goes_on = slots[order[1:]] == slots[order[:-1]]
        following = np.full(len(self.keys), -1, np.int32)
        following[order[:-1][goes_on]] = order[1:][goes_on]
        first = np.full(1 << (64 - int(self._shift)), -1, np.int32)
        heads = order[np.append(True, ~goes_on)]
        first[slots[heads]] = heads
        return first, following

    def _slots(self, keys: Ints) -> Ints:
        return ((keys.view(np.uint64) * MULTIPLIER) >> self._shift).astype(np.int64)


def search(keys: Ints, wanted: Ints) -> Ints:
    """The same by binary search, with nothing to build."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)
