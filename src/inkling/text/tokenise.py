"""Four tokenisers, and how they are trained, saved and loaded. None of them loses a byte.

    word        the commonest pieces of the training text; any other piece is unknown, with its spelling kept
    character   the characters of the training text; any other is unknown, with its spelling kept
    byte        the 256 bytes of UTF-8
    bpe         bytes, and pairs of them merged in the order of their frequency inside pieces (Sennrich et al., 2016)

What a piece is, and the regular expression that finds it, stands in pieces.py.

What a saved tokeniser is can be read off its `tokenizer.json`, whose format allows no keys of our own. `begin` is the
commonest piece that ends in "\\n". Lone surrogates have no UTF-8 and are refused; no UTF-8 file can contain one.

Left out: special tokens. They would give some strings of a text a second meaning. (The transformers library adds its
unknown token as one: there, and only there, the literal text "<unknown>" is read as that token.)
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.text.bpe import BPETokeniser, byte_letters, train_bpe
from inkling.text.pieces import Cutter, blocks_of_lines, refuse_surrogates, utf8
from inkling.text.pieces import Pieces as Pieces  # part of this module's face, as is the next
from inkling.text.pieces import piece_pattern as piece_pattern
from inkling.text.tokens import Encodings, Tokeniser
from inkling.text.vocabulary import Vocabulary

KINDS = ("word", "character", "byte", "bpe")
UNKNOWN = "<unknown>"  # how the unknown id is shown; never a piece
COUNTED_PIECES = 5_000_000  # of the training text, at most; see `count_pieces`

_CHARACTER_PATTERN = r"[\s\S]"


@dataclass(frozen=True)
class WordTokeniser:
    """`pieces[i]` has the id i; `pieces[0]` stands for every piece that is not listed."""

    pieces: tuple[str, ...]
    pattern: str
    kind = "word"
    unknown = 0

    @property
    def size(self) -> int:
        return len(self.pieces)

    @cached_property
    def begin(self) -> int:
        return _first_line_end(self.pieces)

    @cached_property
    def byte_lengths(self) -> NDArray[np.int64]:
        return _lengths(self.piece, self.size)

    @cached_property
    def _cutter(self) -> Cutter:
        return Cutter(self.pattern)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return Vocabulary([self.piece(i) for i in range(self.size)])

    def encode(self, texts: Sequence[str]) -> Encodings:
        cuts = self._cutter.cut(texts)
        ids = self._vocabulary.ids(cuts.raw, cuts.starts)
        spellings = tuple([piece.decode() for piece in cuts.pieces(np.flatnonzero(ids == 0))])
        return Encodings(ids, cuts.offsets, spellings)

    def decode(self, ids: Sequence[int] | NDArray[np.int32], spellings: Sequence[str] = ()) -> str:
        return _spell(self.pieces, ids, spellings)

    def piece(self, token: int) -> bytes:
        return self.pieces[token].encode() if token else b""

    def to_json(self) -> str:
        return _word_level_json(self.pieces, self.pattern)


@dataclass(frozen=True)
class CharacterTokeniser:
    """`characters[i]` has the id i; `characters[0]` stands for every character that is not listed."""

    characters: tuple[str, ...]
    kind = "character"
    unknown = 0

    @property
    def size(self) -> int:
        return len(self.characters)

    @cached_property
    def begin(self) -> int:
        return self.characters.index("\n")

    @cached_property
    def byte_lengths(self) -> NDArray[np.int64]:
        return _lengths(self.piece, self.size)

    @cached_property
    def _ids(self) -> NDArray[np.int32]:
        table = np.zeros(0x110000, dtype=np.int32)  # one for each code point of Unicode
        table[[ord(character) for character in self.characters[1:]]] = np.arange(1, self.size)
        return table

    def encode(self, texts: Sequence[str]) -> Encodings:
        joined = "".join(texts)
        refuse_surrogates(joined)
        ids = self._ids[np.frombuffer(joined.encode("utf-32-le"), dtype="<u4")]
        spellings = tuple(joined[i] for i in np.flatnonzero(ids == 0).tolist())
        return Encodings(ids, _offsets(np.fromiter(map(len, texts), np.int64, len(texts))), spellings)

    def decode(self, ids: Sequence[int] | NDArray[np.int32], spellings: Sequence[str] = ()) -> str:
        return _spell(self.characters, ids, spellings)

    def piece(self, token: int) -> bytes:
        return self.characters[token].encode() if token else b""

    def to_json(self) -> str:
        return _word_level_json(self.characters, _CHARACTER_PATTERN)


@dataclass(frozen=True)
class ByteTokeniser:
    """The id of a byte is its value."""

    kind = "byte"
    unknown = None
    size = 256
    begin = ord("\n")

    @property
    def byte_lengths(self) -> NDArray[np.int64]:
        return np.ones(256, dtype=np.int64)

    def encode(self, texts: Sequence[str]) -> Encodings:
        parts = [utf8(text) for text in texts]
        ids = np.frombuffer(b"".join(parts), dtype=np.uint8).astype(np.int32)
        return Encodings(ids, _offsets(np.fromiter(map(len, parts), np.int64, len(parts))), ())

    def decode(self, ids: Sequence[int] | NDArray[np.int32], spellings: Sequence[str] = ()) -> str:
        return bytes(np.asarray(ids, dtype=np.int64).tolist()).decode("utf-8", "replace")

    def piece(self, token: int) -> bytes:
        return bytes((token,))

    def to_json(self) -> str:
        vocabulary = dict(zip(byte_letters(), range(256), strict=True))
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        return _tokenizer_json(byte_level, byte_level, {"type": "BPE", "vocab": vocabulary, "merges": []})


def train_tokeniser(
    kind: str,
    blocks: Iterable[Sequence[str]],
    size: int | None = None,
    *,
    pieces: Pieces = "words",
    exclude: frozenset[str] = frozenset(),
) -> Tokeniser:
    """A tokeniser of at most `size` ids, the unknown id among them, for the texts in `blocks`, read once.

    Without a size, words and characters are all kept. `pieces` concerns words and bpe; `exclude` names words that get
    no id of their own (written without the space before them), such as the "<unk>" of a data set.
    """
    if kind == "word":
        _require_size(kind, size, 2)
        pattern = piece_pattern(pieces)
        counts = count_pieces(blocks, re.compile(pattern).findall)
        return WordTokeniser(_commonest(counts, size, exclude | {UNKNOWN}), pattern)
    if kind == "character":
        _require_size(kind, size, 2)
        return CharacterTokeniser(_commonest(count_pieces(blocks, list), size, frozenset()))
    if kind == "byte":
        if size not in (None, 256):
            raise UsageError(
                f"a byte tokeniser of size {size} was asked for, but there are 256 bytes: leave the size out"
            )
        return ByteTokeniser()
    if kind == "bpe":
        if size is None:
            raise UsageError("a bpe tokeniser was asked for without a size: give one of at least 256, such as 4096")
        _require_size(kind, size, 256)
        return BPETokeniser(train_bpe(blocks, size, piece_pattern(pieces)))
    nearest = difflib.get_close_matches(kind.lower(), KINDS, n=1, cutoff=0.0)[0]
    raise UsageError(f"unknown tokeniser {kind!r}: expected any of {', '.join(KINDS)}; did you mean {nearest}?")


def load_tokeniser(json_text: str) -> Tokeniser:
    """Any of the four, from the text of the `tokenizer.json` that it wrote."""
    try:
        saved: dict[str, Any] = json.loads(json_text)
        model, cutter = saved["model"], saved["pre_tokenizer"]
        if saved["added_tokens"] or saved["normalizer"]:
            raise ValueError("added tokens or a normaliser")
        if model["type"] == "WordLevel":
            listed = tuple(sorted(model["vocab"], key=model["vocab"].__getitem__))
            pattern: str = cutter["pattern"]["Regex"]
            if listed[0] != UNKNOWN or sorted(model["vocab"].values()) != list(range(len(listed))):
                raise ValueError("ids with gaps")
            if not any(piece.endswith("\n") for piece in listed):
                raise ValueError("no piece that ends a line")
            if pattern == _CHARACTER_PATTERN:
                if any(len(character) != 1 for character in listed[1:]):
                    raise ValueError("characters longer than one")
                return CharacterTokeniser(listed)
            re.compile(pattern)
            return WordTokeniser(listed, pattern)
        if model["type"] == "BPE" and cutter["type"] == "ByteLevel" and not model["merges"]:
            return ByteTokeniser()
        if model["type"] == "BPE" and [part["type"] for part in cutter["pretokenizers"]] == ["Split", "ByteLevel"]:
            if not set(byte_letters()) <= set(model["vocab"]):
                raise ValueError("bytes without an id")
            return BPETokeniser(json_text)
        raise ValueError("another kind of model")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, re.error) as cause:
        raise InklingError(
            f"this tokenizer.json holds none of Inkling's tokenisers ({', '.join(KINDS)}): "
            f"expected a file that a training of Inkling wrote, found {cause}"
        ) from cause


def tokenizer_config_json(tokeniser: Tokeniser) -> str:
    """The `tokenizer_config.json` with which `transformers.AutoTokenizer` opens the folder of a `tokenizer.json`."""
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    if tokeniser.unknown is not None:
        config["unk_token"] = UNKNOWN
    return json.dumps(config, indent=2) + "\n"


def count_pieces(
    blocks: Iterable[Sequence[str]], find: Callable[[str], list[str]], at_most: int = COUNTED_PIECES
) -> Counter[str]:
    """How often each piece occurs. Beyond `at_most` different pieces the rarest are dropped until half are left, so
    the memory is bounded, and counts of rare pieces of a very large text are too low."""
    counts: Counter[str] = Counter()
    for block in blocks:
        for text in block:
            for lines in blocks_of_lines(text):
                counts.update(find(lines))
            threshold = 1
            while len(counts) > at_most or (threshold > 1 and len(counts) > at_most // 2):
                counts = Counter({piece: count for piece, count in counts.items() if count > threshold})
                threshold += 1
    return counts


def _commonest(counts: Counter[str], size: int | None, exclude: frozenset[str]) -> tuple[str, ...]:
    """The unknown id and the commonest pieces, a line end certainly among them. Equal counts: in order of spelling."""
    admitted = [(piece, count) for piece, count in counts.items() if piece.removeprefix(" ") not in exclude]
    admitted.sort(key=lambda entry: (-entry[1], entry[0]))
    room = len(admitted) + 1 if size is None else size - 1
    pieces = [piece for piece, _ in admitted[:room]]
    if not any(piece.endswith("\n") for piece in pieces):
        pieces[room - 1 :] = ["\n"]
    return (UNKNOWN, *pieces)


def _require_size(kind: str, size: int | None, least: int) -> None:
    if size is not None and size < least:
        raise UsageError(f"a {kind} tokeniser of size {size} was asked for: give a size of at least {least}")


def _first_line_end(pieces: Sequence[str]) -> int:
    return next(i for i, piece in enumerate(pieces) if i and piece.endswith("\n"))


def _lengths(piece: Callable[[int], bytes], size: int) -> NDArray[np.int64]:
    return np.fromiter((len(piece(i)) for i in range(size)), np.int64, size)


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def _spell(pieces: Sequence[str], ids: Sequence[int] | NDArray[np.int32], spellings: Sequence[str]) -> str:
    spelling = iter(spellings)
    return "".join(pieces[i] if i else next(spelling, "\ufffd") for i in np.asarray(ids, dtype=np.int64).tolist())


def _word_level_json(pieces: tuple[str, ...], pattern: str) -> str:
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    return _tokenizer_json(cut, {"type": "Fuse"}, {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN})


def _tokenizer_json(pre_tokenizer: dict[str, Any], decoder: dict[str, Any], model: dict[str, Any]) -> str:
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": pre_tokenizer,
            "post_processor": None,
            "decoder": decoder,
            "model": model,
        },
        ensure_ascii=False,
    )
