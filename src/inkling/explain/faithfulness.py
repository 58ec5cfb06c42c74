"""Whether the words that an explanation names are those that matter: deletion curves (Samek et al. 2017).

Words are blanked in some order, most important first, and the log-odds of the first verdict followed. A faithful order
makes them fall fast. Orders on the same texts:

    share              part for the verdict − Σ_j part for label j · p_j / (1 − p_v)      j: the other labels
    exact effect       what leaving out that word alone changes
    …                  others that are given, such as gradient × input
    random

With two labels the share is that of explain/weighing.py; with more, the others weigh by their probability, which is how
the log-odds of the verdict hang on their scores. The exact effect is right for one word and can still be a poor order:
where a feature counts once, none of two equal words has an effect alone, and both together may have a great one.
Gradient × input is the same order as the share where no hidden layer follows the average.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from inkling.errors import InklingError, UsageError
from inkling.explain.weighing import LEAST_LOG_PROB, Floats, Ints, Score, blank
from inkling.explain.words import Explanation
from inkling.figures import Cell, Chart, Column, Line, Table
from inkling.measure.intervals import LEAST_BLOCKS, RESAMPLES, Interval, judge_means

BATCH = 500  # texts scored at once
SHARE, EXACT, RANDOM = "share", "exact effect", "random"
FRACTIONS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class Deletion:
    """What becomes of the verdicts when words are taken out in one order.

    `area` is the mean of the log-odds along the way (the area under the curve over its width); `above` by how much it
    is above that of the shares, paired text by text: above zero, this order finds the words that matter less well.
    """

    order: str
    log_odds: tuple[float, ...]  # means over the texts, one for each fraction
    area: Interval
    above: Interval | None  # None: these are the shares


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
            Column("above share", "+.3f", unit="nats", note="paired by text; an interval above 0: shares find more."),
            Column("95 % of that"),
        )
        return Table("Faithfulness of the explanations", columns, tuple(rows))

    def to_json(self) -> dict[str, Any]:
        curves = [asdict(one) for one in self.deletions]
        return {"fractions": list(self.fractions), "text_count": self.texts, "curves": curves}


def deletion_curve(
    score: Score,
    explanations: Sequence[Explanation],
    fractions: Sequence[float],
    generator: np.random.Generator,
    others: Mapping[str, Sequence[Floats]] | None = None,
) -> Faithfulness:
    """Blank the words of each text that matter most, by several orders, and follow the log-odds of its first verdict.

    `others` are more orders by name: for each explanation how much each word speaks for the verdict (W), such as
    gradient × input. `fractions` rise; of W words ⌈fraction · W⌉ go.
    """
    kept = [place for place, one in enumerate(explanations) if len(one.starts)]
    if not kept:
        raise InklingError("There are no texts with words to take out; give explanations of at least one such text.")
    if len(fractions) < 2 or any(not 0 <= low < high <= 1 for low, high in pairwise(fractions)):
        raise UsageError(f"The fractions are {list(fractions)}; give at least two from 0 to 1, each above the last.")
    found = [explanations[place] for place in kept]
    ranked = {
        SHARE: [_falling(share_of_verdict(one)) for one in found],
        EXACT: [_falling(one.effects[:, one.verdict]) for one in found],
    }
    for name, values in (others or {}).items():
        ranked[name] = [_falling(values[place]) for place in kept]
    ranked[RANDOM] = [generator.permutation(len(one.starts)) for one in found]

    curves = {name: np.zeros((len(fractions), len(found))) for name in ranked}
    for name, orders in ranked.items():
        for step, fraction in enumerate(fractions):
            for start in range(0, len(found), BATCH):
                batch = slice(start, start + BATCH)
                pairs = zip(found[batch], orders[batch], strict=True)
                texts = [blank(one, order[: int(np.ceil(fraction * len(order)))]) for one, order in pairs]
                verdicts = np.array([one.verdict for one in found[batch]])
                curves[name][step, batch] = _log_odds(score(texts), verdicts)
    width = np.diff(np.asarray(fractions))[:, None]
    areas = {name: (width * (y[1:] + y[:-1]) / 2).sum(axis=0) / width.sum() for name, y in curves.items()}
    deletions = tuple(
        Deletion(
            name,
            tuple(curve.mean(axis=1).tolist()),
            _mean_interval(areas[name], generator),
            None if name == SHARE else _mean_interval(areas[name] - areas[SHARE], generator),
        )
        for name, curve in curves.items()
    )
    return Faithfulness(tuple(fractions), len(found), deletions)


def share_of_verdict(found: Explanation) -> Floats:
    """What each word (W) brings to the log-odds of the verdict against all other labels."""
    others = np.maximum(found.log_probs, LEAST_LOG_PROB)
    others[found.verdict] = -np.inf
    weights = np.exp(others - np.logaddexp.reduce(others))
    shares: Floats = found.parts[:, found.verdict] - found.parts @ weights
    return shares


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
