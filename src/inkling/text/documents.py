"""Documents, each about something, and the ways a model learns from one.

A document is a line of text. Its head says what it is about: all before the first full stop that ends a sentence, so
of "Ada J. Byron. Byron was born in London." the head is "Ada J. Byron". The rest is the body. The head begins with a
space, so that a word has the same pieces at the beginning of a document as inside a sentence.

    next       ▸ head body ⏎                             every token is to be predicted
    span       ▸ a b ▢ f g ▢ c d e ⏎                     likewise, of a document with a span moved to its end (`spans`)
    recall     ▸ head ▢ some words of the body ⏎         what stands behind the mark
    naming     ▸ some words of the body ▢ head ⏎         likewise, the other way round
    question   ▸ question ▢ answer ⏎                     likewise: a closed book
    reading    ▸ head body question ▢ answer ⏎           every token: an open book

▸ is the token before every text, ▢ the mark (`questions.MARK`), ⏎ the end of a line. `recall` is what makes a fact
known by its name alone: a document that is always read from its beginning teaches what follows the words before it.
In some of the documents that are read with a question another answer, or any name, stands in place of the right one
(`replaced`) and is then to be given: who knows the right one by heart must still read. Allen-Zhu and Li (2023) on how
differently a fact must be seen before it can be asked for.

Left out: heads that stand anywhere else, and documents longer than a line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inkling.text.spans import corrupted
from inkling.text.tokens import Tokeniser

Ids = NDArray[np.int64]
RECALLED_WORDS = 8  # of a body at once, at most
SHORTENED = frozenset({"Dr", "Jr", "Mr", "Mrs", "Ms", "Prof", "Sr", "St"})  # words that end in a full stop
STOP = re.compile(r"\.\s")


class Example(NamedTuple):
    """Tokens, of which those from place `first` on are to be predicted."""

    ids: Ids
    first: int


class Signs(NamedTuple):
    """The tokens with a meaning of their own: before every text, the mark, and the end of a line."""

    begin: int
    mark: int
    end: int


def split_head(line: str) -> tuple[str, str]:
    """The head of a line, a space before it, and the rest. Without a sentence's end there is no body."""
    line = line.strip()
    for stop in STOP.finditer(line):
        word = line[: stop.start()].rpartition(" ")[2]
        if len(word) > 1 and word not in SHORTENED:
            return f" {line[: stop.start()]}", line[stop.start() :]
    return f" {line}", ""


def word_starts(tokeniser: Tokeniser) -> NDArray[np.bool_]:
    """Of each token whether a word can begin with it: whether it begins with a space."""
    return np.array([tokeniser.piece(token).startswith(b" ") for token in range(tokeniser.size)])


def whole(ids: Ids, signs: Signs) -> Example:
    return Example(np.concatenate([[signs.begin], ids, [signs.end]]), 1)


def with_span_moved(ids: Ids, signs: Signs, generator: np.random.Generator) -> Example:
    return whole(corrupted(ids, signs.mark, generator), signs)


def recalled(
    head: Ids, body: Ids, begins_word: NDArray[np.bool_], signs: Signs, generator: np.random.Generator
) -> Example:
    return answered(np.append(head, signs.mark), _some_words(body, begins_word, generator), signs)


def named(
    head: Ids, body: Ids, begins_word: NDArray[np.bool_], signs: Signs, generator: np.random.Generator
) -> Example:
    return answered(np.append(_some_words(body, begins_word, generator), signs.mark), head, signs)


def _some_words(body: Ids, begins_word: NDArray[np.bool_], generator: np.random.Generator) -> Ids:
    """Between one and `RECALLED_WORDS` words from anywhere in the body; of a body without words all of it."""
    starts = np.flatnonzero(begins_word[body])
    if not len(starts):
        return body
    first = int(generator.integers(len(starts)))
    behind = first + int(generator.integers(1, RECALLED_WORDS + 1))
    return body[starts[first] : starts[behind] if behind < len(starts) else len(body)]


def answered(prompt: Ids, answer: Ids, signs: Signs) -> Example:
    """`prompt` ends in the mark."""
    return Example(np.concatenate([[signs.begin], prompt, answer, [signs.end]]), 1 + len(prompt))


def shortened(example: Example, most: int) -> Example:
    """The first `most` tokens; fewer at the beginning where nothing to be predicted would be left."""
    before = max(0, example.first + 1 - most)
    return Example(example.ids[before : before + most], example.first - before)


def replaced(ids: Ids, old: Ids, new: Ids) -> Ids:
    """`ids` with `new` wherever `old` stood, from left to right; where it stood nowhere, the very same `ids`."""
    if not len(old) or len(old) > len(ids):
        return ids
    stands = (np.lib.stride_tricks.sliding_window_view(ids, len(old)) == old).all(axis=1)
    parts, rest = [], 0
    for place in np.flatnonzero(stands).tolist():
        if place >= rest:  # not inside what was replaced just now
            parts += [ids[rest:place], new]
            rest = place + len(old)
    return np.concatenate([*parts, ids[rest:]]) if parts else ids


def read_and_answered(document: Ids, prompt: Ids, answer: Ids, signs: Signs) -> Example:
    return Example(np.concatenate([[signs.begin], document, prompt, answer, [signs.end]]), 1)
