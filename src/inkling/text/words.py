"""Words of many texts at once, as places and 64-bit hashes: what a classifier counts.

A text is lower-cased and cut without a loop over it: each code point has a kind, and a word starts where kinds change.

    letters and digits        one word while they last; combining marks and joiners belong to what they stand on
    n't, 's, 'll, …           a word of its own, as in the Penn Treebank (and so in GloVe): do|n't, it|'s, is n't
    Han, kana, Thai, …        each character is a word, for these scripts set no spaces
    . , ! ? …                 a run of one and the same mark is a word
    <br />, <p>, </b>         as white space: reviews from the web are full of them

The hash of a word is that of its letters alone, so equal words have equal hashes whatever stands around them:

    h(w) = mix(Σᵢ r(wᵢ) Bⁱ)   mod 2⁶⁴,  r a scattering of code points, B odd

which for all words is one cumulative sum: (S[end] − S[start]) · B^(−start). Two of a million different words share a
hash with probability 3·10⁻⁸. Places are in characters of the text as given, so that a word is shown where it stands.

Left out: stemming, and lower-casing that changes the length of a text (İ → i̇): such a text is lower-cased letter by
letter, and a letter that would grow stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from inkling.text.pieces import UNSPACED_SCRIPTS

Hashes = NDArray[np.uint64]
Places = NDArray[np.int64]

MOST_KEPT = 1 << 20  # powers that are kept for the next text
BLOCK_CHARS = 1 << 18  # cut at once: the arrays then stay in the processor's cache
TAG = re.compile(r"<[a-zA-Z/][^<>]{0,100}>")
SPACE, LETTER, SINGLE, MARK, EXTENDS = range(5)

_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 1 << 64)
_SCATTER = np.uint64(0xD6E8FEB86659FD93)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_APOSTROPHE = ord("'")


@dataclass(frozen=True)
class Words:
    """The words of texts, laid end to end. Word i is `text[starts[i]:ends[i]]` of the text that holds it."""

    hashes: Hashes  # N
    starts: Places  # N, in characters
    ends: Places  # N
    offsets: Places  # texts + 1

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Places:
        """Words of each text."""
        return np.diff(self.offsets)

    def spelling(self, text: str, place: int) -> str:
        """The word at `place` (counted over all texts), which stands in `text`, lower-cased."""
        return _lower(text[self.starts[place] : self.ends[place]])


def find_words(texts: Sequence[str]) -> Words:
    """The words of every text."""
    found: list[tuple[Hashes, Places, Places]] = []
    counts: list[Places] = []
    first = 0
    while first < len(texts):
        last, chars = first, 0
        while last < len(texts) and (chars < BLOCK_CHARS or last == first):
            chars += len(texts[last]) + 1
            last += 1
        hashes, starts, ends, offsets = _cut([_plain(text) for text in texts[first:last]])
        found.append((hashes, starts, ends))
        counts.append(np.diff(offsets))
        first = last
    if not found:
        return Words(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64))
    lengths = np.concatenate(counts)
    return Words(
        np.concatenate([block[0] for block in found]),
        np.concatenate([block[1] for block in found]),
        np.concatenate([block[2] for block in found]),
        np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]),
    )


def hash_word(word: str) -> int:
    """The hash that `find_words` gives a word of this spelling."""
    codes = np.frombuffer(_fold(word).encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)
    if len(codes) and _kinds()[codes[0]] == MARK and ((codes == codes[0]) | (_kinds()[codes] == EXTENDS)).all():
        codes = codes[:1]  # a run of one mark; not 's
    up, _ = _powers(len(codes))
    return int(mix(np.array([(_scatter(codes) * up).sum(dtype=np.uint64)], np.uint64))[0])


def mix(values: Hashes) -> Hashes:
    """A bijection of 64-bit numbers whose every bit depends on all bits of the argument."""
    values = (values ^ (values >> np.uint64(32))) * _MIX
    values ^= values >> np.uint64(29)
    values *= _SCATTER
    values ^= values >> np.uint64(32)
    return values


def letter_sums(texts: Sequence[str], words: Words) -> tuple[Hashes, Hashes, Places, Places]:
    """For hashes of parts of words: S and B⁻ⁱ over the letters of all words laid end to end, and where each word starts
    and ends there; letters i to j hash to (S[j] − S[i]) · B⁻ⁱ."""
    parts: list[str] = []
    for text, low, high in zip(texts, words.offsets[:-1].tolist(), words.offsets[1:].tolist(), strict=True):
        lower = _fold(text)
        parts += [
            lower[i:j] for i, j in zip(words.starts[low:high].tolist(), words.ends[low:high].tolist(), strict=True)
        ]
    letters = "".join(parts)
    codes = np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), "<u4")
    up, down = _powers(len(codes) + 1)
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(_scatter(codes) * up[:-1], out=sums[1:])
    ends = np.cumsum(words.ends - words.starts)
    return sums, down, ends - (words.ends - words.starts), ends


def _plain(text: str) -> str:
    """Folded, tags blanked, and as long as before."""
    if "<" in text:
        text = TAG.sub(lambda tag: " " * len(tag[0]), text)
    return _fold(text)


def _fold(text: str) -> str:
    """As it is hashed: lower-cased, with one apostrophe, and with σ for ς, which of them Σ becomes being up to its
    neighbours."""
    return _lower(text).replace("’", "'").replace("ς", "σ")


def _lower(text: str) -> str:
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(c if len(c.lower()) > 1 else c.lower() for c in text)


def _cut(texts: Sequence[str]) -> tuple[Hashes, Places, Places, Places]:
    # A line end before each text and after the last keeps neighbours apart, and every look to a side inside the array.
    joined = "\n" + "\n".join(texts) + "\n\n\n"
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")
    kinds = _kinds()[codes]
    extends = kinds == EXTENDS
    extended = bool(extends.any())
    if extended:  # an accent or joiner is what it stands on; after white space, a letter
        kinds = kinds[np.maximum.accumulate(np.where(extends, 0, np.arange(len(kinds))))]
        kinds[extends & (kinds == SPACE)] = LETTER
    before = kinds[:-1]
    starts = np.zeros(len(codes), np.bool_)
    starts[1:] = (kinds[1:] != before) | (kinds[1:] == SINGLE) | ((kinds[1:] == MARK) & (codes[1:] != codes[:-1]))
    if extended:
        starts &= ~(extends & (np.roll(kinds, 1) == kinds))
    _cut_clitics(codes, kinds, starts)
    starts &= kinds != SPACE
    ends = np.zeros(len(codes), np.bool_)
    ends[1:] = (kinds[:-1] != SPACE) & (starts[1:] | (kinds[1:] == SPACE))
    first, last = np.flatnonzero(starts), np.flatnonzero(ends)

    up, down = _powers(len(codes))
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(_scatter(codes) * up, out=sums[1:])
    # A run of one mark counts as one: "!!!" and "!" are the same word.
    hashed = np.where(kinds[first] == MARK, first + 1, last)
    hashes = mix((sums[hashed] - sums[first]) * down[first])

    begins = 1 + np.concatenate([np.zeros(1, np.int64), np.cumsum([len(text) + 1 for text in texts])])
    offsets = np.searchsorted(first, begins)
    shift = np.repeat(begins[:-1], np.diff(offsets))
    return hashes, first - shift, last - shift, offsets


def _cut_clitics(codes: NDArray[np.uint32], kinds: NDArray[np.uint8], starts: NDArray[np.bool_]) -> None:
    """Cuts do|n't and it|'s, and keeps n't and 's whole in text that is cut already; any other apostrophe that does not
    stand between letters stays a mark."""
    places = np.flatnonzero(codes == _APOSTROPHE)
    places = places[kinds[places + 1] == LETTER]
    behind = kinds[places - 1] == LETTER
    is_nt = behind & (codes[places + 1] == ord("t")) & (kinds[places + 2] != LETTER) & (codes[places - 1] == ord("n"))
    alone = ~behind & _is_clitic(codes[places + 1], codes[places + 2], kinds[places + 2], kinds[places + 3])
    negated, cut = places[is_nt], places[behind | alone]
    starts[cut] = True
    starts[cut + 1] = False
    starts[negated] = False
    starts[negated - 1] = True
    kinds[cut] = LETTER


def _is_clitic(
    first: NDArray[np.uint32], second: NDArray[np.uint32], second_kind: NDArray[np.uint8], third_kind: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Whether s, d, m, t, re, ve or ll and nothing more follows an apostrophe."""
    short = np.isin(first, [ord(letter) for letter in "sdmt"]) & (second_kind != LETTER)
    long = np.zeros(len(first), np.bool_)
    for one, other in ("re", "ve", "ll"):
        long |= (first == ord(one)) & (second == ord(other))
    found: NDArray[np.bool_] = short | (long & (third_kind != LETTER))
    return found


