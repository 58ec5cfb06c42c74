"""Word vectors from files, held as one memory map.

Formats, told apart by their first bytes and not by their names:

    GloVe text        word x₁ … x_D                     on every line
    word2vec text     N D                               on the first line, then as GloVe
    .npz              `words` (UTF-8 bytes joined by line ends, or a string array) and `vectors` (N×D)
    .gz .xz .bz2 .zip one of the two text formats, packed

The last D fields of a line are the numbers, so a word may hold spaces. The first of two equal words wins.

A file is read once, in blocks, and written as a safetensors file into the cache folder; from then on it is mapped, not
read. The cache is found by the path of the source and used only while size and modification time still agree.
Tensors of the cache file: `vectors` N×D float32, `offsets` N+1 (word i is `words[offsets[i]:offsets[i + 1]]`),
`hashes` N (BLAKE2b-64 of each word, ascending), `order` N (the row each hash belongs to), `words` (bytes).
A look-up is a binary search among the hashes and a comparison of the bytes.

Left out: word2vec's binary format, and subword vectors (a missing word is a zero row and is reported as missing).
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import json
import lzma
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError

FORMAT = "inkling word vectors 1"
HEADER_BYTES = 4096  # room kept at the start of the cache file: its header is known only when the last row is written
BLOCK_BYTES = 1 << 24
LONGEST_LINE_BYTES = 1 << 20
BROKEN_ARCHIVE = (EOFError, OSError, lzma.LZMAError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError)


class ReadsBytes(Protocol):
    def read(self, size: int, /) -> bytes: ...


Batch = tuple[list[bytes], NDArray[np.float32]]  # words, and as many rows


@dataclass(frozen=True, eq=False)
class WordVectors:
    """N words and their vectors. Row i of `matrix` belongs to `word(i)`."""

    matrix: NDArray[np.float32]  # N×D, memory-mapped, read-only
    notes: tuple[str, ...]  # what was passed over while reading
    spellings: bytes  # the words in UTF-8, laid end to end
    offsets: NDArray[np.int64]  # N+1
    hashes: NDArray[np.uint64]  # N, ascending
    order: NDArray[np.int64]  # N, the row of each hash

    @property
    def dimension(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def word(self, row: int) -> str:
        """The spelling of one row; bytes that are not UTF-8 show as U+FFFD."""
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self._bytes(row).decode("utf-8", errors="replace")

    def find(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The row of each word, or −1."""
        wanted = [word.encode("utf-8", errors="surrogatepass") for word in words]
        hashes = _hash(wanted)
        rows = np.full(len(wanted), -1, dtype=np.int64)
        places = np.searchsorted(self.hashes, hashes)
        inside = np.flatnonzero(places < len(self))
        for i in inside[self.hashes[places[inside]] == hashes[inside]].tolist():
            rows[i] = self._row_at(int(places[i]), wanted[i])
        return rows

    def lookup(self, words: Sequence[str], *, lower: bool = True) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The vectors of `words` (zeros where there is none) and which were found: as spelt, else lower-cased."""
        rows = self.find(words)
        if lower:
            missing = np.flatnonzero(rows < 0)
            rows[missing] = self.find([words[i].lower() for i in missing.tolist()])
        found = rows >= 0
        vectors = np.zeros((len(words), self.dimension), dtype=np.float32)
        vectors[found] = self.matrix[rows[found]]
        return vectors, found

    def _row_at(self, place: int, word: bytes) -> int:
        """The row of `word` among those that share the hash at `place`, or −1."""
        shared = self.hashes[place]
        while place < len(self.hashes) and self.hashes[place] == shared:
            row = int(self.order[place])
            if self._bytes(row) == word:
                return row
            place += 1
        return -1

    def _bytes(self, row: int) -> bytes:
        return self.spellings[self.offsets[row] : self.offsets[row + 1]]


def cache_directory() -> Path:
    """Where mapped copies are kept: `INKLING_CACHE`, or the user's cache folder."""
    chosen = os.environ.get("INKLING_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("inkling", appauthor=False))


def load_vectors(path: str | Path, *, limit: int | None = None, cache_dir: Path | None = None) -> WordVectors:
    """The first `limit` word vectors of a file (all of them by default), memory-mapped."""
    source = Path(path)
    if limit is not None and limit < 1:
        raise UsageError(f"A limit of {limit} word vectors was given; it must be at least 1.")
    if not source.is_file():
        raise InklingError(f"{source} is not a file; give a file of word vectors (GloVe or word2vec text, or .npz).")
    status = source.stat()
    stamp = {"format": FORMAT, "source_bytes": str(status.st_size), "source_mtime_ns": str(status.st_mtime_ns)}
    key = hashlib.sha256(f"{source.resolve()}\n{limit}".encode(errors="surrogateescape")).hexdigest()
    folder = cache_directory() if cache_dir is None else cache_dir
    cache = folder / "vectors" / f"{key[:32]}.safetensors"
    cached = _open_cache(cache, stamp)
    if cached is not None:
        return cached
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        handle = tempfile.NamedTemporaryFile(dir=cache.parent, prefix=".new-", delete=False)  # noqa: SIM115
    except OSError as error:
        raise InklingError(
            f"The cache folder {cache.parent} cannot be written ({error.strerror});"
            " name another one in the variable INKLING_CACHE."
        ) from error
    try:
        with handle:
            _write_cache(handle, _read(source, limit), stamp, source)
        Path(handle.name).replace(cache)
    except OSError as error:
        raise InklingError(f"A mapped copy of {source} could not be written into {cache.parent} ({error}).") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(handle.name).unlink()
    written = _open_cache(cache, stamp)
    if written is None:
        raise InklingError(f"The mapped copy of {source} in {cache.parent} changed while it was opened; try again.")
    return written


# --- reading ---------------------------------------------------------------------------------------------------------


def _read(source: Path, limit: int | None) -> Iterator[Batch]:
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


# --- the cache file --------------------------------------------------------------------------------------------------


def _hash(words: Sequence[bytes]) -> NDArray[np.uint64]:
    digests = b"".join(hashlib.blake2b(word, digest_size=8).digest() for word in words)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def _write_cache(out: IO[bytes], batches: Iterator[Batch], stamp: dict[str, str], source: Path) -> None:
    out.write(b" " * HEADER_BYTES)
    spellings = bytearray()
    lengths: list[NDArray[np.int64]] = []
    hashes: list[NDArray[np.uint64]] = []
    not_utf8 = 0
    dimension = 0
    for words, rows in batches:
        dimension = rows.shape[1]
        out.write(np.ascontiguousarray(rows, dtype="<f4").data)
        text = b"".join(words)
        spellings += text
        lengths.append(np.fromiter((len(word) for word in words), dtype=np.int64, count=len(words)))
        hashes.append(_hash(words))
        if not _is_utf8(text):
            not_utf8 += sum(not _is_utf8(word) for word in words)
    if not spellings:
        raise InklingError(f"{source} holds no word vectors; expected a word and its numbers on every line.")
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.concatenate(lengths))])
    hash_of_row = np.concatenate(hashes)
    order = np.argsort(hash_of_row, kind="stable")
    notes = []
    repeated = _repeated_rows(spellings, offsets, hash_of_row, order)
    if len(repeated):
        keep = np.ones(len(order), dtype=bool)
        keep[repeated] = False
        kept = np.flatnonzero(keep)
        spellings = bytearray().join(spellings[offsets[i] : offsets[i + 1]] for i in kept.tolist())
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.diff(offsets)[kept])])
        hash_of_row = hash_of_row[kept]
        order = np.argsort(hash_of_row, kind="stable")
        _drop_rows(out, kept, len(keep), dimension)
        notes.append(f"{len(repeated):,} repeated words passed over; the first of each is kept.")
    if not_utf8:
        notes.append(f"{not_utf8:,} words are not UTF-8; they are kept but cannot be looked up.")
    tensors = {
        "offsets": offsets.astype("<i8"),
        "hashes": hash_of_row[order].astype("<u8"),
        "order": order.astype("<i8"),
        "words": np.frombuffer(spellings, dtype=np.uint8),
    }
    header: dict[str, Any] = {"__metadata__": stamp | {"notes": json.dumps(notes)}}
    end = len(order) * dimension * 4
    header["vectors"] = {"dtype": "F32", "shape": [len(order), dimension], "data_offsets": [0, end]}
    for (name, tensor), dtype in zip(tensors.items(), ("I64", "U64", "I64", "U8"), strict=True):
        header[name] = {"dtype": dtype, "shape": [len(tensor)], "data_offsets": [end, end + tensor.nbytes]}
        end += tensor.nbytes
        out.write(tensor.data)
    encoded = json.dumps(header).encode().ljust(HEADER_BYTES - 8)
    out.seek(0)
    out.write((HEADER_BYTES - 8).to_bytes(8, "little") + encoded)
    out.flush()
    os.fsync(out.fileno())


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _repeated_rows(
    spellings: bytearray, offsets: NDArray[np.int64], hash_of_row: NDArray[np.uint64], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rows whose word stands in an earlier row. Only rows that share a hash with another are compared."""
    ascending = hash_of_row[order]
    shared = np.flatnonzero(ascending[1:] == ascending[:-1])
    rows = np.unique(np.concatenate([order[shared], order[shared + 1]]))
    seen: set[bytes] = set()
    repeated = []
    for row in rows.tolist():
        word = bytes(spellings[offsets[row] : offsets[row + 1]])
        if word in seen:
            repeated.append(row)
        seen.add(word)
    return np.array(repeated, dtype=np.int64)


def _drop_rows(out: IO[bytes], kept: NDArray[np.int64], rows: int, dimension: int) -> None:
    """Moves the kept rows together inside the file; each goes down or stays, so no row is overwritten unread."""
    out.flush()
    matrix = np.memmap(out.name, dtype="<f4", mode="r+", offset=HEADER_BYTES, shape=(rows, dimension))
    step = 1 << 14
    for start in range(0, len(kept), step):
        some = kept[start : start + step]
        matrix[start : start + len(some)] = matrix[some]
    matrix.flush()
    del matrix
    out.truncate(HEADER_BYTES + len(kept) * dimension * 4)
    out.seek(0, os.SEEK_END)


def _open_cache(cache: Path, stamp: dict[str, str]) -> WordVectors | None:
    """The mapped vectors, or None if there is no such file, or it is of another source, or it is damaged."""
    try:
        with cache.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length != HEADER_BYTES - 8:
                return None
            header = json.loads(file.read(length))
            metadata = header.pop("__metadata__")
            if any(metadata.get(key) != value for key, value in stamp.items()):
                return None
            if cache.stat().st_size != HEADER_BYTES + max(entry["data_offsets"][1] for entry in header.values()):
                return None

            def read(name: str, dtype: str) -> NDArray[Any]:
                file.seek(HEADER_BYTES + header[name]["data_offsets"][0])
                return np.fromfile(file, dtype=dtype, count=header[name]["shape"][0])

            # The small arrays are read: after an odd number of floats they would lie unaligned in a map.
            offsets, hashes, order = read("offsets", "<i8"), read("hashes", "<u8"), read("order", "<i8")
            spellings = read("words", "u1").tobytes()
        shape = tuple(header["vectors"]["shape"])
        matrix = np.memmap(cache, dtype="<f4", mode="r", offset=HEADER_BYTES, shape=shape)
        return WordVectors(matrix, tuple(json.loads(metadata["notes"])), spellings, offsets, hashes, order)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:8])
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "") if names else "nothing"
