"""Surprise along a text: what each token costs a model, and where one model knows more than another.

    surprise of a token = −log2 p(token | what stands before it), plus the spelling of a token that has no id

Summed over a text and divided by its bytes this is bits per byte, so every number here is a share of the one that ranks
models. Texts are shown as the model saw them, behind its normalisation, and byte spans count in that text's UTF-8,
through all documents laid end to end; the bytes that are divided by are those of the original.

Two models are compared whatever their tokens: the bits of a token are spread evenly over its bytes, which makes the
cost up to byte b a piecewise linear curve, and a word or line costs what the curve rises over it. Sums stay exact. A
word here takes the white space before it, as the pieces of most tokenisers do. Where the models normalise differently
the words are not the same, but the lines are (no normalisation adds or removes one), so lines are compared.

Left out: whether a difference is more than chance (`inkling evaluate` says that), and long texts: a file of many
megabytes is for `inkling score`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError
from inkling.figures import Cell, Column, Table
from inkling.measure.tally import LN2
from inkling.models.contracts import LanguageModel
from inkling.text.normalise import Chain

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LONGEST_CHARS = 1 << 24  # of a text that is looked at token by token
LEVEL_BITS = (1.0, 2.0, 4.0, 8.0, 16.0)  # where the shades of surprise begin; each twice the one before
SAVED_LEVEL_BITS = (1.0, 2.0, 4.0, 8.0)  # and those of a difference, either way
BEFORE_CHARS, AFTER_CHARS = 32, 16  # of a place that is listed

_LINE_END = re.compile("\n")
_WORD = re.compile(r"\s*\S+|\s+")  # the second only for white space that ends a text


@dataclass(frozen=True)
class Mark:
    """A stretch of text that is drawn as one. `tokens` is 1, or more where tokens share a character."""

    text: str
    bits: float
    start_byte: int
    end_byte: int
    unknown: bool = False
    tokens: int = 1
    ends_document: bool = False


@dataclass(frozen=True)
class Surprise:
    """What one model makes of one text. `bits[i]` is of the token that ends at byte `byte_ends[i]` of `text`."""

    model: str
    text_name: str
    normalisation: str
    text: str  # as the model saw it: all documents, end to end
    bits: Floats
    byte_ends: Ints
    unknown: NDArray[np.bool_]
    document_ends: Ints  # bytes of `text`
    original_bytes: int

    @property
    def total_bits(self) -> float:
        return float(self.bits.sum())

    @property
    def bits_per_byte(self) -> float:
        return self.total_bits / self.original_bytes if self.original_bytes else float("nan")

    @cached_property
    def raw(self) -> bytes:
        return self.text.encode()

    @cached_property
    def starts(self) -> Ints:
        return np.append(0, self.byte_ends)[:-1]

    def marks(self) -> Iterator[Mark]:
        """The tokens in order; those that end inside a character are joined with the ones that complete it."""
        raw, boundaries = self.raw, set(self.document_ends.tolist())
        start, bits, unknown, tokens = 0, 0.0, False, 0
        for end, cost, new in zip(self.byte_ends.tolist(), self.bits.tolist(), self.unknown.tolist(), strict=True):
            bits, unknown, tokens = bits + cost, unknown or new, tokens + 1
            if end < len(raw) and raw[end] & 0xC0 == 0x80:  # a byte that continues a character
                continue
            yield Mark(raw[start:end].decode(), bits, start, end, unknown, tokens, end in boundaries)
            start, bits, unknown, tokens = end, 0.0, False, 0

    def course(self) -> tuple[list[float], list[float]]:
        """Bits per byte along the text: the middle of each of up to 120 equal stretches, and its mean."""
        points = max(1, min(120, len(self.raw) // 100))
        edges = np.unique(np.linspace(0, len(self.raw), points + 1).astype(np.int64))
        return ((edges[1:] + edges[:-1]) / 2).tolist(), (_costs(self, edges[1:]) / np.diff(edges)).tolist()

    def summary(self) -> str:
        return (
            f"{self.model} on {self.text_name}: {self.bits_per_byte:.3f} bits per byte "
            f"({self.total_bits:,.0f} bits for {self.original_bytes:,} bytes, {len(self.bits):,} tokens, "
            f"{int(self.unknown.sum()):,} unknown)."
        )

    def table(self, most: int = 20) -> Table:
        """The most surprising places."""
        order = np.argsort(-self.bits, kind="stable")[:most].tolist()
        lines = _line_numbers(self.raw, self.document_ends, self.starts[order])
        rows: list[tuple[Cell, ...]] = []
        for line, i in zip(lines.tolist(), order, strict=True):
            before, token, after = _place(self.raw, int(self.starts[i]), int(self.byte_ends[i]))
            rows.append((float(self.bits[i]), f"{before}«{token}»{after}", line, bool(self.unknown[i])))
        columns = (Column("surprise", ".1f", unit="bits"), Column("where"), Column("line", "d"), Column("unknown"))
        notes = [self.summary()]
        if self.normalisation != "none":
            notes.append(f"The text is shown as the model saw it, normalised by {self.normalisation}.")
        if self.unknown.any():
            notes.append("An unknown token is charged for its spelling, letter by letter.")
        return Table("The most surprising places", columns, tuple(rows), tuple(notes))

    def to_json(self) -> dict[str, Any]:
        """All but the tokens; see `token_rows`."""
        return {
            "model": self.model,
            "text": self.text_name,
            "normalisation": self.normalisation,
            "bits_per_byte": self.bits_per_byte,
            "total_bits": self.total_bits,
            "token_count": len(self.bits),
            "unknown_count": int(self.unknown.sum()),
            "bytes": len(self.raw),
            "original_bytes": self.original_bytes,
            "document_ends": self.document_ends.tolist(),
        }

    def token_rows(self) -> Iterator[dict[str, Any]]:
        """One record a token; part of a character has U+FFFD for its text."""
        columns = (self.starts.tolist(), self.byte_ends.tolist(), self.bits.tolist(), self.unknown.tolist())
        for start, end, bits, unknown in zip(*columns, strict=True):
            text = self.raw[start:end].decode("utf-8", "replace")
            yield {"text": text, "bits": round(bits, 6), "start": start, "end": end, "unknown": unknown}

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@dataclass(frozen=True)
class Comparison:
    """Two models on one text, unit by unit. `saved_bits` above zero: the first knows more."""

    first: Surprise
    second: Surprise
    unit: Literal["word", "line"]
    ends: Ints  # bytes of the text that the first saw
    first_bits: Floats
    second_bits: Floats

    @property
    def saved_bits(self) -> Floats:
        return self.second_bits - self.first_bits

    @property
    def total_saved_bits(self) -> float:
        return self.second.total_bits - self.first.total_bits

    @property
    def text(self) -> str:
        return self.first.text

    @cached_property
    def starts(self) -> Ints:
        return np.append(0, self.ends)[:-1]

    def marks(self) -> Iterator[Mark]:
        """The units in order, with the bits that the first saves."""
        raw, boundaries = self.first.raw, set(self.first.document_ends.tolist())
        columns = (self.starts.tolist(), self.ends.tolist(), self.saved_bits.tolist())
        for start, end, saved in zip(*columns, strict=True):
            yield Mark(raw[start:end].decode(), saved, start, end, ends_document=end in boundaries)

    def by_line(self) -> Comparison:
        """The same, with lines for units."""
        return self if self.unit == "line" else _compare(self.first, self.second, "line")

    def summary(self) -> str:
        a, b = self.first, self.second
        better, worse = (a, b) if self.total_saved_bits >= 0 else (b, a)
        if round(a.bits_per_byte, 3) == round(b.bits_per_byte, 3):
            return f"{a.model} and {b.model} need the same on {a.text_name}: {a.bits_per_byte:.3f} bits per byte."
        wins = int(np.count_nonzero(self.saved_bits > 0 if better is a else self.saved_bits < 0))
        share = wins / len(self.ends) if len(self.ends) else 0.0
        return (
            f"{better.model} needs {better.bits_per_byte:.3f} bits per byte on {a.text_name}, {worse.model} "
            f"{worse.bits_per_byte:.3f}: {abs(self.total_saved_bits):,.0f} bits saved in all. "
            f"{better.model} knows more at {share:.0%} of the {len(self.ends):,} {self.unit}s."
        )

    def tables(self, most: int = 10) -> tuple[Table, Table]:
        """Where the first knows more, and where the second does."""
        return self._table(most, 1), self._table(most, -1)

    def _table(self, most: int, sign: int) -> Table:
        winner, loser = (self.first, self.second) if sign > 0 else (self.second, self.first)
        saved = sign * self.saved_bits
        order = [i for i in np.argsort(-saved, kind="stable")[:most].tolist() if saved[i] > 0]
        own, other = (self.first_bits, self.second_bits) if sign > 0 else (self.second_bits, self.first_bits)
        begins = self._first_bytes(order)
        lines = _line_numbers(self.first.raw, self.first.document_ends, begins).tolist()
        rows: list[tuple[Cell, ...]] = []
        for line, start, i in zip(lines, begins.tolist(), order, strict=True):
            before, unit, after = _place(self.first.raw, start, int(self.ends[i]))
            where = f"{before}«{unit}»{after}" if self.unit == "word" else unit.removesuffix("↵")
            rows.append((float(saved[i]), float(own[i]), float(other[i]), where, line))
        columns = (
            Column("saved", ".1f", unit="bits"),
            Column(winner.model, ".1f", unit="bits"),
            Column(loser.model, ".1f", unit="bits"),
            Column("where"),
            Column("line", "d"),
        )
        return Table(
            f"{self.unit.capitalize()}s where {winner.model} knows more than {loser.model}", columns, tuple(rows)
        )

    def _first_bytes(self, order: Sequence[int]) -> Ints:
        """Where each unit's own text begins: a word's line is that of its letters, not of the space before."""
        raw = self.first.raw
        firsts = []
        for i in order:
            start, end = int(self.starts[i]), int(self.ends[i])
            unit = raw[start:end].decode()
            skipped = unit[: len(unit) - len(unit.lstrip())] if self.unit == "word" and unit.strip() else ""
            firsts.append(start + len(skipped.encode()))
        return np.array(firsts, np.int64)

    def to_json(self) -> dict[str, Any]:
        """All but the units; see `unit_rows`."""
        return {
            "first": self.first.to_json(),
            "second": self.second.to_json(),
            "saved_bits": self.total_saved_bits,
            "unit": self.unit,
        }

    def unit_rows(self) -> Iterator[dict[str, Any]]:
        columns = (self.starts.tolist(), self.ends.tolist(), self.first_bits.tolist(), self.second_bits.tolist())
        for start, end, first, second in zip(*columns, strict=True):
            yield {
                "text": self.first.raw[start:end].decode(),
                "start": start,
                "end": end,
                "first_bits": round(first, 6),
                "second_bits": round(second, 6),
                "saved_bits": round(second - first, 6),
            }

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


def surprise(
    model: LanguageModel[Any],
    documents: Sequence[str],
    *,
    model_name: str = "model",
    text_name: str = "text",
    chain: Chain | None = None,
) -> Surprise:
    """What each token of `documents` costs. `chain` is applied before the model's own normalisation."""
    chain = chain or Chain()
    if sum(map(len, documents)) > LONGEST_CHARS:
        raise InklingError(
            f"{text_name} has more than {LONGEST_CHARS:,} characters, too many to look at one by one; "
            "give a part of it, or use `inkling score` for a figure a line."
        )
    given = [chain(text) for text in documents] if chain.names else list(documents)
    scores = model.score(given)
    seen = [model.chain(text) for text in given] if model.chain.names else given
    text = "".join(seen)
    found = Surprise(
        model=model_name,
        text_name=text_name,
        normalisation=str(Chain((*chain.names, *model.chain.names))),
        text=text,
        bits=(scores.nats + scores.spelling_nats) / LN2,
        byte_ends=np.cumsum(scores.byte_lengths),
        unknown=scores.unknown,
        document_ends=np.cumsum([len(part.encode()) for part in seen], dtype=np.int64),
        original_bytes=sum(len(part.encode()) for part in documents),
    )
    assert int(scores.byte_lengths.sum()) == len(found.raw), "every byte is charged exactly once"
    return found


