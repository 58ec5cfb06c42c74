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

import csv
import difflib
import hashlib
import json
import os
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from inkling.errors import InklingError, UsageError
from inkling.text.files import (
    BLOCK_BYTES,
    COMPRESSIONS,
    Codec,
    Lines,
    Progress,
    Source,
    choose_codec,
    find_compression,
    open_path,
    open_stdin,
    printable,
    read_lines,
    unpack_to_file,
    why_not,
)

if TYPE_CHECKING:
    import polars

FORMATS = ("txt", "csv", "tsv", "jsonl", "parquet")
ENDINGS = {
    ".txt": "txt",
    ".text": "txt",
    ".md": "txt",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}

# The likeliest name first.
TEXT_NAMES = (
    *("text", "sentence", "review", "content", "body", "question", "document", "comment", "tweet", "message", "post"),
    *("article", "passage", "paragraph", "phrase", "utterance", "description", "abstract", "prompt", "input", "string"),
    *("line", "headline", "title", "summary", "premise", "context", "lyrics", "poem", "story"),
)
LABEL_NAMES = (
    *("label", "labels", "class", "category", "sentiment", "target", "answer", "polarity", "topic", "emotion"),
    *("intent", "tag", "genre", "language", "lang", "gold", "output", "y", "rating", "stars", "score"),
)
OTHER_NAMES = ("id", "idx", "index", "date", "source", "url", "author", "user", "split", "timestamp", "hypothesis")

