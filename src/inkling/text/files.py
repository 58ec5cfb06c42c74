"""Bytes to text: where they come from, how they are unpacked, and how they become lines.

    file, pipe ──Source──▶ raw bytes ──unpack (.gz .xz .zst .bz2)──▶ blocks ──decode──▶ lists of lines

Everything streams: a block is about 1 MB and a file is never held whole, though a single line may be as long as memory
allows. A line ends at "\\n" or "\\r\\n" and nowhere else: a lone "\\r", U+0085, U+2028, form feed and vertical tab are
ordinary characters, so that lines kept with their ends join to exactly the decoded file.

Text is UTF-8 unless a byte order mark says UTF-16 or UTF-32, or the caller names an encoding. A mark at the start is
not part of the text. Bytes that do not decode never pass: a block is decoded strictly, and only if that fails, once
more with each bad place standing as U+DC00 + byte, which no valid text contains. Lines that hold one are named.

Left out: guessing 8-bit encodings from letter frequencies (a wrong guess is silent), and archives of several files.
"""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import re
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import zstandard

from inkling.errors import InklingError, UsageError

BLOCK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16  # enough to tell text from other things
ZSTD_FEED_BYTES = 2048  # one call unpacks what it is fed in full, so little is fed: very even data shrinks 10,000-fold

COMPRESSIONS = {".gz": "gzip", ".xz": "xz", ".zst": "zstd", ".bz2": "bzip2"}

Progress = Callable[[int], None]
Blocks = Generator[bytes, None, None]  # can be closed before its end


