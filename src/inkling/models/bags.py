"""Texts as bags of features: which rows of a table of vectors each holds, and how often.

    keys of text/grams.py  →  rows of the table, for the keys that are in it  →  (row, count) pairs, text after text

The table knows the keys that occurred in at least so many training texts; others are passed over. Blocks of texts go
to all cores: cutting, hashing and sorting are array operations that let other threads run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.text.grams import GramConfig, Grams, Keys, find_grams
from inkling.text.words import Places

BLOCK_CHARS = 1 << 19  # of text for one thread at a time
BLOCK_PAIRS = 1 << 19
KEY_BITS = 28  # room for a key beside the number of a text


Block = TypeVar("Block")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Bags:
    """Text i holds `rows[offsets[i]:offsets[i + 1]]`, ascending, each as often as `counts` says."""

    rows: NDArray[np.int32]
    counts: NDArray[np.float32]
    offsets: Places  # texts + 1

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Places:
        """Different features of each text."""
        return np.diff(self.offsets)

    def take(self, texts: NDArray[np.int64]) -> Bags:
        """The bags of some texts, in the order asked for."""
        lengths = self.lengths[texts]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places = np.repeat(self.offsets[texts] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Bags(self.rows[places], self.counts[places], offsets)

    def sums(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Σ of `values`, one for each pair, over each text."""
        found = np.zeros(len(self), np.float32)
        full = np.flatnonzero(self.lengths)
        if len(full):
            found[full] = np.add.reduceat(values, self.offsets[full])
        return found


@dataclass(frozen=True)
class Table:
    """The keys that have a row: `keys[i]`, ascending, has row i."""

    config: GramConfig
    keys: Keys

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """The row of each key there may be; −1 for none. The last entry answers for the key −1."""
        rows = np.full((1 << self.config.bits) + 1, -1, np.int32)
        rows[self.keys] = np.arange(len(self.keys), dtype=np.int32)
        return rows

    def bags(self, texts: Sequence[str], distinct: bool) -> Bags:
        """With `distinct`, every feature counts once in a text, however often it stands there."""
        found = collect(texts, self.config)
        return self.keep(found, distinct)

    def keep(self, found: Bags, distinct: bool) -> Bags:
        """The bags over rows, from bags over keys."""
        table = self.rows

        def keep_some(part: tuple[int, int]) -> Bags:
            first, last = int(found.offsets[part[0]]), int(found.offsets[part[1]])
            rows = table.take(found.rows[first:last])
            known = np.flatnonzero(rows >= 0)
            rows = rows[known]
            counts = np.ones(len(rows), np.float32) if distinct else found.counts[first:last][known]
            return Bags(rows, counts, np.searchsorted(known, found.offsets[part[0] : part[1] + 1] - first))

        edges = np.unique(
            np.append(np.searchsorted(found.offsets, np.arange(0, len(found.rows), BLOCK_PAIRS)), len(found))
        )
        if edges[0]:
            edges = np.append(0, edges)
        return _joined(on_all_cores(keep_some, list(pairwise(edges.tolist()))))


def collect(texts: Sequence[str], config: GramConfig) -> Bags:
    """The features of every text by their keys: `rows` of the bags are keys here."""
    blocks = [texts[first:last] for first, last in blocks_of(texts)]
    return _joined(on_all_cores(lambda block: bag(find_grams(block, config)), blocks))


def count_texts(found: Bags, config: GramConfig, among: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """In how many texts (of those marked in `among`) each key occurs."""
    rows = found.rows if among is None or among.all() else found.rows[np.repeat(among, found.lengths)]
    return np.bincount(rows, minlength=1 << config.bits)


def bag(grams: Grams) -> Bags:
    """One pair for each different key of each text."""
    texts = np.repeat(np.arange(len(grams)), grams.words.lengths)
    parts = [(texts << KEY_BITS) | grams.runs[0]]
    for keys in grams.runs[1:]:
        there = keys >= 0
        parts.append((texts[there] << KEY_BITS) | keys[there])
    if len(grams.inside):
        parts.append((np.repeat(texts, np.diff(grams.edges)) << KEY_BITS) | grams.inside)
    pairs = np.sort(np.concatenate(parts))
    new = np.flatnonzero(np.diff(pairs, prepend=-1))
    pairs, counts = pairs[new], np.diff(new, append=len(pairs))
    offsets = np.searchsorted(pairs, np.arange(len(grams) + 1) << KEY_BITS)
    return Bags((pairs & ((1 << KEY_BITS) - 1)).astype(np.int32), counts.astype(np.float32), offsets)


def blocks_of(texts: Sequence[str], chars: int = BLOCK_CHARS) -> Iterator[tuple[int, int]]:
    """First and last (exclusive) of neighbouring texts with about `chars` characters together."""
    sizes = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    edges = [0]
    while edges[-1] < len(texts):
        done = int(sizes[edges[-1] - 1]) if edges[-1] else 0
        edges.append(max(edges[-1] + 1, int(np.searchsorted(sizes, done + chars, side="right"))))
    return pairwise(edges)


def on_all_cores(work: Callable[[Block], Result], blocks: Sequence[Block]) -> list[Result]:
    """`work` of each block, in order, by as many threads as torch may use."""
    if len(blocks) < 2:
        return [work(block) for block in blocks]
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        return list(pool.map(work, blocks))


def _joined(parts: Iterable[Bags]) -> Bags:
    bags = list(parts)
    if not bags:
        return Bags(np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(1, np.int64))
    lengths = np.concatenate([part.lengths for part in bags])
    return Bags(
        np.concatenate([part.rows for part in bags]),
        np.concatenate([part.counts for part in bags]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
    )
