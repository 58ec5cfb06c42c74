"""How often each token follows each other token: all that a bigram model can learn from a corpus.

    C[i, j] = how often token j stands after token i          n[i] = Σⱼ C[i, j]

A text of N tokens enters the loss of any bigram model only through C, so the loss and gradient of the *whole corpus*
cost one pass over the V contexts, whatever N is. C is kept as sorted sparse rows: Penn Treebank with 10,000 words has
300,000 distinct pairs out of a hundred million.

`discounted` takes `discount` off every distinct pair and gives what was taken to tokens in proportion to the number of
different contexts they follow (Kneser and Ney's lower order). A network trained on counts softened this way stops
believing that what it has not seen cannot happen. The result is sparse plus a matrix of rank one:

    C'[i, j] = max(C[i, j] − d, 0) + spread[i] · base[j]      spread[i] = d · |{j : C[i, j] > 0}|
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inkling.text.tokens import Encodings

DENSE_CELLS = 1 << 24  # up to here, counting into a full table is faster than sorting


@dataclass(frozen=True)
class PairCounts:
    size: int  # V
    keys: NDArray[np.int64]  # sorted i·V + j of the pairs that occur
    values: NDArray[np.float64]  # their counts, one each
    spread: NDArray[np.float64]  # V, zeros unless discounted
    base: NDArray[np.float64]  # V

    @property
    def row_totals(self) -> NDArray[np.float64]:
        """n, the number of tokens predicted after each context."""
        return np.bincount(self.keys // self.size, self.values, minlength=self.size) + self.spread

    @property
    def column_totals(self) -> NDArray[np.float64]:
        spread = float(self.spread.sum())
        return np.bincount(self.keys % self.size, self.values, minlength=self.size) + spread * self.base

    @property
    def tokens(self) -> float:
        return float(self.values.sum() + self.spread.sum())

    def rows(self, start: int, stop: int) -> slice:
        """Where the pairs of contexts `start` … `stop − 1` stand in `keys`."""
        ends = np.searchsorted(self.keys, [start * self.size, stop * self.size])
        return slice(int(ends[0]), int(ends[1]))

    def discounted(self, discount: float) -> PairCounts:
        if not 0.0 <= discount <= 1.0:
            raise ValueError(f"a discount lies between 0 and 1, not at {discount}")
        ones = np.ones(len(self.keys))
        followers = np.bincount(self.keys % self.size, ones, minlength=self.size) + 1e-3  # no token is impossible
        different = np.bincount(self.keys // self.size, ones, minlength=self.size)
        return replace(
            self,
            values=self.values - discount,
            spread=(discount * different).astype(np.float64),
            base=followers / followers.sum(),
        )


def count_pairs(encodings: Iterable[Encodings], size: int, begin: int) -> PairCounts:
    """The pairs of all texts; the first token of a text follows `begin`. Memory grows with distinct pairs only."""
    dense = np.zeros(size * size, np.int64) if size * size <= DENSE_CELLS else None
    keys: NDArray[np.int64] = np.empty(0, np.int64)
    values: NDArray[np.float64] = np.empty(0, np.float64)
    for batch in encodings:
        here = pair_keys(batch, size, begin)
        if dense is not None:
            dense += np.bincount(here, minlength=size * size)
        else:
            distinct, times = np.unique(here, return_counts=True)
            keys, where = np.unique(np.concatenate([keys, distinct]), return_inverse=True)
            merged = np.bincount(where, np.concatenate([values, times.astype(np.float64)]), minlength=len(keys))
            values = merged.astype(np.float64)
    if dense is not None:
        keys = np.flatnonzero(dense)
        values = dense[keys].astype(np.float64)
    return PairCounts(size, keys, values, np.zeros(size), np.full(size, 1 / size))


def contexts_of(encodings: Encodings, begin: int) -> NDArray[np.int64]:
    """The token before each token; `begin` before the first of each text."""
    contexts = np.empty(len(encodings.ids), np.int64)
    contexts[1:] = encodings.ids[:-1]
    starts = encodings.offsets[:-1]
    contexts[starts[starts < encodings.offsets[1:]]] = begin
    return contexts


def pair_keys(encodings: Encodings, size: int, begin: int) -> NDArray[np.int64]:
    return contexts_of(encodings, begin) * size + encodings.ids
