"""Features of a text for counting and averaging: words, runs of words, runs of characters inside a word, hashed.

    word n-gram         every run of 1 … `words` neighbouring words of a text
    character n-gram    every run of `low` … `high` characters inside a word with its edges marked: ^wo, wor, ord, rd$

A feature is a number of 64 bits, and as a key `bits` of them: two features that share a key are one to the model. With
24 bits and a million features one in sixteen shares its key with another, mostly a rare one.

    g(w₁) = h(w₁)       g(w₁…wₙ) = mix(g(w₁…wₙ₋₁) · M + h(wₙ))       key = top bits of mix(g + n)

A character n-gram belongs to one word, so what leaving a word out does to a text is known without the rest of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inkling.errors import UsageError
from inkling.text.words import Hashes, Places, Words, find_words, letter_sums, mix

Keys = NDArray[np.int32]

_CHAIN = np.uint64(0xC2B2AE3D27D4EB4F)
_CHARACTERS = 64  # orders of character n-grams are told from those of words by this


@dataclass(frozen=True)
class GramConfig:
    """`words`: longest word n-gram. `low`, `high`: shortest and longest character n-gram; 0: none."""

    words: int = 1
    low: int = 0
    high: int = 0
    bits: int = 24

    def __post_init__(self) -> None:
        if not 1 <= self.words <= 8:
            raise UsageError(f"Runs of {self.words} words were asked for; give a number from 1 to 8.")
        if (self.low or self.high) and not 1 <= self.low <= self.high <= 12:
            raise UsageError(f"Runs of {self.low} to {self.high} characters were asked for; give 1 ≤ low ≤ high ≤ 12.")
        if not 8 <= self.bits <= 28:
            raise UsageError(f"Keys of {self.bits} bits were asked for; give a number from 8 to 28.")


@dataclass(frozen=True)
class Grams:
    """The features of some texts. `runs[n - 1][i]` is the key of the run of n words that starts at word i, −1 where the
    text ends before; `inside` are the keys of the character n-grams of word i at `edges[i]:edges[i + 1]`."""

    words: Words
    runs: tuple[Keys, ...]
    inside: Keys
    edges: Places

    def __len__(self) -> int:
        return len(self.words)


def find_grams(texts: Sequence[str], config: GramConfig) -> Grams:
    return grams_of(texts, find_words(texts), config)


def grams_of(texts: Sequence[str], words: Words, config: GramConfig) -> Grams:
    """The features of texts in which only `words` are read."""
    runs = tuple(_keys(values, order, config.bits, fits) for order, values, fits in _runs(words, config.words))
    inside, edges = _inside(texts, words, config)
    return Grams(words, runs, inside, edges)


def join(first: Hashes, then: Hashes) -> Hashes:
    """The feature of a run and the word after it."""
    return mix(first * _CHAIN + then)


def key_of(values: Hashes, order: int, bits: int) -> Keys:
    """The keys of features of `order` words."""
    return (mix(values + np.uint64(order)) >> np.uint64(64 - bits)).astype(np.int32)


def _keys(values: Hashes, order: int, bits: int, fits: NDArray[np.bool_] | None) -> Keys:
    keys = key_of(values, order, bits)
    if fits is not None:
        keys[~fits] = -1
    return keys


def _runs(words: Words, longest: int) -> Iterator[tuple[int, Hashes, NDArray[np.bool_] | None]]:
    hashes = words.hashes
    left = np.repeat(words.offsets[1:], words.lengths) - np.arange(len(hashes))  # words from here to the end of a text
    values = hashes
    yield 1, values, None
    for order in range(2, longest + 1):
        following = np.zeros_like(hashes)
        following[: -(order - 1)] = hashes[order - 1 :]
        values = join(values, following)
        yield order, values, left >= order


def _inside(texts: Sequence[str], words: Words, config: GramConfig) -> tuple[Keys, Places]:
    count = len(words.hashes)
    if not config.high or not count:
        return np.zeros(0, np.int32), np.zeros(count + 1, np.int64)
    sums, down, first, last = letter_sums(texts, words)
    lengths = last - first
    found: list[tuple[Places, Keys]] = []
    for order in range(config.low, config.high + 1):
        # A window over ^word$ of `order` characters; at an edge one of them is the edge itself.
        windows = np.maximum(lengths + 2 - order + 1, 0)
        owner = np.repeat(np.arange(count), windows)
        begins = np.arange(len(owner)) - np.repeat(np.cumsum(windows) - windows, windows)  # 0 is the edge before
        low = first[owner] + np.maximum(begins - 1, 0)
        high = np.minimum(first[owner] + begins - 1 + order, last[owner])
        edge = (begins == 0) + 2 * (begins + order == lengths[owner] + 2)
        values = mix((sums[high] - sums[low]) * down[low] + edge.astype(np.uint64))
        found.append((owner, key_of(values, _CHARACTERS + order, config.bits)))
    owners = np.concatenate([owner for owner, _ in found])
    order_of = np.argsort(owners, kind="stable")
    counts = np.bincount(owners, minlength=count)
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return np.concatenate([keys for _, keys in found])[order_of], edges