def _scatter(codes: NDArray[np.unsignedinteger]) -> Hashes:
    values = (codes.astype(np.uint64) + np.uint64(1)) * _SCATTER
    values ^= values >> np.uint64(29)
    return values


def _powers(count: int) -> tuple[Hashes, Hashes]:
    """B⁰ … B^(count−1) and their inverses modulo 2⁶⁴."""
    size = 1 << max(10, int(count - 1).bit_length())
    up, down = _table_of_powers(size) if size <= MOST_KEPT else _table_of_powers.__wrapped__(size)
    return up[:count], down[:count]


@cache
def _table_of_powers(size: int) -> tuple[Hashes, Hashes]:
    up, down = np.full(size, _BASE, np.uint64), np.full(size, _INVERSE, np.uint64)
    up[0] = down[0] = 1
    return np.multiply.accumulate(up), np.multiply.accumulate(down)


@cache
def _kinds() -> NDArray[np.uint8]:
    """The kind of each code point. Unassigned ones count as marks."""
    kinds = np.full(0x110000, MARK, np.uint8)
    for code in (*range(0x40000), *range(0xE0000, 0xE0200)):
        category = unicodedata.category(chr(code))
        if category[0] == "M" or code in (0x200C, 0x200D):
            kinds[code] = EXTENDS
        elif category[0] in "LN":
            kinds[code] = LETTER
        elif category[0] in "ZC" and category not in ("Co", "Cn"):
            kinds[code] = SPACE
    for low, high in UNSPACED_SCRIPTS:
        part = kinds[low : high + 1]
        part[part == LETTER] = SINGLE
    return kinds
