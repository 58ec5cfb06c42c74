"""Span corruption: a text of which a part stands at the end, so that a model learns to fill in what is missing.

    truncated    some first tokens of the text, so that the model meets texts of all lengths
    corrupted    a b c d e f g  →  a b ▢ f g ▢ c d e          ▢ is the mark

Both are pure functions of the token ids and a generator. `restored` undoes the second, so nothing is lost or made up.
A question is put to the model in the same form: question ▢ answer, and the answer is what comes after the last mark.
Raffel et al. (2020) on span corruption.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inkling.errors import UsageError

Ids = NDArray[np.int64]
LEAST = 4  # tokens of a text that can be corrupted: one before, one within, one after, and one to spare
MEAN_SHARE = 0.25  # of a text that is cut out, on average


def truncated(ids: Ids, generator: np.random.Generator, longest: int) -> Ids:
    """The first tokens, between `LEAST` and `longest` of them, all lengths equally likely; a shorter text whole."""
    if longest < LEAST:
        raise UsageError(f"Texts are cut to {longest} tokens at most; give at least {LEAST}.")
    length = int(generator.integers(min(LEAST, longest), longest + 1))
    return ids[:length]


def corrupted(ids: Ids, mark: int, generator: np.random.Generator) -> Ids:
    """The text with one span cut out and moved to the end, behind a second mark.

    The span has a quarter of the tokens on average, at least one, and
    leaves at least one before and one after it. A text of fewer than four tokens stays as it is.
    """
    n = len(ids)
    if n < LEAST:
        return ids
    most = max(1, min(n - 2, round(2 * MEAN_SHARE * n) - 1))
    length = int(generator.integers(1, most + 1))
    start = int(generator.integers(1, n - length))
    seam = np.array([mark], ids.dtype)
    return np.concatenate([ids[:start], seam, ids[start + length :], seam, ids[start : start + length]])


def restored(ids: Ids, mark: int) -> Ids:
    """The text before it was corrupted; one without two marks stays as it is."""
    marks = np.flatnonzero(ids == mark)
    if len(marks) != 2:
        return ids
    first, second = marks.tolist()
    return np.concatenate([ids[:first], ids[second + 1 :], ids[first + 1 : second]])
