"""Rows of text from any file, folder or pipe, with every row accounted for.

    .txt (and unknown endings)   a row is a line; lines of one file continue each other
    .csv                         a row is a record: quotes, commas and line ends inside quotes as csv writers make them
    .tsv                         a row is a line, cut at tabs; quotes are ordinary characters
    .jsonl                       a row is an object on a line of its own
    .parquet                     a row is a row

each also packed (.gz .xz .zst .bz2). Which columns hold the text and the label may be said; otherwise they are guessed
from their names, and the guess stands in `Corpus.notes`.

    rows in = rows used + rows reported

A row without text (or without a label where one is needed) is left out and counted. A row that cannot be read stops
the reading with a sentence that names it, or with `bad_rows="skip"` is left out and counted too. Texts are never
changed: "NA", "null" and lone NULs stay. A JSON string with half a surrogate pair is no text and so a bad row.
A quote that is never closed costs the line that opens it, not the rest of the file.

Left out: guessing other separators than comma and tab, nested JSON fields, and spreadsheets.
"""

from __future__ import annotations

import hashlib
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from inkling.errors import InklingError, UsageError
from inkling.text.columns import Roles, Wanted, settle_columns
from inkling.text.files import (
    BLOCK_BYTES,
    COMPRESSIONS,
    Codec,
    Progress,
    Source,
    choose_codec,
    open_path,
    open_stdin,
    printable,
    read_lines,
    unpack_to_file,
    why_not,
)
from inkling.text.folders import ENDINGS, FORMATS, explain_missing, find_files, find_format
from inkling.text.tables import EMPTY, NO_LABEL, Fault, Part, bad_bytes, read_rows

EXAMPLES_KEPT = 20


@dataclass(frozen=True, slots=True)
class Row:
    """`continues`: this line goes on with the text of the row before it (lines of one text file)."""

    text: str
    label: str | None
    source: str
    number: int  # of the row (the line, in text and jsonl), from 1; a header is not counted
    continues: bool


@dataclass(frozen=True)
class RowProblem:
    source: str
    number: int
    reason: str
    unit: str = "row"


@dataclass
class Intake:
    """What became of the rows."""

    rows_in: int = 0
    rows_used: int = 0
    problems_by_reason: Counter[str] = field(default_factory=Counter)
    examples: list[RowProblem] = field(default_factory=list)

    @property
    def rows_reported(self) -> int:
        return self.problems_by_reason.total()

    def report(self, category: str, problem: RowProblem) -> None:
        self.problems_by_reason[category] += 1
        if len(self.examples) < EXAMPLES_KEPT:
            self.examples.append(problem)

    def describe(self) -> str:
        read = f"{self.rows_in:,} {'row' if self.rows_in == 1 else 'rows'} read"
        if not self.rows_reported:
            return f"{read}, all used."
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.problems_by_reason.most_common())
        first = self.examples[0]
        return (
            f"{read}: {self.rows_used:,} used, {self.rows_reported:,} left out "
            f"({reasons}; first: {first.source} {first.unit} {first.number:,})."
        )


@dataclass(frozen=True)
class _Chunk:
    """Rows of one file, side by side. `breaks` are the numbers of rows that do not continue what goes before (None:
    none does)."""

    source: str
    texts: list[str]
    labels: list[str | None] | None
    numbers: Sequence[int]
    breaks: set[int] | None


