"""What speaks for a verdict in one text and what against it: each word and each sentence, in nats.

All is told of the margin between the verdict v and another label t (the label given, or the runner-up):

    margin  = ln p(v) − ln p(t)
    share   = part for v − part for t            parts of an `Explanation`; Σ shares = margin − that of an empty text
    effect  = margin − margin without the word   exact, that word left out alone

The share of a sentence is that of its words together; its effect is exact as well. Effects do not add up: where a
feature counts once in a text, either “awful” of two can go and nothing happens, and in an average each word that goes
gives the others more weight. So what is said of a text rests on shares. In two classes the effect is that on the
verdict's log-odds as it stands; in more it follows from those of v and t, for p without a word is σ(ln p/(1 − p) − its
effect).

The *strength* of a word which stands n times in a text is |Σ shares| / √n, and *strong* is a word with at least a
quarter of the largest strength there; marks are no words. (A model of runs of words gives “the” of “the worst” a part
of that run. By sums alone, “the”, “a” and their like, which stand everywhere, would be among the first three words of
36 % of the mistakes on film reviews; √n makes that 6 %, and still leaves a word that stands three times over half its
weight.)

Left out: phrases (the part of a run of words is shared among its words).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.explain.words import Explanation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Score = Callable[[list[str]], Floats]  # texts → log-probabilities, N×C

LEAST_LOG_PROB = -700.0  # a label that the model calls impossible is still a finite way off
LEAST_STRENGTH = 1e-12  # rounding is no evidence
STRONG = 0.25  # of the largest strength in a text
LEAST_SENTENCE = 0.01  # of the largest share of a sentence: a lone mark decides nothing
DIGITS = 6  # of nats, in JSON


@dataclass(frozen=True, eq=False)
class Weighed:
    """A text with what speaks for the verdict (above zero) and for the other label (below zero), in nats."""

    text: str
    probability: float  # of the verdict
    margin: float
    starts: Ints  # W
    ends: Ints  # W
    known: NDArray[np.bool_]  # W
    shares: Floats  # W, summing to the margin less that of an empty text
    effects: Floats  # W, exact
    sentences: Ints  # S×2, in words
    sentence_shares: Floats  # S
    sentence_effects: Floats  # S, exact

    @property
    def empty(self) -> float:
        """The margin of a text without words: what the model thinks before it reads."""
        return self.margin - float(self.shares.sum())

    @property
    def decider(self) -> int | None:
        """The sentence that decided: that with the largest share, if any speaks for the verdict."""
        return self._loudest(self.sentence_shares)

    @property
    def opponent(self) -> int | None:
        """The sentence that spoke most against the verdict, if any did."""
        return self._loudest(-self.sentence_shares)

    def _loudest(self, shares: Floats) -> int | None:
        least = max(LEAST_SENTENCE * float(np.abs(shares).max(initial=0.0)), LEAST_STRENGTH)
        best = int(shares.argmax()) if len(shares) else 0
        return best if len(shares) and shares[best] >= least else None

    def span(self, sentence: int) -> tuple[int, int]:
        """Where a sentence starts and ends in the text, in characters."""
        first, last = self.sentences[sentence].tolist()
        return int(self.starts[first]), int(self.ends[last - 1])

    def sentence(self, place: int | None) -> str:
        if place is None:
            return ""
        start, end = self.span(place)
        return self.text[start:end]

    def to_json(self) -> dict[str, Any]:
        def told(place: int | None) -> dict[str, Any] | None:
            if place is None:
                return None
            start, end = self.span(place)
            nats = _nats(self.sentence_shares[place], self.sentence_effects[place])
            return {"text": self.text[start:end], "start": start, "end": end, **nats}

        columns = (self.starts.tolist(), self.ends.tolist(), self.known.tolist(), self.shares, self.effects)
        words = [
            {"text": self.text[start:end], "start": start, "end": end, "known": known, **_nats(share, effect)}
            for start, end, known, share, effect in zip(*columns, strict=True)
        ]
        return {
            "text": self.text,
            "empty_nats": round(self.empty, DIGITS),
            "decided_by": told(self.decider),
            "against": told(self.opponent),
            "words": words,
        }


def _nats(share: float, effect: float) -> dict[str, float]:
    return {"share_nats": round(float(share), DIGITS), "effect_nats": round(float(effect), DIGITS)}


def weigh(found: Explanation, verdict: int, other: int) -> Weighed:
    """What speaks for the verdict, and what for another label."""
    log_probs = np.maximum(found.log_probs, LEAST_LOG_PROB)
    shares = found.parts[:, verdict] - found.parts[:, other]
    filled = found.sentences[:, 1] > found.sentences[:, 0]
    sentences = found.sentences[filled]
    sums = np.append(0.0, np.cumsum(shares))
    return Weighed(
        found.text,
        float(np.exp(log_probs[verdict])),
        float(log_probs[verdict] - log_probs[other]),
        found.starts,
        found.ends,
        found.known,
        shares,
        margin_effects(log_probs, found.effects, verdict, other),
        sentences,
        sums[sentences[:, 1]] - sums[sentences[:, 0]],
        margin_effects(log_probs, found.sentence_effects[filled], verdict, other),
    )


def margin_effects(log_probs: Floats, effects: Floats, verdict: int, other: int) -> Floats:
    """From effects on the log-odds of each label (K×C) to those on ln p(verdict) − ln p(other) (K), exactly."""
    if len(log_probs) == 2:
        return effects[:, verdict]
    margin = log_probs[verdict] - log_probs[other]
    left: list[Floats] = []
    for label in (verdict, other):
        odds = log_probs[label] - np.logaddexp.reduce(np.delete(log_probs, label))
        left.append(-np.logaddexp(0.0, effects[:, label] - odds))  # ln p without the word
    result: Floats = margin - (left[0] - left[1])
    return result


@dataclass(frozen=True)
class StrongWord:
    """All places of one spelling in a text together; above zero it speaks for the verdict."""

    word: str  # lower-cased
    share: float
    effect: float  # the sum over its places, each left out alone
    count: int

    @property
    def strength(self) -> float:
        return abs(self.share) / math.sqrt(self.count)

    def __str__(self) -> str:
        return f"“{self.word}”" if self.count == 1 else f"“{self.word}” ({self.count}×)"


def find_strong(weighed: Weighed) -> tuple[list[StrongWord], list[StrongWord]]:
    """The strong words for the verdict, and those for the other label; strongest first."""
    ids: dict[str, int] = {}
    places = np.array([ids.setdefault(word, len(ids)) for word in spell(weighed)], np.int64)
    counts = np.bincount(places, minlength=len(ids))
    shares, effects = (np.bincount(places, values, len(ids)) for values in (weighed.shares, weighed.effects))
    strength = np.abs(shares) / np.sqrt(np.maximum(counts, 1))
    names, least = list(ids), LEAST_STRENGTH
    words: list[StrongWord] = []
    for i in np.argsort(-strength, kind="stable").tolist():
        if strength[i] < least:
            break
        if any(map(str.isalnum, names[i])):
            words.append(StrongWord(names[i], float(shares[i]), float(effects[i]), int(counts[i])))
            least = max(STRONG * words[0].strength, LEAST_STRENGTH)
    return [word for word in words if word.share > 0], [word for word in words if word.share < 0]


def spell(found: Explanation | Weighed) -> list[str]:
    """The words, letters folded."""
    places = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    lower = found.text.lower().replace("’", "'")
    if len(lower) != len(found.text):  # a few letters have a longer lower case
        return [found.text[start:end].lower().replace("’", "'") for start, end in places]
    return [lower[start:end] for start, end in places]


def blank(found: Explanation | Weighed, words: Sequence[int] | Ints) -> str:
    """The text with spaces where these words stood."""
    letters = list(found.text)
    for start, end in zip(found.starts[words].tolist(), found.ends[words].tolist(), strict=True):
        letters[start:end] = " " * (end - start)
    return "".join(letters)


def listed(names: Iterable[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    *first, last = list(names) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def percent(probability: float) -> str:
    """One digit, and never a certainty that rounding made."""
    return f"{100 * probability:.1f} %" if probability < 0.9995 else "over 99.9 %"