def compare(first: Surprise, second: Surprise) -> Comparison:
    """`first` and `second` are of the same documents; by words where both models saw the same text, else by lines."""
    if len(first.document_ends) != len(second.document_ends):
        raise InklingError(
            f"{first.text_name} has {len(first.document_ends)} documents and {second.text_name} has "
            f"{len(second.document_ends)}, but two models can be compared on one text only; give both the same."
        )
    return _compare(first, second, "word" if first.text == second.text else "line")


def level(bits: float, levels: Sequence[float] = LEVEL_BITS) -> int:
    """The shade of a surprise: 0 is none, and each further one begins at the next of `levels`."""
    return sum(bits >= limit for limit in levels)


def saved_level(bits: float) -> int:
    """The shade of a difference: above zero where the first model knows more, below where the second does."""
    shade = level(abs(bits), SAVED_LEVEL_BITS)
    return shade if bits > 0 else -shade


def _compare(first: Surprise, second: Surprise, unit: Literal["word", "line"]) -> Comparison:
    ends, other_ends = _unit_ends(first, unit), _unit_ends(second, unit)
    if len(ends) != len(other_ends):
        raise InklingError(
            f"The normalisations {first.normalisation} and {second.normalisation} leave {len(ends)} and "
            f"{len(other_ends)} lines of {first.text_name}; compare runs with the same normalisation."
        )
    first_bits, second_bits = _costs(first, ends), _costs(second, other_ends)
    full = (np.diff(ends, prepend=0) > 0) | (np.diff(other_ends, prepend=0) > 0)  # no line after the last line end
    return Comparison(first, second, unit, ends[full], first_bits[full], second_bits[full])


