"""Why a classifier errs: each mistake with its words, its sentences and a reason; groups of alike mistakes.

All is told of the margin between the verdict v and the label given t, in nats of log-odds:

    margin  = ln p(v) − ln p(t)                                          above zero, or it would be no mistake
    effect  = margin − margin without the word (or the sentence)         exact, from the effects of an `Explanation`
    share   = effect + (margin − Σ effects) / known words                so that the shares of a text sum to its margin

Sentences have shares too: the rest is parted among them by their known words.

In two classes the effect is that on the verdict's log-odds as it stands; in more it follows from those of v and t, for
p without a word is σ(ln p/(1 − p) − its effect). In an average, leaving out a neutral word gives the others more
weight, so the bare effects of a text sum to about nothing whatever the verdict; the share sets that right: a neutral
word has none. *Strong* is a place with at least a quarter of the largest share in its text, for or against; a word
counts with the sum of its strong places. (With all places, “the” and “and” would lead in every long text.)

The reason of a mistake is the first of these that holds:

    out-of-vocabulary text      more than 30 % of the words are unknown, or fewer than 3 are known
    negation lost by averaging  strong words for the verdict stand up to 3 words behind a negator (English), in the same
                                clause, and carry half the margin (counted the other way round they would turn it) and
                                a tenth of all that is strong for it; a word that elsewhere, outside negation, speaks
                                against the verdict is left out: a model of word pairs rightly blames “not funny”
    likely wrong label          p ≥ 0.98, the strong words for the label given have under a tenth of the others' sum,
                                and no sentence speaks for it with a tenth of the margin
    a few strong words          up to 3 words whose effects sum to the margin and make half of what is strong for it:
                                without them the verdict would turn (to first order: effects of single words are summed)
    mixed praise and blame      strong words on both sides, the weaker side at least half the other
    narrow decision             a margin below 0.5 nats (62 % to 38 %)
    no single cause             none of these

Groups: within each pair (label given, verdict), mistakes are vectors of their 10 largest shares for the verdict by
word, and are parted by spherical k-means (Dhillon and Modha 2001), k = √(n/3) up to 8, begun from the k words that
weigh most, so that nothing is random. A mistake with cosine below 0.3 to its centre belongs to no group.

Faithfulness: words are blanked in order of their effect, at random, or in an order given, and the log-odds of the first
verdict followed (deletion curves; Samek et al. 2017). A faithful order makes them fall fast.

Left out: negation in other languages, irony, phrases (an `Explanation` shares the effect of a phrase among its words).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.explain.words import Explanation
from inkling.figures import Cell, Chart, Column, Line, Table
from inkling.measure.classification import ClassificationReport
from inkling.measure.intervals import LEAST_BLOCKS, RESAMPLES, Interval, judge_means

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAST_LOG_PROB = -700.0  # a label that the model calls impossible is still a finite way off
BATCH = 500  # texts explained at once
LEANING_TEXTS = 2000  # right or wrong, evenly spaced, which are asked how words lean outside negation
STRONG = 0.25  # of the largest share in a text
UNKNOWN_SHARE, LEAST_KNOWN = 0.3, 3
REACH_WORDS, NEGATED_SHARE = 3, 0.1  # of a negator; of all that is strong for the verdict
SURE, HARDLY = 0.98, 0.1
FEW = 3
MIXED = 0.5
NARROW_NATS = 0.5
VECTOR_WORDS, MOST_CENTRES, LEAST_MEMBERS, LEAST_COSINE = 10, 8, 3, 0.3
MOST_GROUPS = 12
GROUP_WORDS = 8
EXACT = "exact effect"
FRACTIONS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)

# "n't" is a word of its own to some tokenisers; a word that ends in it is a negator too.
NEGATORS = frozenset({"not", "n't", "no", "never", "none", "nothing", "nobody", "nowhere", "neither", "nor", "without"})
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
    UNKNOWN: f"more than {100 * UNKNOWN_SHARE:.0f} % of the words are unknown, or fewer than {LEAST_KNOWN} are known",
    NEGATION: "strong words behind “not”, “never” …, which would turn the verdict if counted the other way round",
    LABEL: f"the model is sure (p ≥ {SURE}) and hardly anything strong speaks for the label given",
    STRONG_WORDS: f"up to {FEW} words carry the verdict: without them it would turn",
    MIXTURE: "strong words on both sides, the weaker side at least half the other",
    NARROW: f"verdict and label are less than {NARROW_NATS} nats apart",
    WEAK: "many words together make the margin",
}


# ------------------------------------------------------------------------------------------------ one mistake


@dataclass(frozen=True)
class Case:
    """A mistake in brief. `words` are those with the largest shares for the verdict, lower-cased, in nats."""

    row: int
    truth: int
    verdict: int
    probability: float  # of the verdict
    margin: float
    kind: str  # one of MEANING
    reason: str
    words: tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class Mistake:
    """A mistake with its text. Effects and shares above zero speak for the verdict, below for the label given."""

    case: Case
    text: str
    starts: Ints  # W
    ends: Ints  # W
    known: NDArray[np.bool_]  # W
    effects: Floats  # W, exact
    shares: Floats  # W, summing to the margin
    sentences: Ints  # S×2, in words
    sentence_effects: Floats  # S, exact
    sentence_shares: Floats  # S, summing to the margin

    @property
    def decider(self) -> int | None:
        """The sentence that decided: that with the largest share, if any is above zero."""
        best = int(self.sentence_shares.argmax()) if len(self.sentence_shares) else -1
        return best if best >= 0 and self.sentence_shares[best] > 0 else None

    @property
    def opponent(self) -> int | None:
        """The sentence that spoke most against the verdict: that with the lowest share, if any is below zero."""
        best = int(self.sentence_shares.argmin()) if len(self.sentence_shares) else -1
        return best if best >= 0 and self.sentence_shares[best] < 0 else None

    def span(self, sentence: int) -> tuple[int, int]:
        """Where a sentence starts and ends in the text, in characters."""
        first, last = self.sentences[sentence].tolist()
        return int(self.starts[first]), int(self.ends[last - 1])

    def sentence(self, place: int | None) -> str:
        if place is None:
            return ""
        start, end = self.span(place)
        return self.text[start:end]

    def to_json(self, labels: Sequence[str]) -> dict[str, Any]:
        def told(place: int | None) -> dict[str, Any] | None:
            if place is None:
                return None
            start, end = self.span(place)
            effect, share = round(float(self.sentence_effects[place]), 6), round(float(self.sentence_shares[place]), 6)
            found = {"text": self.text[start:end], "start": start, "end": end}
            return {**found, "effect_nats": effect, "share_nats": share}

        columns = (self.starts.tolist(), self.ends.tolist(), self.known.tolist(), self.effects.tolist())
        words = [
            {
                "text": self.text[start:end],
                "start": start,
                "end": end,
                "known": known,
                "effect_nats": round(effect, 6),
                "share_nats": round(share, 6),
            }
            for start, end, known, effect, share in zip(*columns, self.shares.tolist(), strict=True)
        ]
        decided, against = told(self.decider), told(self.opponent)
        brief = _case_json(self.case, labels)
        return {**brief, "text": self.text, "decided_by": decided, "against": against, "words": words}


class Leanings:
    """How words lean where nothing negates them: their effects on the log-odds of each label, summed over texts."""

    def __init__(self, labels: int) -> None:
        self._places: dict[str, int] = {}
        self._sums = np.zeros((1024, labels))

    def add(self, found: Explanation) -> None:
        spelled = _spelled(found)
        free = [place for place in range(len(spelled)) if _negator(spelled, place) is None]
        ids = [self._places.setdefault(spelled[place], len(self._places)) for place in free]
        while len(self._places) > len(self._sums):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)])
        np.add.at(self._sums, ids, found.effects[free])

    def lean(self, word: str, label: int) -> float:
        """Above zero: for the label; 0 for a word never met."""
        return float(self._sums[self._places[word], label]) if word in self._places else 0.0


def judge_mistake(found: Explanation, truth: int, verdict: int, row: int, leanings: Leanings | None = None) -> Mistake:
    """What the verdict rests on, against the label given."""
    log_probs = np.maximum(found.log_probs, LEAST_LOG_PROB)
    margin = float(log_probs[verdict] - log_probs[truth])
    effects = margin_effects(log_probs, found.effects, verdict, truth)
    known = found.known
    shares = _shares(effects, known.astype(np.float64), margin)
    sentences, told = _filled_sentences(found)
    told = margin_effects(log_probs, told, verdict, truth)
    counts = np.array([known[first:last].sum() for first, last in sentences.tolist()], np.float64)
    sentence_shares = _shares(told, counts, margin)
    evidence = _Evidence.of(found, shares, effects, margin, -float(sentence_shares.min(initial=0.0)))
    kind, reason = _reason(found, evidence, truth, verdict, leanings)
    leading = [word for word in evidence.pro if any(map(str.isalnum, word.word))]
    words = tuple((word.word, word.share) for word in leading[:VECTOR_WORDS])
    case = Case(row, truth, verdict, float(np.exp(log_probs[verdict])), margin, kind, reason, words)
    words_of = (found.text, found.starts, found.ends, known, effects, shares)
    return Mistake(case, *words_of, sentences, told, sentence_shares)


def _shares(effects: Floats, known: Floats, margin: float) -> Floats:
    """Effects, and to each its part by known words of what they leave of the margin."""
    whole = float(known.sum())
    shares: Floats = effects + (margin - float(effects.sum())) * known / whole if whole else effects
    return shares


def _filled_sentences(found: Explanation) -> tuple[Ints, Floats]:
    filled = found.sentences[:, 1] > found.sentences[:, 0]
    return found.sentences[filled], found.sentence_effects[filled]


def margin_effects(log_probs: Floats, effects: Floats, verdict: int, truth: int) -> Floats:
    """From effects on the log-odds of each label (K×C) to those on ln p(verdict) − ln p(truth) (K), exactly."""
    margin = log_probs[verdict] - log_probs[truth]
    left: list[Floats] = []
    for label in (verdict, truth):
        odds = log_probs[label] - np.logaddexp.reduce(np.delete(log_probs, label))
        left.append(-np.logaddexp(0.0, effects[:, label] - odds))  # ln p without the word
    result: Floats = margin - (left[0] - left[1])
    return result


@dataclass(frozen=True)
class _Word:
    """The strong places of one spelling in a text, together."""

    word: str
    share: float
    effect: float
    count: int

    def __str__(self) -> str:
        return f"“{self.word}”" if self.count == 1 else f"“{self.word}” ({self.count}×)"


@dataclass(frozen=True)
class _Evidence:
    spelled: list[str]
    shares: Floats
    loud: list[int]  # the strong places
    margin: float
    opposed: float  # nats of the sentence that spoke most against the verdict
    pro: list[_Word]  # the strong words for the verdict, and those against it; strongest first
    contra: list[_Word]

    @classmethod
    def of(cls, found: Explanation, shares: Floats, effects: Floats, margin: float, opposed: float) -> _Evidence:
        spelled = _spelled(found)
        least = max(STRONG * float(np.abs(shares).max(initial=0.0)), 1e-12)  # rounding is no evidence
        loud = np.flatnonzero(np.abs(shares) >= least).tolist()
        sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
        for place in loud:
            entry = sums[spelled[place]]
            entry[:] = entry[0] + float(shares[place]), entry[1] + float(effects[place]), entry[2] + 1
        words = [_Word(word, share, effect, int(count)) for word, (share, effect, count) in sums.items()]
        pro = sorted((word for word in words if word.share > 0), key=lambda word: -word.share)
        contra = sorted((word for word in words if word.share < 0), key=lambda word: word.share)
        return cls(spelled, shares, loud, margin, opposed, pro, contra)


def _reason(
    found: Explanation, evidence: _Evidence, truth: int, verdict: int, leanings: Leanings | None
) -> tuple[str, str]:
    """The first rule that holds, and a sentence with its evidence."""
    given, taken, margin = found.labels[truth], found.labels[verdict], evidence.margin
    probability = float(np.exp(found.log_probs[verdict]))
    pro, contra = sum(word.share for word in evidence.pro), -sum(word.share for word in evidence.contra)

    real = np.array([any(map(str.isalnum, word)) for word in evidence.spelled], np.bool_)
    known, strange = int((real & found.known).sum()), real & ~found.known
    if known < LEAST_KNOWN or strange.sum() > UNKNOWN_SHARE * real.sum():
        some = listed(f"“{evidence.spelled[place]}”" for place in np.flatnonzero(strange)[:FEW].tolist())
        such = f"; unknown are {some}" if some else ""
        return UNKNOWN, f"The model knows {known} of {int(real.sum())} words, too little to judge by{such}."

    negated = _negated(evidence, verdict, leanings)
    turned = sum(float(evidence.shares[place]) for places in negated.values() for place in places)
    if negated and 2 * turned >= margin and turned >= NEGATED_SHARE * pro:
        quoted = dict.fromkeys(f"“{_phrase(found, negator, max(places))}”" for negator, places in negated.items())
        phrases = listed(list(quoted)[:FEW])
        return NEGATION, f"In {phrases} the negated words still count {turned:.2f} of {margin:.2f} nats for {taken}."

    if probability >= SURE and contra < HARDLY * pro and evidence.opposed < HARDLY * margin:
        named = ", ".join(map(str, evidence.pro[:FEW]))
        beside = f"only {contra:.2f} nats" if evidence.contra else "nothing strong"
        return LABEL, f"{named} … give {pro:.2f} nats for {taken}, and {beside} for {given}: the label may be wrong."

    few = evidence.pro[:FEW]
    while len(few) > 1 and sum(word.effect for word in few[:-1]) >= margin:
        few = few[:-1]
    carried = sum(word.effect for word in few)
    if margin >= NARROW_NATS and carried >= margin and 2 * sum(word.share for word in few) >= pro:
        named = listed(map(str, few))
        return STRONG_WORDS, f"Without {named} ({carried:.2f} nats) the {margin:.2f} nats for {taken} would be gone."

    if contra >= MIXED * pro and pro >= MIXED * contra > 0:
        plus, minus = (listed(map(str, side[:FEW])) for side in (evidence.pro, evidence.contra))
        return MIXTURE, f"{pro:.2f} nats for {taken} from words like {plus}; {contra:.2f} for {given} from {minus}."
    if margin < NARROW_NATS:
        return NARROW, f"Nearly undecided: {margin:.2f} nats for {taken}, {percent(probability)}."
    named = listed(f"“{word.word}” ({word.share:.2f})" for word in evidence.pro[:FEW])
    strongest = f", the strongest {named}" if named else ""
    return WEAK, f"Many words together make the {margin:.2f} nats for {taken}{strongest}."


def _spelled(found: Explanation) -> list[str]:
    places = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    return [found.text[start:end].lower().replace("’", "'") for start, end in places]


def _negated(evidence: _Evidence, verdict: int, leanings: Leanings | None) -> dict[int, list[int]]:
    """Of each negator the strong words for the verdict that stand behind it; loudest first."""
    pairs: dict[int, list[int]] = defaultdict(list)
    for place in evidence.loud:
        word = evidence.spelled[place]
        if evidence.shares[place] <= 0 or word in NEGATORS or (leanings and leanings.lean(word, verdict) < 0):
            continue
        negator = _negator(evidence.spelled, place)
        if negator is not None:
            pairs[negator].append(place)
    return dict(sorted(pairs.items(), key=lambda pair: -float(evidence.shares[pair[1]].sum())))


def _negator(spelled: Sequence[str], place: int) -> int | None:
    """The negator that stands before a word in its clause, up to `REACH_WORDS` away."""
    if not any(map(str.isalnum, spelled[place])):
        return None
    for before in range(place - 1, max(-1, place - REACH_WORDS - 1), -1):
        word = spelled[before]
        if word in CLAUSE_ENDS or _is_mark_run(word):
            return None
        if word in NEGATORS or word.endswith("n't"):
            return None if spelled[before + 1] in NO_NEGATION else before
    return None


def _is_mark_run(word: str) -> bool:
    """'...' and '?!' end a clause as one mark does."""
    return bool(word) and word[0] in ".!?" and not any(map(str.isalnum, word))


def _phrase(found: Explanation, negator: int, word: int) -> str:
    """From the negator to the word, as it stands; the verb that an n't hangs on is shown with it."""
    first = negator
    if negator > 0 and found.ends[negator - 1] == found.starts[negator]:
        first -= 1
    return " ".join(found.text[found.starts[first] : found.ends[word]].split())


