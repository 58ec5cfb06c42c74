"""Whether the probabilities of a classifier, or of any verdicts, can be believed, and what saying "unsure" buys.

    temperature      T minimises −Σ ln softmax(z / T)[true class]       z: logits of held-out texts, n of them, each
                                                                        label believed n + 1 times in n + 2 (Platt)
    confidence       the probability of the verdict, max_c p_c (`of`), or of whatever was said (`of_confidences`)
    ECE              Σ_bins n_b |accuracy_b − mean confidence_b| / N      expected calibration error

With β = 1/T the nats are convex in β (a sum of log-sum-exp of linear functions), with slope Σ (E_p[z] − z_true) and
curvature Σ Var_p[z], so Newton's method inside a bracket that only shrinks finds the one minimum. T stays between 0.05
and 20, also where held-out texts are told apart perfectly or the scores are worse than none. Dividing by T never
changes a verdict.

Bins hold equally many texts, the least confident first; texts of equal confidence are never torn apart, so bins can be
fewer than asked for, and the order of rows changes nothing. Of a finite number of texts even perfectly calibrated
probabilities have an error above 0, because accuracy in a bin scatters; what it would be on average is given beside it,
Σ_bins n_b/N √(2 v_b / (π n_b)), v_b the mean of p (1 − p) in the bin.

A threshold on the confidence splits texts into answered (confidence ≥ threshold) and unsure. To promise an accuracy,
the lower end of the interval of the answered texts must reach it, not just the share that happens to be right: 20 texts
without a mistake are no promise of 95 % (Wilson: 84 % or more), 73 are. Even so, a threshold chosen on some texts looks
a little better on them than it is: choose on held-out texts, then ask `at(threshold)` on test texts.

Guo, Pleiss, Sun and Weinberger (2017) on temperature; El-Yaniv and Wiener (2010) on answering less.
Left out: calibration of all classes at once (only that of the verdict), isotonic and vector scaling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inkling.errors import InklingError, UsageError
from inkling.figures import Chart, Column, Line, Table
from inkling.measure.classification import check_predictions, check_truth, wilson
from inkling.measure.intervals import Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.05, 20.0
PRECISION = 1e-10  # of the inverse temperature, relative
NEWTON_STEPS, HALVINGS = 20, 40
COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.5)
CURVE = tuple(percent / 100 for percent in range(5, 101))


class Words(NamedTuple):
    """How results are told: what was judged, who judged it, and what was said."""

    texts: str = "texts"
    who: str = "the classifier"
    verdicts: str = "verdicts"


TEXTS = Words()


def fit_temperature(logits: ArrayLike, truth: ArrayLike) -> float:
    """The T for which softmax(logits / T) gives the held-out `truth` the fewest nats, from 0.05 to 20.

    As in Platt (1999), each label is believed only n + 1 times in n + 2: a few texts that all came out right do not
    make a model certain.
    """
    z = np.asarray(logits, dtype=np.float64)
    found = check_truth(truth, z, "scores")
    bad = np.flatnonzero(~np.isfinite(z).all(axis=1))
    if len(bad):
        raise InklingError(
            f"The scores of row {bad[0]} (counted from 0) are not all finite; give the logits that a softmax follows."
        )
    z = z - z.max(axis=1, keepdims=True)
    right = z[np.arange(len(z)), found]
    doubt = 1 / (len(z) + 2)
    others = (z.sum(axis=1) - right) / max(1, z.shape[1] - 1)
    of_truth = float(((1 - doubt) * right + doubt * others).sum())

    def slope_and_curvature(inverse: float) -> tuple[float, float]:
        weights = np.exp(inverse * z)
        weights /= weights.sum(axis=1, keepdims=True)
        means = (weights * z).sum(axis=1)
        return float(means.sum()) - of_truth, float((weights * (z - means[:, None]) ** 2).sum())

    low, high, inverse = 1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE, 1.0
    slope, curvature = slope_and_curvature(inverse)
    if slope == 0:  # also where all scores are equal and no temperature says anything
        return 1.0
    if slope < 0 and slope_and_curvature(high)[0] <= 0:
        return LOWEST_TEMPERATURE
    if slope > 0 and slope_and_curvature(low)[0] >= 0:
        return HIGHEST_TEMPERATURE
    for attempt in range(NEWTON_STEPS + HALVINGS):
        low, high = (inverse, high) if slope < 0 else (low, inverse)
        step = slope / curvature if curvature > 0 else math.inf
        if slope == 0 or abs(step) <= PRECISION * inverse:
            break
        # A step that leaves the bracket is replaced by the bracket's (geometric) middle, and so are all if they dawdle.
        inside = low < inverse - step < high and attempt < NEWTON_STEPS
        inverse = inverse - step if inside else math.sqrt(low * high)
        slope, curvature = slope_and_curvature(inverse)
    return 1 / inverse


@dataclass(frozen=True)
class Bin:
    """Texts of like confidence: how many, how many right, and the sum of their confidences and of p (1 − p)."""

    texts: int
    right: int
    confidence_sum: float
    spread_sum: float

    @property
    def confidence(self) -> float:
        return self.confidence_sum / self.texts

    @property
    def accuracy(self) -> Interval:
        return wilson(self.right, self.texts)


@dataclass(frozen=True)
class Calibration:
    """How often a verdict of some confidence is right."""

    bins: tuple[Bin, ...]
    words: Words = TEXTS

    @classmethod
    def of(cls, truth: ArrayLike, log_probs: ArrayLike, bins: int = 15) -> Calibration:
        return cls.of_confidences(*_verdicts(truth, log_probs), bins)

    @classmethod
    def of_confidences(
        cls, confidence: ArrayLike, right: ArrayLike, bins: int = 15, words: Words = TEXTS
    ) -> Calibration:
        """From the probability that each verdict was given, and whether it was right."""
        if bins < 1:
            raise UsageError(f"bins is {bins}; give 1 or more, such as 15.")
        confidence, right = _in_order(confidence, right)
        wanted = np.arange(bins) * len(confidence) // bins
        starts = np.unique(np.searchsorted(confidence, confidence[wanted]))  # a tie begins where its first text does
        sums = [np.add.reduceat(values, starts) for values in (right, confidence, confidence * (1 - confidence))]
        texts = np.diff(np.append(starts, len(confidence)))
        found = tuple(Bin(*row) for row in zip(*(column.tolist() for column in (texts, *sums)), strict=True))
        return cls(found, words)

    @property
    def rows(self) -> int:
        return sum(b.texts for b in self.bins)

    @property
    def error(self) -> float:
        """Expected calibration error, from 0 to 1."""
        return math.fsum(abs(b.right - b.confidence_sum) for b in self.bins) / self.rows

    @property
    def error_by_chance(self) -> float:
        """What it would be on average, on so many texts, if every probability were true."""
        return math.fsum(math.sqrt(2 * b.spread_sum / math.pi) for b in self.bins) / self.rows

    @property
    def overconfidence(self) -> float:
        """Mean confidence minus accuracy: above 0 the classifier is surer than it should be."""
        return math.fsum(b.confidence_sum - b.right for b in self.bins) / self.rows

    def sentence(self) -> str:
        side = "surer" if self.overconfidence > 0 else "less sure"
        return (
            f"Probabilities are off by {100 * self.error:.1f} points on average (chance alone would give "
            f"{100 * self.error_by_chance:.1f} on {self.rows:,} {self.words.texts}); {self.words.who} is "
            f"{100 * abs(self.overconfidence):.1f} points {side} than right."
        )

    def table(self) -> Table:
        columns = (
            Column(self.words.texts, ",d"),
            Column("confidence", ".1f", "%", f"mean probability of the {self.words.verdicts}"),
            Column("right", ".1f", "%"),
            Column("low", ".1f", "%", "95 % interval of the share that is right (Wilson)"),
            Column("high", ".1f", "%"),
        )
        rows = tuple((b.texts, 100 * b.confidence, *_percents(b.accuracy)) for b in self.bins)
        title = f"Calibration: how often {self.words.verdicts} of like confidence are right"
        return Table(title, columns, rows, (self.sentence(),))

    def chart(self) -> Chart:
        x = [100 * b.confidence for b in self.bins]
        diagonal = (min(x), max(x)) if len(x) > 1 else (0.0, 100.0)
        lines = (
            _banded("measured", x, [b.accuracy for b in self.bins]),
            Line("perfect", diagonal, diagonal),
        )
        reading = f"Below the diagonal {self.words.who} is surer than right, above it less sure. Band: 95 % interval."
        return Chart("Calibration", "confidence (%)", "right (%)", lines, reading)

    def to_json(self) -> dict[str, Any]:
        bins = [
            {"texts": b.texts, "right": b.right, "confidence": b.confidence, "accuracy": asdict(b.accuracy)}
            for b in self.bins
        ]
        return {
            "rows": self.rows,
            "expected_calibration_error": self.error,
            "error_by_chance": self.error_by_chance,
            "overconfidence": self.overconfidence,
            "bins": bins,
            "sentence": self.sentence(),
        }


@dataclass(frozen=True)
class Answered:
    """The texts whose verdict has at least the probability `threshold`."""

    threshold: float
    texts: int
    right: int
    rows: int  # answered or not

    @property
    def share(self) -> float:
        return self.texts / self.rows

    @property
    def accuracy(self) -> Interval:
        return wilson(self.right, self.texts)  # NaN if none is answered


@dataclass(frozen=True, eq=False)
class Abstention:
    """All texts, the surest first. `right[k]`: how many of the k + 1 surest are right."""

    confidence: Floats
    right: Ints
    words: Words = TEXTS

    @classmethod
    def of(cls, truth: ArrayLike, log_probs: ArrayLike) -> Abstention:
        return cls.of_confidences(*_verdicts(truth, log_probs))

    @classmethod
    def of_confidences(cls, confidence: ArrayLike, right: ArrayLike, words: Words = TEXTS) -> Abstention:
        """From the probability that each verdict was given, and whether it was right."""
        confidence, right = _in_order(confidence, right)
        return cls(confidence[::-1].copy(), np.cumsum(right[::-1]), words)

    @property
    def rows(self) -> int:
        return len(self.confidence)

    def at(self, threshold: float) -> Answered:
        """What is answered with this threshold, such as one chosen on other texts."""
        if not 0 <= threshold <= 1:
            raise UsageError(f"The threshold is {threshold}; give a probability from 0 to 1.")
        texts = int(np.searchsorted(-self.confidence, -threshold, side="right"))
        return Answered(threshold, texts, int(self.right[texts - 1]) if texts else 0, self.rows)

    def covering(self, share: float) -> Answered:
        """The highest threshold that answers at least this share of the texts; 0 for all of them."""
        if not 0 < share <= 1:
            raise UsageError(f"The share of texts to answer is {share}; give a number above 0 and up to 1.")
        last = math.ceil(round(share * self.rows, 6)) - 1  # 0.95 · 20 must not become 20 by rounding
        return self.at(self._threshold(last))

    def threshold_for(self, accuracy: float) -> float | None:
        """The smallest threshold for which the lower end of the 95 % interval (Wilson) of the answered texts reaches
        the accuracy, so that luck on a few texts promises nothing; None if there is none."""
        if not 0 <= accuracy <= 1:
            raise UsageError(f"The accuracy to reach is {accuracy}; give a number from 0 to 1, such as 0.95.")
        ends = np.append(self.confidence[1:] < self.confidence[:-1], True)  # equals are answered together
        # The lower end is never above the share that is right, so most places need no interval.
        likely = np.flatnonzero(ends & (self.right >= accuracy * np.arange(1, self.rows + 1) - 1e-9))
        for last in likely[::-1].tolist():
            if wilson(int(self.right[last]), last + 1).low >= accuracy:
                return self._threshold(last)
        return None

    def _threshold(self, last: int) -> float:
        """That which answers the text at place `last` and all as sure as it."""
        lowest = float(self.confidence[last])
        return lowest if lowest > self.confidence[-1] else 0.0

    def table(self) -> Table:
        columns = (
            Column("threshold", ".4f"),
            Column("answered", ",d"),
            Column("share", ".1f", "%", f"of all {self.words.texts}"),
            Column("right", ".2f", "%", "of those answered"),
            Column("low", ".2f", "%", "95 % interval (Wilson)"),
            Column("high", ".2f", "%"),
        )
        points = dict.fromkeys(self.covering(share) for share in COVERAGES)  # ties can make neighbours equal
        rows = tuple((p.threshold, p.texts, 100 * p.share, *_percents(p.accuracy)) for p in points)
        texts, verdicts = self.words.texts, self.words.verdicts.capitalize()
        note = (
            f"{verdicts} below the threshold are 'unsure'. Choose it on held-out {texts}, not on those it is judged on."
        )
        return Table("What saying 'unsure' buys", columns, rows, (note,))

    def chart(self) -> Chart:
        points = list(dict.fromkeys(self.covering(share) for share in CURVE))
        line = _banded("right", [100 * p.share for p in points], [p.accuracy for p in points])
        return Chart(
            "What saying 'unsure' buys",
            f"{self.words.texts} answered (%)",
            "right of those answered (%)",
            (line,),
            f"At the right end all {self.words.texts} are answered; to the left only the surest. Band: 95 % interval.",
        )

    def to_json(self) -> dict[str, Any]:
        points = [self.covering(share) for share in COVERAGES]
        return {
            "rows": self.rows,
            "points": [{**asdict(p), "share": p.share, "accuracy": asdict(p.accuracy)} for p in points],
        }


def _verdicts(truth: ArrayLike, log_probs: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """The confidence of each verdict, and whether it is right."""
    found, given = check_predictions(truth, log_probs)
    confidence = np.minimum(1.0, np.exp(given.max(axis=1)))  # float32 logs can sum to a little more than 1
    return confidence, given.argmax(axis=1) == found


def _in_order(confidence: ArrayLike, right: ArrayLike) -> tuple[Floats, Ints]:
    """Confidences and what is right (0 or 1), the least confident first, or one sentence that says what is wrong."""
    given, found = np.asarray(confidence, dtype=np.float64), np.asarray(right)
    if given.ndim != 1 or given.shape != found.shape or found.dtype != np.bool_ or not len(given):
        raise InklingError(
            f"The confidences have shape {given.shape} and what is right has shape {found.shape} and type "
            f"{found.dtype}; give one probability and one True or False for each verdict, and at least one."
        )
    bad = np.flatnonzero(~((given >= 0) & (given <= 1)))  # NaN is not within either
    if len(bad):
        raise InklingError(
            f"The confidence of row {bad[0]} (counted from 0) is {given[bad[0]]}; give probabilities from 0 to 1."
        )
    order = np.argsort(given, kind="stable")
    return given[order], found[order].astype(np.int64)


def _percents(interval: Interval) -> tuple[float, float, float]:
    return 100 * interval.value, 100 * interval.low, 100 * interval.high


def _banded(name: str, x: Sequence[float], intervals: Sequence[Interval]) -> Line:
    y, low, high = zip(*map(_percents, intervals), strict=True)
    return Line(name, x, y, low, high)
