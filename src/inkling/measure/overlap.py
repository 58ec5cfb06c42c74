"""How much of an evaluation text stands in the training text. A model that has read the exam is not clever.

    exact   every run of 50 bytes of the evaluation text (white space made one space, case kept) is looked for in the
            training text; the share is that of the bytes which lie in a run that was found
    near    passages of 32 words of the evaluation text (small letters, no punctuation) of which at least half of the
            runs of 6 words stand somewhere in the training text; the share is that of the words in such passages

Runs are compared by 64-bit hashes, so one run in some 10^11 may be found by chance. Windows of bytes are hashed all at
once: with an odd B, powers of B have inverses modulo 2^64, and a window's hash is a difference of two prefix sums,

    h(i) = B^i · (P(i + W) − P(i))      P(n) = Σ_{k<n} x_k B^(−k)      x_k: a random number for the byte k

The evaluation text is held in memory (its first 10 MB at most), the training text only flows by, some 10 MB a second.

Measured: the last tenth of tinyshakespeare against the rest 0.0 and 0.0 %, encyclopaedia test against train text 0.4
and 0.1 %, newspaper test against train 4.0 and 2.3 % (stock reports and notices that come every day), newspaper text
against another preparation of the same articles 31 and 68 %. In the small generated language of `text/grammar.py`
passages resemble each other by chance: with runs of 5 words 27 % of a fresh text would be near, with 6 it is 0.3 %.
Left out: passages that were reworded, translated or reordered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

WINDOW_BYTES = 50
PASSAGE_WORDS = 32
SHINGLE_WORDS = 6
NEAR_SHARE = 0.5  # of the shingles of a passage
WARN_SHARE = 0.01
CHECKED_BYTES = 10 << 20
EXAMPLES = 3
EXAMPLE_CHARACTERS = 120

Hashes = NDArray[np.uint64]
_BASE = 0x9E3779B97F4A7C15  # odd
_INVERSE = pow(_BASE, -1, 1 << 64)
_BYTE_NUMBERS = np.random.default_rng(0).integers(1, 1 << 63, 256, dtype=np.uint64)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Overlap:
    """Shares between 0 and 1. `examples`: what was found, exact runs first, longest first."""

    text: str
    training: str
    exact_share: float
    near_share: float
    checked_bytes: int
    whole: bool  # False: only the first part of the evaluation text was looked for
    same_file: bool
    examples: tuple[str, ...]

    @property
    def serious(self) -> bool:
        return self.same_file or max(self.exact_share, self.near_share) >= WARN_SHARE

    def sentence(self) -> str:
        part = "" if self.whole else f" (its first {self.checked_bytes:,} bytes were looked for)"
        found = (
            f"{self.exact_share:.1%} of {self.text} stands word for word in the training text {self.training}, "
            f"{self.near_share:.1%} nearly so{part}"
        )
        if self.same_file:
            return f"Warning: {self.text} IS the training text {self.training}; {found}."
        if not self.serious:
            return f"{found}."
        shown = "; ".join(f"“{example}”" for example in self.examples)
        return f"Warning: {found}: models that read it know what comes. For example: {shown}."

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "examples": list(self.examples), "serious": self.serious}


class OverlapSearch:
    """Holds the evaluation text; `read` the training text block by block, then `found`."""

    def __init__(self, documents: Iterable[str]) -> None:
        parts: list[str] = []
        size, self.whole = 0, True
        for document in documents:
            if size >= CHECKED_BYTES:
                self.whole = False
                break
            room = CHECKED_BYTES - size
            self.whole = self.whole and len(document) <= room
            parts.append(document[:room])
            size += len(parts[-1].encode())
        text = " ".join(" ".join(parts).split())
        self.content = text.encode()
        self.windows = _Wanted(_window_hashes(self.content))
        self.words = [word.lower() for word in _WORD.findall(text)]
        self.numbers = {word: number for number, word in enumerate(dict.fromkeys(self.words), 1)}
        self.shingles = _Wanted(_shingle_hashes(self._word_numbers(self.words)))
        self._bytes_before = b""
        self._words_before: list[int] = []

    @property
    def too_short(self) -> bool:
        """Nothing of it could be found, even if all of it were there."""
        return len(self.content) < WINDOW_BYTES

    def read(self, texts: Sequence[str]) -> None:
        """One block of the training text; blocks continue each other."""
        text = " ".join(" ".join(texts).split())
        content = self._bytes_before + text.encode() + b" "
        self.windows.see(_window_hashes(content))
        self._bytes_before = content[-(WINDOW_BYTES - 1) :]
        numbers = self._words_before + self._word_numbers(_WORD.findall(text.lower()))
        self.shingles.see(_shingle_hashes(numbers))
        self._words_before = numbers[-(SHINGLE_WORDS - 1) :]

    def found(self, text: str, training: str, same_file: bool = False) -> Overlap:
        windows, shingles = self.windows.seen(), self.shingles.seen()
        edges = np.zeros(len(self.content) + 1, np.int64)
        starts = np.flatnonzero(windows)
        np.add.at(edges, starts, 1)
        np.add.at(edges, starts + WINDOW_BYTES, -1)
        covered = np.cumsum(edges[:-1]) > 0
        exact = _runs(covered)
        examples = [
            self.content[first:last].decode("utf-8", "ignore")
            for first, last in sorted(exact, key=lambda run: run[0] - run[1])
        ]
        near_words = 0
        for first in range(0, len(self.words), PASSAGE_WORDS):
            part = shingles[first : first + PASSAGE_WORDS - SHINGLE_WORDS + 1]
            if len(part) and part.mean() >= NEAR_SHARE:
                words = self.words[first : first + PASSAGE_WORDS]
                near_words += len(words)
                if not exact and len(examples) < EXAMPLES:
                    examples.append(" ".join(words))
        return Overlap(
            text,
            training,
            float(covered.mean()) if len(covered) else 0.0,
            near_words / len(self.words) if self.words else 0.0,
            len(self.content),
            self.whole,
            same_file,
            tuple(_shortened(example) for example in examples[:EXAMPLES]),
        )

    def _word_numbers(self, words: Sequence[str]) -> list[int]:
        """Zero for words that the evaluation text does not have."""
        get = self.numbers.get
        return [get(word, 0) for word in words]


class _Wanted:
    """Hashes that are looked for, in order, and which of them were seen."""

    BITS = 22

    def __init__(self, hashes: Hashes) -> None:
        self.different, self.places = np.unique(hashes, return_inverse=True)
        self.found = np.zeros(len(self.different), np.bool_)
        # Most of what flows by is not wanted; a table of the first bits says so faster than a search.
        self.perhaps = np.zeros(1 << self.BITS, np.bool_)
        self.perhaps[self._first_bits(self.different)] = True

    def see(self, hashes: Hashes) -> None:
        hashes = hashes[self.perhaps[self._first_bits(hashes)]]
        if len(hashes) and len(self.different):
            places = np.minimum(np.searchsorted(self.different, hashes), len(self.different) - 1)
            self.found[places[self.different[places] == hashes]] = True

    def seen(self) -> NDArray[np.bool_]:
        return self.found[self.places]

    def _first_bits(self, hashes: Hashes) -> NDArray[np.int64]:
        return (hashes >> np.uint64(64 - self.BITS)).astype(np.int64)


def _window_hashes(content: bytes) -> Hashes:
    """One hash for each run of WINDOW_BYTES bytes, by the place where it begins; arithmetic modulo 2^64."""
    if len(content) < WINDOW_BYTES:
        return np.zeros(0, np.uint64)
    return _rolling(_BYTE_NUMBERS[np.frombuffer(content, np.uint8)], WINDOW_BYTES)


def _shingle_hashes(numbers: Sequence[int]) -> Hashes:
    """One hash for each run of SHINGLE_WORDS words; 0 where one of them is not a word of the evaluation text."""
    words = np.array(numbers, np.uint64)
    if len(words) < SHINGLE_WORDS:
        return np.zeros(0, np.uint64)
    mixed = (words * np.uint64(0xD6E8FEB86659FD93)) ^ (words * np.uint64(0xA0761D6478BD642F) >> np.uint64(29))
    hashes = _rolling(mixed, SHINGLE_WORDS)
    lacking = np.convolve(words == 0, np.ones(SHINGLE_WORDS), "valid") > 0
    hashes[lacking] = 0
    return hashes


def _rolling(values: Hashes, width: int) -> Hashes:
    count = len(values)
    up = np.full(count, _BASE, np.uint64)
    down = np.full(count, _INVERSE, np.uint64)
    up[0] = down[0] = 1
    np.multiply.accumulate(up, out=up)
    np.multiply.accumulate(down, out=down)
    sums = np.zeros(count + 1, np.uint64)
    np.cumsum(values * down, out=sums[1:])
    hashes: Hashes = (sums[width:] - sums[:-width]) * up[: count - width + 1]
    return hashes ^ (hashes >> np.uint64(31))  # the high bits depend on every byte, so they serve the first look


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(first), int(last)) for first, last in edges.reshape(-1, 2)]


def _shortened(text: str) -> str:
    return text if len(text) <= EXAMPLE_CHARACTERS else text[: EXAMPLE_CHARACTERS - 1].rstrip() + "…"