def listed(names: Iterable[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    *first, last = list(names) or [""]
    return f"{', '.join(first)} and {last}" if first else last


# ------------------------------------------------------------------------------------------------ all mistakes


@dataclass(frozen=True)
class GroupWord:
    word: str
    nats: float  # summed over the members
    holders: int  # members among whose strongest words it is


@dataclass(frozen=True)
class Group:
    """Mistakes of one pair that rest on the same words."""

    truth: int
    verdict: int
    rows: tuple[int, ...]  # nearest to the centre first
    words: tuple[GroupWord, ...]
    example: Mistake  # the nearest


@dataclass(frozen=True)
class ErrorReport:
    """Every mistake counted and reasoned, most confident first; the first of them with their texts."""

    name: str
    text_name: str
    labels: tuple[str, ...]
    texts: int
    cases: tuple[Case, ...]
    mistakes: tuple[Mistake, ...]  # of the first cases
    groups: tuple[Group, ...]  # largest first
    report: ClassificationReport | None = None

    @property
    def reasons(self) -> dict[str, int]:
        """How many mistakes have each reason; all reasons are there."""
        counts = Counter(case.kind for case in self.cases)
        return {kind: counts[kind] for kind in MEANING}

    def pair(self, of: Case | Group) -> str:
        return f"{self.labels[of.truth]} → {self.labels[of.verdict]}"

    def summary(self) -> str:
        what, where = self.name or "The model", f" of {self.text_name}" if self.text_name else ""
        if not self.cases:
            return f"{what} makes no mistake on the {self.texts:,} texts{where}."
        share = len(self.cases) / self.texts
        parts = [f"{what} is wrong on {len(self.cases):,} of the {self.texts:,} texts{where} ({percent(share)})."]
        common = sorted(((n, kind) for kind, n in self.reasons.items() if n), key=lambda pair: -pair[0])[:3]
        parts.append(f"The reasons found most often: {listed(f'{kind} ({n:,})' for n, kind in common)}.")
        if self.groups:
            group = self.groups[0]
            words = listed(f"“{word.word}”" for word in group.words[:3])
            parts.append(
                f"The largest group of alike mistakes, {len(group.rows)} × {self.pair(group)}, rests on {words}."
            )
        first = self.cases[0]
        parts.append(
            f"The most confident mistake is row {first.row} ({self.pair(first)}, {percent(first.probability)})."
        )
        return " ".join(parts)

    def tables(self) -> tuple[Table, ...]:
        """Of the classifier as a whole first, then reasons, groups and the most confident mistakes."""
        of_classes = self.report.tables() if self.report else ()
        groups = (self.group_table(),) if self.groups else ()
        return (*of_classes, self.reason_table(), *groups, self.mistake_table())

    def reason_table(self) -> Table:
        whole = max(1, len(self.cases))
        counted = sorted(self.reasons.items(), key=lambda item: -item[1])
        rows = tuple((kind, n, 100 * n / whole, MEANING[kind]) for kind, n in counted if n)
        columns = (Column("reason"), Column("mistakes", ",d"), Column("share", ".1f", unit="%"), Column("rule"))
        notes = (f"Each mistake counts once, under the first that holds, tried in this order: {', '.join(MEANING)}.",)
        return Table("Why the mistakes happen", columns, rows, notes if rows else ())

    def group_table(self) -> Table:
        rows = tuple(
            (
                self.pair(group),
                len(group.rows),
                ", ".join(f"{word.word} ({word.holders})" for word in group.words),
                group.example.case.row,
            )
            for group in self.groups
        )
        columns = (
            Column("label → verdict"),
            Column("mistakes", ",d"),
            Column("words behind it"),
            Column("see row", "d"),
        )
        grouped = sum(len(group.rows) for group in self.groups)
        note = (
            f"{grouped:,} of {len(self.cases):,} mistakes are in these groups, each in one at most. In brackets: how "
            "many of the group hold the word among their strongest."
        )
        return Table("Mistakes that are alike", columns, rows, (note,))

    def mistake_table(self) -> Table:
        rows: list[tuple[Cell, ...]] = [
            (case.row, self.pair(case), 100 * case.probability, case.kind, case.reason)
            for case in self.cases[: len(self.mistakes)]
        ]
        columns = (
            Column("row", "d"),
            Column("label → verdict"),
            Column("sure", ".1f", unit="%"),
            Column("reason"),
            Column("evidence"),
        )
        left = len(self.cases) - len(rows)
        return Table("The most confident mistakes", columns, tuple(rows), (f"{left:,} more mistakes.",) if left else ())

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "text": self.text_name,
            "labels": list(self.labels),
            "text_count": self.texts,
            "mistake_count": len(self.cases),
            "reasons": self.reasons,
            "report": self.report.to_json() if self.report else None,
            "groups": [
                {
                    "label": self.labels[group.truth],
                    "verdict": self.labels[group.verdict],
                    "rows": list(group.rows),
                    "words": [asdict(word) for word in group.words],
                    "example_row": group.example.case.row,
                }
                for group in self.groups
            ],
            "most_confident": [mistake.to_json(self.labels) for mistake in self.mistakes],
            "mistakes": [_case_json(case, self.labels) for case in self.cases],
        }

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


def diagnose(
    labels: tuple[str, ...],
    truth: Ints,
    log_probs: Floats,
    explain: Callable[[Sequence[int]], list[Explanation]],
    *,
    rows: Sequence[int],
    most: int = 50,
    name: str = "",
    text_name: str = "",
) -> ErrorReport:
    """Reasons for every text whose likeliest label is not `truth` (N, by place in `labels`).

    `explain` is given places in `truth` and answers with as many explanations, in that order; a place is called by its
    number in `rows` in all that people see. The `most` confident mistakes are kept with their texts.
    """
    report = ClassificationReport.of(labels, truth, log_probs, name=name, text_name=text_name)
    verdicts = log_probs.argmax(axis=1)
    wrong = np.flatnonzero(verdicts != truth)
    wrong = wrong[np.argsort(-log_probs[wrong, verdicts[wrong]], kind="stable")]

    leanings = Leanings(len(labels))
    asked = range(0, len(truth), -(-len(truth) // LEANING_TEXTS)) if len(wrong) else range(0)
    for start in range(0, len(asked), BATCH):
        for found in explain(list(asked[start : start + BATCH])):
            leanings.add(found)

    def judged(places: Sequence[int]) -> list[Mistake]:
        return [
            judge_mistake(found, int(truth[place]), int(verdicts[place]), rows[place], leanings)
            for place, found in zip(places, explain(places), strict=True)
        ]

    cases: list[Case] = []
    mistakes: list[Mistake] = []
    for start in range(0, len(wrong), BATCH):
        batch = judged(wrong[start : start + BATCH].tolist())
        cases += [mistake.case for mistake in batch]
        mistakes += batch[: max(0, most - len(mistakes))]
    parted = _parted(cases)[:MOST_GROUPS]
    examples = judged([int(wrong[members[0]]) for members in parted]) if parted else []
    groups = tuple(_group([cases[i] for i in members], one) for members, one in zip(parted, examples, strict=True))
    return ErrorReport(name, text_name, labels, len(truth), tuple(cases), tuple(mistakes), groups, report)


def _parted(cases: Sequence[Case]) -> list[list[int]]:
    """Places of alike cases, those nearest to their centre first; larger groups first."""
    pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        if case.words:
            pairs[case.truth, case.verdict].append(place)
    groups: list[list[int]] = []
    for places in pairs.values():
        if len(places) < LEAST_MEMBERS:
            continue
        chosen, cosines = _cluster([cases[place].words for place in places])
        for centre in range(chosen.max() + 1):
            members = np.flatnonzero((chosen == centre) & (cosines >= LEAST_COSINE))
            if len(members) >= LEAST_MEMBERS:
                nearest = members[np.argsort(-cosines[members], kind="stable")]
                groups.append([places[member] for member in nearest.tolist()])
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _cluster(words: Sequence[tuple[tuple[str, float], ...]]) -> tuple[Ints, Floats]:
    """The centre of each vector of words, and its cosine to it: spherical k-means, begun from the weightiest words."""
    vocabulary: dict[str, int] = {}
    ids = np.zeros((len(words), VECTOR_WORDS), np.int64)
    values = np.zeros((len(words), VECTOR_WORDS))
    for place, vector in enumerate(words):
        for slot, (word, nats) in enumerate(vector):
            ids[place, slot], values[place, slot] = vocabulary.setdefault(word, len(vocabulary)), nats
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    weights = np.bincount(ids.ravel(), values.ravel(), len(vocabulary))
    count = min(MOST_CENTRES, max(1, round(float(np.sqrt(len(words) / 3)))), len(vocabulary))
    centres = np.zeros((count, len(vocabulary)))
    centres[np.arange(count), np.argsort(-weights, kind="stable")[:count]] = 1.0
    chosen = np.full(len(words), -1)
    for _ in range(50):
        cosines = np.einsum("cns,ns->nc", centres[:, ids], values)
        before, chosen = chosen, cosines.argmax(axis=1)
        if (before == chosen).all():
            break
        for centre in range(count):
            own = chosen == centre
            if own.any():
                summed = np.bincount(ids[own].ravel(), values[own].ravel(), len(vocabulary))
                centres[centre] = summed / np.linalg.norm(summed)
    return chosen, cosines[np.arange(len(words)), chosen]


def _group(members: Sequence[Case], example: Mistake) -> Group:
    nats: dict[str, float] = defaultdict(float)
    holders: Counter[str] = Counter()
    for case in members:
        for word, share in case.words:
            nats[word] += share
            holders[word] += 1
    shared = sorted((word for word in nats if holders[word] > 1), key=lambda word: -nats[word])
    words = tuple(GroupWord(word, nats[word], holders[word]) for word in shared[:GROUP_WORDS])
    rows = tuple(case.row for case in members)
    return Group(members[0].truth, members[0].verdict, rows, words, example)


def _case_json(case: Case, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "row": case.row,
        "label": labels[case.truth],
        "verdict": labels[case.verdict],
        "probability": case.probability,
        "margin_nats": case.margin,
        "kind": case.kind,
        "reason": case.reason,
        "strongest": [{"word": word, "share_nats": share} for word, share in case.words],
    }


def percent(probability: float) -> str:
    """One digit, and never a certainty that rounding made."""
    return f"{100 * probability:.1f} %" if probability < 0.9995 else "over 99.9 %"


# ------------------------------------------------------------------------------------------------ faithfulness


@dataclass(frozen=True)
class Deletion:
    """What becomes of the verdicts when words are taken out in one order.

    `area` is the mean of the log-odds along the way (the area under the curve over its width); `above` by how much it
    is above that of the exact order, paired text by text: above zero, this order finds the words that matter less well.
    """

    order: str
    log_odds: tuple[float, ...]  # means over the texts, one for each fraction
    area: Interval
    above: Interval | None  # None: this is the exact order


@dataclass(frozen=True)
class Faithfulness:
    """Deletion curves of several orders on the same texts."""

    fractions: tuple[float, ...]
    texts: int
    deletions: tuple[Deletion, ...]

    def chart(self) -> Chart:
        percent = [100 * fraction for fraction in self.fractions]
        lines = tuple(Line(one.order, percent, one.log_odds) for one in self.deletions)
        reading = (
            f"Mean log-odds of the first verdict of {self.texts:,} texts after words were taken out; an order that "
            "finds the words which matter makes it fall fast. Below 0 a verdict has turned."
        )
        return Chart(
            "Which order finds the words that matter", "words taken out (%)", "log-odds (nats)", lines, reading
        )

    def table(self) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for one in self.deletions:
            above = one.above
            rest = (None, None) if above is None else (above.value, _range(above))
            rows.append((one.order, one.log_odds[0], one.log_odds[-1], one.area.value, _range(one.area), *rest))
        columns = (
            Column("order"),
            Column("at the start", ".2f", unit="nats"),
            Column(f"{100 * self.fractions[-1]:g} % taken out", ".2f", unit="nats"),
            Column(
                "area", ".3f", unit="nats", note="mean log-odds of the first verdict along the curve; less is better."
            ),
            Column("95 %"),
            Column("above exact", "+.3f", unit="nats", note="paired by text; an interval above 0: exact finds more."),
            Column("95 % of that"),
        )
        return Table("Faithfulness of the effects", columns, tuple(rows))

    def to_json(self) -> dict[str, Any]:
        curves = [asdict(one) for one in self.deletions]
        return {"fractions": list(self.fractions), "text_count": self.texts, "curves": curves}


def deletion_curve(
    score: Callable[[list[str]], Floats],
    explanations: Sequence[Explanation],
    fractions: Sequence[float],
    generator: np.random.Generator,
    others: Mapping[str, Sequence[Floats]] | None = None,
) -> Faithfulness:
    """Blank the words of each text that matter most, by several orders, and follow the log-odds of its first verdict.

    `score` gives the log-probabilities (N×C) of texts. `others` are more orders by name: for each explanation how much
    each word speaks for the verdict (W), such as gradient × input. `fractions` rise; of W words ⌈fraction · W⌉ go.
    """
    kept = [place for place, one in enumerate(explanations) if len(one.starts)]
    if not kept:
        raise InklingError("There are no texts with words to take out; give explanations of at least one such text.")
    if len(fractions) < 2 or any(not 0 <= low < high <= 1 for low, high in pairwise(fractions)):
        raise UsageError(f"The fractions are {list(fractions)}; give at least two from 0 to 1, each above the last.")
    found = [explanations[place] for place in kept]
    ranked: dict[str, list[Ints]] = {EXACT: [_falling(one.effects[:, one.verdict]) for one in found]}
    for name, values in (others or {}).items():
        ranked[name] = [_falling(values[place]) for place in kept]
    ranked["random"] = [generator.permutation(len(one.starts)) for one in found]

    curves = {name: np.zeros((len(fractions), len(found))) for name in ranked}
    for name, orders in ranked.items():
        for step, fraction in enumerate(fractions):
            for start in range(0, len(found), BATCH):
                batch = slice(start, start + BATCH)
                pairs = zip(found[batch], orders[batch], strict=True)
                texts = [blanked(one, order[: int(np.ceil(fraction * len(order)))]) for one, order in pairs]
                verdicts = np.array([one.verdict for one in found[batch]])
                curves[name][step, batch] = _log_odds(score(texts), verdicts)
    width = np.diff(np.asarray(fractions))[:, None]
    areas = {name: (width * (y[1:] + y[:-1]) / 2).sum(axis=0) / width.sum() for name, y in curves.items()}
    deletions = tuple(
        Deletion(
            name,
            tuple(curve.mean(axis=1).tolist()),
            _mean_interval(areas[name], generator),
            None if name == EXACT else _mean_interval(areas[name] - areas[EXACT], generator),
        )
        for name, curve in curves.items()
    )
    return Faithfulness(tuple(fractions), len(found), deletions)


def blanked(found: Explanation, words: Ints) -> str:
    """The text with spaces where these words stood."""
    letters = list(found.text)
    for start, end in zip(found.starts[words].tolist(), found.ends[words].tolist(), strict=True):
        letters[start:end] = " " * (end - start)
    return "".join(letters)


def _falling(values: Floats) -> Ints:
    order: Ints = np.argsort(-values, kind="stable")
    return order


def _log_odds(log_probs: Floats, labels: Ints) -> Floats:
    log_probs = np.maximum(log_probs, LEAST_LOG_PROB)
    places = np.arange(len(labels))
    others = log_probs.copy()
    others[places, labels] = -np.inf
    odds: Floats = log_probs[places, labels] - np.logaddexp.reduce(others, axis=1)
    return odds


def _mean_interval(values: Floats, generator: np.random.Generator) -> Interval:
    mean = float(values.mean())
    if len(values) < LEAST_BLOCKS:
        return Interval(mean, float("nan"), float("nan"))
    low, high, _ = judge_means(values[None, :], generator, RESAMPLES, 0.95)
    return Interval(mean, float(low[0]), float(high[0]))


def _range(interval: Interval) -> str:
    return f"{interval.low:.3f} to {interval.high:.3f}" if interval.low == interval.low else "too few texts"