SAMPLE_ROWS = 100
EXAMPLES_KEPT = 20
CSV_FIELD_CHARS = 1 << 27  # longer than any text; an unclosed quote must not fill the memory
PARQUET_SLICE_CHARS = 1 << 24  # a row group is fetched anew for every slice, so slices are not small


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


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a row cannot be used. Without advice it is left out and counted; with advice it may stop the reading."""

    category: str
    detail: str
    advice: str = ""
    line: int = 0  # where it differs from the number of the row


_Fields = tuple[int, list[str] | _Fault]  # the line on which a record begins, and what it holds
_Found = tuple[str, str | None] | _Fault  # text and label

_EMPTY = _Fault("empty text", "the text is empty")
_NO_TEXT = _Fault("no text", "the text is null")
_NO_LABEL = _Fault("missing label", "the label is missing")
_BLANK = _Fault("blank line", "the line is blank")


def _bad_bytes(detail: str, line: int = 0) -> _Fault:
    return _Fault("invalid bytes", detail, "give the encoding of the file, such as --encoding latin-1,", line)


@dataclass(frozen=True)
class _Chunk:
    """Rows of one file, side by side. `span` are their numbers, `left_out` aside; `breaks` are the numbers of rows
    that do not continue what goes before (None: none does)."""

    source: str
    texts: list[str]
    labels: list[str | None] | None
    span: Sequence[int]
    breaks: set[int] | None
    left_out: Sequence[int] = ()

    @property
    def numbers(self) -> Sequence[int]:
        """Worked out only where rows are wanted: the fast way through a file never asks."""
        left_out = set(self.left_out)
        return [number for number in self.span if number not in left_out] if left_out else self.span


@dataclass(frozen=True)
class _Part:
    """One file, and all that was settled about it before reading its rows."""

    source: Source
    format: str
    codec: Codec
    columns: tuple[str, ...] = ()
    header: bool = False
    text: int = 0  # index into columns
    label: int | None = None
    parquet: Path | None = None

    @property
    def unit(self) -> str:
        return "line" if self.format in ("txt", "jsonl") else "row"


# ------------------------------------------------------------------------------------------- records of each format


class _CsvLines(Iterator[str]):
    """Feeds lines to csv.reader and remembers those of the record under way, so that a broken one can be retried."""

    def __init__(self, blocks: Iterator[Lines]) -> None:
        self.fresh = _flatten(blocks)
        self.returned: list[tuple[str, str | None]] = []  # last one first
        self.taken: list[tuple[str, str | None]] = []
        self.next_line = 1

    def __next__(self) -> str:
        item = self.returned.pop() if self.returned else next(self.fresh)
        self.taken.append(item)
        self.next_line += 1
        return item[0]

    def return_all_but_first(self) -> None:
        self.returned.extend(reversed(self.taken[1:]))
        self.next_line -= len(self.taken) - 1


def _flatten(blocks: Iterator[Lines]) -> Iterator[tuple[str, str | None]]:
    for block in blocks:
        if block.bad:
            for i, line in enumerate(block.lines):
                yield line, block.bad.get(i)
        else:
            for line in block.lines:
                yield line, None


def _csv_records(blocks: Iterator[Lines]) -> Iterator[_Fields]:
    if csv.field_size_limit() < CSV_FIELD_CHARS:
        csv.field_size_limit(CSV_FIELD_CHARS)
    lines = _CsvLines(blocks)
    reader = csv.reader(lines, strict=True)
    while True:
        lines.taken.clear()
        begin = lines.next_line
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            last = lines.next_line - 1
            lines.return_all_but_first()
            yield begin, _explain_csv(str(error), begin, last)
            continue
        bad = next((reason for _, reason in lines.taken if reason is not None), None)
        if bad is not None:
            yield begin, _bad_bytes(bad, begin)
        else:
            yield begin, fields or _BLANK


def _explain_csv(message: str, begin: int, last: int) -> _Fault:
    advice = 'write a quote inside a quoted field twice ("")'
    if "expected after" in message:
        return _Fault("broken quotes", f"on line {last} a quoted field goes on after its closing quote", advice, begin)
    if "unexpected end" in message:
        return _Fault("broken quotes", "a quote is opened and never closed", advice, begin)
    if "field limit" in message:
        detail = f"a field is longer than {CSV_FIELD_CHARS:,} characters, so a quote is probably never closed"
        return _Fault("broken quotes", detail, advice, begin)
    if "new-line" in message:
        detail = "a carriage return stands alone outside quotes"
        return _Fault("stray carriage return", detail, "save the file with ordinary line ends", begin)
    return _Fault("broken record", message, "mend the row", begin)


def _tsv_records(blocks: Iterator[Lines]) -> Iterator[_Fields]:
    for line, (text, bad) in enumerate(_flatten(blocks), start=1):
        yield line, text.split("\t") if bad is None else _bad_bytes(bad, line)


def _delimited_records(part: _Part, on_bytes: Progress | None = None) -> Generator[_Fields, None, None]:
    is_csv = part.format == "csv"
    with closing(read_lines(part.source, part.codec, keep_ends=is_csv, on_bytes=on_bytes)) as blocks:
        yield from _csv_records(blocks) if is_csv else _tsv_records(blocks)


def _delimited_rows(part: _Part, on_bytes: Progress | None) -> Iterator[_Found]:
    records = _delimited_records(part, on_bytes)
    if part.header:
        next(records)
    width = len(part.columns)
    for line, fields in records:
        if isinstance(fields, _Fault):
            yield fields
        elif len(fields) != width:
            yield _BLANK if fields == [""] else _wrong_width(len(fields), part, line)
        else:
            yield fields[part.text], None if part.label is None else fields[part.label]


def _wrong_width(count: int, part: _Part, line: int) -> _Fault:
    fields = f"{count} field{'' if count == 1 else 's'} where the first row has {len(part.columns)}"
    advice = "put quotes around a text that holds commas" if part.format == "csv" else "keep tabs out of the texts"
    if count < len(part.columns):
        advice = "fill in the row"
    return _Fault("wrong number of fields", f"the row has {fields}", advice, line)


def _json_objects(part: _Part, on_bytes: Progress | None = None) -> Generator[dict[str, Any] | _Fault, None, None]:
    advice = "write one JSON object a line"
    with closing(read_lines(part.source, part.codec, keep_ends=False, on_bytes=on_bytes)) as blocks:
        for line, bad in _flatten(blocks):
            if bad is not None:
                yield _bad_bytes(bad)
            elif not line or line.isspace():
                yield _BLANK
            else:
                try:
                    value = json.loads(line)
                except json.JSONDecodeError as error:
                    yield _Fault("bad JSON", f"this is not JSON ({error.msg} at column {error.colno})", advice)
                except (ValueError, RecursionError):
                    yield _Fault("bad JSON", "this JSON is too deep or a number in it too long", advice)
                else:
                    found = f"this JSON is {_json_kind(value)}, not an object"
                    yield value if isinstance(value, dict) else _Fault("not an object", found, advice)


def _json_kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    kinds = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _json_rows(part: _Part, on_bytes: Progress | None) -> Iterator[_Found]:
    text_key = part.columns[part.text]
    label_key = None if part.label is None else part.columns[part.label]
    for found in _json_objects(part, on_bytes):
        if isinstance(found, _Fault):
            yield found
            continue
        shown = f"'{printable(text_key)}'"
        text = found.get(text_key)
        label = None if label_key is None else found.get(label_key)
        if text_key not in found:
            yield _Fault("missing column", f"the object has no {shown}", "name the column with --text-column")
        elif text is None:
            yield _NO_TEXT
        elif not isinstance(text, str):
            yield _Fault("text is not a string", f"{shown} is {_json_kind(text)}", "write the text as a string")
        elif _has_surrogate(text):
            yield _Fault("lone surrogate", f"{shown} holds half a surrogate pair", "write characters, not \\u halves")
        elif isinstance(label, dict | list) or (isinstance(label, str) and _has_surrogate(label)):
            detail = f"the label '{printable(str(label_key))}' is not one plain value"
            yield _Fault("label is not a value", detail, "write the label as a string or a number")
        else:
            yield text, str(label).lower() if isinstance(label, bool) else None if label is None else str(label)


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _parquet_rows(part: _Part, on_bytes: Progress | None) -> Iterator[_Found]:
    import polars as pl

    frame = _scan_parquet(part)
    chosen = [pl.col(part.columns[part.text]).cast(pl.String).alias("text")]
    if part.label is not None:
        chosen.append(pl.col(part.columns[part.label]).cast(pl.String).alias("label"))
    table = frame.select(chosen)
    try:
        total = frame.select(pl.len()).collect().item()
        sample = table.head(SAMPLE_ROWS).collect()["text"].to_list()
        mean_chars = sum(len(text or "") for text in sample) // max(1, len(sample)) + 16
        step = min(max(PARQUET_SLICE_CHARS // mean_chars, 256), 1 << 18)
        for start in range(0, total, step):
            rows = table.slice(start, step).collect()
            labels = rows["label"].to_list() if part.label is not None else [None] * len(rows)
            for text, label in zip(rows["text"].to_list(), labels, strict=True):
                yield _NO_TEXT if text is None else (text, label)
            if on_bytes is not None:
                on_bytes(part.source.size_bytes * min(total, start + step) // total)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged_parquet(part) from error


def _scan_parquet(part: _Part) -> polars.LazyFrame:
    import polars as pl

    path = part.parquet
    assert path is not None
    return pl.scan_parquet(path, glob=False)


def _damaged_parquet(part: _Part) -> InklingError:
    return InklingError(
        f"{part.source.name} does not hold sound parquet data: it is cut short or wrongly named, so write it again."
    )


# ------------------------------------------------------------------------------------------- columns


@dataclass(frozen=True)
class _Wanted:
    text_column: str | None
    label_column: str | None
    header: bool | None
    need_label: bool


def _choose_columns(
    name: str, columns: Sequence[str], texts: Sequence[int], lengths: Sequence[float], wanted: _Wanted, named: bool
) -> tuple[int, int | None, list[str]]:
    """Indexes of the text and the label column, and what was guessed. `texts` are the columns that can hold text,
    `lengths` the average length of each column; `named` is False where the names are ours (column1, column2 …)."""
    notes = []
    label = None
    if wanted.label_column is not None:
        label = _find_column(name, columns, wanted.label_column, "label")
    if wanted.text_column is not None:
        text = _find_column(name, columns, wanted.text_column, "text")
    else:
        free = [i for i in texts if i != label]
        if not free:
            raise InklingError(f"{name} has no column of text: {_list_columns(columns)}; name one with --text-column.")
        guess = _first_named(columns, TEXT_NAMES, free)
        reason = "by its name"
        if guess is None:
            rest = free
            if label is None:
                rest = [i for i in free if columns[i].strip().lower() not in LABEL_NAMES] or free
            guess = max(rest, key=lambda i: lengths[i])
            reason = "the only one" if len(columns) == 1 else "the one with the longest texts"
        text = guess
        notes.append(f"the text is column '{printable(columns[text])}' ({reason})")
    if wanted.label_column is None:
        others = [i for i in range(len(columns)) if i != text]
        label = _first_named(columns, LABEL_NAMES, others)
        reason = "by its name"
        if label is None and len(columns) == 2 and (wanted.need_label or not named):
            label, reason = others[0], "the other one"
        if label is not None:
            notes.append(f"the label is column '{printable(columns[label])}' ({reason})")
        elif wanted.need_label:
            raise InklingError(
                f"{name} has no column that looks like a label: {_list_columns(columns)}; name it with --label-column."
            )
    return text, label, notes


def _first_named(columns: Sequence[str], names: Sequence[str], among: Sequence[int]) -> int | None:
    lowered = {columns[i].strip().lower(): i for i in reversed(among)}
    return next((lowered[name] for name in names if name in lowered), None)


def _find_column(name: str, columns: Sequence[str], wanted: str, role: str) -> int:
    count = columns.count(wanted)
    if count == 1:
        return columns.index(wanted)
    if count > 1:
        raise InklingError(
            f"{name} has {count} columns called '{printable(wanted)}': give the number of the one meant, such as "
            f"--{role}-column {columns.index(wanted) + 1}."
        )
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= len(columns):
        return int(wanted) - 1
    near = difflib.get_close_matches(wanted.lower(), [c.lower() for c in columns], n=1, cutoff=0.5)
    meant = next((f", perhaps '{printable(c)}'" for c in columns if near and c.lower() == near[0]), "")
    raise InklingError(
        f"{name} has no column '{printable(wanted)}': {_list_columns(columns)}; give one of them as "
        f"--{role}-column{meant}."
    )


def _list_columns(columns: Sequence[str]) -> str:
    shown = ", ".join(f"'{printable(c)}'" for c in columns[:20]) + (" …" if len(columns) > 20 else "")
    return f"there is only {shown}" if len(columns) == 1 else f"there are {shown}"


def _settle_delimited(part: _Part, wanted: _Wanted) -> tuple[_Part, list[str]]:
    name = part.source.name
    sample: list[list[str]] = []
    with closing(_delimited_records(part)) as records:
        line, first = next(records)
        if first == [""]:
            first = _BLANK
        if isinstance(first, _Fault):
            advice = first.advice.removesuffix(",") or "begin the file with its header or its first row"
            raise InklingError(f"{name} line {line}: {first.detail}; {advice}.")
        rows_follow = False
        for _, fields in records:
            rows_follow = True
            if isinstance(fields, list) and len(fields) == len(first):
                sample.append(fields)
            if len(sample) == SAMPLE_ROWS:
                break
    header, notes = _guess_header(first, wanted)
    if header and not rows_follow:
        raise InklingError(f"{name} has a header and no rows: add rows, or give --no-header if line 1 is one.")
    columns = [cell.strip() for cell in first] if header else [f"column{i + 1}" for i in range(len(first))]
    if not header:
        sample.append(first)
    lengths = [sum(len(row[i]) for row in sample) for i in range(len(columns))]
    text, label, guesses = _choose_columns(name, columns, range(len(columns)), lengths, wanted, header)
    settled = _Part(part.source, part.format, part.codec, tuple(columns), header, text, label)
    return settled, notes + guesses


def _guess_header(first: list[str], wanted: _Wanted) -> tuple[bool, list[str]]:
    if wanted.header is not None:
        return wanted.header, []
    ours = {f"column{i + 1}" for i in range(len(first))} | {str(i + 1) for i in range(len(first))}
    cells = [cell.strip() for cell in first]
    named = [column for column in (wanted.text_column, wanted.label_column) if column is not None]
    if any(column in cells or column not in ours for column in named):
        return True, []
    known = {*TEXT_NAMES, *LABEL_NAMES, *OTHER_NAMES}
    if any(cell.lower() in known for cell in cells):
        return True, ["the first row is taken as the header (--no-header if it is not)"]
    return False, ["the first row is taken as data, not as a header (--header if it is one)"]


def _settle_json(part: _Part, wanted: _Wanted) -> tuple[_Part, list[str]]:
    name = part.source.name
    objects: list[dict[str, Any]] = []
    fault: tuple[int, _Fault] | None = None
    with closing(_json_objects(part)) as found:
        for number, item in enumerate(found, start=1):
            if isinstance(item, dict):
                objects.append(item)
            elif fault is None and item is not _BLANK:
                fault = number, item
            if len(objects) == SAMPLE_ROWS or (number >= SAMPLE_ROWS and not objects and fault):
                break
    columns = list(dict.fromkeys(key for item in objects for key in item))
    if not columns:
        if fault is not None:
            advice = fault[1].advice.removesuffix(",")
            raise InklingError(f"{name} line {fault[0]}: {fault[1].detail}; {advice}.")
        raise InklingError(f"{name} holds no rows: write one JSON object a line.")
    values = [[item[key] for item in objects if isinstance(item.get(key), str)] for key in columns]
    lengths = [sum(map(len, column)) / max(1, len(column)) for column in values]
    texts = [i for i, column in enumerate(values) if column]
    text, label, notes = _choose_columns(name, columns, texts, lengths, wanted, True)
    return _Part(part.source, part.format, part.codec, tuple(columns), True, text, label), notes


def _settle_parquet(part: _Part, wanted: _Wanted) -> tuple[_Part, list[str]]:
    import polars as pl

    name = part.source.name
    try:
        frame = _scan_parquet(part)
        schema = frame.collect_schema()
        columns, kinds = schema.names(), schema.dtypes()
        texts = [i for i, kind in enumerate(kinds) if isinstance(kind, pl.String | pl.Categorical | pl.Enum)]
        total = frame.select(pl.len()).collect().item()
        sample = frame.select(columns[i] for i in texts).head(SAMPLE_ROWS).collect()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise _damaged_parquet(part) from error
    if not total:
        raise InklingError(f"{name} holds no rows: write it again with some.")
    lengths = [0.0] * len(columns)
    for i in texts:
        lengths[i] = sum(len(value or "") for value in sample[columns[i]].to_list())
    text, label, notes = _choose_columns(name, columns, texts, lengths, wanted, True)
    if text not in texts:
        raise InklingError(
            f"{name} column '{printable(columns[text])}' holds {kinds[text]} where text was expected: name "
            f"a column of strings with --text-column."
        )
    if label is not None and (kinds[label].is_nested() or kinds[label] == pl.Binary):
        raise InklingError(
            f"{name} column '{printable(columns[label])}' holds {kinds[label]} where labels were expected: "
            f"name a column of strings or numbers with --label-column."
        )
    return _Part(part.source, part.format, part.codec, tuple(columns), True, text, label, part.parquet), notes


# ------------------------------------------------------------------------------------------- finding the files


def _find_format(name: str) -> str | None:
    """The format that a file name ends in, before any compression; None if it says nothing."""
    return ENDINGS.get(Path(name.lower().removesuffix(find_compression(name))).suffix)


def _walk(folder: Path, any_ending: bool) -> tuple[list[Path], int]:
    """The readable files below `folder` in sorted order, and the number of those whose ending is unknown."""

    def stop(error: OSError) -> None:
        raise InklingError(
            f"The folder {printable(str(error.filename))} cannot be read: {why_not(error)}; check its permissions."
        ) from error

    files = []
    unknown = 0
    for parent, folders, names in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.startswith(".") or not Path(parent, name).is_file():
                continue
            if any_ending or _find_format(name):
                files.append(Path(parent, name))
            else:
                unknown += 1
    return sorted(files, key=lambda path: path.parts), unknown


def _explain_missing(path: Path) -> InklingError:
    parent = path.parent
    shown = printable(str(path))
    with suppress(OSError):
        if not parent.is_dir():
            return InklingError(
                f"{shown} does not exist, nor does the folder {printable(str(parent))}: check the path."
            )
        near = difflib.get_close_matches(path.name, [entry.name for entry in parent.iterdir()], n=1, cutoff=0.5)
        if near:
            return InklingError(f"{shown} does not exist: did you mean {printable(str(parent / near[0]))}?")
    return InklingError(f"{shown} does not exist: check the path.")


# ------------------------------------------------------------------------------------------- the corpus


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
        self._wanted = _Wanted(text_column, label_column, header, need_label)
        self._said: dict[str, list[str]] = {}  # what was guessed → of which files
        self._folder_notes: list[str] = []
        self._parts: list[_Part] = []
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
            raise _explain_missing(path)
        if not is_folder:
            self._add_source(open_path(path), path.name, in_folder=False)
            return
        files, unknown = _walk(path, any_ending=self._format is not None)
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
        format = self._format or _find_format(file_name)
        notes = []
        if format is None:
            format = "txt"
            notes.append("read as plain text (--format for anything else)")
        head = source.head()
        part = _Part(source, format, Codec("utf-8"))
        if head and format == "parquet":
            part = self._place_parquet(part)
        elif head:
            codec = choose_codec(source.name, head, self._encoding)
            part = _Part(source, format, codec)
            head = head[codec.mark_bytes :]
        if not head:
            if in_folder:
                return
            raise InklingError(f"{source.name} is empty: give a file with text in it.")
        if format == "txt":
            self._reject_columns(source.name)
        else:
            settle = {"jsonl": _settle_json, "parquet": _settle_parquet}.get(format, _settle_delimited)
            part, guesses = settle(part, self._wanted)
            notes += guesses
        self._parts.append(part)
        if notes:
            self._said.setdefault("; ".join(notes), []).append(source.name)

    def _place_parquet(self, part: _Part) -> _Part:
        source = part.source
        path = source.path
        if path is None or source.compression:
            path = unpack_to_file(source)
            weakref.finalize(self, path.unlink, missing_ok=True)
        return _Part(source, part.format, part.codec, parquet=path)

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

    def _read_text(self, part: _Part, intake: Intake, size_chars: int, on_bytes: Progress | None) -> Iterator[_Chunk]:
        keep_all = self.keep_empty or self.keep_line_ends
        is_broken = True  # nothing goes before the first line, and nothing continues a line that was left out as bad
        with closing(
            read_lines(
                part.source,
                part.codec,
                keep_ends=self.keep_line_ends,
                block_bytes=min(size_chars, BLOCK_BYTES),
                on_bytes=on_bytes,
            )
        ) as blocks:
            for block in blocks:
                lines, first = block.lines, block.first
                intake.rows_in += len(lines)
                texts = lines
                left_out: list[int] = []
                breaks: set[int] = set()
                if block.bad:
                    texts = []
                    for number, line in enumerate(lines, first):
                        if number - first in block.bad:
                            self._leave_out(part, intake, number, _bad_bytes(block.bad[number - first]))
                            left_out.append(number)
                            is_broken = True
                        elif not keep_all and (not line or line.isspace()):
                            self._leave_out(part, intake, number, _EMPTY)
                            left_out.append(number)
                        else:
                            texts.append(line)
                            if is_broken:
                                breaks.add(number)
                            is_broken = False
                elif not keep_all:
                    texts = [line for line in lines if line and not line.isspace()]
                    if len(texts) < len(lines):
                        left_out = [n for n, line in enumerate(lines, first) if not line or line.isspace()]
                        self._leave_out_empty(part, intake, left_out)
                intake.rows_used += len(texts)
                if texts:
                    chunk = _Chunk(part.source.name, texts, None, range(first, first + len(lines)), breaks, left_out)
                    if is_broken and not block.bad:
                        breaks.add(chunk.numbers[0])
                        is_broken = False
                    yield chunk

    def _leave_out_empty(self, part: _Part, intake: Intake, numbers: list[int]) -> None:
        for number in numbers[:EXAMPLES_KEPT]:
            self._leave_out(part, intake, number, _EMPTY)
        if len(numbers) > EXAMPLES_KEPT:  # the rest is only counted: there may be millions
            intake.problems_by_reason[_EMPTY.category] += len(numbers) - EXAMPLES_KEPT

    def _read_table(self, part: _Part, intake: Intake, size_chars: int, on_bytes: Progress | None) -> Iterator[_Chunk]:
        readers: dict[str, Callable[[_Part, Progress | None], Iterator[_Found]]]
        readers = {"csv": _delimited_rows, "tsv": _delimited_rows, "jsonl": _json_rows, "parquet": _parquet_rows}
        texts: list[str] = []
        labels: list[str | None] = []
        numbers: list[int] = []
        chars = 0
        for number, found in enumerate(readers[part.format](part, on_bytes), start=1):
            intake.rows_in += 1
            if isinstance(found, _Fault):
                self._leave_out(part, intake, number, found)
                continue
            text, label = found
            if label is not None:
                label = label.strip() or None
            if not self.keep_empty and (not text or text.isspace()):
                self._leave_out(part, intake, number, _EMPTY)
            elif self.need_label and label is None:
                self._leave_out(part, intake, number, _NO_LABEL)
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

    def _leave_out(self, part: _Part, intake: Intake, number: int, fault: _Fault) -> None:
        name = part.source.name
        if fault.advice and self.bad_rows == "stop":
            line = f" (line {fault.line})" if fault.line else ""
            raise InklingError(
                f"{name} {part.unit} {number}{line}: {fault.detail}; {fault.advice} or leave such rows out with "
                f"--bad-rows skip."
            )
        intake.report(fault.category, RowProblem(name, number, fault.detail, part.unit))


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _shifted(on_bytes: Progress | None, base: int) -> Progress | None:
    return None if on_bytes is None else lambda count: on_bytes(base + count)
