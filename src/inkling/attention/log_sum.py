"""The law of ln Σ e^{sⱼ} for independent normal scores, and with it the exact law of a weight.

A set S of keys has less than the share p of the weight just when its log-sum lies below that of the rest R:

    Σ_{i∈S} αᵢ < p   ⟺   L_S − L_R < ln(p/(1−p))         L = ln Σ e^{s}

One normal score against certain ones gives Φ. In general the law of L has no formula, but its density is found by
adding scores one by one. Of two parts, either may be the smaller; with r the smaller, the larger is u = x + ln(1 −
e^{r−x}):

    f_{1+2}(x) = ∫_{−∞}^{x−ln 2} [f₁(r) f₂(u) + f₂(r) f₁(u)] / (1 − e^{r−x}) dr

Taking r from the smaller part keeps everything smooth, and 30 below x the larger part is x itself: what is left of the
integral is a distribution function. Equal scores are added by doubling, so that n of them cost log₂ n additions.

A density is kept as polynomials on panels, which are halved until the polynomial is right to 1e-13 of the whole
probability. Where an almost certain score meets an uncertain one the sum has a thin spike beside a broad hill, and no
even grid could hold both. Integrals run over panels that end wherever a panel of either part ends. Good to about 1e-10
(deviations below 1e-8, beside scores of size 1, cost the digits that they themselves do not have).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from inkling.attention.arrays import Floats
from inkling.attention.quadrature import normal_distribution

POINTS = 16  # of a panel, and coefficients of its polynomial
REACH = 9.0  # deviations of a normal score that are kept: beyond are 1e-19
INNER = 10  # points of the integral over the smaller part, whose panels are shorter
PANELS = 8  # of a normal score
START = 18  # of a sum, to begin with
UNIT = 1.5  # the width of a panel on which ln(e^x + e^y) is as good as a polynomial
FAR = 30.0  # e^-30 is nothing beside 1
NOTHING = 42.0  # and a hundred thousand times e^-42 is nothing either
RIGHT = 1e-13  # error of a panel, in probability
SEEN = 1e-18  # probability below which the ends are cut off
MOST_HALVINGS = 50

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(POINTS)
_INNER_NODES, _INNER_WEIGHTS = np.polynomial.legendre.leggauss(INNER)
_TO_SERIES = np.linalg.inv(np.polynomial.legendre.legvander(_NODES, POINTS - 1))  # values at nodes → Legendre series
_TO_POWERS = np.stack(  # Legendre series → powers
    [np.pad(np.polynomial.legendre.leg2poly(row), (0, POINTS - 1 - k)) for k, row in enumerate(np.eye(POINTS))], axis=1
)


@dataclass(frozen=True)
class Normal:
    """One score. Its panels only say where it happens; values are those of the formulas."""

    mean: float
    deviation: float

    @cached_property
    def edges(self) -> Floats:
        return np.asarray(self.mean + self.deviation * np.linspace(-REACH, REACH, PANELS + 1))

    def density_at(self, x: Floats) -> Floats:
        z = (x - self.mean) / self.deviation
        return np.asarray(np.exp(-0.5 * z**2) / (math.sqrt(2 * math.pi) * self.deviation))

    def below(self, x: Floats) -> Floats:
        return normal_distribution((x - self.mean) / self.deviation)


@dataclass(frozen=True)
class Pieces:
    """A density as a polynomial on each panel; `powers[k]` multiplies tᵏ, t from −1 to 1."""

    edges: Floats  # panels + 1
    powers: Floats  # POINTS×panels

    @cached_property
    def _integrals(self) -> Floats:
        """Powers of the distribution function on each panel (one more than of the density)."""
        half = np.diff(self.edges) / 2
        found = np.concatenate([np.zeros((1, len(half))), self.powers * half / np.arange(1, POINTS + 1)[:, None]])
        signs = (-1.0) ** np.arange(POINTS + 1)
        mass = found.sum(axis=0) - signs @ found
        found[0] = np.append(0.0, np.cumsum(mass)[:-1]) - signs @ found
        return found

    def density_at(self, x: Floats) -> Floats:
        found = self._read(self.powers, x)
        found[(x < self.edges[0]) | (x > self.edges[-1])] = 0.0
        return found

    def below(self, x: Floats) -> Floats:
        return np.clip(self._read(self._integrals, np.clip(x, self.edges[0], self.edges[-1])), 0.0, 1.0)

    def _read(self, powers: Floats, x: Floats) -> Floats:
        panel = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, len(self.edges) - 2)
        t = 2 * (np.clip(x, self.edges[0], self.edges[-1]) - self.edges[panel]) / np.diff(self.edges)[panel] - 1
        found = powers[-1][panel]
        for power in powers[-2::-1]:
            found *= t
            found += power[panel]
        return np.asarray(found)


Law = Normal | Pieces


@dataclass(frozen=True)
class LogSum:
    """L = ln(e^certain + e^X): `certain` from scores without noise (−∞: there are none), X from the others."""

    certain: float = -math.inf
    noisy: Law | None = None


def log_sum(means: Floats, deviations: Floats) -> LogSum:
    """The law for independent scores N(means, deviations²)."""
    sure = deviations == 0
    certain = -math.inf
    if sure.any():
        top = float(means[sure].max())
        certain = top + math.log(np.exp(means[sure] - top).sum())
    pairs, counts = np.unique(np.stack([means[~sure], deviations[~sure]], 1), axis=0, return_counts=True)
    parts = [_repeated(Normal(float(m), float(s)), int(count)) for (m, s), count in zip(pairs, counts, strict=True)]
    if not parts:
        return LogSum(certain)
    # The highest first, so that what is nothing beside it is seen to be nothing.
    return LogSum(certain, reduce(_sum, sorted(parts, key=lambda part: -float(part.edges[-1]))))


def probability_below(first: LogSum, second: LogSum, shift: float = 0.0) -> float:
    """P(first − second < shift)."""
    # Certain parts go to the side where they are positive: e^X + e^c < e^(Y+shift), or e^X < e^(Y+shift) + e^c.
    other = second.certain + shift
    if first.certain >= other:
        certain = float(_less(np.array(first.certain), other)) if first.certain > other else -math.inf
        return _probability(first.noisy, second.noisy, certain, shift)
    certain = float(_less(np.array(other), first.certain)) - shift
    return 1.0 - _probability(second.noisy, first.noisy, certain, -shift)


def _probability(larger: Law | None, smaller: Law | None, certain: float, shift: float) -> float:
    """P(e^larger + e^certain < e^(smaller+shift)); where there is no noise at all, whether it is so."""
    if smaller is None:
        return 0.0
    if larger is None:
        return 1.0 - float(smaller.below(np.array([certain - shift]))[0]) if certain > -math.inf else 1.0
    low, high = float(larger.edges[0]), float(larger.edges[-1])
    ends = [larger.edges, smaller.edges + shift]
    if certain > -math.inf:
        ends[1] = _less(ends[1], certain)
        ends.append(certain + np.arange(-FAR, FAR + UNIT, UNIT))
    edges = np.unique(np.clip(np.concatenate(ends), low, high))
    half = np.diff(edges) / 2
    x = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    value = larger.density_at(x) * (1.0 - smaller.below(np.logaddexp(x, certain) - shift))
    return min(1.0, max(0.0, float((value @ _WEIGHTS) @ half)))


def _less(x: Floats, y: Floats | float) -> Floats:
    """ln(e^x − e^y), −∞ where there is nothing left."""
    with np.errstate(divide="ignore"):
        return np.asarray(x + np.log(-np.expm1(np.minimum(y - x, 0.0))))


def _repeated(part: Law, count: int) -> Law:
    """The sum of `count` independent copies, by doubling."""
    found: Law | None = None
    while True:
        if count & 1:
            found = part if found is None else _sum(found, part)
        count >>= 1
        if not count:
            assert found is not None
            return found
        part = _sum(part, part)


def _sum(first: Law, second: Law) -> Law:
    for one, other in ((first, second), (second, first)):
        if one.edges[-1] < other.edges[0] - NOTHING:
            return other
    low, high = (float(np.logaddexp(first.edges[end], second.edges[end])) for end in (0, -1))
    ends = [np.linspace(low, high, START + 1), *(part.edges[[0, -1]] for part in (first, second))]
    edges = np.unique(np.clip(np.concatenate(ends), low, high))
    left, right = edges[:-1], edges[1:]
    finest = min(float(np.diff(part.edges).min()) for part in (first, second)) / 8
    # A density is no better known than x is, in units of its own width.
    allowed = RIGHT + 8 * np.finfo(np.float64).eps * max(abs(low), abs(high)) / finest
    kept: list[tuple[Floats, Floats, Floats]] = []  # left ends, right ends, Legendre series
    for halvings in range(MOST_HALVINGS):
        half = (right - left) / 2
        x = (left + half)[:, None] + half[:, None] * _NODES
        series = _density_of_sum(first, second, x.reshape(-1)).reshape(x.shape) @ _TO_SERIES.T
        right_enough = np.abs(series[:, -3:]).sum(axis=1) * half < allowed
        right_enough &= ~(_coarse(first, left, right) | _coarse(second, left, right))
        middle = left + half
        right_enough |= (half < finest) | (middle <= left) | (middle >= right) | (halvings == MOST_HALVINGS - 1)
        kept.append((left[right_enough], right[right_enough], series[right_enough]))
        left, right, middle = left[~right_enough], right[~right_enough], middle[~right_enough]
        if not len(left):
            break
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
    left, right, series = (np.concatenate(each) for each in zip(*kept, strict=True))
    order = np.argsort(left)
    left, right, series = left[order], right[order], series[order]
    mass = series[:, 0] * (right - left)
    inside = np.flatnonzero((np.cumsum(mass) > SEEN) & (np.cumsum(mass[::-1])[::-1] > SEEN))
    span = slice(int(inside[0]), int(inside[-1]) + 1)
    powers = _TO_POWERS @ series[span].T / mass.sum()  # the whole is 1, also where x has few digits
    return Pieces(np.append(left[span], right[span][-1]), np.ascontiguousarray(powers))


def _coarse(part: Law, left: Floats, right: Floats) -> NDArray[np.bool_]:
    """Whether a panel is much wider than one of this part's that it covers, and so may have missed a spike."""
    widths = np.diff(part.edges)
    starts = np.clip(np.searchsorted(part.edges, left, side="right") - 1, 0, len(widths) - 1)
    stops = np.clip(np.searchsorted(part.edges, right, side="left"), 1, len(widths))
    narrowest = np.array([widths[i:j].min(initial=math.inf) for i, j in zip(starts, stops, strict=True)])
    apart = (right <= part.edges[0]) | (left >= part.edges[-1])
    return np.asarray(~apart & (right - left > 4 * narrowest))


