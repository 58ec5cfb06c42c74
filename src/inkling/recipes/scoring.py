"""Scoring and filtering files of any size with a language model, row by row, in constant memory.

A row's cost is that of its tokens and of the spelling of its unknown words. `filter` reads the file twice: once for the
bits per byte of every row (eight bytes each are kept, figure and size), once to write the rows below the limit.

A result file appears under its name only when it is complete. Parquet cannot be written row by row, so its rows lie in
a file of JSON lines until the end, when they are turned over in one go (from a mapped file, whose pages count as memory
used but can be taken back).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.figures import Column, Table
from inkling.measure.tally import LN2
from inkling.models.contracts import LanguageModel
from inkling.text.corpus import Corpus, Row

EXAMPLES = 3
BLOCK_CHARS = 1 << 19  # larger blocks are no faster, but take more memory
OnBytes = Callable[[int], None]
Kind = Any  # of a column: str, int, float or bool, a mapping of such for a record, a list of one for a list


@dataclass(frozen=True)
class RowScores:
    """One figure a row. `nats` hold tokens and spellings."""

    nats: NDArray[np.float64]
    tokens: NDArray[np.int64]
    unknown: NDArray[np.int64]
    bytes: NDArray[np.int64]

    @property
    def bits_per_byte(self) -> NDArray[np.float64]:
        return self.nats / LN2 / np.maximum(self.bytes, 1)


def score_rows(model: LanguageModel[Any], texts: Sequence[str]) -> RowScores:
    scores = model.score(texts)
    return RowScores(
        nats=scores.per_text(scores.nats) + scores.per_text(scores.spelling_nats),
        tokens=np.diff(scores.offsets),
        unknown=scores.per_text(scores.unknown).astype(np.int64),
        bytes=scores.bytes,
    )


def score_lines(
    model: LanguageModel[Any], corpus: Corpus, on_bytes: OnBytes | None = None
) -> Iterator[tuple[list[Row], RowScores]]:
    """Blocks of rows with their scores, in order."""
    for rows in corpus.batches(BLOCK_CHARS, on_bytes):
        yield rows, score_rows(model, [row.text for row in rows])


# ------------------------------------------------------------------------------------------------ result files


class ResultFile:
    """Text that is written beside its place and moved there when it is complete; otherwise nothing remains."""

    def __init__(self, path: Path, endings: Sequence[str]) -> None:
        if path.suffix not in endings:
            raise UsageError(f"--out is '{path}'; give a name that ends in {', '.join(endings[:-1])} or {endings[-1]}.")
        if not path.parent.is_dir():
            raise UsageError(f"There is no folder {path.parent} to write {path.name} in; make it first.")
        if path.is_dir():
            raise UsageError(f"--out is '{path}', which is a folder; name a file.")
        self.path = path
        self.part = path.with_name(f".writing-{os.getpid()}-{path.name}")
        self.lines = path.with_name(f"{self.part.name}.jsonl") if path.suffix == ".parquet" else self.part
        self.file: IO[str] = self.lines.open("w", encoding="utf-8", newline="")

    def end(self, failure: type[BaseException] | None, columns: Mapping[str, Kind]) -> None:
        """Puts the file in its place, unless something failed. `columns` are those of a Parquet file."""
        try:
            if failure is None:
                self._place(columns)
        finally:
            self._discard()

    def _place(self, columns: Mapping[str, Kind]) -> None:
        self.file.close()
        if self.lines != self.part:
            import polars

            schema = {name: _column_type(kind) for name, kind in columns.items()}
            if self.lines.stat().st_size:
                polars.scan_ndjson(self.lines, schema=schema).sink_parquet(self.part)
            else:
                polars.DataFrame(schema=schema).write_parquet(self.part)
        with self.part.open("rb+") as file:
            os.fsync(file.fileno())
        self.part.replace(self.path)

    def _discard(self) -> None:
        self.file.close()
        self.lines.unlink(missing_ok=True)
        self.part.unlink(missing_ok=True)


def _column_type(kind: Kind) -> Any:
    import polars

    if isinstance(kind, Mapping):
        return polars.Struct({name: _column_type(inner) for name, inner in kind.items()})
    if isinstance(kind, list):
        return polars.List(_column_type(kind[0]))
    return {str: polars.String, int: polars.Int64, float: polars.Float64, bool: polars.Boolean}[kind]


class ScoreWriter:
    """Scores as JSON lines on stdout, or in a file (.jsonl, .csv, .parquet) that appears only when it is complete.

    `row` is the number of the row in its file, so that rows which were left out leave a gap; where there are
    `several_files`, each row also names its file.
    """

    def __init__(self, out: str | None, *, several_files: bool = False) -> None:
        self.result = ResultFile(Path(out), (".jsonl", ".csv", ".parquet")) if out else None
        self.file: IO[str] = self.result.file if self.result else sys.stdout
        self.is_csv = bool(self.result and self.result.path.suffix == ".csv")
        self.several_files = several_files
        self.columns: dict[str, type] = {"file": str} if several_files else {}
        self.columns |= {"row": int, "nats": float, "tokens": int, "unknown": int, "bytes": int, "bits_per_byte": float}
        marks = {str: "%s", int: "%d", float: "%.12g"}
        if self.is_csv:
            self.pattern = ",".join(marks[kind] for kind in self.columns.values()) + "\n"
            self.file.write(",".join(self.columns) + "\n")
        else:
            self.pattern = "{" + ", ".join(f'"{name}": {marks[kind]}' for name, kind in self.columns.items()) + "}\n"

    def __enter__(self) -> Self:
        return self

    def write(self, rows: Sequence[Row], scores: RowScores) -> None:
        numbers = [row.number for row in rows]
        counted = (scores.nats, scores.tokens, scores.unknown, scores.bytes, scores.bits_per_byte)
        columns: list[list[Any]] = [numbers, *(values.tolist() for values in counted)]
        if self.several_files:
            quoted = quote_field if self.is_csv else json.dumps
            columns.insert(0, [quoted(row.source) for row in rows])
        self.file.write("".join([self.pattern % row for row in zip(*columns, strict=True)]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.result is not None:
            self.result.end(kind, self.columns)


# ------------------------------------------------------------------------------------------------ filtering


@dataclass(frozen=True)
class Example:
    bits_per_byte: float
    row: int
    text: str


@dataclass(frozen=True)
class Filtered:
    """What a filter kept, and three examples each from its head, its middle and its tail."""

    rows: int
    kept: int
    bytes: int
    kept_bytes: int
    limit_bits_per_byte: float
    quantiles: dict[str, float]
    head: tuple[Example, ...]
    middle: tuple[Example, ...]
    tail: tuple[Example, ...]

    def to_json(self) -> dict[str, Any]:
        from dataclasses import asdict

        return asdict(self)

    def table(self) -> Table:
        groups = (("most natural", self.head), ("in the middle", self.middle), ("least natural", self.tail))
        rows = tuple(
            (
                group,
                example.row,
                example.bits_per_byte,
                example.bits_per_byte <= self.limit_bits_per_byte,
                _short(example.text),
            )
            for group, examples in groups
            for example in examples
        )
        columns = (
            Column("where"),
            Column("row", "d"),
            Column("bits per byte", ".3f"),
            Column("kept"),
            Column("text"),
        )
        share = self.kept / self.rows if self.rows else 0.0
        return Table(
            f"Kept {self.kept:,} of {self.rows:,} rows ({share:.1%}), {self.kept_bytes:,} of {self.bytes:,} bytes",
            columns,
            rows,
            (f"Kept are the rows of at most {self.limit_bits_per_byte:.4f} bits per byte.",),
        )


def filter_corpus(
    model: LanguageModel[Any], corpus: Corpus, keep: str, out: Path | None, on_bytes: OnBytes | None = None
) -> Filtered:
    """Keeps the rows with the fewest bits per byte; `keep` is a share ("80%") or a limit ("2.5")."""
    share, limit = _parse_keep(keep)
    # The writer is made before the work, so that a wrong name costs nothing, and leaves nothing if the work fails.
    with RowWriter(out) if out else nullcontext() as writer:
        parts, sizes = [], []
        for _, scores in score_lines(model, corpus, on_bytes):
            parts.append(scores.bits_per_byte.astype(np.float32))
            sizes.append(scores.bytes.astype(np.int32))
        if not parts:
            raise InklingError(f"{', '.join(corpus.sources)} has no rows with text to filter; give a file with text.")
        bits, lengths = np.concatenate(parts), np.concatenate(sizes)
        if share is not None:
            kept_rows = max(1, round(share * len(bits)))
            limit = float(np.partition(bits, kept_rows - 1)[kept_rows - 1])
        keeps = bits <= np.float32(limit)
        head, middle, tail = _examples(bits)
        shown = {*head, *middle, *tail}
        found: dict[int, Example] = {}
        first = 0
        before = corpus.size_bytes
        second_pass = (lambda done: on_bytes(before + done)) if on_bytes else None
        for rows in corpus.batches(BLOCK_CHARS, second_pass):
            for i in [i for i in shown if first <= i < first + len(rows)]:
                found[i] = Example(float(bits[i]), rows[i - first].number, rows[i - first].text)
            if writer:
                chosen = np.flatnonzero(keeps[first : first + len(rows)])
                writer.write([(rows[j], float(bits[first + j])) for j in chosen])
            first += len(rows)
    names = {"5%": 0.05, "25%": 0.25, "50%": 0.5, "75%": 0.75, "95%": 0.95}
    return Filtered(
        rows=len(bits),
        kept=int(keeps.sum()),
        bytes=int(lengths.sum(dtype=np.int64)),
        kept_bytes=int(lengths[keeps].sum(dtype=np.int64)),
        limit_bits_per_byte=float(limit),
        quantiles={name: float(np.quantile(bits, q)) for name, q in names.items()},
        head=tuple(found[i] for i in head),
        middle=tuple(found[i] for i in middle),
        tail=tuple(found[i] for i in tail),
    )


def _examples(bits: NDArray[np.float32]) -> tuple[list[int], list[int], list[int]]:
    """Rows of the smallest, the middling and the largest cost, each in that order and none of them twice."""
    order, rows = np.argsort(bits, kind="stable"), len(bits)
    head_end = min(EXAMPLES, rows)
    tail_start = max(head_end, rows - EXAMPLES)
    start = max(head_end, (rows - EXAMPLES) // 2)
    stop = min(start + EXAMPLES, tail_start)
    return order[:head_end].tolist(), order[start:stop].tolist(), order[tail_start:].tolist()


def _parse_keep(keep: str) -> tuple[float | None, float]:
    try:
        number = float(keep.rstrip("% "))
    except ValueError:
        number = float("nan")
    if keep.strip().endswith("%") and 0 < number <= 100:
        return number / 100, 0.0
    if not keep.strip().endswith("%") and 0 <= number < float("inf"):
        return None, number
    raise UsageError(f"--keep is '{keep}'; give a share such as 80%, or a limit of bits per byte such as 2.5.")


class RowWriter:
    """Kept rows as lines of text, JSON lines, CSV or Parquet; the file appears only when it is complete."""

    def __init__(self, path: Path) -> None:
        self.result = ResultFile(path, (".txt", ".jsonl", ".csv", ".parquet"))
        self.file = self.result.file
        self.kind = path.suffix
        if self.kind == ".csv":
            self.file.write("text,label,bits_per_byte\n")

    def __enter__(self) -> Self:
        return self

    def write(self, rows: Sequence[tuple[Row, float]]) -> None:
        if self.kind == ".csv":
            lines = (f"{quote_field(row.text)},{quote_field(row.label or '')},{bits:.9g}\n" for row, bits in rows)
            self.file.write("".join(lines))
        elif self.kind == ".txt":
            for row, _ in rows:
                if "\n" in row.text:
                    raise InklingError(
                        f"{row.source} row {row.number} holds a line end, which would make two rows of it in a .txt "
                        "file; give --out a name that ends in .jsonl, .csv or .parquet."
                    )
            self.file.write("".join(f"{row.text}\n" for row, _ in rows))
        else:
            for row, bits in rows:
                record = {"text": row.text, **({"label": row.label} if row.label is not None else {})}
                self.file.write(json.dumps({**record, "bits_per_byte": bits}, ensure_ascii=False) + "\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.result.end(kind, {"text": str, "label": str, "bits_per_byte": float})


def quote_field(text: str) -> str:
    """A field of a CSV file. The csv module leaves a lone "\\r" without quotes, and readers end the row there."""
    return '"' + text.replace('"', '""') + '"'


def _short(text: str, at_most: int = 70) -> str:
    text = " ".join(text.split())
    return text if len(text) <= at_most else text[: at_most - 1] + "…"
