"""Where a text is cut into pieces: the rule as a regular expression, and the same rule as arithmetic on arrays.

A piece, when text is cut into `words`, is the first of these that fits:

    ␣?letters        letters and combining marks, with the one space before them
    ␣?other          anything else that is not white space, with marks
    ␣?digits         numbers of any script, with marks
    one character    with its marks, in scripts that set no spaces between words (Han, kana, Thai, Lao, Khmer, …)
    line end         "\\n" with the white space before it: "\\n", " \\n", "\\r\\n"
    white space      a run, less its last space if the next piece takes that

Text that is tokenised already (Penn Treebank) is cut at `spaces`: ␣?non-white-space, line end, white space.

Both are one regular expression that spells out its character classes, because Python and the tokenizers library know
different versions of Unicode. It is saved in `tokenizer.json`, so both cut alike, and a later Python cuts as the one
that trained did. A character that was unassigned then counts as `other`.

Large files are scored with `Cutter`, some ten times as fast as `re.findall`. It reads the character classes back from
the expression, gives each byte of UTF-8 the kind of its character, and tells from the kinds of neighbours where pieces
start. An expression of another form is applied as it stands.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError

Pieces = Literal["words", "spaces"]
Ranges = list[tuple[int, int]]  # first and last code point

WHITE_SPACE = "\t\x0b\x0c\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # isspace, less "\n"
_SPACES_PATTERN = f" ?[^\n{WHITE_SPACE}]+|[{WHITE_SPACE}]*\n|[{WHITE_SPACE}]+(?= [^\n{WHITE_SPACE}])|[{WHITE_SPACE}]+"

UNSPACED_SCRIPTS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19FF),  # Tai Le, New Tai Lue, Khmer symbols
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x1B00, 0x1B7F),  # Balinese
    (0x2E80, 0x312F),  # radicals, 々, 〇, Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31FF),  # more Bopomofo, strokes, small Katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0xA4CF),  # Han, Yi
    (0xA980, 0xA9FF),  # Javanese, more Myanmar
    (0xAA60, 0xAADF),  # more Myanmar, Tai Viet
    (0xF900, 0xFAFF),  # Han
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x16FE0, 0x18DFF),  # Tangut, Khitan
    (0x1AFF0, 0x1B2FF),  # kana, Nushu
    (0x20000, 0x3FFFF),  # Han
)

# Kinds of characters. The order makes the questions of `_starts` single comparisons.
LETTER, OTHER, DIGIT, MARK, SINGLE, LINE_END, WHITE, SPACE = range(8)

CUT_BYTES = 1 << 18  # cut at once: the arrays then stay in the processor's cache


# ------------------------------------------------------------------------------------------------ the expression


@cache
def piece_pattern(pieces: Pieces) -> str:
    """The regular expression that cuts a text into pieces, for Python's `re` and for Oniguruma alike."""
    if pieces == "spaces":
        return _SPACES_PATTERN
    unspaced = {code for first, last in UNSPACED_SCRIPTS for code in range(first, last + 1)}
    letters, marks, digits, singles = list[int](), [0x200C, 0x200D], list[int](), list[int]()
    # Above plane 3 only the variation selectors are marks; the two joiners behave as marks (Unicode Annex 29).
    for code in (*range(0x40000), *range(0xE0000, 0xE0200)):
        category = unicodedata.category(chr(code))
        if category[0] == "M":
            marks.append(code)
        elif code in unspaced and (category[0] == "L" or category == "Nl"):
            singles.append(code)
        elif category[0] == "L":
            letters.append(code)
        elif category[0] == "N":
            digits.append(code)
    return _words_pattern(*(_written(_ranges(codes)) for codes in (letters, marks, digits, singles)))