def _costs(of: Surprise, ends: Ints) -> Floats:
    """Bits between each end and the one before it, those of a token spread evenly over its bytes."""
    curve = np.interp(ends, np.append(0, of.byte_ends), np.append(0.0, np.cumsum(of.bits)))
    return np.diff(curve, prepend=0.0)


def _unit_ends(of: Surprise, unit: Literal["word", "line"]) -> Ints:
    """Where the words or lines of each document end, in bytes.

    Lines are one more than the line ends, the last perhaps empty: as many in every normalisation.
    """
    ends: list[Ints] = []
    start = 0
    for end in of.document_ends.tolist():
        text = of.raw[start:end].decode()
        byte_of = np.append(0, np.cumsum(_utf8_lengths(text)))
        places = [match.end() for match in (_WORD if unit == "word" else _LINE_END).finditer(text)]
        if unit == "line":
            places.append(len(text))
        ends.append(start + byte_of[np.array(places, np.int64)])
        start = end
    return np.concatenate(ends) if ends else np.zeros(0, np.int64)


def _utf8_lengths(text: str) -> Ints:
    codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
    return 1 + (codes > 0x7F).astype(np.int64) + (codes > 0x7FF) + (codes > 0xFFFF)


def _line_numbers(raw: bytes, document_ends: Ints, places: Ints) -> Ints:
    """The line of each byte, from 1; a document begins a line."""
    line_ends = np.flatnonzero(np.frombuffer(raw, np.uint8) == ord("\n")) + 1
    begins = np.sort(np.append(np.setdiff1d(line_ends, document_ends[:-1]), document_ends[:-1]))
    return np.searchsorted(begins, places, side="right") + 1


def _place(raw: bytes, start: int, end: int) -> tuple[str, str, str]:
    """A stretch and what stands around it, in one line; broken characters at the rim are left off."""
    before = raw[max(0, start - 4 * BEFORE_CHARS) : start].decode("utf-8", "ignore")[-BEFORE_CHARS:]
    after = raw[end : end + 4 * AFTER_CHARS].decode("utf-8", "ignore")[:AFTER_CHARS]
    middle = raw[start:end].decode("utf-8", "replace")
    return before.replace("\n", "↵"), middle.replace("\n", "↵"), after.replace("\n", "↵")