def _density_of_sum(first: Law, second: Law, x: Floats) -> Floats:
    found = np.zeros(len(x))
    unit = np.append(np.arange(-FAR, -math.log(2), UNIT), -math.log(2))
    orders = [(first, second)] if first is second else [(first, second), (second, first)]
    for small, large in orders:
        start = np.maximum(x - FAR, small.edges[0])[:, None]  # of r
        stop = np.maximum(np.minimum(x - math.log(2), small.edges[-1])[:, None], start)
        ends = [
            np.broadcast_to(small.edges, (len(x), len(small.edges))),
            _less(x[:, None], large.edges),  # where u crosses an edge of the larger part
            x[:, None] + unit,
        ]
        edges = np.sort(np.clip(np.concatenate(ends, axis=1), start, stop), axis=1)
        length = np.diff(edges, axis=1)
        row, column = np.nonzero(length > 0)
        half = length[row, column] / 2
        at = x[row, None]
        r = (edges[row, column] + half)[:, None] + half[:, None] * _INNER_NODES
        share = np.exp(np.minimum(r - at, -math.log(2)))
        value = small.density_at(r) * large.density_at(at + np.log1p(-share)) / (1 - share)
        found += np.bincount(row, (value @ _INNER_WEIGHTS) * half, minlength=len(x))
        found += small.below(x - FAR) * large.density_at(x)
    return found * (2 / len(orders))


def share_below(means: Floats, deviations: Floats, chosen: NDArray[np.int64], share: float) -> float:
    """P(Σ_{i∈chosen} αᵢ < share) for independent normal scores; the failure of a head is this at ½."""
    rest = np.ones(len(means), np.bool_)
    rest[chosen] = False
    if not 0 < share < 1 or not rest.any():
        return float(share >= 1)
    shift = math.log(share / (1 - share))
    return probability_below(log_sum(means[chosen], deviations[chosen]), log_sum(means[rest], deviations[rest]), shift)
