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
from functools import cached_property

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

    @cached_property
    def row_totals(self) -> NDArray[np.float64]:
        """n, the number of tokens predicted after each context."""
        return np.bincount(self.keys // self.size, self.values, minlength=self.size) + self.spread

    @cached_property
    def column_totals(self) -> NDArray[np.float64]:
        spread = float(self.spread.sum())
        return np.bincount(self.keys % self.size, self.values, minlength=self.size) + spread * self.base

    @cached_property
    def tokens(self) -> float:
        return float(self.values.sum() + self.spread.sum())

    @cached_property
    def contexts(self) -> NDArray[np.int64]:
        """The tokens that anything follows: only these enter a loss."""
        return np.flatnonzero(self.row_totals)

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Where the pairs of each of `contexts` begin in `keys`, and the end of the last."""
        return np.append(np.searchsorted(self.keys, self.contexts * self.size), len(self.keys))

    def turns(self, turns: int, covered: float = 0.9) -> list[PairCounts]:
        """Cheaper counts whose mean is this: the commonest contexts that cover the share `covered` of the tokens are in
        each, every other context in one of them, weighted by their number. A step on one of them is a fair estimate of
        a step on all, and rare contexts, which are most of a large vocabulary, cost a fraction."""
        order = np.argsort(-self.row_totals, kind="stable")
        before = np.cumsum(self.row_totals[order]) - self.row_totals[order]
        turn = np.empty(self.size, np.int64)
        turn[order] = np.where(before < covered * self.tokens, -1, np.arange(self.size) % turns)
        row_turn = turn[self.keys // self.size]
        found = []
        for this in range(turns):
            kept = (row_turn == -1) | (row_turn == this)
            weight = np.where(turn == -1, 1.0, np.where(turn == this, float(turns), 0.0))
            values = self.values[kept] * weight[self.keys[kept] // self.size]
            found.append(replace(self, keys=self.keys[kept], values=values, spread=self.spread * weight))
        return found

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