def _words_pattern(letter: str, mark: str, digit: str, single: str) -> str:
    """The expression for `words` with these insides of [...]."""
    low_letter, low_mark, low_digit, low_single = (
        _written([(first, min(last, 0xFFFF)) for first, last in _read(inside) if first < 0x10000])
        for inside in (letter, mark, digit, single)
    )
    high, white = "\U00010000-\U0010ffff", WHITE_SPACE

    # Python's `re` looks up a character below U+10000 in a table, but walks through the ranges above one by one. So the
    # first alternatives repeat later ones for the low characters alone. Their look-ahead hands over to the later ones
    # whenever a character follows that might still belong to the piece.
    low = (
        f" ?[{low_letter}{low_mark}]+(?![{low_letter}{low_mark}{high}])",
        f" ?[^\n{white}{low_letter}{low_mark}{low_digit}{low_single}{high}]"
        f"[^\n{white}{low_letter}{low_digit}{low_single}{high}]*(?![^\n{white}{low_letter}{low_digit}{low_single}])",
        "[ \t\r]*\n",
        f" ?[{low_digit}]+[{low_mark}]*(?![{low_digit}{low_mark}{high}])",
        f"[{low_single}][{low_mark}]*(?![{low_mark}{high}])",
        f"[{white}]+(?=[{low_single}])",
        f"[{white}]+(?= [^\n{white}{low_single}{high}])",
    )
    whole = (
        f" ?[{letter}{mark}]+",
        f" ?[^\n{white}{letter}{mark}{digit}{single}][^\n{white}{letter}{digit}{single}]*",
        f" ?[{digit}]+[{mark}]*",
        f"[{single}][{mark}]*",
        f"[{white}]*\n",
        f"[{white}]+(?= [^\n{white}{single}])",
        f"[{white}]+",
    )
    return "|".join(low + whole)


