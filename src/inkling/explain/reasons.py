"""Why a classifier erred on a text: the reason of a mistake, computed from what speaks for the verdict and the label.

Shares, strong words and the margin are those of explain/weighing.py, the verdict against the label given. The reason is
the first of these that holds:

    out-of-vocabulary text      more than 30 % of the words are unknown, or there are none at all
    negation lost by averaging  strong words for the verdict stand up to 3 words behind a negator (English), in the same
                                clause, and carry half the margin there (counted the other way round they would turn it)
                                and a quarter of all that is strong for it; only words that speak for the verdict
                                outside negation too, in two of three places: a model of word pairs rightly blames
                                “no reason”
    likely wrong label          p ≥ 0.98, the strong words for the label given have under 15 % of the others' sum, and
                                no sentence speaks for it with 15 % of the margin
    a few strong words          the fewest words without which the verdict would turn are no more than 3 and have half
                                of what is strong for it; tried out where the model can be asked, else by shares
    mixed praise and blame      strong words on both sides, the weaker side at least half the other
    narrow decision             a margin below 0.5 nats (62 % to 38 %)
    no single cause             none of these

The words that a mistake is grouped by are those that speak for the verdict elsewhere too: “a” of “a waste” does not.

Left out: negation in other languages, irony.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inkling.explain.weighing import (
    LEAST_LOG_PROB,
    Score,
    StrongWord,
    Weighed,
    blank,
    find_strong,
    listed,
    percent,
    spell,
    weigh,
)
from inkling.explain.words import Explanation

UNKNOWN_SHARE = 0.3
REACH_WORDS, NEGATED_SHARE = 3, 0.25  # of a negator; of all that is strong for the verdict
SURE, HARDLY = 0.98, 0.15
AGREEING = 2 / 3
FEW = 3
MIXED = 0.5
NARROW_NATS = 0.5
CASE_WORDS = 10

# "n't" is a word of its own to some tokenisers; a word that ends in it is a negator too.
NEGATORS = frozenset(
    {"not", "n't", "'t", "no", "never", "none", "nothing", "nobody", "nowhere", "neither", "nor", "without"}
)
NEGATORS |= {"cannot", "hardly", "barely", "scarcely", "lack", "lacks", "lacking"}
NEGATORS |= {"dont", "didnt", "doesnt", "isnt", "wasnt", "cant"}
NO_NEGATION = frozenset({"only", "just", "merely", "simply", "but", "doubt", "wonder", "matter"})  # as in "not only"
CLAUSE_ENDS = frozenset({".", "!", "?", ";", ":", "…", "but", "although", "though", "however"})

UNKNOWN, NEGATION, LABEL, STRONG_WORDS, MIXTURE, NARROW, WEAK = (
    "out-of-vocabulary text",
    "negation lost by averaging",
    "likely wrong label",
    "a few strong words",
    "mixed praise and blame",
    "narrow decision",
    "no single cause",
)
MEANING = {
    UNKNOWN: f"more than {100 * UNKNOWN_SHARE:.0f} % of the words are unknown, or there are none at all",
    NEGATION: "strong words behind “not”, “never” …, which would turn the verdict if counted the other way round",
    LABEL: f"the model is sure (p ≥ {SURE}) and hardly anything strong speaks for the label given",
    STRONG_WORDS: f"up to {FEW} words carry the verdict: without them it would turn",
    MIXTURE: "strong words on both sides, the weaker side at least half the other",
    NARROW: f"verdict and label are less than {NARROW_NATS} nats apart",
    WEAK: "more than a few words make the margin",
}


@dataclass(frozen=True)
class Case:
    """A mistake in brief. `words` are the strongest for the verdict, of those that speak for it elsewhere too."""

    row: int
    truth: int
    verdict: int
    probability: float  # of the verdict
    margin: float
    kind: str  # one of MEANING
    reason: str
    words: tuple[tuple[str, float], ...]  # lower-cased, with their shares in nats

    def to_json(self, labels: Sequence[str]) -> dict[str, Any]:
        return {
            "row": self.row,
            "label": labels[self.truth],
            "verdict": labels[self.verdict],
            "probability": self.probability,
            "margin_nats": self.margin,
            "kind": self.kind,
            "reason": self.reason,
            "strongest": [{"word": word, "share_nats": share} for word, share in self.words],
        }


@dataclass(frozen=True, eq=False)
class Mistake:
    """A mistake with its text, the verdict weighed against the label given."""

    case: Case
    weighed: Weighed

    def to_json(self, labels: Sequence[str]) -> dict[str, Any]:
        return {**self.case.to_json(labels), **self.weighed.to_json()}


class Leanings:
    """How words are used in all texts, right or wrong: in how many texts they stand, and for which labels they speak
    where nothing negates them (in how many places their part in the score of a label is above the mean of all)."""

    def __init__(self, labels: int) -> None:
        self._places: dict[str, int] = {}
        self._counts = np.zeros((1024, labels + 1), np.int64)  # for each label, and all places
        self._texts = 0
        self._holders: Counter[str] = Counter()

    def add(self, found: Explanation) -> None:
        spelled = spell(found)
        self._texts += 1
        self._holders.update(set(spelled))
        free = [place for place, negator in enumerate(find_negators(spelled)) if negator is None]
        ids = [self._places.setdefault(spelled[place], len(self._places)) for place in free]
        while len(self._places) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        parts = found.parts[free]
        speaks = parts > parts.mean(axis=1, keepdims=True)
        np.add.at(self._counts, ids, np.column_stack([speaks, np.ones(len(ids), np.bool_)]))

    def allow(self, word: str, label: int) -> bool:
        """Whether the word speaks for the label in at least two of three places; true of a word never met."""
        if word not in self._places:
            return True
        counts = self._counts[self._places[word]]
        return bool(counts[label] >= AGREEING * counts[-1])

    def rarity(self, word: str) -> float:
        """ln((texts + 1) / texts with the word): little for a word that stands everywhere, never zero."""
        return math.log((self._texts + 1) / max(1, self._holders[word]))


def judge_mistake(
    found: Explanation,
    truth: int,
    verdict: int,
    row: int,
    leanings: Leanings | None = None,
    score: Score | None = None,
) -> Mistake:
    """What the verdict rests on, against the label given. `score` is asked for texts without a few of their words."""
    weighed = weigh(found, verdict, truth)
    pro, contra = find_strong(weighed)
    judge = _Judge(weighed, pro, contra, found.labels, truth, verdict, leanings, score)
    kind, reason = judge.reason()
    own = [word for word in pro if leanings is None or leanings.allow(word.word, verdict)]
    words = tuple((word.word, word.share) for word in own[:CASE_WORDS])
    return Mistake(Case(row, truth, verdict, weighed.probability, weighed.margin, kind, reason, words), weighed)


@dataclass(frozen=True)
class _Judge:
    """The rules, with the evidence they look at."""

    weighed: Weighed
    pro: list[StrongWord]
    contra: list[StrongWord]
    labels: tuple[str, ...]
    truth: int
    verdict: int
    leanings: Leanings | None
    score: Score | None

    def reason(self) -> tuple[str, str]:
        """The first rule that holds, and a sentence with its evidence."""
        given, taken, margin = self.labels[self.truth], self.labels[self.verdict], self.weighed.margin
        pro, contra = sum(word.share for word in self.pro), -sum(word.share for word in self.contra)
        spelled = spell(self.weighed)

        real = np.array([any(map(str.isalnum, word)) for word in spelled], np.bool_)
        known, strange = int((real & self.weighed.known).sum()), real & ~self.weighed.known
        if not real.any():
            return UNKNOWN, "The text has no words, so there is nothing to judge by."
        if strange.sum() > UNKNOWN_SHARE * real.sum():
            some = listed(f"“{spelled[place]}”" for place in np.flatnonzero(strange)[:FEW].tolist())
            counted_words = f"{known} of {int(real.sum())} words"
            return UNKNOWN, f"The model knows {counted_words}, too little to judge by; unknown are {some}."

        negated = self._negated(spelled)
        turned = sum(float(self.weighed.shares[place]) for places in negated.values() for place in places)
        if negated and 2 * turned >= margin and turned >= NEGATED_SHARE * pro:
            quoted = dict.fromkeys(f"“{self._phrase(negator, max(places))}”" for negator, places in negated.items())
            named = listed(list(quoted)[:FEW])
            return NEGATION, f"In {named} the negated words still count {turned:.2f} of {margin:.2f} nats for {taken}."

        opposed = -float(self.weighed.sentence_shares.min(initial=0.0))
        if self.weighed.probability >= SURE and contra < HARDLY * pro and opposed < HARDLY * margin:
            named = ", ".join(map(str, self.pro[:FEW]))
            beside = f"only {contra:.2f} nats" if self.contra else "nothing strong"
            return (
                LABEL,
                f"{named} … give {pro:.2f} nats for {taken}, and {beside} for {given}: the label may be wrong.",
            )

        few, left = self._few(spelled)
        if few and margin >= NARROW_NATS and 2 * sum(word.share for word in few) >= pro:
            named = listed(map(str, few))
            return (
                STRONG_WORDS,
                f"Without {named} the {margin:.2f} nats for {taken} would be {abs(left):.2f} for {given}.",
            )

        if contra >= MIXED * pro and pro >= MIXED * contra > 0:
            plus, minus = (listed(map(str, side[:FEW])) for side in (self.pro, self.contra))
            return MIXTURE, f"{pro:.2f} nats for {taken} from words like {plus}; {contra:.2f} for {given} from {minus}."
        if margin < NARROW_NATS:
            return NARROW, f"Nearly undecided: {margin:.2f} nats for {taken}, {percent(self.weighed.probability)}."
        side, whose = (self.pro, "") if self.pro else (self.contra, f" for {given}")
        counted = ((word.word, f"{word.count}×, " if word.count > 1 else "", abs(word.share)) for word in side[:FEW])
        named = listed(f"“{word}” ({count}{share:.2f}{whose})" for word, count, share in counted)
        strongest = f"; strongest {'is' if len(side) == 1 else 'are'} {named}" if named else ""
        return WEAK, f"More than a few words make the {margin:.2f} nats for {taken}{strongest}."

    def _negated(self, spelled: list[str]) -> dict[int, list[int]]:
        """Of each negator the places of strong words for the verdict that stand behind it; loudest first."""
        strong = {word.word for word in self.pro} - NEGATORS
        pairs: dict[int, list[int]] = defaultdict(list)
        for place, negator in enumerate(find_negators(spelled)):
            word = spelled[place]
            if negator is None or word not in strong or self.weighed.shares[place] <= 0:
                continue
            if self.leanings is None or self.leanings.allow(word, self.verdict):
                pairs[negator].append(place)
        return dict(sorted(pairs.items(), key=lambda pair: -float(self.weighed.shares[pair[1]].sum())))

    def _phrase(self, negator: int, word: int) -> str:
        """From the negator to the word, as it stands; the verb that an n't hangs on is shown with it."""
        starts, ends, first = self.weighed.starts, self.weighed.ends, negator
        if negator > 0 and ends[negator - 1] == starts[negator] and self.weighed.text[starts[negator] - 1].isalnum():
            first -= 1
        return " ".join(self.weighed.text[starts[first] : ends[word]].split())

    def _few(self, spelled: list[str]) -> tuple[list[StrongWord], float]:
        """The fewest of the strongest words without which the verdict would turn, and the margin then."""
        tried = [self.pro[:count] for count in range(1, min(FEW, len(self.pro)) + 1)]
        margins = [self.weighed.margin - sum(word.share for word in words) for words in tried]
        if self.score is not None and tried:
            texts = []
            for words in tried:
                going = {word.word for word in words}
                texts.append(blank(self.weighed, [place for place, word in enumerate(spelled) if word in going]))
            log_probs = np.maximum(self.score(texts), LEAST_LOG_PROB)
            margins = (log_probs[:, self.verdict] - log_probs[:, self.truth]).tolist()
        return next(((words, left) for words, left in zip(tried, margins, strict=True) if left <= 0), ([], 0.0))


def find_negators(spelled: Sequence[str]) -> list[int | None]:
    """For each word the negator that stands before it in its clause, up to `REACH_WORDS` away; marks have none."""
    found: list[int | None] = []
    negator: int | None = None
    for place, word in enumerate(spelled):
        if negator is not None and place - negator > REACH_WORDS:
            negator = None
        found.append(negator if negator is not None and any(map(str.isalnum, word)) else None)
        if word in CLAUSE_ENDS or _is_mark_run(word):
            negator = None
        elif word in NEGATORS or word.endswith("n't"):
            negator = None if spelled[place + 1 : place + 2] and spelled[place + 1] in NO_NEGATION else place
    return found


def _is_mark_run(word: str) -> bool:
    """'...' and '?!' end a clause as one mark does."""
    return bool(word) and word[0] in ".!?" and not any(map(str.isalnum, word))