def printable(name: str) -> str:
    """A name from outside, fit for a message: control characters and the like are written as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in name)


def why_not(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


# ---------------------------------------------------------------------------------------------------- bytes


class _RawReader(io.RawIOBase):
    """Reads a file from its beginning and knows how far it is. A shared spool is sought before every read, so that
    several readers may take turns."""

    def __init__(self, file: IO[bytes], *, shared: bool) -> None:
        self.file = file
        self.shared = shared
        self.position = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self.shared:
            self.file.seek(self.position)
        data = self.file.read(size)
        self.position += len(data)
        return data

    def close(self) -> None:
        if not self.shared:
            self.file.close()
        super().close()


@dataclass(frozen=True)
class Source:
    """A file on disk, or a copy of a stream that can be read only once. `name` is how messages call it."""

    name: str
    size_bytes: int
    compression: str = ""  # a key of COMPRESSIONS, or nothing
    path: Path | None = None
    spool: IO[bytes] | None = field(default=None, repr=False)

    def _open(self) -> _RawReader:
        if self.spool is not None:
            return _RawReader(self.spool, shared=True)
        assert self.path is not None
        try:
            return _RawReader(self.path.open("rb", buffering=0), shared=False)
        except OSError as error:
            raise InklingError(
                f"{self.name} cannot be opened: {why_not(error)}; check the file and its permissions."
            ) from error

    def raw_blocks(self) -> Iterator[bytes]:
        """The bytes as they are on disk."""
        with self._open() as raw:
            try:
                while block := raw.read(BLOCK_BYTES):
                    yield block
            except OSError as error:
                raise InklingError(f"{self.name} cannot be read: {why_not(error)}; check the file.") from error

    def blocks(self, block_bytes: int | None = None, on_bytes: Progress | None = None) -> Blocks:
        """The unpacked bytes; `on_bytes` gets the number of bytes read from disk so far."""
        kind = COMPRESSIONS.get(self.compression, "")
        with self._open() as raw:
            try:
                for block in _unpack(raw, kind, block_bytes or BLOCK_BYTES):
                    if on_bytes is not None:
                        on_bytes(raw.position)
                    yield block
            except EOFError as error:
                raise InklingError(
                    f"{self.name} ends in the middle of its {kind} data: it was cut short, so copy or fetch it again."
                ) from error
            except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
                raise InklingError(
                    f"{self.name} does not hold sound {kind} data: it is damaged or wrongly named, so copy it again or "
                    f"rename it without {self.compression}."
                ) from error
            except OSError as error:
                if kind == "bzip2" and error.errno is None:  # bz2 has no error class of its own
                    raise InklingError(
                        f"{self.name} does not hold sound bzip2 data: it is damaged or wrongly named, so copy it again "
                        f"or rename it without .bz2."
                    ) from error
                raise InklingError(f"{self.name} cannot be read: {why_not(error)}; check the file.") from error

    def head(self) -> bytes:
        """The first unpacked bytes, at most HEAD_BYTES."""
        taken = b""
        with contextlib.closing(self.blocks(HEAD_BYTES)) as blocks:
            for block in blocks:
                taken += block
                if len(taken) >= HEAD_BYTES:
                    break
        return taken[:HEAD_BYTES]


def _open_packed(raw: _RawReader, kind: str) -> _RawReader | gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File:
    file = cast(IO[bytes], raw)
    if kind == "gzip":
        return gzip.GzipFile(fileobj=file, mode="rb")
    if kind == "xz":
        return lzma.LZMAFile(file)
    return bz2.BZ2File(file) if kind == "bzip2" else raw


def _unpack(raw: _RawReader, kind: str, block_bytes: int) -> Iterator[bytes]:
    if kind == "zstd":
        yield from _unpack_zstd(raw, block_bytes)
        return
    with _open_packed(raw, kind) as stream:
        while block := stream.read(block_bytes):
            yield block


def _unpack_zstd(raw: _RawReader, block_bytes: int) -> Iterator[bytes]:
    """Frame after frame. The library's own stream reader takes a file that was cut short for a complete one."""
    frame = None
    ready: list[bytes] = []
    ready_bytes = 0
    while packed := raw.read(BLOCK_BYTES):
        for start in range(0, len(packed), ZSTD_FEED_BYTES):
            piece = packed[start : start + ZSTD_FEED_BYTES]
            while piece:
                if frame is None:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                data = frame.decompress(piece)
                piece = b""
                if frame.eof:
                    piece, frame = frame.unused_data, None
                ready.append(data)
                ready_bytes += len(data)
            if ready_bytes >= block_bytes:
                joined = b"".join(ready)
                ready, ready_bytes = [], 0
                for cut in range(0, len(joined), block_bytes):
                    yield joined[cut : cut + block_bytes]
    if ready_bytes:
        yield b"".join(ready)
    if frame is not None:
        raise EOFError


def find_compression(name: str) -> str:
    """The compression that a file name ends in: '.gz', '.xz', '.zst', '.bz2', or nothing."""
    suffix = Path(name).suffix.lower()
    return suffix if suffix in COMPRESSIONS else ""


def open_path(path: Path) -> Source:
    """A file; a pipe such as /dev/fd/63 can be read only once and is copied first."""
    name = printable(str(path))
    compression = find_compression(path.name)
    try:
        if path.is_file():
            return Source(name, path.stat().st_size, compression, path=path)
        with path.open("rb") as stream:
            return copy_stream(stream, name, compression)
    except OSError as error:
        raise InklingError(f"{name} cannot be opened: {why_not(error)}; check the file and its permissions.") from error


def open_stdin() -> Source:
    return copy_stream(sys.stdin.buffer, "standard input")


def copy_stream(stream: IO[bytes], name: str, compression: str = "") -> Source:
    """Copies a stream to a temporary file without a name, which is gone when the program ends. The caller closes it."""
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the source
    try:
        shutil.copyfileobj(stream, spool, BLOCK_BYTES)
    except BaseException as error:
        spool.close()
        if isinstance(error, OSError):
            raise InklingError(f"{name} cannot be copied: {why_not(error)}; save it to a file first.") from error
        raise
    return Source(name, spool.tell(), compression, spool=spool)


