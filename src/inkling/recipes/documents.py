"""What a training on documents and questions reads: a mixture of ways to learn, in batches of like lengths.

    recall=3, reading=2, question=1          the shares of examples, by their names in `WAYS`

A round has a fixed number of examples of each way, each way going through its documents or pairs without repeating one
before all have come. They are sorted by length and cut into `BATCHES` batches of about equally many tokens, fill
included, which are read in random order. Example, round and batch are decided by the seed and a number alone, so a
batch is a pure function of its step.

    next, span-corruption, recall, naming     documents
    question, reading                         pairs (reading: those whose document is known)
    asked                                     pairs that the model made itself (recipes/asking.py)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from inkling.errors import UsageError
from inkling.models.gpt_loss import Batch, batch_of
from inkling.recipes.stream import shuffled
from inkling.text.documents import (
    Example,
    Ids,
    Signs,
    answered,
    named,
    read_and_answered,
    recalled,
    replaced,
    shortened,
    split_head,
    whole,
    with_span_moved,
    word_starts,
)
from inkling.text.questions import END, MARK, prompt, reply, subject_of
from inkling.text.tokens import Tokeniser

WAYS = ("next", "span-corruption", "recall", "naming", "question", "reading", "asked")
OF_PAIRS = ("question", "reading")
BATCHES = 16  # of a round: enough to put like beside like, few enough that a round is not a whole training
MEASURED = 512  # examples, to know how long they are on average
MOST_ROUNDS_KEPT = 2
REPLACED = 0.6  # of the documents that are read with a question have another answer in them
ANY_NAME = 0.5  # of those have any name of the documents there, so that rare ones are copied too
NAME = re.compile(r"(?<=\s)[^\W\d_]{3,}")

Pair = tuple[str, str]


def parse_mixture(text: str) -> dict[str, float]:
    """`recall=3,question` is {"recall": 3, "question": 1}; a sentence for anything else."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        if name not in WAYS:
            raise UsageError(f"--objective has the part '{name}'; give one of {', '.join(WAYS)}, such as recall=3.")
        if name in found:
            raise UsageError(f"--objective names {name} twice; give each way once.")
        try:
            weight = float(number) if equals else 1.0
        except ValueError:
            weight = -1.0
        if not 0 < weight < 1e6:
            raise UsageError(f"--objective gives {name} the share '{number}'; give a number above 0.")
        found[name] = weight
    return found


