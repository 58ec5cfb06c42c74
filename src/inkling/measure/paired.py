"""Which of two classifiers is better on the same texts, and whether that is more than luck.

They are compared where they differ. Of N texts the first alone has b right and the second alone c; McNemar's exact test
asks how often a fair coin thrown n = b + c times is as uneven,

    p = min(1, 2 P(X ≤ min(b, c)))       X ~ Binomial(n, ½), summed in logarithms
    z = (|b − c| − 1) / √n               the normal limit with continuity correction, from n = 10,000 on

and the interval of the difference of accuracies is that of Agresti and Min, with ½ added to each of the four cells:

    (b − c) / (N + 2) ± z √(b + c + 1 − (b − c)² / (N + 2)) / (N + 2)

which, unlike the plain one, is not of width 0 where both agree on every text. All pairs are corrected together (Holm);
intervals are those of each pair alone.

McNemar (1947); Agresti and Min, Statistics in Medicine 24 (2005).
Left out: texts that depend on each other, the luck of one training (compare several seeds for that).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError
from inkling.figures import Cell, Column, Table
from inkling.measure.intervals import Interval

Bools = NDArray[np.bool_]

EXACT_PAIRS = 10_000
LEVEL = 0.05


def mcnemar(right_a: Bools, right_b: Bools) -> float:
    """Two-sided p-value of two classifiers being equally often right on the same texts."""
    a, b = _rights(["the first", "the second"], [right_a, right_b])
    return mcnemar_p(int((a & ~b).sum()), int((b & ~a).sum()))


def mcnemar_p(only_a: int, only_b: int) -> float:
    """The same from the numbers of texts that only one of them has right."""
    n, fewer = only_a + only_b, min(only_a, only_b)
    if only_a == only_b:
        return 1.0
    if n >= EXACT_PAIRS:
        return math.erfc((abs(only_a - only_b) - 1) / math.sqrt(2 * n))
    k = np.arange(1, fewer + 1)
    log_terms = np.append(0.0, np.cumsum(np.log((n - k + 1) / k)))  # ln of n over k
    largest = log_terms.max()
    log_sum = largest + math.log(float(np.exp(log_terms - largest).sum()))
    return min(1.0, math.exp((1 - n) * math.log(2) + log_sum))


@dataclass(frozen=True)
class PairedDifference:
    """Two classifiers on the same texts; `difference` of their accuracies, `better` minus `worse`.

    `p_value` is that of this pair alone, `corrected_p` that with all pairs in mind.
    """

    better: str
    worse: str
    rows: int
    only_better: int  # texts that `better` has right and `worse` wrong
    only_worse: int
    difference: Interval
    p_value: float
    corrected_p: float

    @property
    def real(self) -> bool:
        return self.corrected_p <= LEVEL

    def sentence(self) -> str:
        d = self.difference
        digits = 1 if d.value >= 0.01 else 2
        points = f"{100 * d.value:.{digits}f} points"
        within = f"{100 * d.level:g} % {100 * d.low:.{digits}f} to {100 * d.high:.{digits}f}".replace("-", "−")
        if self.real:
            return f"{self.better} is right on {points} more texts than {self.worse} ({within})."
        pair = f"{self.better} and {self.worse}"
        return f"No difference shown between {pair} ({points}, {within}; p = {self.corrected_p:.2g})."

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "real": self.real}


def compare_classifiers(names: Sequence[str], rights: Sequence[Bools]) -> tuple[PairedDifference, ...]:
    """All pairs, the more accurate first in each; the same whatever the order they are given in."""
    from inkling.measure.comparison import holm  # which brings torch

    given = _rights(names, rights)
    ordered = sorted(zip(names, given, strict=True), key=lambda pair: (-int(pair[1].sum()), pair[0]))
    found = []
    for (better, a), (worse, b) in combinations(ordered, 2):
        only_better, only_worse = int((a & ~b).sum()), int((b & ~a).sum())
        found.append((better, worse, len(a), only_better, only_worse))
    p_values = np.array([mcnemar_p(*pair[3:]) for pair in found])
    corrected = holm(p_values)
    return tuple(
        PairedDifference(*pair, paired_interval(*pair[2:]), float(p_values[i]), float(corrected[i]))
        for i, pair in enumerate(found)
    )


def paired_interval(rows: int, only_better: int, only_worse: int, level: float = 0.95) -> Interval:
    """The difference of two accuracies on the same texts, after Agresti and Min (see above)."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    gap, wider = only_better - only_worse, rows + 2
    reach = z * math.sqrt(only_better + only_worse + 1 - gap * gap / wider) / wider
    return Interval(gap / rows, max(-1.0, gap / wider - reach), min(1.0, gap / wider + reach), level)


def difference_table(differences: Sequence[PairedDifference]) -> Table:
    columns = (
        Column("better"),
        Column("worse"),
        Column("difference", ".2f", "points"),
        Column("low", ".2f"),
        Column("high", ".2f"),
        Column("only better right", ",d"),
        Column("only worse right", ",d"),
        Column("p", ".2g", note="McNemar's test, corrected for all pairs (Holm)"),
        Column("real"),
    )
    rows: list[tuple[Cell, ...]] = []
    for d in differences:
        i = d.difference
        points = (100 * i.value, 100 * i.low, 100 * i.high)
        rows.append((d.better, d.worse, *points, d.only_better, d.only_worse, d.corrected_p, d.real))
    note = "low and high: 95 % interval of this difference alone, in points of accuracy."
    return Table("Differences of accuracy on the same texts", columns, tuple(rows), (note,))


def _rights(names: Sequence[str], rights: Sequence[Bools]) -> list[Bools]:
    found = [np.asarray(right) for right in rights]
    if len(names) != len(found) or len(set(names)) != len(found):
        raise InklingError(f"{len(names)} names for {len(found)} classifiers; give a different name for each of them.")
    for name, right in zip(names, found, strict=True):
        if right.dtype != np.bool_ or right.ndim != 1 or len(right) != len(found[0]) or not len(right):
            raise InklingError(
                f"What {name} has right is of type {right.dtype} and shape {right.shape}; give one True or False for "
                f"each text, and the same texts to all ({names[0]} has shape {found[0].shape})."
            )
    return found
