"""Byte-level BPE of the tokenizers library: bytes, and pairs of them merged in the order of their frequency.

Merges stay inside pieces (pieces.py), so that a block of text needs the library only for its different pieces.
Sennrich, Haddow and Birch (2016), "Neural machine translation of rare words with subword units".
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from inkling.text.pieces import Cutter, blocks_of_lines
from inkling.text.tokens import Encodings

if TYPE_CHECKING:
    import tokenizers

BLOCK_PIECES = 1 << 17  # taken out of a text at once


@dataclass(frozen=True)
class BPETokeniser:
    """Byte-level BPE of the tokenizers library. `json` is its `tokenizer.json`."""

    json: str
    kind = "bpe"
    unknown = None

    @cached_property
    def _tokenizer(self) -> tokenizers.Tokenizer:
        tokenizer: tokenizers.Tokenizer = _tokenizers().Tokenizer.from_str(self.json)
        return tokenizer

    @cached_property
    def _cutter(self) -> Cutter:
        return Cutter(json.loads(self.json)["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"])

    @cached_property
    def _pieces(self) -> tuple[bytes, ...]:
        value = {letter: byte for byte, letter in enumerate(byte_letters())}
        vocabulary = self._tokenizer.get_vocab()
        return tuple(
            bytes(value[letter] for letter in piece) for piece in sorted(vocabulary, key=vocabulary.__getitem__)
        )

    @cached_property
    def size(self) -> int:
        return len(self._pieces)

    @cached_property
    def begin(self) -> int:
        return self._pieces.index(b"\n")

    @cached_property
    def byte_lengths(self) -> NDArray[np.int64]:
        return np.fromiter(map(len, self._pieces), np.int64, self.size)

    def encode(self, texts: Sequence[str]) -> Encodings:
        # A text repeats its pieces: each different one goes through the merges once, and the ids are gathered.
        cuts = self._cutter.cut(texts)
        numbers: defaultdict[bytes, int] = defaultdict()
        numbers.default_factory = numbers.__len__  # the next piece never seen before gets the next number
        wanted = np.empty(len(cuts.starts), np.int32)
        for first in range(0, len(wanted), BLOCK_PIECES):
            here = np.arange(first, min(first + BLOCK_PIECES, len(wanted)))
            wanted[here] = np.fromiter(map(numbers.__getitem__, cuts.pieces(here)), np.int32, len(here))
        numbers.default_factory = None  # it holds `numbers`: such a circle would stay in memory for long
        different = [piece.decode() for piece in numbers]
        encodings = self._tokenizer.encode_batch_fast(different, add_special_tokens=False)
        ids, ends = _gather([np.array(encoding.ids, dtype=np.int32) for encoding in encodings], wanted)
        return Encodings(ids, ends[cuts.offsets], ())

    def decode(self, ids: Sequence[int] | NDArray[np.int32], spellings: Sequence[str] = ()) -> str:
        return b"".join(self._pieces[i] for i in np.asarray(ids, dtype=np.int64).tolist()).decode("utf-8", "replace")

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def to_json(self) -> str:
        return self.json


def train_bpe(blocks: Iterable[Sequence[str]], size: int, pattern: str) -> str:
    """The library counts the different pieces in memory of its own, without a bound."""
    library = _tokenizers()
    byte_level = library.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    cut = library.pre_tokenizers.Split(library.Regex(pattern), "isolated")
    tokenizer = library.Tokenizer(library.models.BPE())
    tokenizer.pre_tokenizer = library.pre_tokenizers.Sequence([cut, byte_level])
    tokenizer.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=sorted(byte_level.alphabet())
    )
    tokenizer.train_from_iterator(
        (lines for block in blocks for text in block for lines in blocks_of_lines(text)), trainer
    )
    return str(tokenizer.to_str())


@cache
def _tokenizers() -> Any:
    """The tokenizers library, which encodes with several threads. A process forked from this one has none of them, so
    it is told to do without (with TOKENIZERS_PARALLELISM=true it would wait for ever)."""
    import tokenizers
    import tokenizers.decoders
    import tokenizers.models
    import tokenizers.pre_tokenizers
    import tokenizers.trainers

    name = "TOKENIZERS_PARALLELISM"
    chosen: list[str | None] = []

    def before() -> None:
        chosen.append(os.environ.get(name))
        os.environ[name] = "false"

    def after_in_parent() -> None:
        value = chosen.pop()
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=after_in_parent)
    return tokenizers


def _gather(rows: list[NDArray[np.int32]], wanted: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The rows in the order `wanted`, end to end, and where each begins, with the end of the last."""
    row_lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    row_begins = np.cumsum(row_lengths) - row_lengths
    lengths = row_lengths[wanted]
    places = np.append(0, np.cumsum(lengths))
    # Inside a row the source counts up by one; at each new row it starts over at that row's beginning.
    source = np.arange(places[-1]) + np.repeat(row_begins[wanted] - places[:-1], lengths)
    joined = np.concatenate(rows) if rows else np.zeros(0, np.int32)
    return joined[source], places


@cache
def byte_letters() -> tuple[str, ...]:
    """The letter by which the tokenizers library writes each byte: itself if it prints, else the next from U+0100."""
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in printing else next(others)) for byte in range(256))
