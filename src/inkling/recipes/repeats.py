"""Equal texts, in one set and in two.

Two texts are the same when they are equal after folding case and white space. Such texts are looked for by 64-bit
hashes of their letters, and what agrees in these is compared letter by letter, so nothing is found by chance.

Left out: texts that are nearly the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from inkling.recipes.labelled_text import EXAMPLES, LabelledText, Rows

BEGINNING_BYTES = 128

_ASCII_SPACES = bytes(code for code in range(128) if chr(code).isspace())


def group_texts(texts: Sequence[str]) -> Rows:
    """For each text the place of the first that is the same after folding case and white space."""
    groups = np.arange(len(texts), dtype=np.int64)
    _, inverse, counts = np.unique(_hash_beginnings(texts), return_inverse=True, return_counts=True)
    perhaps = np.flatnonzero(counts[inverse] > 1)  # most texts begin like no other, and no more of them is looked at
    keys = np.fromiter((hash(_squeeze(texts[row])) for row in perhaps.tolist()), np.int64, len(perhaps))
    order = np.argsort(keys, kind="stable")  # stable: of equal texts the first stays the first
    for _, run in groupby(order.tolist(), key=keys.tolist().__getitem__):
        firsts: dict[str, int] = {}
        for row in perhaps[list(run)].tolist():
            groups[row] = firsts.setdefault(fold(texts[row]), row)
    return groups


def fold(text: str) -> str:
    """What is equal for texts that are the same."""
    return " ".join(text.casefold().split())


def _squeeze(text: str) -> bytes:
    """Small letters without any white space: equal for texts that are the same, and three times faster than `fold`."""
    if text.isascii():
        return text.lower().encode().translate(None, _ASCII_SPACES)
    return "".join(text.casefold().split()).encode("utf-8", "surrogatepass")


def _hash_beginnings(texts: Sequence[str]) -> Rows:
    """A hash of the first BEGINNING_BYTES of each squeezed text. Python salts its hashes, so they are never kept; what
    is found with them does not depend on them, for the texts themselves are compared."""
    return np.fromiter(map(_hash_beginning, texts), np.int64, len(texts))


def _hash_beginning(text: str) -> int:
    beginning = _squeeze(text[: 2 * BEGINNING_BYTES])
    if len(beginning) < BEGINNING_BYTES and len(text) > 2 * BEGINNING_BYTES:
        beginning = _squeeze(text)
    return hash(beginning[:BEGINNING_BYTES])


@dataclass(frozen=True)
class TextOverlap:
    """The rows of a test set whose text is also trained on."""

    rows: Rows  # of the test set
    same_label: int
    different_label: int  # trained on with other labels only
    test_rows: int
    train_rows: int  # rows of the training set that occur in the test set
    examples: tuple[tuple[str, str], ...]  # where the first of them stand: in the test set, in the training set

    @property
    def count(self) -> int:
        return len(self.rows)

    def sentence(self) -> str:
        if not self.count:
            return "No text that is judged was trained on."
        first, second = self.examples[0]
        return (
            f"{self.count:,} of the {self.test_rows:,} text{'s' * (self.test_rows > 1)} that are judged were trained "
            f"on, {self.same_label:,} with the same label and {self.different_label:,} with another (first: {first} is "
            f"{second}): a model may know them by heart, so look at the figures without them."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "same_label": self.same_label,
            "different_label": self.different_label,
            "test_rows": self.test_rows,
            "train_rows": self.train_rows,
            "examples": [list(pair) for pair in self.examples],
        }


def find_overlap(train: LabelledText, test: LabelledText) -> TextOverlap:
    """Rows of `test` whose text stands in `train`, case and white space folded."""
    train_firsts, test_firsts = np.unique(train.groups), np.unique(test.groups)
    train_keys = _hash_beginnings([train.texts[row] for row in train_firsts.tolist()])
    test_keys = _hash_beginnings([test.texts[row] for row in test_firsts.tolist()])
    learned = {fold(train.texts[row]): row for row in train_firsts[np.isin(train_keys, test_keys)].tolist()}
    twins = np.full(len(test), -1, np.int64)  # the first row of `train` with this text
    for row in test_firsts[np.isin(test_keys, train_keys)].tolist():
        twins[row] = learned.get(fold(test.texts[row]), -1)
    twins = twins[test.groups]
    rows = np.flatnonzero(twins >= 0)
    numbers = {label: i for i, label in enumerate(train.labels)}
    translate = np.array([numbers.get(label, len(numbers)) for label in test.labels], np.int64)
    width = len(numbers) + 1
    is_same = np.isin(twins[rows] * width + translate[test.truth[rows]], train.groups * width + train.truth)
    return TextOverlap(
        rows,
        int(is_same.sum()),
        int((~is_same).sum()),
        len(test),
        int(np.isin(train.groups, twins[rows]).sum()),
        tuple((test.place(row), train.place(int(twins[row]))) for row in rows[:EXAMPLES].tolist()),
    )
