"""Where a classifier errs: every mistake counted with its reason (explain/reasons.py), and groups of alike mistakes.

Groups: within each pair (label given, verdict), mistakes are vectors of the shares of their 10 strongest words for the
verdict, each times ln((texts + 1) / texts with the word), so that “a” and “the” lead no group where rarer words are as
alike. They are parted by spherical k-means (Dhillon and Modha 2001), k = √(n/3) up to 8, begun from the k words that
weigh most, so that nothing is random. A mistake with cosine below 0.3 to its centre belongs to no group.

How words are used (`Leanings`) is counted first, in up to 2,000 texts, right or wrong.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from inkling.explain.reasons import CASE_WORDS, MEANING, Case, Leanings, Mistake, judge_mistake
from inkling.explain.weighing import Floats, Ints, Score, listed, percent
from inkling.explain.words import Explanation
from inkling.figures import Cell, Column, Table
from inkling.measure.classification import ClassificationReport

BATCH, LEAST_BATCH, BATCH_CLASSES = 500, 8, 8  # texts explained at once, in up to so many classes; fewer in more
LEANING_TEXTS = 2000  # evenly spaced
MOST_CENTRES, LEAST_MEMBERS, LEAST_COSINE = 8, 3, 0.3
MOST_GROUPS = 12
GROUP_WORDS = 8


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
            f"{grouped:,} of {len(self.cases):,} mistakes are in these groups, each in one at most. Beside a word: "
            "how many of the group have it among their strongest."
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
            "mistakes": [case.to_json(self.labels) for case in self.cases],
        }

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


def diagnose(
    labels: tuple[str, ...],
    truth: Ints,
    log_probs: Floats,
    explain: Callable[[Sequence[int]], list[Explanation]],
    score: Score | None = None,
    *,
    rows: Sequence[int],
    most: int = 50,
    name: str = "",
    text_name: str = "",
) -> ErrorReport:
    """Reasons for every text whose likeliest label is not `truth` (N, by place in `labels`).

    `explain` is given places in `truth` and answers with as many explanations, in that order; a place is called by its
    number in `rows` in all that people see. `score` gives the log-probabilities of texts without a few of their words;
    without it, shares stand in. The `most` confident mistakes are kept with their texts.
    """
    report = ClassificationReport.of(labels, truth, log_probs, name=name, text_name=text_name)
    verdicts = log_probs.argmax(axis=1)
    wrong = np.flatnonzero(verdicts != truth)
    wrong = wrong[np.argsort(-log_probs[wrong, verdicts[wrong]], kind="stable")]

    size = max(
        LEAST_BATCH, BATCH * BATCH_CLASSES // max(BATCH_CLASSES, len(labels))
    )  # an explanation is words × classes
    leanings = Leanings(len(labels))
    asked = range(0, len(truth), -(-len(truth) // LEANING_TEXTS)) if len(wrong) else range(0)
    for start in range(0, len(asked), size):
        for found in explain(list(asked[start : start + size])):
            leanings.add(found)

    def judged(places: Sequence[int]) -> list[Mistake]:
        return [
            judge_mistake(found, int(truth[place]), int(verdicts[place]), rows[place], leanings, score)
            for place, found in zip(places, explain(places), strict=True)
        ]

    cases: list[Case] = []
    mistakes: list[Mistake] = []
    for start in range(0, len(wrong), size):
        batch = judged(wrong[start : start + size].tolist())
        cases += [mistake.case for mistake in batch]
        mistakes += batch[: max(0, most - len(mistakes))]
    parted = _parted(cases, leanings)[:MOST_GROUPS]
    examples = judged([int(wrong[members[0]]) for members in parted]) if parted else []
    groups = tuple(
        _group([cases[i] for i in members], one, leanings) for members, one in zip(parted, examples, strict=True)
    )
    return ErrorReport(name, text_name, labels, len(truth), tuple(cases), tuple(mistakes), groups, report)


def _parted(cases: Sequence[Case], leanings: Leanings) -> list[list[int]]:
    """Places of alike cases, those nearest to their centre first; larger groups first."""
    pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, case in enumerate(cases):
        if case.words:
            pairs[case.truth, case.verdict].append(place)
    groups: list[list[int]] = []
    for places in pairs.values():
        if len(places) < LEAST_MEMBERS:
            continue
        vectors = [[(word, nats * leanings.rarity(word)) for word, nats in cases[place].words] for place in places]
        chosen, cosines = _cluster(vectors)
        for centre in range(chosen.max() + 1):
            members = np.flatnonzero((chosen == centre) & (cosines >= LEAST_COSINE))
            if len(members) >= LEAST_MEMBERS:
                nearest = members[np.argsort(-cosines[members], kind="stable")]
                groups.append([places[member] for member in nearest.tolist()])
    return sorted(groups, key=lambda group: (-len(group), group[0]))


def _cluster(words: Sequence[Sequence[tuple[str, float]]]) -> tuple[Ints, Floats]:
    """The centre of each vector of words, and its cosine to it: spherical k-means, begun from the weightiest words."""
    vocabulary: dict[str, int] = {}
    ids = np.zeros((len(words), CASE_WORDS), np.int64)
    values = np.zeros((len(words), CASE_WORDS))
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


def _group(members: Sequence[Case], example: Mistake, leanings: Leanings) -> Group:
    nats: dict[str, float] = defaultdict(float)
    holders: Counter[str] = Counter()
    for case in members:
        for word, share in case.words:
            nats[word] += share
            holders[word] += 1
    shared = sorted((word for word in nats if holders[word] > 1), key=lambda word: -nats[word] * leanings.rarity(word))
    words = tuple(GroupWord(word, nats[word], holders[word]) for word in shared[:GROUP_WORDS])
    rows = tuple(case.row for case in members)
    return Group(members[0].truth, members[0].verdict, rows, words, example)