def _ranges(codes: list[int]) -> Ranges:
    ranges: list[tuple[int, int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges


def _written(ranges: Ranges) -> str:
    """The inside of [...] for these code points."""
    return "".join(chr(first) if first == last else f"{chr(first)}-{chr(last)}" for first, last in ranges)


def _read(inside: str) -> Ranges:
    """What `_written` wrote; none of our classes holds the hyphen itself."""
    found = re.findall("(.)-(.)|(.)", inside, re.DOTALL)
    return [(ord(first or one), ord(last or one)) for first, last, one in found]


# ------------------------------------------------------------------------------------------------ the arithmetic


@dataclass(frozen=True)
class Cuts:
    """Texts in UTF-8, laid end to end, and where their pieces start. Text i has the pieces from `offsets[i]` on."""

    raw: bytes
    starts: NDArray[np.int64]  # bytes; one for each piece
    offsets: NDArray[np.int64]  # texts + 1

    def pieces(self, which: NDArray[np.int64]) -> list[bytes]:
        raw, ends = self.raw, np.append(self.starts, len(self.raw))[which + 1]
        return [raw[start:end] for start, end in zip(self.starts[which].tolist(), ends.tolist(), strict=True)]


class Cutter:
    """Cuts many texts at once, exactly as `re.findall(pattern, text)` cuts each."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.kinds = _kinds(pattern)
        if self.kinds is not None:
            # Of the bytes of UTF-8; 0xFF marks those of characters beyond ASCII, whose kinds are looked up.
            self.byte_kinds = self.kinds[:128].tobytes() + b"\xff" * 128

    def cut(self, texts: Sequence[str]) -> Cuts:
        if self.kinds is None:
            return self._cut_by_expression(texts)
        parts = [utf8(text) for text in texts]
        raw = b"".join(parts)
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        firsts = np.cumsum(lengths) - lengths
        found, begin = [], 0
        while begin < len(raw):
            # No piece crosses a line end, so a block may end there.
            end = raw.find(b"\n", begin + CUT_BYTES) + 1 or len(raw)
            here = firsts[np.searchsorted(firsts, begin) : np.searchsorted(firsts, end)]
            found.append(self._starts(raw[begin:end], here - begin) + begin)
            begin = end
        starts = np.concatenate(found) if found else np.zeros(0, np.int64)
        return Cuts(raw, starts, np.append(np.searchsorted(starts, firsts), len(starts)))

    def _cut_by_expression(self, texts: Sequence[str]) -> Cuts:
        pieces = [[len(utf8(piece)) for piece in re.findall(self.pattern, text)] for text in texts]
        lengths = np.array([length for text in pieces for length in text], np.int64)
        offsets = np.append(0, np.cumsum([len(text) for text in pieces], dtype=np.int64))
        return Cuts(utf8("".join(texts)), np.cumsum(lengths) - lengths, offsets)

    def _starts(self, raw: bytes, firsts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where pieces start in `raw`, which starts a line, or a text as all of `firsts` do."""
        kinds, inner = self._kinds_of_bytes(raw)
        before = np.empty_like(kinds)
        before[0], before[1:] = LINE_END, kinds[:-1]
        before[firsts] = LINE_END  # a text starts as a line does

        marks = None
        if (kinds == MARK).any():
            # A mark at the start of a word counts as a letter; any other takes the kind of what it stands on, but that
            # of digits stays MARK, because a number ends with its marks.
            kinds[(kinds == MARK) & (before >= LINE_END)] = LETTER
            marks = np.flatnonzero(kinds == MARK)
            runs = np.flatnonzero(np.diff(marks, prepend=-2) != 1)  # where each run of marks begins, in `marks`
            base = np.repeat(kinds[marks[runs] - 1], np.diff(runs, append=len(marks)))
            kinds[marks] = np.where(base == DIGIT, MARK, base)
            before[1:] = kinds[:-1]
            before[firsts] = LINE_END

        after = np.empty_like(kinds)
        after[:-1], after[-1] = kinds[1:], LINE_END
        after[firsts[firsts > 0] - 1] = LINE_END
        leads_word = (kinds == SPACE) & (after <= DIGIT)  # the space that belongs to the word behind it
        new_word = ((kinds != before) | (kinds == SINGLE)) & ~((before == SPACE) & (kinds <= DIGIT))
        new_space = (before <= LINE_END) | leads_word
        is_word = kinds <= SINGLE
        starts = (is_word & new_word) | (~is_word & new_space)
        if marks is not None:
            starts[marks] = False
        if inner is not None:
            starts[inner] = False
        return np.flatnonzero(starts)

    def _kinds_of_bytes(self, raw: bytes) -> tuple[NDArray[np.uint8], NDArray[np.int64] | None]:
        """The kind of the character that each byte belongs to, and which bytes are not the first of theirs."""
        assert self.kinds is not None
        kinds = np.frombuffer(bytearray(raw.translate(self.byte_kinds)), np.uint8)
        if raw.isascii():
            return kinds, None
        values = np.frombuffer(raw, np.uint8)
        wide = np.flatnonzero(kinds == 0xFF)
        is_first = values[wide] >= 0xC0
        codes = np.frombuffer(raw.decode().encode("utf-32-le"), "<u4")
        kinds_of_wide = self.kinds[codes[codes >= 128]]
        kinds[wide] = kinds_of_wide[np.cumsum(is_first) - 1]
        return kinds, wide[~is_first]


def blocks_of_lines(text: str, characters: int = 1 << 15) -> Iterator[str]:
    """`text` cut after line ends into blocks a little longer than `characters`. No piece crosses a line end."""
    refuse_surrogates(text)
    start = 0
    while len(text) - start > characters and (end := text.find("\n", start + characters) + 1):
        yield text[start:end]
        start = end
    yield text[start:]


def refuse_surrogates(text: str) -> None:
    if not text.isascii():
        utf8(text)


def utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as cause:
        raise InklingError(
            f"the text holds the lone surrogate U+{ord(text[cause.start]):04X} at character {cause.start}, which has "
            "no UTF-8: expected Unicode text, so decode the bytes it came from with errors='replace'"
        ) from cause


def count_words(texts: Sequence[str]) -> NDArray[np.int64]:
    """`len(text.split())` of each text: how many runs there are between white space."""
    joined = "".join(texts)
    if joined.isascii():
        white = np.frombuffer(joined.encode().translate(_is_white()[:256].tobytes()), np.bool_)
    else:
        white = _is_white().take(np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4"))
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    begins = ~white
    begins[1:] &= white[:-1]
    first = ends[:-1][ends[:-1] < len(white)]
    begins[first] = ~white[first]  # a text never goes on with the word that ends the one before it
    return np.diff(np.searchsorted(np.flatnonzero(begins), ends), prepend=0)


@cache
def _is_white() -> NDArray[np.bool_]:
    """By code point."""
    white = np.zeros(0x110000, np.bool_)
    for first, last in _read(WHITE_SPACE + "\n"):
        white[first : last + 1] = True
    return white


def _kinds(pattern: str) -> NDArray[np.uint8] | None:
    """The kind of each code point of Unicode by an expression of `piece_pattern`; None if it is of another form."""
    kinds = np.full(0x110000, OTHER, np.uint8)
    classes = [(WHITE, WHITE_SPACE), (SPACE, " "), (LINE_END, "\n")]
    if pattern != _SPACES_PATTERN:
        found = re.fullmatch(
            r" \?\[([^]]+)\]\+\| \?\[[^]]+\]\[[^]]+\]\*\| \?\[([^]]+)\]\+\[([^]]+)\]\*\|\[([^]]+)\]\[\3\]\*",
            "|".join(pattern.split("|")[7:11]),
        )
        if not found:
            return None
        words, digit, mark, single = found.groups()
        letter = words.removesuffix(mark)
        if pattern != _words_pattern(letter, mark, digit, single):
            return None
        classes = [(LETTER, letter), (MARK, mark), (DIGIT, digit), (SINGLE, single), *classes]
    for kind, inside in classes:
        for first, last in _read(inside):
            kinds[first : last + 1] = kind
    return kinds