@dataclass(frozen=True)
class Library:
    """Documents and pairs, cut into tokens. What a pair is about is the document `about` (−1: none is known)."""

    signs: Signs
    begins_word: NDArray[np.bool_]
    heads: tuple[Ids, ...]
    bodies: tuple[Ids, ...]
    prompts: tuple[Ids, ...]
    answers: tuple[Ids, ...]
    about: NDArray[np.int64]
    names: tuple[Ids, ...]  # words of the documents with a capital letter
    asked_prompts: tuple[Ids, ...] = ()
    asked_answers: tuple[Ids, ...] = ()

    @classmethod
    def of(
        cls, lines: Sequence[str], pairs: Sequence[Pair], tokeniser: Tokeniser, asked: Sequence[Pair] = ()
    ) -> Library:
        split = [split_head(line) for line in lines if line.strip()]
        heads, bodies = [head for head, _ in split], [body for _, body in split]
        mark, end = encode(tokeniser, [MARK, END])
        if len(mark) != 1 or len(end) != 1 or mark[0] == tokeniser.unknown:
            raise UsageError(
                f"The {tokeniser.kind} tokens have none for the mark behind a question (U+001A): they were made from "
                "text without questions, or are too few; begin from a run that was trained with --pairs, or use bpe "
                "tokens."
            )
        places = {head.strip(): place for place, head in reversed(list(enumerate(heads)))}
        subjects = subject_of([question for question, _ in pairs]) if pairs else []
        return cls(
            Signs(tokeniser.begin, int(mark[0]), int(end[0])),
            word_starts(tokeniser),
            encode(tokeniser, heads),
            encode(tokeniser, bodies),
            *_encoded_pairs(tokeniser, pairs),
            np.array([places.get(subject, -1) for subject in subjects], np.int64),
            encode(tokeniser, [f" {name}" for name in _capitalised(bodies)] if pairs else []),
            *_encoded_pairs(tokeniser, asked),
        )

    def document(self, number: int, at_most: int) -> Ids:
        return np.concatenate([self.heads[number], self.bodies[number]])[:at_most]

    def sources(self) -> dict[str, NDArray[np.int64]]:
        """Of each way, the numbers of the documents or pairs that it can be done with."""
        documents, pairs = np.arange(len(self.heads)), np.arange(len(self.prompts))
        with_body = np.array([number for number, body in enumerate(self.bodies) if len(body)], np.int64)
        long_enough = np.array(
            [number for number in documents.tolist() if len(self.document(number, 4)) == 4], np.int64
        )
        return {
            "next": documents,
            "span-corruption": long_enough,
            "recall": with_body,
            "naming": with_body,
            "question": pairs,
            "reading": np.flatnonzero(self.about >= 0) if len(pairs) else pairs,
            "asked": np.arange(len(self.asked_prompts)),
        }

    def example(self, way: str, number: int, generator: np.random.Generator, context: int) -> Example:
        signs = self.signs
        if way == "next":
            return whole(self.document(number, context - 1), signs)
        if way == "span-corruption":
            return with_span_moved(self.document(number, context - 3), signs, generator)
        if way in ("recall", "naming"):
            found = (recalled if way == "recall" else named)(
                self.heads[number], self.bodies[number], self.begins_word, signs, generator
            )
            return shortened(found, context + 1)
        if way == "asked":
            return answered(self.asked_prompts[number], self.asked_answers[number], signs)
        if way == "question":
            return answered(self.prompts[number], self.answers[number], signs)
        return self._reading(number, generator, context)

    def _reading(self, number: int, generator: np.random.Generator, context: int) -> Example:
        prompt, answer, place = self.prompts[number], self.answers[number], int(self.about[number])
        body = self.bodies[place]
        if generator.random() < REPLACED:
            others = self.names if self.names and generator.random() < ANY_NAME else self.answers
            other = others[int(generator.integers(len(others)))]
            changed = replaced(body, answer, other)
            answer, body = (other, changed) if changed is not body else (answer, body)
        room = max(0, context - 1 - len(prompt) - len(answer))
        document = np.concatenate([self.heads[place], body])[:room]
        return read_and_answered(document, prompt, answer, self.signs)


def encode(tokeniser: Tokeniser, texts: Sequence[str]) -> tuple[Ids, ...]:
    found = tokeniser.encode(texts)
    ids = found.ids.astype(np.int64)
    return tuple(ids[first:last] for first, last in zip(found.offsets[:-1], found.offsets[1:], strict=True))


def _capitalised(texts: Sequence[str]) -> list[str]:
    return sorted({name for text in texts for name in NAME.findall(text) if name[0].isupper()})


def _encoded_pairs(tokeniser: Tokeniser, pairs: Sequence[Pair]) -> tuple[tuple[Ids, ...], tuple[Ids, ...]]:
    return (
        encode(tokeniser, [prompt(question) for question, _ in pairs]),
        encode(tokeniser, [reply(answer) for _, answer in pairs]),
    )