def unpack_to_file(source: Source) -> Path:
    """The unpacked bytes as a temporary file, for readers that need to seek. The caller removes it."""
    handle, name = tempfile.mkstemp(prefix="inkling-")
    try:
        with os.fdopen(handle, "wb") as file:
            for block in source.blocks():
                file.write(block)
    except BaseException:
        Path(name).unlink()
        raise
    return Path(name)


# ---------------------------------------------------------------------------------------------------- encodings


@dataclass(frozen=True)
class Codec:
    """How bytes become characters: a Python codec, and the length of the mark before the text."""

    name: str
    mark_bytes: int = 0


MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

SIGNATURES = (  # what a file begins with, what it then is, what to do
    (re.compile(rb"\x1f\x8b"), "gzip data", "rename it to end in .gz or unpack it"),
    (re.compile(rb"\xfd7zXZ\x00"), "xz data", "rename it to end in .xz or unpack it"),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "zstd data", "rename it to end in .zst or unpack it"),
    (re.compile(rb"BZh[1-9]1AY&SY"), "bzip2 data", "rename it to end in .bz2 or unpack it"),
    (re.compile(rb"PK\x03\x04"), "a zip archive (or an office or npz file)", "unpack it or export it as .csv or .txt"),
    (re.compile(rb"PAR1[\x00-\x1f]"), "parquet data", "rename it to end in .parquet or give --format parquet"),
    (re.compile(rb"%PDF-"), "a PDF document", "export its text to a .txt file"),
)

_CONTROLS = bytes(b for b in range(32) if b not in b"\b\t\n\v\f\r\x1b")


def choose_codec(name: str, head: bytes, encoding: str | None) -> Codec:
    """The codec for a file that begins with `head`; an error if those bytes are not text at all."""
    for signature, what, advice in SIGNATURES:
        if signature.match(head):
            raise InklingError(f"{name} holds {what} where text was expected: {advice}.")
    codec = _named_codec(head, encoding) if encoding is not None else _marked_codec(head)
    if not codec.name.startswith(("utf-16", "utf-32")):
        _reject_binary(name, head, codec)
    return codec


def _marked_codec(head: bytes) -> Codec:
    for mark, name in MARKS:
        if head.startswith(mark) and (name != "utf-32-le" or _decodes(head[4:], name)):
            return Codec(name, len(mark))
    return Codec("utf-8")


def _named_codec(head: bytes, encoding: str) -> Codec:
    try:
        b"\n".decode(encoding, "replace")  # refuses what is not an encoding of text, such as rot13
        name = codecs.lookup(encoding).name
        codecs.getincrementaldecoder(name)
    except (LookupError, ValueError) as error:
        raise UsageError(
            f"The encoding '{printable(encoding)}' is unknown: give one that Python knows, such as utf-8, utf-16, "
            f"latin-1, cp1252 or shift_jis."
        ) from error
    if name == "utf-8-sig":
        name = "utf-8"
    for mark, marked in MARKS:
        if head.startswith(mark) and marked.startswith(name):  # 'utf-16' leaves the byte order to the mark
            return Codec(marked, len(mark))
    return Codec(name + "-le" if name in ("utf-16", "utf-32") else name)


def _decodes(head: bytes, name: str) -> bool:
    """Whether `head`, which may end inside a character, decodes."""
    try:
        codecs.getincrementaldecoder(name)().decode(head)
    except UnicodeDecodeError:
        return False
    return bool(head)


def _reject_binary(name: str, head: bytes, codec: Codec) -> None:
    nuls = head.count(0)
    if nuls >= 3 and nuls * 10 > len(head):
        late = head[1::2].count(0)  # the second byte of a Latin letter in little-endian UTF-16
        if max(late, nuls - late) >= 0.9 * nuls and nuls * 3 > len(head):
            order = "utf-16-le" if 2 * late > nuls else "utf-16-be"
            raise InklingError(
                f"{name} looks like UTF-16 without a byte order mark where {codec.name.upper()} was expected: give "
                f"--encoding {order} or save it as UTF-8."
            )
    elif (len(head) - len(head.translate(None, _CONTROLS))) * 20 <= len(head) or _decodes(head, codec.name):
        return
    raise InklingError(f"{name} looks like a binary file where text was expected: export its text to a .txt file.")


