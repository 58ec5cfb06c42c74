"""How good answers are, how sure that is, and whether the model knows when it does not know.

    exact match     Σ [answer = truth] / N      both without the white space around them; case, accents, spelling count
    interval        Wilson's score interval
    differences     McNemar's test on the same questions, all pairs corrected together (Holm)
    confidence      the probability of the whole answer; calibration and 'unsure' as for classifiers

A threshold for the confidence that promises an accuracy is chosen where the lower end of the interval reaches it
(`calibration`). On the questions that chose it, it looks better than it is. So it is also chosen on one half of the
questions and judged on the other, and the other way round; what this gives together is told beside it.

`neighbours` has the baselines, `corroboration` what a corpus says, `answers_page` the tables, charts and pages.
Left out: several right answers, answers that are nearly right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.figures import Page
from inkling.measure.calibration import Abstention, Answered, Calibration, Words
from inkling.measure.classification import wilson
from inkling.measure.corroboration import Corroboration
from inkling.measure.intervals import Interval
from inkling.measure.paired import PairedDifference, compare_classifiers

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

WORDS = Words("questions", "the model", "answers")
BINS = 10
PROMISED = 0.9  # accuracy of what is answered, unless another is asked for


def exactly(said: Sequence[str], truth: Sequence[str]) -> Bools:
    """Which answers are right."""
    if len(said) != len(truth) or not truth:
        raise InklingError(
            f"{len(said)} answers and {len(truth)} truths were given; give one for each, and at least one."
        )
    return np.array([one.strip() == other.strip() for one, other in zip(said, truth, strict=True)])


@dataclass(frozen=True)
class Promise:
    """A threshold for the confidence above which `accuracy` is promised, and what came of choosing it crosswise."""

    accuracy: float
    answered: Answered | None  # None: no threshold promises it
    crosswise: Answered  # its threshold is the mean of those of the halves; NaN if neither has one

    @classmethod
    def of(cls, confidence: Floats, right: Bools, accuracy: float, seed: int = 0) -> Promise:
        if not 0 < accuracy < 1:
            raise UsageError(f"The accuracy to promise is {accuracy:g}; give a share between 0 and 1, such as 0.9.")
        everything = Abstention.of_confidences(confidence, right, WORDS)
        threshold = everything.threshold_for(accuracy)
        order = np.random.default_rng(seed).permutation(len(right))
        halves = order[::2], order[1::2]
        thresholds, texts, hits = [], 0, 0
        for chosen, judged in (halves, halves[::-1]) if len(right) > 1 else ():
            found = Abstention.of_confidences(confidence[chosen], right[chosen]).threshold_for(accuracy)
            if found is not None:
                thresholds.append(found)
                sure = confidence[judged] >= found
                texts, hits = texts + int(sure.sum()), hits + int(right[judged][sure].sum())
        mean = float(np.mean(thresholds)) if thresholds else float("nan")
        answered = None if threshold is None else everything.at(threshold)
        return cls(accuracy, answered, Answered(mean, texts, hits, len(right)))

    def sentence(self) -> str:
        wanted = f"{100 * self.accuracy:g} %"
        if self.answered is None:
            return f"No threshold for the confidence promises {wanted}: too few answers are right, or too few are sure."
        if self.answered.threshold == 0:
            begin = f"Answering everything promises {wanted}."
        else:
            begin = (
                f"Answers of confidence {self.answered.threshold:.3f} or more promise {wanted}: they are "
                f"{100 * self.answered.share:.1f} % of all, and {percent(self.answered.accuracy)} of them are right."
            )
        across = self.crosswise
        if not across.texts:
            return f"{begin} Half of the questions are too few to choose such a threshold on."
        return (
            f"{begin} Chosen on one half of the questions and judged on the other: {100 * across.share:.1f} % "
            f"answered, {percent(across.accuracy)} right."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "threshold": None if self.answered is None else self.answered.threshold,
            "answered": None if self.answered is None else _answered(self.answered),
            "crosswise": _answered(self.crosswise),
            "sentence": self.sentence(),
        }


def _answered(found: Answered) -> dict[str, Any]:
    return {**asdict(found), "share": found.share, "accuracy": asdict(found.accuracy)}


@dataclass(frozen=True)
class Baseline:
    """Answers that need no model."""

    name: str
    answers: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class AnswerReport:
    """One model on some questions. `confidence` is the probability of each answer; `unended` were cut off."""

    name: str
    text_name: str
    questions: tuple[str, ...]
    truth: tuple[str, ...]
    said: tuple[str, ...]
    confidence: Floats
    beam: int = 1
    unended: int = 0
    promised: float = PROMISED
    corroboration: Corroboration | None = None

    @cached_property
    def right(self) -> Bools:
        return exactly(self.said, self.truth)

    @property
    def exact_match(self) -> Interval:
        return wilson(int(self.right.sum()), len(self.truth))

    @cached_property
    def calibration(self) -> Calibration:
        return Calibration.of_confidences(self.confidence, self.right, BINS, WORDS)

    @cached_property
    def abstention(self) -> Abstention:
        return Abstention.of_confidences(self.confidence, self.right, WORDS)

    @cached_property
    def promise(self) -> Promise:
        return Promise.of(self.confidence, self.right, self.promised)

    @property
    def different(self) -> int:
        """How many different answers it gives."""
        return len(set(self.said))

    def sentences(self) -> list[str]:
        rows, right = len(self.truth), int(self.right.sum())
        favourite, times = Counter(self.said).most_common(1)[0]
        said = [
            f"{self.name} answers {right:,} of {rows:,} questions of {self.text_name} exactly right: "
            f"{percent(self.exact_match)}.",
            f"It gives {self.different:,} different answers, most often '{favourite}' ({100 * times / rows:.1f} %).",
        ]
        if self.unended:
            said.append(f"{self.unended:,} answers did not end and were cut off; they count as not believed in at all.")
        said += [self.calibration.sentence(), self.promise.sentence()]
        return said + (self.corroboration.sentences() if self.corroboration else [])

    def to_json(self) -> dict[str, Any]:
        match = self.exact_match
        return {
            "model": self.name,
            "text": self.text_name,
            "exact_match": match.value,
            "low": match.low,
            "high": match.high,
            "right": int(self.right.sum()),
            "questions": len(self.truth),
            "beam": self.beam,
            "mean_confidence": float(self.confidence.mean()),
            "expected_calibration_error": self.calibration.error,
            "different_answers": self.different,
            "unended": self.unended,
            "calibration": self.calibration.to_json(),
            "abstention": self.abstention.to_json(),
            "promise": self.promise.to_json(),
            "corpus": None if self.corroboration is None else self.corroboration.to_json(),
            "sentences": self.sentences(),
        }


@dataclass(frozen=True, eq=False)
class AnswerMatrix:
    """Models and baselines on the same questions, the best model first; `notes` are about how they were read."""

    results: tuple[AnswerReport, ...]
    baselines: tuple[Baseline, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, results: Sequence[AnswerReport], baselines: Sequence[Baseline] = (), notes: Sequence[str] = ()
    ) -> AnswerMatrix:
        """All results must be on the same questions."""
        for one in results:
            if one.questions != results[0].questions or one.truth != results[0].truth:
                raise InklingError(
                    f"{one.name} and {results[0].name} answered different questions; give both the same."
                )
        ranked = sorted(results, key=lambda one: (-one.exact_match.value, one.name))
        return cls(tuple(ranked), tuple(baselines), tuple(notes))

    @property
    def truth(self) -> tuple[str, ...]:
        return self.results[0].truth

    def rights(self) -> dict[str, Bools]:
        """What each of all has right, models and baselines."""
        found = {one.name: one.right for one in self.results}
        return found | {one.name: exactly(one.answers, self.truth) for one in self.baselines}

    @cached_property
    def comparisons(self) -> tuple[PairedDifference, ...]:
        """Models with each other and with the baselines; all pairs are corrected for."""
        rights = self.rights()
        if len(rights) < 2:
            return ()
        baselines = {one.name for one in self.baselines}
        pairs = compare_classifiers(list(rights), list(rights.values()))
        return tuple(pair for pair in pairs if not {pair.better, pair.worse} <= baselines)

    def sentences(self) -> list[str]:
        found: list[str] = []
        for one in self.results:
            found += one.sentences()
        return found + [difference(pair) for pair in self.comparisons]

    def summary(self) -> Page:
        """For a terminal, where the notes were said already."""
        from inkling.measure.answers_page import summary

        return summary(self)

    def page(self) -> Page:
        """For a browser, with charts and the surest mistakes."""
        from inkling.measure.answers_page import page

        return page(self)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def to_json(self) -> dict[str, Any]:
        """The figures of the best model at the top, those of all in `runs`."""
        rights = self.rights()
        baselines = []
        for one in self.baselines:
            share = wilson(int(rights[one.name].sum()), len(self.truth))
            baselines.append(
                {
                    "name": one.name,
                    "exact_match": share.value,
                    "low": share.low,
                    "high": share.high,
                    "right": int(rights[one.name].sum()),
                }
            )
        return {
            **self.results[0].to_json(),
            "runs": [one.to_json() for one in self.results],
            "baselines": baselines,
            "comparisons": [pair.to_json() for pair in self.comparisons],
            "notes": list(self.notes),
            "sentences": self.sentences(),
        }


def difference(pair: PairedDifference) -> str:
    """In the words of questions."""
    d = pair.difference
    points = f"{100 * d.value:.1f} points"
    within = f"{100 * d.level:g} % {100 * d.low:.1f} to {100 * d.high:.1f}".replace("-", "−")
    if pair.real:
        return f"{pair.better} answers more questions right than {pair.worse}, by {points} ({within})."
    return (
        f"No difference shown between {pair.better} and {pair.worse} ({points}, {within}; p = {pair.corrected_p:.2g})."
    )


def percent(share: Interval) -> str:
    """'62.4 % (95 % 58.1 to 66.5)'."""
    return f"{100 * share.value:.1f} % ({100 * share.level:g} % {100 * share.low:.1f} to {100 * share.high:.1f})"
