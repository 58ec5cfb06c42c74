"""A classifier at work on files of any size: a verdict for every row, in constant memory, and why.

    {"row": 7, "label": "pos", "probability": 0.97, "unsure": false}

A verdict is `unsure` when its probability is below a threshold: that of the run, which held-out texts chose, or one
that the user gives. Reasons are told against the runner-up, the second most likely label, in nats of log-odds between
the two (explain/weighing.py): how much of the margin each word has (its share), and how the margin falls when it is
left out alone (its effect, exact; summed over its places). Only strong words are named.

Rows in = rows with a verdict + rows reported: a row without text has none.

In tables (.csv, .tsv) a list of words becomes one cell, "superb +0.41; great +0.30" (shares), and the probability of
each label a column. A tab or a line end, which a .tsv file cannot hold, is refused in labels and becomes a space in
what is quoted from a text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from inkling.errors import UsageError
from inkling.explain.weighing import DIGITS, StrongWord, Weighed, find_strong, weigh
from inkling.explain.words import Explanation, explain
from inkling.models.dan import AveragingNetwork
from inkling.recipes.scoring import BLOCK_CHARS, Kind, OnBytes, ResultFile, quote_field
from inkling.runs.run import Run
from inkling.text.corpus import Corpus, Row
from inkling.text.files import printable

Floats = NDArray[np.float64]

ENDINGS = (".jsonl", ".csv", ".tsv", ".parquet")
NAMED_WORDS = 5  # on each side
LEAST_BLOCK_CHARS = 1 << 14
WORDS: Kind = [{"word": str, "share_nats": float, "effect_nats": float}]
SENTENCE: Kind = {"text": str, "share_nats": float}


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why a verdict and not the runner-up. `weighed` has every word and sentence."""

    verdict: str
    runner_up: str
    pro: tuple[StrongWord, ...]  # strongest first
    contra: tuple[StrongWord, ...]
    weighed: Weighed

    @classmethod
    def of(cls, found: Explanation, verdict: int) -> Reasons:
        others = found.log_probs.copy()
        others[verdict] = -np.inf
        runner_up = int(others.argmax())
        weighed = weigh(found, verdict, runner_up)
        pro, contra = find_strong(weighed)
        labels = found.labels[verdict], found.labels[runner_up]
        return cls(*labels, tuple(pro[:NAMED_WORDS]), tuple(contra[:NAMED_WORDS]), weighed)

    @property
    def sentence(self) -> tuple[str, float] | None:
        """The sentence that decided and its share of the margin."""
        place = self.weighed.decider
        return None if place is None else (self.weighed.sentence(place), float(self.weighed.sentence_shares[place]))

    def to_json(self) -> dict[str, Any]:
        def listed(words: Sequence[StrongWord]) -> list[dict[str, Any]]:
            return [
                {
                    "word": one.word,
                    "share_nats": round(one.share, DIGITS),
                    "effect_nats": round(one.effect, DIGITS),
                }
                for one in words
            ]

        told = self.sentence
        return {
            "rather_than": self.runner_up,
            "for": listed(self.pro),
            "against": listed(self.contra),
            "decided_by": None if told is None else {"text": told[0], "share_nats": round(told[1], DIGITS)},
        }


@dataclass(frozen=True, eq=False)
class Verdicts:
    """A block of rows and what the classifier says of them. `reasons` is empty where none were asked for."""

    labels: tuple[str, ...]
    rows: list[Row]
    log_probs: Floats  # N×C
    reasons: list[Reasons]

    @property
    def places(self) -> NDArray[np.int64]:
        """The likeliest label of each row, by its place in `labels`."""
        places: NDArray[np.int64] = self.log_probs.argmax(axis=1)
        return places

    @property
    def probabilities(self) -> Floats:
        """Of the verdicts."""
        probabilities: Floats = np.minimum(1.0, np.exp(self.log_probs.max(axis=1)))
        return probabilities

    def __len__(self) -> int:
        return len(self.rows)