class Corpus:
    """The rows of some files, in order, as often as wanted. Files are checked and columns settled when it is made;
    rows are read, checked and counted when it is iterated."""

    def __init__(
        self,
        paths: Sequence[str | Path] | str | Path,
        *,
        text_column: str | None = None,
        label_column: str | None = None,
        encoding: str | None = None,
        header: bool | None = None,
        format: str | None = None,
        keep_line_ends: bool = False,
        keep_empty: bool = False,
        need_label: bool = False,
        bad_rows: Literal["stop", "skip"] = "stop",
        roles: Roles | None = None,
    ) -> None:
        if format is not None and format not in FORMATS:
            raise UsageError(f"The format '{printable(format)}' is unknown: give one of {', '.join(FORMATS)}.")
        if bad_rows not in ("stop", "skip"):
            raise UsageError(f"bad_rows is '{printable(bad_rows)}': give 'stop' or 'skip'.")
        self.keep_line_ends = keep_line_ends
        self.keep_empty = keep_empty
        self.need_label = need_label
        self.bad_rows = bad_rows
        self.intake = Intake()
        self._encoding = encoding
        self._format = format
        self._wanted = Wanted(text_column, label_column, header, need_label, roles or Roles())
        self._said: dict[str, list[str]] = {}  # what was guessed → of which files
        self._folder_notes: list[str] = []
        self._parts: list[Part] = []
        for path in [paths] if isinstance(paths, str | Path) else paths:
            self._add(path)
        if not self._parts:
            raise UsageError("No file was given: name files or folders to read, or - for standard input.")

    @property
    def notes(self) -> list[str]:
        """What was guessed or passed over, in sentences."""
        guessed = []
        for note, names in self._said.items():
            more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            guessed.append(f"{names[0]}{more}: {note}.")
        return self._folder_notes + guessed

    @property
    def sources(self) -> list[str]:
        return [part.source.name for part in self._parts]

    @property
    def size_bytes(self) -> int:
        """On disk, packed as they are."""
        return sum(part.source.size_bytes for part in self._parts)

    def fingerprint(self) -> str:
        """SHA-256 of the raw bytes of all files, in order."""
        digest = hashlib.sha256()
        for part in self._parts:
            for block in part.source.raw_blocks():
                digest.update(block)
        return digest.hexdigest()

    def __iter__(self) -> Iterator[Row]:
        for batch in self.batches():
            yield from batch

    def batches(self, size_chars: int = 1 << 20, on_bytes: Progress | None = None) -> Iterator[list[Row]]:
        """Rows in lists of about `size_chars` characters; `on_bytes` gets the bytes read from disk so far."""
        batch: list[Row] = []
        chars = 0
        for chunk in self._chunks(size_chars, on_bytes):
            labels = chunk.labels or [None] * len(chunk.texts)
            breaks = chunk.breaks
            batch += [
                Row(text, label, chunk.source, number, breaks is not None and number not in breaks)
                for text, label, number in zip(chunk.texts, labels, chunk.numbers, strict=True)
            ]
            chars += sum(map(len, chunk.texts))
            if 4 * chars >= 3 * size_chars:
                yield batch
                batch, chars = [], 0
        if batch:
            yield batch

    def text_blocks(self, size_chars: int = 1 << 20, on_bytes: Progress | None = None) -> Iterator[list[str]]:
        """The texts of the rows alone, in lists of about `size_chars` characters: the fast way through a big file."""
        block: list[str] = []
        chars = 0
        for chunk in self._chunks(size_chars, on_bytes):
            block = block + chunk.texts if block else chunk.texts
            chars += sum(map(len, chunk.texts))
            if 4 * chars >= 3 * size_chars:
                yield block
                block, chars = [], 0
        if block:
            yield block

    # --------------------------------------------------------------------------------------- before reading

    def _add(self, given: str | Path) -> None:
        if str(given) == "-":
            self._add_source(open_stdin(), "stdin.txt", in_folder=False)
            return
        path = Path(given)
        try:
            is_folder, exists = path.is_dir(), path.exists()
        except OSError as error:
            raise InklingError(f"{printable(str(path))} cannot be opened: {why_not(error)}; check the path.") from error
        if not exists:
            raise explain_missing(path)
        if not is_folder:
            self._add_source(open_path(path), path.name, in_folder=False)
            return
        files, unknown = find_files(path, any_ending=self._format is not None)
        before = len(self._parts)
        for file in files:
            self._add_source(open_path(file), file.name, in_folder=True)
        empty = len(files) - (len(self._parts) - before)
        shown = printable(str(path))
        if len(self._parts) == before:
            endings = ", ".join(ENDINGS)
            raise InklingError(
                f"The folder {shown} holds no file to read ({unknown:,} of another kind, {empty:,} empty): expected "
                f"are {endings}, each also with {', '.join(COMPRESSIONS)}."
            )
        if unknown:
            self._folder_notes.append(f"{shown}: {_files(unknown)} of another kind passed over.")
        if empty:
            self._folder_notes.append(f"{shown}: {_files(empty)} without content passed over.")

    def _add_source(self, source: Source, file_name: str, *, in_folder: bool) -> None:
        if source.spool is not None:
            weakref.finalize(self, source.spool.close)
        format = self._format or find_format(file_name)
        notes = []
        if format is None:
            format = "txt"
            notes.append("read as plain text (--format for anything else)")
        head = source.head()
        part = Part(source, format, Codec("utf-8"))
        if head and format == "parquet":
            part = replace(part, parquet=self._place_parquet(source))
        elif head:
            codec = choose_codec(source.name, head, self._encoding)
            part = replace(part, codec=codec)
            head = head[codec.mark_bytes :]
        if not head:
            if in_folder:
                return
            raise InklingError(f"{source.name} is empty: give a file with text in it.")
        if format == "txt":
            self._reject_columns(source.name)
        else:
            part, guesses = settle_columns(part, self._wanted)
            notes += guesses
        self._parts.append(part)
        if notes:
            self._said.setdefault("; ".join(notes), []).append(source.name)

    def _place_parquet(self, source: Source) -> Path:
        """A file that can be read here and there; a packed one and standard input are written out first."""
        if source.path is not None and not source.compression:
            return source.path
        path = unpack_to_file(source)
        weakref.finalize(self, path.unlink, missing_ok=True)
        return path

    def _reject_columns(self, name: str) -> None:
        advice = "give a .csv, .tsv, .jsonl or .parquet file, or say --format"
        if self.need_label:
            raise InklingError(f"{name} is plain text and has no labels where each row needs one: {advice}.")
        if self._wanted.text_column is not None or self._wanted.label_column is not None:
            raise InklingError(f"{name} is plain text and has no columns to choose from: {advice}.")

    # --------------------------------------------------------------------------------------- reading

    def _chunks(self, size_chars: int, on_bytes: Progress | None) -> Iterator[_Chunk]:
        if size_chars < 1:
            raise UsageError(f"size_chars is {size_chars}: give a number of characters from 1.")
        intake = Intake()
        done_bytes = 0
        for part in self._parts:
            progress = _shifted(on_bytes, done_bytes)
            if part.format == "txt":
                yield from self._read_text(part, intake, size_chars, progress)
            else:
                yield from self._read_table(part, intake, size_chars, progress)
            done_bytes += part.source.size_bytes
            if on_bytes is not None:
                on_bytes(done_bytes)
        self.intake = intake

    def _read_text(self, part: Part, intake: Intake, size_chars: int, on_bytes: Progress | None) -> Iterator[_Chunk]:
        keep_all = self.keep_empty or self.keep_line_ends
        is_broken = True  # nothing goes before the first line, and nothing continues a line that was left out as bad
        step = min(size_chars, BLOCK_BYTES)
        lines = read_lines(part.source, part.codec, keep_ends=self.keep_line_ends, block_bytes=step, on_bytes=on_bytes)
        with closing(lines):
            for block in lines:
                texts = block.lines
                numbers: Sequence[int] = range(block.first, block.first + len(texts))
                breaks: set[int] = set()
                intake.rows_in += len(texts)
                if block.bad or not (keep_all or _are_full(texts)):
                    texts, numbers = [], []
                    for i, line in enumerate(block.lines):
                        number = block.first + i
                        if i in block.bad:
                            self._leave_out(part, intake, number, bad_bytes(block.bad[i]))
                            is_broken = True
                        elif not keep_all and (not line or line.isspace()):
                            self._leave_out(part, intake, number, EMPTY)
                        else:
                            if is_broken:
                                breaks.add(number)
                                is_broken = False
                            texts.append(line)
                            numbers.append(number)
                elif is_broken:
                    breaks.add(block.first)
                    is_broken = False
                intake.rows_used += len(texts)
                if texts:
                    yield _Chunk(part.source.name, texts, None, numbers, breaks)

    def _read_table(self, part: Part, intake: Intake, size_chars: int, on_bytes: Progress | None) -> Iterator[_Chunk]:
        texts: list[str] = []
        labels: list[str | None] = []
        numbers: list[int] = []
        chars = 0
        for number, found in enumerate(read_rows(part, on_bytes), start=1):
            intake.rows_in += 1
            if isinstance(found, Fault):
                self._leave_out(part, intake, number, found)
                continue
            text, label = found
            if label is not None:
                label = label.strip() or None
            if not self.keep_empty and (not text or text.isspace()):
                self._leave_out(part, intake, number, EMPTY)
            elif self.need_label and label is None:
                self._leave_out(part, intake, number, NO_LABEL)
            else:
                intake.rows_used += 1
                texts.append(text)
                labels.append(label)
                numbers.append(number)
                chars += len(text)
                if chars >= size_chars:
                    yield _Chunk(part.source.name, texts, labels, numbers, None)
                    texts, labels, numbers, chars = [], [], [], 0
        if texts:
            yield _Chunk(part.source.name, texts, labels, numbers, None)

    def _leave_out(self, part: Part, intake: Intake, number: int, fault: Fault) -> None:
        name = part.source.name
        if fault.advice and self.bad_rows == "stop":
            line = f" (line {fault.line})" if fault.line else ""
            raise InklingError(
                f"{name} {part.unit} {number}{line}: {fault.detail}; {fault.advice} or leave such rows out with "
                f"--bad-rows skip."
            )
        if len(intake.examples) < EXAMPLES_KEPT:
            intake.report(fault.category, RowProblem(name, number, fault.detail, part.unit))
        else:  # only counted: there may be millions
            intake.problems_by_reason[fault.category] += 1


def _are_full(lines: list[str]) -> bool:
    """Whether no line is empty or blank."""
    return "" not in lines and not any(map(str.isspace, lines))


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _shifted(on_bytes: Progress | None, base: int) -> Progress | None:
    return None if on_bytes is None else lambda count: on_bytes(base + count)
