"""Two heads that do induction, "… A B … A" → B, built from orthogonal slots and not trained.

The residual stream has four slots: token (one direction for each word and one for the beginning), position, previous
word, output. Place 0 holds the beginning, place p the p-th word; heads look back only.

    layer 1   position p looks at position p − 1 (score s), reads its word, writes it as "previous word"
    layer 2   word w looks at places whose previous word is w (score s) and at the beginning (score s/2), reads the
              word there, writes it as output; the beginning writes nothing

so the exact rule, its limit s → ∞, is: the mean of the words that followed my word so far, or nothing where it is new.
At finite s, with n words up to and including this one, no entry of the output is further from the rule than

    n e^(2δ − s/2) + e^δ − 1          δ = s n e^(−s)

Proof. Layer 1 leaks at most ε = n e^(−s) of its weight, so a matching place has a score in [s − δ, s], another at most
δ, the beginning s/2. Without a match at most n e^(δ − s/2) leaves the beginning. With k matches at most
e^(δ − s/2) + (n − 1) e^(2δ − s) leaves them, and inside them weights differ from 1/k by a factor of at most e^δ. ∎

Elhage et al., A Mathematical Framework for Transformer Circuits (2021); Olsson et al. (2022) for the name.
Left out: sinusoidal positions, several heads, matches of more than one word.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from inkling.attention.arrays import Floats, index, matrix_map, real_number
from inkling.attention.head import Head, Look, Read, head
from inkling.errors import UsageError
from inkling.figures import Cell, Column, Page, Panels, Prose, Table

BEGINNING = "⟨begin⟩"
WIDEST = 1500  # numbers in the residual stream
MOST_SEQUENCES = 20_000


def induction_rule(words: Sequence[str]) -> list[dict[str, float]]:
    """For each place the words that followed its word so far, with their shares; empty where it is new."""
    rule = list[dict[str, float]]()
    for place, word in enumerate(words):
        followers = Counter(words[j] for j in range(1, place + 1) if words[j - 1] == word)
        total = followers.total()
        rule.append({follower: count / total for follower, count in followers.items()})
    return rule


def error_bound(words: int, sharpness: float) -> float:
    """The proven bound above, at most 1."""
    delta = sharpness * words * math.exp(-sharpness)
    exponent = math.log(words) + 2 * delta - sharpness / 2
    return 1.0 if exponent > 0 or delta > 1 else min(1.0, math.exp(exponent) + math.expm1(delta))


@dataclass(frozen=True)
class Induction:
    """Both layers for these words, up to `length` of them in a row."""

    vocabulary: Sequence[str]  # a text is its letters
    length: int
    sharpness: float = 40.0

    def __post_init__(self) -> None:
        given = list(self.vocabulary) if isinstance(self.vocabulary, Iterable) else []
        if not given or any(not isinstance(word, str) or not word for word in given):
            raise UsageError("The vocabulary has no words or an empty one; give at least one word, each of them text.")
        if len(set(given)) < len(given) or BEGINNING in given:
            raise UsageError(f"The vocabulary names a word twice or holds {BEGINNING}; give each word once.")
        object.__setattr__(self, "vocabulary", tuple(given))
        object.__setattr__(self, "length", index(self.length, "The length", 1_000_000))
        object.__setattr__(self, "sharpness", real_number(self.sharpness, "sharpness", above=0))
        if self.length < 1 or self.width > WIDEST:
            raise UsageError(
                f"{len(given)} words and a length of {self.length} make a residual stream of {self.width} numbers; "
                f"give a length of at least 1 and together at most {WIDEST} (three for each word, one for each place)."
            )

    @property
    def width(self) -> int:
        return 3 * len(self.vocabulary) + self.length + 2

    @property
    def slots(self) -> dict[str, range]:
        """Where each slot lies in the residual stream; the beginning is the last token."""
        v, places, start, found = len(self.vocabulary), self.length + 1, 0, dict[str, range]()
        for name, size in (("token", v + 1), ("position", places), ("previous", v), ("output", v)):
            found[name] = range(start, start + size)
            start += size
        return found

    @cached_property
    def layers(self) -> tuple[Head, Head]:
        d, v = self.width, len(self.vocabulary)
        axes = np.eye(d)
        token, position, previous, output = ([axes[i] for i in slot] for slot in self.slots.values())
        one_back = [Look(position[p], position[p - 1]) for p in range(1, self.length + 1)]
        copy = [Read(token[w], previous[w]) for w in range(v)]
        same_word = [Look(token[w], previous[w]) for w in range(v)]
        rest = [Look(token[w], token[v], 0.5) for w in range(v)]
        say = [Read(token[w], output[w]) for w in range(v)]
        return head(d, one_back, copy, self.sharpness), head(d, same_word + rest, say, self.sharpness)

    def embed(self, words: Sequence[str]) -> Floats:
        """The residual stream before the first layer: (words + 1)×d."""
        given = list(words) if isinstance(words, Iterable) else []
        if not given or len(given) > self.length:
            raise UsageError(f"{len(given)} words are given; give from 1 to {self.length}.")
        ids = {word: i for i, word in enumerate(self.vocabulary)}
        unknown = [word for word in given if not isinstance(word, str) or word not in ids]
        if unknown:
            raise UsageError(f"The word {unknown[0]!r} is not in the vocabulary; give words of it only.")
        found = np.zeros((len(given) + 1, self.width))
        for place, word in enumerate([len(ids), *(ids[word] for word in given)]):
            found[place, word] = 1.0
            found[place, self.slots["position"][place]] = 1.0
        return found

    def run(self, words: Sequence[str]) -> InductionTrace:
        stream = self.embed(words)
        weights = []
        for layer in self.layers:
            seen, written = layer.attend(stream, causal=True)
            stream = stream + written
            weights.append(seen)
        rule = np.zeros((len(words) + 1, len(self.vocabulary)))
        for place, shares in enumerate(induction_rule(words)):
            for word, share in shares.items():
                rule[place + 1, self.vocabulary.index(word)] = share
        outputs = stream[:, self.slots["output"].start : self.slots["output"].stop]
        bounds = tuple(error_bound(max(1, place), self.sharpness) for place in range(len(words) + 1))
        return InductionTrace(
            tuple(self.vocabulary), (BEGINNING, *words), self.sharpness, weights[0], weights[1], outputs, rule, bounds
        )

    def verify(
        self,
        length: int | None = None,
        *,
        generator: np.random.Generator | None = None,
        samples: int = 1000,
    ) -> Verification:
        """Compare with the plain rule on all sequences of `length` words (and so all shorter ones, which begin them).

        With a generator, or where there are more than 20,000 sequences, on `samples` random ones.
        """
        n = self.length if length is None else index(length, "The length", self.length + 1)
        count = index(samples, "The number of samples", 1_000_001)
        if n < 1 or count < 1:
            raise UsageError(f"Sequences of {n} words, {count} samples; give at least 1 of each.")
        exhaustive = generator is None and len(self.vocabulary) ** n <= MOST_SEQUENCES
        sequences: Iterable[tuple[str, ...]] = product(self.vocabulary, repeat=n)
        if not exhaustive:
            drawn = (generator or np.random.default_rng(0)).integers(len(self.vocabulary), size=(count, n))
            sequences = (tuple(self.vocabulary[i] for i in row) for row in drawn.tolist())
        worst, number, text = -1.0, 0, tuple[str, ...]()
        for sequence in sequences:
            error = self.run(sequence).error
            number += 1
            if error > worst:
                worst, text = error, sequence
        return Verification(n, number, exhaustive, worst, error_bound(n, self.sharpness), text)


@dataclass(frozen=True, eq=False)
class InductionTrace:
    """What both layers did with one sequence. Place 0 is the beginning."""

    vocabulary: tuple[str, ...]
    words: tuple[str, ...]  # with the beginning
    sharpness: float
    previous: Floats  # weights of layer 1
    matches: Floats  # weights of layer 2
    outputs: Floats  # places×words of the vocabulary
    rule: Floats  # the same by the exact rule
    bounds: tuple[float, ...]  # of the error, for each place

    @property
    def errors(self) -> Floats:
        return np.asarray(np.abs(self.outputs - self.rule).max(axis=1), np.float64)

    @property
    def error(self) -> float:
        return float(self.errors.max())

    @property
    def bound(self) -> float:
        return max(self.bounds)

    @property
    def predictions(self) -> tuple[str | None, ...]:
        """The likeliest next word after each place; None where the head rests on the beginning."""
        return tuple(
            self.vocabulary[int(row.argmax())] if row.sum() > 0.5 else None  # the beginning has the other half
            for row in self.outputs
        )

    @property
    def sentence(self) -> str:
        count, last = len(self.words) - 1, self.predictions[-1]
        says = f"the next word is {last!r}" if last is not None else "nothing, for its last word is new"
        return (
            f"After {count} {'word' if count == 1 else 'words'} the two heads say: {says}. No entry is further than "
            f"{self.error:.2g} from the exact rule (proven: {self.bound:.2g})."
        )

    def summary(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, Any]:
        return {
            "words": list(self.words),
            "vocabulary": list(self.vocabulary),
            "sharpness": self.sharpness,
            "previous_weights": self.previous.tolist(),
            "match_weights": self.matches.tolist(),
            "outputs": self.outputs.tolist(),
            "rule": self.rule.tolist(),
            "predictions": list(self.predictions),
            "error": self.error,
            "bound": self.bound,
            "sentence": self.sentence,
        }

    def page(self) -> Page:
        places = tuple(f"{place} {word}" for place, word in enumerate(self.words))
        maps = tuple(
            matrix_map(
                title,
                weights,
                places,
                places,
                labels=("place", "looks at"),
                unit="weight",
                reading=reading,
                causal=True,
                top=1.0,
            )
            for title, weights, reading in (
                ("Layer 1: the word before", self.previous, "Each place looks one place back."),
                ("Layer 2: what followed this word", self.matches, "Places after the same word, or the beginning."),
            )
        )
        columns = (
            Column("place", "d"),
            Column("word"),
            Column("rule"),
            Column("says"),
            Column("error", ".2g", note="largest difference of an entry of the output from the rule"),
            Column("error at most", ".2g"),
        )
        rows: list[tuple[Cell, ...]] = [
            (place, word, self._spell(self.rule[place]), self._spell(self.outputs[place]), error, bound)
            for place, (word, error, bound) in enumerate(
                zip(self.words, self.errors.tolist(), self.bounds, strict=True)
            )
        ]
        output = matrix_map(
            "What is written as the next word",
            self.outputs,
            places,
            self.vocabulary,
            labels=("place", "next word"),
            unit="share",
            reading="A row of zeros: this word is new, and the head rests on the beginning, which writes nothing.",
            top=1.0,
        )
        reading = "Rows add up to 1; no place looks ahead. Together: … A B … A looks back at B."
        return Page(
            "Induction by two heads",
            (
                Prose(self.sentence),
                Panels("Who looks where", maps, reading, across=2),
                output,
                Table("Place by place", columns, tuple(rows)),
            ),
        )

    def _spell(self, shares: Floats) -> str:
        parts = [f"{word} {share:.3g}" for word, share in zip(self.vocabulary, shares, strict=True) if share > 5e-4]
        return ", ".join(parts) or "nothing"

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()


@dataclass(frozen=True)
class Verification:
    """The construction against the plain rule, on many sequences."""

    length: int  # words of each sequence; all beginnings of a sequence are checked with it
    sequences: int
    exhaustive: bool
    error: float  # the largest of all
    bound: float
    worst: tuple[str, ...]  # the sequence with that error

    @property
    def holds(self) -> bool:
        """Up to rounding."""
        return self.error <= self.bound + 1e-12

    @property
    def sentence(self) -> str:
        which = "all" if self.exhaustive else "random"
        verdict = "as proven" if self.holds else "which breaks the proven bound"
        return (
            f"On {self.sequences:,} sequences ({which} of {self.length} words) no entry is further than "
            f"{self.error:.2g} from the exact rule, {verdict} (at most {self.bound:.2g})."
        )

    def summary(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, Any]:
        return {
            "length": self.length,
            "sequences": self.sequences,
            "exhaustive": self.exhaustive,
            "error": self.error,
            "bound": self.bound,
            "holds": self.holds,
            "worst": list(self.worst),
            "sentence": self.sentence,
        }

    def page(self) -> Page:
        columns = (
            Column("sequences", ",d"),
            Column("words in each", "d"),
            Column("largest error", ".3g"),
            Column("proven bound", ".3g"),
            Column("holds"),
        )
        row: tuple[Cell, ...] = (self.sequences, self.length, self.error, self.bound, self.holds)
        note = f"Largest at: {' '.join(self.worst)}."
        return Page(
            "Induction against its rule",
            (Prose(self.sentence), Table("All places of all sequences", columns, (row,), (note,))),
        )

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()
