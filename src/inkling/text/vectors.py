"""Word vectors from files, held as one memory map.


A file (its formats are in `vector_files`) is read once, in blocks, and written as a safetensors file into the cache
folder; from then on it is mapped, not read. The cache is found by the path of the source and used only while size and
modification time still agree. The first of two equal words wins. Tensors of the cache file:

    vectors   N×D float32
    offsets   N+1          word i is `words[offsets[i]:offsets[i + 1]]`
    hashes    N            BLAKE2b-64 of each word, ascending
    order     N            the row each hash belongs to
    words                  bytes, end to end

A look-up is a binary search among the hashes and a comparison of the bytes.

Left out: subword vectors (a missing word is a zero row and is reported as missing).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.hardware import cache_folder
from inkling.text.vector_files import Batch, read_batches
from inkling.text.words import find_words, hash_word

FORMAT = "inkling word vectors 1"
CLITIC = re.compile(r"n['’]t|['’][^\W_]+", re.IGNORECASE)
HEADER_BYTES = 4096  # room kept at the start of the cache file: its header is known only when the last row is written


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
    folder = cache_folder() if cache_dir is None else cache_dir
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
            _write_cache(handle, read_batches(source, limit), stamp, source)
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


# --- the cache file --------------------------------------------------------------------------------------------------


def hash_spellings(vectors: WordVectors) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The rows, ascending, that words of a text can have, and the hash that `find_words` gives these words."""
    spelled = [vectors.word(row) for row in range(len(vectors))]
    words = find_words(spelled)
    single = np.flatnonzero(words.lengths == 1)  # what is cut in two is never met in a text
    # 's and 'll are words of their own only behind another, so alone they are not found as one.
    clitics = [row for row in np.flatnonzero(words.lengths == 2).tolist() if CLITIC.fullmatch(spelled[row])]
    rows = np.concatenate([single, np.array(clitics, np.int64)])
    hashes = np.concatenate(
        [words.hashes[words.offsets[single]], np.array([hash_word(spelled[row]) for row in clitics], np.uint64)]
    )
    order = np.argsort(rows)
    return rows[order], hashes[order]


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
