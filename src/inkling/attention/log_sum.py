"""The law of ln Σ e^{sⱼ} for independent normal scores, and with it the exact law of a weight.

A set S of keys has less than the share p of the weight just when its log-sum lies below that of the rest R:

    Σ_{i∈S} αᵢ ≤ p   ⟺   L_S − L_R ≤ ln(p/(1−p))         L = ln Σ e^{s}

One normal score against certain ones gives Φ. In general the law of L has no formula, but its density is found by
adding scores one by one. Of two parts, either may be the smaller; with r the smaller, the larger is u = x + ln(1 −
e^{r−x}):

    f_{1+2}(x) = ∫_{−∞}^{x−ln 2} [f₁(r) f₂(u) + f₂(r) f₁(u)] / (1 − e^{r−x}) dr

Taking r from the smaller part keeps everything smooth, and 25 below x the larger part is x itself: what is left of the
integral is a distribution function. Equal scores are added by doubling, so that n of them cost log₂ n additions.
Densities stand on 385 even points and are read between them by polynomials through eight. Good to about 1e-10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from inkling.attention.arrays import Floats
from inkling.attention.quadrature import UNIT_PANEL, gauss_nodes, normal_distribution

POINTS = 385
COARSE = 65
GAUSS = 10  # points a panel
REACH = 9.0  # deviations of a normal score that are kept: beyond are 1e-19
FAR = 25.0  # e^-25 is nothing beside 1
NEGLIGIBLE = 1e-17  # of a density, beside its highest value
STENCIL = np.arange(-3, 5)  # the eight points around a place
_THROUGH = np.linalg.inv(np.vander(STENCIL.astype(np.float64), increasing=True))  # from values to coefficients
CERTAIN = -1e300  # the log-sum of no scores at all


@dataclass(frozen=True)
class LogSum:
    """L = ln(e^certain + e^X): `certain` from scores without noise, X with a density on even points (or no X)."""

    certain: float = CERTAIN
    low: float = 0.0
    step: float = 0.0
    density: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def is_certain(self) -> bool:
        return not len(self.density)

    @property
    def high(self) -> float:
        return self.low + self.step * (len(self.density) - 1)

    @property
    def width(self) -> float:
        """About one deviation."""
        return (self.high - self.low) / (2 * REACH)

    @cached_property
    def cumulated(self) -> Floats:
        """The distribution function of X at the points."""
        cells = (1 / np.arange(1, 9)) @ self._density_pieces  # ∫₀¹ of each polynomial
        return np.append(0.0, np.cumsum(cells * self.step))

    @cached_property
    def _density_pieces(self) -> Floats:
        return _polynomials(np.pad(self.density, (3, 3)))

    @cached_property
    def _cumulated_pieces(self) -> Floats:
        return _polynomials(np.pad(self.cumulated, (3, 3), mode="edge"))

    def density_at(self, x: Floats) -> Floats:
        return self._read(self._density_pieces, x, 0.0)

    def below(self, x: Floats) -> Floats:
        """P(X ≤ x)."""
        return np.clip(self._read(self._cumulated_pieces, x, float(self.cumulated[-1])), 0.0, 1.0)

    def distribution(self, x: Floats) -> Floats:
        """P(L ≤ x)."""
        x = np.asarray(x, dtype=np.float64)
        above = x > self.certain if self.certain > CERTAIN else np.ones(x.shape, np.bool_)
        if self.is_certain:
            return np.asarray(x >= self.certain, dtype=np.float64)
        gap = np.where(above, self.certain - x, -1.0)
        return np.where(above, self.below(x + np.log1p(-np.exp(np.maximum(gap, -800.0)))), 0.0)

    def expect(self, function: Callable[[Floats], Floats], turning: float, scale: float) -> float:
        """E[function(L)], where the function is smooth but for a turn of width `scale` at L = `turning`."""
        if self.is_certain:
            return float(function(np.array([self.certain]))[0])
        zones = [(self.low, self.high, self.width / 2)]
        places = [(self.certain, 1.0)] if self.certain > CERTAIN else []
        if turning > self.certain:  # where X makes L turn
            gap = max(self.certain - turning, -800.0)
            places.append((turning + math.log1p(-math.exp(gap)) if gap < 0 else turning, max(scale, 1e-9)))
        narrowest = min([self.width / 4, *(width / 2 for _, width in places)])
        for centre, width in places:
            start, stop = max(self.low, centre - FAR * width), min(self.high, centre + FAR * width)
            if start < stop:
                zones.append((start, stop, min(width, self.width / 2)))
        x, weights = gauss_nodes(zones, narrowest)
        return float((self.density_at(x) * function(np.logaddexp(self.certain, x))) @ weights)

    def _read(self, pieces: Floats, x: Floats, after: float) -> Floats:
        """The polynomial of each cell at `x`; 0 before the first point, `after` beyond the last."""
        cells = pieces.shape[1]
        place = (x - self.low) * (1 / self.step)
        cell = np.clip(place, 0, cells - 1).astype(np.int64)
        offset = place - cell
        found = pieces[-1][cell]
        for power in pieces[-2::-1]:
            found *= offset
            found += power[cell]
        found[place < 0] = 0.0
        found[place > cells] = after
        return np.asarray(found)


def log_sum(means: Floats, deviations: Floats) -> LogSum:
    """The law for independent scores N(means, deviations²)."""
    sure = deviations == 0
    top = float(means[sure].max(initial=CERTAIN))
    certain = top + math.log(np.exp(means[sure] - top).sum()) if sure.any() else CERTAIN
    pairs, counts = np.unique(np.stack([means[~sure], deviations[~sure]], 1), axis=0, return_counts=True)
    if not len(pairs):
        return LogSum(certain)
    parts = [_repeated(_normal(float(m), float(s)), int(count)) for (m, s), count in zip(pairs, counts, strict=True)]
    whole = reduce(_sum, sorted(parts, key=lambda part: part.high))
    return LogSum(certain, whole.low, whole.step, whole.density)


def probability_below(first: LogSum, second: LogSum, shift: float = 0.0) -> float:
    """P(first − second ≤ shift)."""
    if first.is_certain and second.is_certain:
        return float(first.certain - second.certain <= shift)
    if first.is_certain:
        return 1.0 - float(second.distribution(np.array([first.certain - shift]))[0])
    if second.is_certain:
        return float(first.distribution(np.array([second.certain + shift]))[0])
    middle = (first.low + first.high) / 2 - shift
    turn = float(np.logaddexp(first.certain + 0.0, (first.low + first.high) / 2)) - shift
    return second.expect(lambda x: first.distribution(x + shift), max(middle, turn), min(first.width, 1.0))


def _normal(mean: float, deviation: float) -> LogSum:
    z = np.linspace(-REACH, REACH, POINTS)
    density = np.exp(-0.5 * z**2) / (math.sqrt(2 * math.pi) * deviation)
    return LogSum(CERTAIN, mean - REACH * deviation, 2 * REACH * deviation / (POINTS - 1), density)


def _repeated(part: LogSum, count: int) -> LogSum:
    """The sum of `count` independent copies, by doubling."""
    found: LogSum | None = None
    while True:
        if count & 1:
            found = part if found is None else _sum(found, part)
        count >>= 1
        if not count:
            assert found is not None
            return found
        part = _sum(part, part)


def _sum(first: LogSum, second: LogSum) -> LogSum:
    low = max(first.low, second.low)
    high = float(np.logaddexp(first.high, second.high))
    for points in (COARSE, COARSE, POINTS):  # looked at coarsely first, to see where it is
        x = np.linspace(low, high, points)
        density = _density_of_sum(first, second, x)
        if points == COARSE:
            seen = np.flatnonzero(density > NEGLIGIBLE * density.max())
            low, high = float(x[max(0, seen[0] - 1)]), float(x[min(points - 1, seen[-1] + 1)])
    return LogSum(CERTAIN, low, float(x[1] - x[0]), density)


def _density_of_sum(first: LogSum, second: LogSum, x: Floats) -> Floats:
    found = np.zeros(len(x))
    for small, large in ((first, second), (second, first)):
        start = np.maximum(x - FAR, small.low)  # of r
        stop = np.minimum(x - math.log(2), small.high)
        length = np.maximum(stop - start, 0.0)
        panel = UNIT_PANEL * min(1.0, small.width, large.width)
        pieces = max(1, math.ceil(float(length.max()) / panel))
        points, weights = gauss_nodes([(0.0, 1.0, 1 / pieces)], 0.0, GAUSS)
        for part in range(0, len(points), 500):
            r = start[:, None] + length[:, None] * points[part : part + 500]
            share = np.exp(np.minimum(r - x[:, None], -math.log(2)))
            value = small.density_at(r) * large.density_at(x[:, None] + np.log1p(-share)) / (1 - share)
            found += (value @ weights[part : part + 500]) * length
        found += small.below(np.minimum(x - FAR, x - math.log(2))) * large.density_at(x)
    return found


def _polynomials(padded: Floats) -> Floats:
    """For each cell the coefficients (8×cells, lowest power first) of the polynomial through the eight points around.

    `padded` has three points more on each side than there are.
    """
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(STENCIL))
    return np.ascontiguousarray((windows @ _THROUGH.T).T)


def share_below(means: Floats, deviations: Floats, chosen: NDArray[np.int64], share: float) -> float:
    """P(Σ_{i∈chosen} αᵢ ≤ share) for independent normal scores; the failure of a head is this at ½."""
    rest = np.ones(len(means), np.bool_)
    rest[chosen] = False
    if not rest.any():
        return float(share >= 1)
    if not 0 < share < 1:
        return float(share >= 1)
    shift = math.log(share / (1 - share))
    others = (means[rest], deviations[rest])
    if len(chosen) == 1 and deviations[chosen[0]] > 0:
        m, s = float(means[chosen[0]]), float(deviations[chosen[0]])
        return log_sum(*others).expect(lambda x: normal_distribution((x + shift - m) / s), m - shift, s)
    return probability_below(log_sum(means[chosen], deviations[chosen]), log_sum(*others), shift)
