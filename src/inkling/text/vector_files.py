"""Files of word vectors, read in batches of words and rows.

Formats, told apart by their first bytes and not by their names:

    GloVe text        word x₁ … x_D                     on every line
    word2vec text     N D                               on the first line, then as GloVe
    .npz              `words` (UTF-8 bytes joined by line ends, or a string array) and `vectors` (N×D)
    .gz .xz .bz2 .zip one of the two text formats, packed

The last D fields of a line are the numbers, so a word may hold spaces. Text is read in blocks; a number that is not
finite, a line of another length and a file that is cut short are each one sentence with the place.

Left out: word2vec's binary format.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError

BLOCK_BYTES = 1 << 24
LONGEST_LINE_BYTES = 1 << 20
BROKEN_ARCHIVE = (EOFError, OSError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)


class ReadsBytes(Protocol):
    def read(self, size: int, /) -> bytes: ...


Batch = tuple[list[bytes], NDArray[np.float32]]  # words, and as many rows


def read_batches(source: Path, limit: int | None) -> Iterator[Batch]:
    """Batches of words and rows, at most `limit` rows in all."""
    try:
        with source.open("rb") as file:
            start = file.read(6)
            file.seek(0)
            if start.startswith(b"PK\x03\x04"):
                yield from _read_zip(source, limit)
            elif start.startswith(b"\x1f\x8b"):
                with gzip.open(file) as unpacked:
                    yield from _read_text(unpacked, source, limit)
            elif start.startswith(b"\xfd7zXZ"):
                with lzma.open(file) as unpacked:
                    yield from _read_text(unpacked, source, limit)
            elif start.startswith(b"BZh"):
                with bz2.open(file) as unpacked:
                    yield from _read_text(unpacked, source, limit)
            else:
                yield from _read_text(file, source, limit)
    except BROKEN_ARCHIVE as error:
        raise InklingError(f"{source} cannot be read to its end ({error}); fetch or copy it anew.") from error


def _read_zip(source: Path, limit: int | None) -> Iterator[Batch]:
    with zipfile.ZipFile(source) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if {"words.npy", "vectors.npy"} <= set(names):
            yield from _read_npz(source, limit)
            return
        if any(name.endswith(".npy") for name in names):
            raise InklingError(f"{source} holds the arrays {_list(names)}; expected two, `words` and `vectors`.")
        texts = [name for name in names if Path(name).suffix.lower() in {"", ".txt", ".vec", ".glove"}]
        if len(texts) != 1:
            raise InklingError(
                f"{source} holds {_list(names)}, and which of them are the word vectors is not clear;"
                " unpack the one you want and give that file."
            )
        with archive.open(texts[0]) as member:
            yield from _read_text(member, source, limit)


def _read_npz(source: Path, limit: int | None) -> Iterator[Batch]:
    try:
        with np.load(source, allow_pickle=False) as arrays:
            names: NDArray[Any] = arrays["words"]
            vectors: NDArray[Any] = arrays["vectors"]
    except ValueError as error:
        raise InklingError(f"{source} holds arrays that are not plain numbers and bytes ({error}).") from error
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise InklingError(
            f"In {source} `vectors` is {vectors.dtype} of shape {vectors.shape}; expected floats, words × dimensions."
        )
    if names.dtype == np.uint8 and names.ndim == 1:
        words = names.tobytes().split(b"\n")
    elif names.dtype.kind == "U" and names.ndim == 1:
        words = [str(name).encode("utf-8", errors="replace") for name in names]
    else:
        raise InklingError(f"In {source} `words` is {names.dtype}; expected UTF-8 bytes (uint8) or strings.")
    if len(words) != len(vectors):
        raise InklingError(
            f"{source} holds {len(words):,} words and {len(vectors):,} vectors; expected the same count."
        )
    if limit is not None:
        words = words[:limit]
    rows_per_batch = 1 << 15
    for start in range(0, len(words), rows_per_batch):
        some = words[start : start + rows_per_batch]
        with np.errstate(over="ignore"):  # a float64 too large for float32 becomes infinite, and is refused below
            rows = vectors[start : start + len(some)].astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if len(bad):
            raise InklingError(f"In {source} row {start + int(bad[0])} of `vectors` is not finite; take that row out.")
        yield some, rows


def _read_text(stream: ReadsBytes, source: Path, limit: int | None) -> Iterator[Batch]:
    line_number = 1  # of the first line of the block
    dimension = 0
    promised: int | None = None
    rows_read = 0
    for lines in _blocks_of_lines(stream, source):
        first = line_number
        line_number += len(lines)
        if first == 1:
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
            fields = lines[0].split()
            if len(fields) == 2 and all(field.isdigit() for field in fields):
                promised, dimension = int(fields[0]), int(fields[1])
                del lines[0]
                first = 2
                if dimension < 1:
                    raise InklingError(f"{source}, line 1, promises {dimension} numbers a word; expected at least 1.")
            else:
                dimension = _count_numbers(fields)
                if dimension < 1:
                    raise InklingError(f"{source}, line 1, is neither a word and its numbers nor `N D`.")
        if limit is not None:
            lines = lines[: limit - rows_read]
        if lines:
            rows_read += len(lines)
            yield _parse(lines, dimension, source, first)
        if limit is not None and rows_read >= limit:
            return
    if promised is not None and promised != rows_read:
        raise InklingError(
            f"{source} promises {promised:,} words in its first line and holds {rows_read:,}; fetch or copy it anew."
        )


def _blocks_of_lines(stream: ReadsBytes, source: Path) -> Iterator[list[bytes]]:
    """Whole lines without their ends, about 16 MB at a time. Blank lines at the end of the file are not given."""
    rest = b""
    blank = 0  # blank lines held back until something follows them
    while True:
        block = stream.read(BLOCK_BYTES)
        lines = (rest + block).split(b"\n")
        rest = lines.pop() if block else b""
        if len(rest) > LONGEST_LINE_BYTES:
            raise InklingError(f"{source} has a line of more than {LONGEST_LINE_BYTES:,} bytes; it is not a text file.")
        lines = [line.rstrip(b" \t\r") for line in lines]  # word2vec ends its lines with a space
        full = len(lines)
        while full and not lines[full - 1]:
            full -= 1
        if full:
            yield [b""] * blank + lines[:full]
            blank = 0
        blank += len(lines) - full
        if not block:
            return


def _count_numbers(fields: list[bytes]) -> int:
    """How many fields at the end of a line are numbers; the first field is always the word."""
    count = 0
    while count < len(fields) - 1 and _is_number(fields[-1 - count]):
        count += 1
    return count


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return b"_" not in field


def _parse(lines: list[bytes], dimension: int, source: Path, first: int) -> Batch:
    words: list[bytes] = []
    numbers: list[bytes] = []
    for i, line in enumerate(lines):
        if line.count(b" ") == dimension:
            word, _, rest = line.partition(b" ")
        else:
            word, rest = _cut(line, dimension, source, first + i)
        if not word:
            raise InklingError(f"{source}, line {first + i}, begins with a space where a word was expected.")
        words.append(word)
        numbers.append(rest)
    flat = _parse_quickly(b"\n".join(numbers).replace(b" ", b"\n"), len(lines) * dimension)
    if flat is None:
        flat = _parse_carefully(numbers, dimension, source, first)
    rows = flat.reshape(len(lines), dimension)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise InklingError(
            f"{source}, line {first + int(bad[0])}, holds a number that is not finite (nan, inf or too large);"
            " take that line out."
        )
    return words, rows


def _cut(line: bytes, dimension: int, source: Path, line_number: int) -> tuple[bytes, bytes]:
    """A line whose fields are not as many as expected at first sight: a word with spaces, tabs, or a mistake."""
    fields = line.replace(b"\t", b" ").rsplit(b" ", dimension)
    last_of_word = fields[0].rsplit(b" ", 1)[-1]
    if len(fields) != dimension + 1 or (b" " in fields[0].strip() and _is_number(last_of_word)):
        count = max(0, len(line.split()) - 1)
        raise InklingError(f"{source}, line {line_number}, has {count} numbers after its word; expected {dimension}.")
    return fields[0].strip(b" "), b" ".join(fields[1:])


def _parse_quickly(text: bytes, count: int) -> NDArray[np.float32] | None:
    """`count` numbers, one a line, or None if anything about them is odd.

    Measured on 300 dimensions: polars reads 20 million numbers a second, np.fromstring 4 million, float() 3 million.
    """
    import polars

    try:
        table = polars.read_csv(
            text, has_header=False, schema={"number": polars.Float32}, separator="\x1f", quote_char=None
        )
    except polars.exceptions.PolarsError:
        return None
    column = table["number"]
    if len(column) != count or column.null_count():
        return None
    return np.asarray(column.to_numpy(), dtype=np.float32)


def _parse_carefully(numbers: list[bytes], dimension: int, source: Path, first: int) -> NDArray[np.float32]:
    """The same numbers field by field, to name the line that is wrong."""
    flat = np.empty(len(numbers) * dimension, dtype=np.float64)
    for i, line in enumerate(numbers):
        for j, field in enumerate(line.split(b" ")):
            if not _is_number(field):
                shown = field[:40].decode("utf-8", errors="replace")
                raise InklingError(f"{source}, line {first + i}, has {shown!r} where a number was expected.")
            flat[i * dimension + j] = float(field)
    with np.errstate(over="ignore"):
        return flat.astype(np.float32)


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "") if names else "nothing"