# ---------------------------------------------------------------------------------------------------- lines


@dataclass(frozen=True, slots=True)
class Lines:
    """Some lines in a row. `first` is the number of the first, from 1; `bad` says what is wrong, by index."""

    first: int
    lines: list[str]
    bad: dict[int, str]


_ENDS_OF_SPLITLINES = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_BAD = re.compile("[\udc00-\udcff]")


def _mark_bad(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return chr(0xDC00 + error.object[error.start]), error.end


codecs.register_error("inkling.mark-bad", _mark_bad)


def _describe_bad(line: str, number: int, codec: Codec) -> str:
    found = _BAD.search(line)
    assert found is not None
    offset = len(line[: found.start()].encode(codec.name, "replace")) + (codec.mark_bytes if number == 1 else 0)
    return f"byte 0x{ord(found.group()) - 0xDC00:02X} at offset {offset} of the line is not valid {codec.name.upper()}"


def _split(text: str) -> tuple[list[str], str]:
    """The finished lines without "\\n", and what follows the last of them."""
    lines = text.split("\n")
    return lines, lines.pop()


def _split_keeping_ends(text: str) -> tuple[list[str], str]:
    if any(end in text for end in _ENDS_OF_SPLITLINES):
        lines, rest = _split(text)
        return [line + "\n" for line in lines], rest
    lines = text.splitlines(keepends=True)  # twice as fast, and right where "\n" is the only end it knows
    return lines, lines.pop() if lines and not lines[-1].endswith("\n") else ""


def read_lines(
    source: Source,
    codec: Codec,
    *,
    keep_ends: bool,
    block_bytes: int | None = None,
    on_bytes: Progress | None = None,
) -> Generator[Lines, None, None]:
    """The lines of `source`, about a block at a time; without their ends unless `keep_ends`."""
    strict = codecs.getincrementaldecoder(codec.name)("strict")
    marking = codecs.getincrementaldecoder(codec.name)("inkling.mark-bad")
    open_line: list[str] = []  # pieces of a line whose end is still to come
    open_is_bad = False
    number = 1
    to_skip = codec.mark_bytes

    def decode(block: bytes, final: bool) -> tuple[str, bool]:
        state = strict.getstate()
        try:
            return strict.decode(block, final), False
        except UnicodeDecodeError:
            marking.setstate(state)
            text = marking.decode(block, final)
            strict.setstate(marking.getstate())
            return text, True

    def find_bad(lines: list[str]) -> dict[int, str]:
        return {i: _describe_bad(line, number + i, codec) for i, line in enumerate(lines) if _BAD.search(line)}

    with contextlib.closing(source.blocks(block_bytes, on_bytes)) as blocks:
        for block in blocks:
            if to_skip:
                block, to_skip = block[to_skip:], max(0, to_skip - len(block))
            text, is_bad = decode(block, False)
            lines, rest = _split_keeping_ends(text) if keep_ends else _split(text)
            if not lines:
                open_line.append(rest)
                open_is_bad |= is_bad
                continue
            if open_line:
                open_line.append(lines[0])
                lines[0] = "".join(open_line)
            open_line = [rest]
            bad = find_bad(lines) if is_bad or open_is_bad else {}
            open_is_bad = is_bad
            if not keep_ends and ("\r" in text or lines[0].endswith("\r")):
                lines = [line[:-1] if line.endswith("\r") else line for line in lines]
            yield Lines(number, lines, bad)
            number += len(lines)
    text, is_bad = decode(b"", True)
    last = ["".join([*open_line, text])]
    if last[0]:
        yield Lines(number, last, find_bad(last) if is_bad or open_is_bad else {})
