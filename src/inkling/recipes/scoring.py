"""Scoring and filtering files of any size with a language model, row by row, in constant memory.

A row's cost is that of its tokens and of the spelling of its unknown words. `filter` reads the file twice: once for the
bits per byte of every row (four bytes each are kept), once to write the rows below the limit.
"""

from __future__ import annotations

import csv
import heapq
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
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
from inkling.text.corpus import Corpus

FIELDS = ("row", "nats", "tokens", "unknown", "bytes", "bits_per_byte")
EXAMPLES = 3
BLOCK_CHARS = 1 << 20
OnBytes = Callable[[int], None]


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
) -> Iterator[tuple[list[str], RowScores]]:
    """Blocks of rows with their scores, in order."""
    for block in corpus.text_blocks(BLOCK_CHARS, on_bytes):
        yield block, score_rows(model, block)


# ------------------------------------------------------------------------------------------------ writing scores


class ScoreWriter(AbstractContextManager["ScoreWriter"]):
    """Scores as JSON lines on stdout, or in a file (.jsonl, .csv, .parquet) that appears only when it is complete."""

    def __init__(self, out: str | None) -> None:
        self.path = Path(out) if out else None
        suffix = self.path.suffix if self.path else ".jsonl"
        if suffix not in (".jsonl", ".csv", ".parquet"):
            raise UsageError(f"--out is '{out}'; give a name that ends in .jsonl, .csv or .parquet.")
        if self.path and not self.path.parent.is_dir():
            raise UsageError(f"There is no folder {self.path.parent} to write {self.path.name} in; make it first.")
        self.suffix = suffix
        self.part = self.path.with_name(f".writing-{os.getpid()}-{self.path.name}") if self.path else None
        self.file: IO[str] | None = None
        self.columns: dict[str, list[NDArray[Any]]] = {name: [] for name in FIELDS}
        self.rows = 0

    def __enter__(self) -> Self:
        if self.suffix != ".parquet":
            self.file = self.part.open("w", encoding="utf-8", newline="") if self.part else sys.stdout
        if self.suffix == ".csv" and self.file:
            self.file.write(",".join(FIELDS) + "\n")
        return self

    def write(self, scores: RowScores) -> None:
        numbers = np.arange(self.rows + 1, self.rows + 1 + len(scores.nats))
        self.rows += len(numbers)
        columns = (numbers, scores.nats, scores.tokens, scores.unknown, scores.bytes, scores.bits_per_byte)
        if self.file is None:
            for name, values in zip(FIELDS, columns, strict=True):
                self.columns[name].append(values)
            return
        pattern = (
            '{"row": %d, "nats": %.6f, "tokens": %d, "unknown": %d, "bytes": %d, "bits_per_byte": %.6f}\n'
            if self.suffix == ".jsonl"
            else "%d,%.6f,%d,%d,%d,%.6f\n"
        )
        self.file.write("".join([pattern % row for row in zip(*(c.tolist() for c in columns), strict=True)]))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.path is None or self.part is None:
            return
        try:
            if kind is None and self.file is None:
                import polars

                empty = np.zeros(0)
                polars.DataFrame(
                    {name: np.concatenate(parts) if parts else empty for name, parts in self.columns.items()}
                ).write_parquet(self.part)
            if self.file is not None:
                self.file.close()
            if kind is None:
                with self.part.open("rb") as file:
                    os.fsync(file.fileno())
                self.part.replace(self.path)
        finally:
            self.part.unlink(missing_ok=True)


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
    writer = RowWriter(out) if out else None  # before the work, so that a wrong name costs nothing
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
    shown = _examples_wanted(bits)
    found: dict[int, Example] = {}
    first = 0
    before = corpus.size_bytes
    second_pass = (lambda done: on_bytes(before + done)) if on_bytes else None
    try:
        for rows in corpus.batches(BLOCK_CHARS, second_pass) if writer or shown else ():
            for i, row in enumerate(rows, first):
                if i in shown:
                    found[i] = Example(float(bits[i]), row.number, row.text)
            if writer:
                chosen = np.flatnonzero(keeps[first : first + len(rows)])
                writer.write([(rows[j].text, rows[j].label, float(bits[first + j])) for j in chosen])
            first += len(rows)
        if writer:
            writer.close()
    finally:
        if writer:
            writer.discard()
    order = sorted(found)
    by_bits = sorted(order, key=lambda i: (bits[i], i))
    third = min(EXAMPLES, len(by_bits))
    head, tail = by_bits[:third], by_bits[-third:]
    middle = [i for i in by_bits if i not in head and i not in tail]
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


def _examples_wanted(bits: NDArray[np.float32]) -> set[int]:
    """Rows of the smallest, the middling and the largest cost."""
    wanted = set(heapq.nsmallest(EXAMPLES, range(len(bits)), key=lambda i: bits[i])) if len(bits) < 1000 else set()
    k = min(EXAMPLES, len(bits))
    if not wanted:
        wanted |= set(np.argpartition(bits, k - 1)[:k].tolist())
    wanted |= set(np.argpartition(-bits, k - 1)[:k].tolist())
    wanted |= set(np.argpartition(np.abs(bits - np.median(bits)), k - 1)[:k].tolist())
    return wanted


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
        if path.suffix not in (".txt", ".jsonl", ".csv", ".parquet"):
            raise UsageError(f"--out is '{path}'; give a name that ends in .txt, .jsonl, .csv or .parquet.")
        if not path.parent.is_dir():
            raise UsageError(f"There is no folder {path.parent} to write {path.name} in; make it first.")
        self.path = path
        self.part = path.with_name(f".writing-{os.getpid()}-{path.name}")
        self.rows: list[tuple[str, str | None, float]] = []
        self.file = self.part.open("w", encoding="utf-8", newline="")
        self.table = csv.writer(self.file, lineterminator="\n") if path.suffix == ".csv" else None
        if self.table:
            self.table.writerow(["text", "label", "bits_per_byte"])

    def write(self, rows: Sequence[tuple[str, str | None, float]]) -> None:
        if self.path.suffix == ".parquet":
            self.rows += rows
        elif self.table:
            self.table.writerows((text, label or "", f"{bits:.6f}") for text, label, bits in rows)
        elif self.path.suffix == ".jsonl":
            for text, label, bits in rows:
                record = {"text": text, **({"label": label} if label is not None else {}), "bits_per_byte": bits}
                self.file.write(json.dumps(record, ensure_ascii=False) + "\n")
        else:
            self.file.write("".join(f"{text}\n" for text, _, _ in rows))

    def close(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        if self.path.suffix == ".parquet":
            import polars

            polars.DataFrame(self.rows, schema=["text", "label", "bits_per_byte"], orient="row").write_parquet(
                self.part
            )
        self.part.replace(self.path)

    def discard(self) -> None:
        self.file.close()
        self.part.unlink(missing_ok=True)


def _short(text: str, at_most: int = 70) -> str:
    text = " ".join(text.split())
    return text if len(text) <= at_most else text[: at_most - 1] + "…"