class Rounds:
    """The batches of a training, of about `tokens` tokens each."""

    def __init__(self, library: Library, mixture: Mapping[str, float], tokens: int, context: int, seed: int) -> None:
        self.library, self.context, self.seed = library, context, seed
        sources = library.sources()
        self.sources = {way: sources[way] for way in WAYS if way in mixture}
        for way, numbers in self.sources.items():
            if not len(numbers):
                raise UsageError(_LACKING[way])
        total = sum(mixture.values())
        shares = {way: mixture[way] / total for way in self.sources}
        generator = np.random.default_rng((seed, 11))
        lengths = [
            len(self._example(way, int(number), generator).ids)
            for way, share in shares.items()
            for number in generator.choice(self.sources[way], max(1, round(share * MEASURED)))
        ]
        examples = BATCHES * tokens / float(np.mean(lengths))
        self.counts = {way: max(1, round(share * examples)) for way, share in shares.items()}
        self._round: Callable[[int], list[list[Example]]] = lru_cache(MOST_ROUNDS_KEPT)(self._make_round)

    @property
    def epochs_a_step(self) -> Mapping[str, float]:
        """How much of all its documents or pairs each way goes through in one step."""
        return {way: count / BATCHES / len(self.sources[way]) for way, count in self.counts.items()}

    def examples(self, step: int) -> list[Example]:
        number, place = divmod(step, BATCHES)
        return self._round(number)[place]

    def batch(self, step: int, rows: slice | None = None) -> Batch:
        """What step `step` reads, or some rows of it."""
        return filled(self.examples(step)[rows or slice(None)])

    def _make_round(self, number: int) -> list[list[Example]]:
        generator = np.random.default_rng((self.seed, number, 12))
        found = [
            self._example(way, int(place), generator)
            for kind, (way, count) in enumerate(self.counts.items())
            for place in self._places(way, kind, number * count + np.arange(count))
        ]
        batches = evenly_cut(sorted(found, key=lambda example: len(example.ids)), BATCHES)
        return [batches[place] for place in generator.permutation(len(batches))]

    def _places(self, way: str, kind: int, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which document or pair the examples with these numbers are made of: all once, then all once more."""
        sources = self.sources[way]
        epochs, within = np.divmod(numbers, len(sources))
        found = np.empty(len(numbers), np.int64)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            found[here] = sources[shuffled(within[here], len(sources), (self.seed, kind, epoch, 13))]
        return found

    def _example(self, way: str, number: int, generator: np.random.Generator) -> Example:
        return self.library.example(way, number, generator, self.context)


def evenly_cut(examples: list[Example], count: int) -> list[list[Example]]:
    """Sorted examples in `count` neighbouring groups, the largest of which, filled up, is about as small as can be."""
    if len(examples) < count:
        raise UsageError(
            f"A round has {len(examples)} examples for {count} batches: too few tokens a step; give a larger --batch."
        )

    def cut(most: int) -> list[list[Example]]:
        groups: list[list[Example]] = [[]]
        for example in examples:
            if groups[-1] and (len(groups[-1]) + 1) * len(example.ids) > most:
                groups.append([])
            groups[-1].append(example)
        return groups

    low, high = 1, len(examples) * len(examples[-1].ids)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if len(cut(middle)) <= count else (middle + 1, high)
    groups = cut(high)
    while len(groups) < count:  # the least budget may need fewer groups: the largest that can be is halved
        place = max(range(len(groups)), key=lambda i: len(groups[i]))
        half = len(groups[place]) // 2
        groups[place : place + 1] = [groups[place][:half], groups[place][half:]]
    return groups


def filled(examples: Sequence[Example]) -> Batch:
    """Side by side; what stands before `first` is no target."""
    return batch_of([example.ids for example in examples], [example.first for example in examples])


_LACKING = {
    "next": "There are no documents to learn from; give a file with a document a line.",
    "span-corruption": "No document has four tokens or more; give a file with a document a line.",
    "recall": "No document has a head and a body: a line such as 'Ada Byron. She was born in London.'; give such "
    "documents, or another --objective.",
    "naming": "No document has a head and a body to be named by; give such documents, or another --objective.",
    "question": "There are no questions to learn from; give them with --pairs.",
    "reading": "No question is about the head of a document, so none can be answered by reading; give documents that "
    "begin with what the questions are about, or leave reading out of --objective.",
    "asked": "There are no questions that the model asked itself; `inkling finetune` makes them.",
}
