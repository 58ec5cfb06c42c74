"""The records of each table format, as texts with labels or as faults.

    csv       a record as csv writers make them: quotes, commas and line ends inside quotes; read strictly
    tsv       a line, cut at tabs; quotes are ordinary characters
    jsonl     an object on a line of its own
    parquet   a row, in slices of about 16 million characters

`read_rows` gives one item for each row of the file: (text, label), or a `Fault` where there is no such thing. Nothing
is raised for a bad row: whoever reads decides whether it stops the reading. After a csv record that is broken the
reading goes on with the line after the one it began on, so an unclosed quote costs one row.

Left out: choosing the columns (`columns`), and other separators than comma and tab.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inkling.errors import InklingError
from inkling.text.files import Codec, Lines, Progress, Source, printable, read_lines

if TYPE_CHECKING:
    import polars

SAMPLE_ROWS = 100
CSV_FIELD_CHARS = 1 << 27  # longer than any text; an unclosed quote must not fill the memory
PARQUET_SLICE_CHARS = 1 << 24  # a row group is fetched anew for every slice, so slices are not small


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row cannot be used. Without advice it is left out and counted; with advice it may stop the reading."""

    category: str
    detail: str
    advice: str = ""
    line: int = 0  # where it differs from the number of the row


Fields = tuple[int, list[str] | Fault]  # the line on which a record begins, and what it holds
Found = tuple[str, str | None] | Fault  # text and label

EMPTY = Fault("empty text", "the text is empty")
NO_TEXT = Fault("no text", "the text is null")
NO_LABEL = Fault("missing label", "the label is missing")
BLANK = Fault("blank line", "the line is blank")


def bad_bytes(detail: str, line: int = 0) -> Fault:
    return Fault("invalid bytes", detail, "give the encoding of the file, such as --encoding latin-1,", line)


@dataclass(frozen=True)
class Part:
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


def read_rows(part: Part, on_bytes: Progress | None = None) -> Iterator[Found]:
    """Every row of a table; `on_bytes` gets the bytes read from disk so far."""
    if part.format == "jsonl":
        return _json_rows(part, on_bytes)
    return _parquet_rows(part, on_bytes) if part.format == "parquet" else _delimited_rows(part, on_bytes)


# ------------------------------------------------------------------------------------------- csv and tsv


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


def _csv_records(blocks: Iterator[Lines]) -> Iterator[Fields]:
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
            yield begin, bad_bytes(bad, begin)
        else:
            yield begin, fields or BLANK


def _explain_csv(message: str, begin: int, last: int) -> Fault:
    advice = 'write a quote inside a quoted field twice ("")'
    if "expected after" in message:
        return Fault("broken quotes", f"on line {last} a quoted field goes on after its closing quote", advice, begin)
    if "unexpected end" in message:
        return Fault("broken quotes", "a quote is opened and never closed", advice, begin)
    if "field limit" in message:
        detail = f"a field is longer than {CSV_FIELD_CHARS:,} characters, so a quote is probably never closed"
        return Fault("broken quotes", detail, advice, begin)
    if "new-line" in message:
        detail = "a carriage return stands alone outside quotes"
        return Fault("stray carriage return", detail, "save the file with ordinary line ends", begin)
    return Fault("broken record", message, "mend the row", begin)


def _tsv_records(blocks: Iterator[Lines]) -> Iterator[Fields]:
    for line, (text, bad) in enumerate(_flatten(blocks), start=1):
        yield line, text.split("\t") if bad is None else bad_bytes(bad, line)


def delimited_records(part: Part, on_bytes: Progress | None = None) -> Generator[Fields, None, None]:
    is_csv = part.format == "csv"
    with closing(read_lines(part.source, part.codec, keep_ends=is_csv, on_bytes=on_bytes)) as blocks:
        yield from _csv_records(blocks) if is_csv else _tsv_records(blocks)


def _delimited_rows(part: Part, on_bytes: Progress | None) -> Iterator[Found]:
    records = delimited_records(part, on_bytes)
    if part.header:
        next(records)
    width = len(part.columns)
    for line, fields in records:
        if isinstance(fields, Fault):
            yield fields
        elif len(fields) != width:
            yield BLANK if fields == [""] else _wrong_width(len(fields), part, line)
        else:
            yield fields[part.text], None if part.label is None else fields[part.label]


def _wrong_width(count: int, part: Part, line: int) -> Fault:
    fields = f"{count} field{'' if count == 1 else 's'} where the first row has {len(part.columns)}"
    advice = "put quotes around a text that holds commas" if part.format == "csv" else "keep tabs out of the texts"
    if count < len(part.columns):
        advice = "fill in the row"
    return Fault("wrong number of fields", f"the row has {fields}", advice, line)


# ------------------------------------------------------------------------------------------- jsonl


def json_objects(part: Part, on_bytes: Progress | None = None) -> Generator[dict[str, Any] | Fault, None, None]:
    advice = "write one JSON object a line"
    with closing(read_lines(part.source, part.codec, keep_ends=False, on_bytes=on_bytes)) as blocks:
        for line, bad in _flatten(blocks):
            if bad is not None:
                yield bad_bytes(bad)
            elif not line or line.isspace():
                yield BLANK
            else:
                try:
                    value = json.loads(line)
                except json.JSONDecodeError as error:
                    yield Fault("bad JSON", f"this is not JSON ({error.msg} at column {error.colno})", advice)
                except (ValueError, RecursionError):
                    yield Fault("bad JSON", "this JSON is too deep or a number in it too long", advice)
                else:
                    found = f"this JSON is {_json_kind(value)}, not an object"
                    yield value if isinstance(value, dict) else Fault("not an object", found, advice)


def _json_kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    kinds = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _json_rows(part: Part, on_bytes: Progress | None) -> Iterator[Found]:
    text_key = part.columns[part.text]
    label_key = None if part.label is None else part.columns[part.label]
    for found in json_objects(part, on_bytes):
        if isinstance(found, Fault):
            yield found
            continue
        shown = f"'{printable(text_key)}'"
        text = found.get(text_key)
        label = None if label_key is None else found.get(label_key)
        if text_key not in found:
            yield Fault("missing column", f"the object has no {shown}", "name the column with --text-column")
        elif text is None:
            yield NO_TEXT
        elif not isinstance(text, str):
            yield Fault("text is not a string", f"{shown} is {_json_kind(text)}", "write the text as a string")
        elif _has_surrogate(text):
            yield Fault("lone surrogate", f"{shown} holds half a surrogate pair", "write characters, not \\u halves")
        elif isinstance(label, dict | list) or (isinstance(label, str) and _has_surrogate(label)):
            detail = f"the label '{printable(str(label_key))}' is not one plain value"
            yield Fault("label is not a value", detail, "write the label as a string or a number")
        else:
            yield text, str(label).lower() if isinstance(label, bool) else None if label is None else str(label)


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# ------------------------------------------------------------------------------------------- parquet


def _parquet_rows(part: Part, on_bytes: Progress | None) -> Iterator[Found]:
    import polars as pl

    frame = scan_parquet(part)
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
                yield NO_TEXT if text is None else (text, label)
            if on_bytes is not None:
                on_bytes(part.source.size_bytes * min(total, start + step) // total)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise damaged_parquet(part) from error


def scan_parquet(part: Part) -> polars.LazyFrame:
    import polars as pl

    assert part.parquet is not None
    return pl.scan_parquet(part.parquet, glob=False)


def damaged_parquet(part: Part) -> InklingError:
    return InklingError(
        f"{part.source.name} does not hold sound parquet data: it is cut short or wrongly named, so write it again."
    )