def classify_rows(
    network: AveragingNetwork, corpus: Corpus, *, why: bool = False, on_bytes: OnBytes | None = None
) -> Iterator[Verdicts]:
    """Blocks of rows with their verdicts, in order."""
    # Reasons have a number for each word and label, so the more labels, the smaller the blocks.
    size_chars = max(LEAST_BLOCK_CHARS, 2 * BLOCK_CHARS // len(network.labels)) if why else BLOCK_CHARS
    for rows in corpus.batches(min(size_chars, BLOCK_CHARS), on_bytes):
        yield judge(network, rows, why=why)


def judge(network: AveragingNetwork, rows: list[Row], *, why: bool = False) -> Verdicts:
    texts = [row.text for row in rows]
    found = Verdicts(network.labels, rows, network.log_probs(texts).numpy().astype(np.float64), [])
    if not why:
        return found
    explained = zip(explain(network, texts), found.places.tolist(), strict=True)
    return Verdicts(network.labels, rows, found.log_probs, [Reasons.of(one, verdict) for one, verdict in explained])


def choose_threshold(run: Run, given: float | None) -> float | None:
    """Below which probability a verdict is unsure: what is given, or what held-out texts chose; None: no such."""
    if given is not None:
        if not 0 <= given <= 1:
            raise UsageError(f"--unsure-below is {given:g}; give a probability from 0 to 1.")
        return given
    chosen = run.info.get("summary", {}).get("unsure_below")
    return None if chosen is None else float(chosen)


class ClassificationWriter:
    """Verdicts as JSON lines on stdout, or in a file (.jsonl, .csv, .tsv, .parquet) that appears only when complete.

    `row` is the number of the row in its file, so that rows which were left out leave a gap; where there are
    `several_files`, each row also names its file.
    """

    def __init__(
        self,
        out: str | None,
        labels: Sequence[str],
        threshold: float | None,
        *,
        all_labels: bool = False,
        why: bool = False,
        several_files: bool = False,
    ) -> None:
        self.labels, self.threshold = tuple(labels), threshold
        self.all_labels, self.why, self.several_files = all_labels, why, several_files
        self.columns: dict[str, Kind] = {"file": str} if several_files else {}
        self.columns |= {"row": int, "label": str, "probability": float, "unsure": bool}
        if all_labels:
            self.columns |= {"probabilities": dict.fromkeys(self.labels, float)}
        if why:
            self.columns |= {"rather_than": str, "for": WORDS, "against": WORDS, "decided_by": SENTENCE}
        self.separator = {".csv": ",", ".tsv": "\t"}.get(Path(out).suffix) if out else None
        torn = [label for label in self.labels if cell_line(label) != label]
        if self.separator == "\t" and torn:
            raise UsageError(
                f"--out is '{out}', but the label '{printable(torn[0])}' holds a tab or a line end, which a .tsv file "
                "cannot; give a name that ends in .jsonl, .csv or .parquet."
            )
        self.result = ResultFile(Path(out), ENDINGS) if out else None
        self.file: IO[str] = self.result.file if self.result else sys.stdout
        if self.separator:
            self._write_cells(self._headings())

    def __enter__(self) -> Self:
        return self

    def write(self, found: Verdicts) -> None:
        for record in self.records(found):
            if self.separator:
                self._write_cells(self._cells(record))
            else:
                self.file.write(json_line(record))

    def records(self, found: Verdicts) -> Iterator[dict[str, Any]]:
        everything = np.exp(found.log_probs).tolist() if self.all_labels else None
        verdicts = zip(found.rows, found.places.tolist(), found.probabilities.tolist(), strict=True)
        for i, (row, place, probability) in enumerate(verdicts):
            record: dict[str, Any] = {"file": row.source} if self.several_files else {}
            record |= {"row": row.number, "label": self.labels[place], "probability": _digits(probability)}
            record["unsure"] = self.threshold is not None and probability < self.threshold
            if everything is not None:
                record["probabilities"] = dict(zip(self.labels, map(_digits, everything[i]), strict=True))
            if self.why:
                record |= found.reasons[i].to_json()
            yield record

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.result is not None:
            self.result.end(kind, self.columns)

    # ------------------------------------------------------------------------------------------- tables

    def _headings(self) -> list[str]:
        names: list[str] = []
        for name in self.columns:
            names += [f"probability of {label}" for label in self.labels] if name == "probabilities" else [name]
        return names

    def _cells(self, record: dict[str, Any]) -> list[str]:
        cells: list[str] = []
        for name, value in record.items():
            if name == "probabilities":
                cells += [str(probability) for probability in value.values()]
            elif name in ("for", "against"):
                cells.append("; ".join(f"{one['word']} {one['share_nats']:+.2f}" for one in value))
            elif name == "decided_by":
                cells.append(value["text"] if value else "")
            else:
                cells.append(str(value).lower() if isinstance(value, bool) else str(value))
        return cells

    def _write_cells(self, cells: list[str]) -> None:
        if self.separator == "\t":
            self.file.write("\t".join(cell_line(cell) for cell in cells) + "\n")
        else:
            self.file.write(",".join(quote_field(cell) if needs_quotes(cell) else cell for cell in cells) + "\n")


def _digits(probability: float) -> float:
    return float(f"{probability:.9g}")


def cell_line(cell: str) -> str:
    """Without tabs and whatever a reader may take for a line end."""
    return cell if cell.isprintable() else " ".join("\n".join(cell.splitlines()).replace("\t", "\n").split("\n"))


def needs_quotes(cell: str) -> bool:
    return not cell.isprintable() or cell != cell.strip() or any(mark in cell for mark in ',"')


def json_line(record: dict[str, Any]) -> str:
    """What a terminal would obey or UTF-8 cannot say is written as an escape."""
    line = json.dumps(record, ensure_ascii=False)
    return (line if line.isprintable() else json.dumps(record).replace("\x7f", "\\u007f")) + "\n"
