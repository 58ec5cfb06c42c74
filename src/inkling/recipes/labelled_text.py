"""Texts with their labels in memory: which class each has, which file and row it comes from, which others equal it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

EXAMPLES = 3  # of many things, those that a sentence names


@dataclass(frozen=True)
class Origin:
    """The files that were read, exactly which bytes they were, and what became of their rows."""

    files: tuple[str, ...]
    sources: tuple[str, ...]
    units: tuple[str, ...]  # what a row of each source is called
    sha256: str
    size_bytes: int
    rows_in: int
    rows_reported: int
    rows_without_label: int  # of those reported
    unknown_labels: dict[str, int] = field(default_factory=dict)  # rows left out because the model lacks their class


@dataclass(frozen=True)
class LabelledText:
    """Texts, their classes, and where each stands."""

    texts: list[str]
    labels: tuple[str, ...]  # C
    truth: Rows  # N, indexes into labels
    source: NDArray[np.int32]  # N, indexes into origin.sources
    number: Rows  # N, of the row in its source, from 1
    groups: Rows  # N, the first text here that is the same
    origin: Origin
    notes: list[str]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def counts(self) -> Rows:
        """Rows of each class."""
        return np.bincount(self.truth, minlength=len(self.labels))

    @property
    def names(self) -> str:
        """The files, for a sentence."""
        return some(self.origin.sources)

    def place(self, row: int) -> str:
        source = self.source[row]
        return f"{self.origin.sources[source]} {self.origin.units[source]} {self.number[row]:,}"

    def places(self, first: int, second: int) -> str:
        if len(self.origin.sources) > 1:
            return f"{self.place(first)} and {self.place(second)}"
        return f"{self.origin.units[0]}s {self.number[first]:,} and {self.number[second]:,}"

    def pairs(self) -> tuple[Rows, Rows, Rows]:
        """The different pairs of text and label (as first row · C + class), the pair of each row, its first row."""
        pairs, firsts, inverse = np.unique(
            self.groups * len(self.labels) + self.truth, return_index=True, return_inverse=True
        )
        return pairs, inverse, firsts

    def take(self, rows: Rows) -> LabelledText:
        """Some of the texts, with all of the labels."""
        _, first, inverse = np.unique(self.groups[rows], return_index=True, return_inverse=True)
        return replace(
            self,
            texts=[self.texts[row] for row in rows.tolist()],
            truth=self.truth[rows],
            source=self.source[rows],
            number=self.number[rows],
            groups=first[inverse],
        )

    def describe(self) -> dict[str, Any]:
        """For run.json."""
        return {
            "files": list(self.origin.files),
            "sha256": self.origin.sha256,
            "rows": len(self),
            "bytes": self.origin.size_bytes,
            "rows_in": self.origin.rows_in,
            "rows_reported": self.origin.rows_reported,
            "unknown_labels": dict(self.origin.unknown_labels),
            "labels": dict(zip(self.labels, self.counts.tolist(), strict=True)),
            "notes": list(self.notes),
        }


def some(names: Sequence[str], show: Callable[[str], str] = str) -> str:
    """The first of them in a sentence, and how many more there are."""
    shown = ", ".join(show(name) for name in names[:EXAMPLES])
    return f"{shown} and {len(names) - EXAMPLES:,} more" if len(names) > EXAMPLES else shown
