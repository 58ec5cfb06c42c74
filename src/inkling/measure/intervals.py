"""Intervals by resampling, for ratios of sums.

Neighbouring tokens resemble each other, so tokens are not drawn one by one: a text is cut into blocks, and blocks are
drawn with replacement. Each draw sums numerators and denominators and divides once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Interval:
    """An estimate with the interval that holds it at `level`; NaN where there is too little to say."""

    value: float
    low: float
    high: float
    level: float = 0.95


def bootstrap_ratio(
    numerators: NDArray[np.float64],
    denominators: NDArray[np.float64],
    generator: np.random.Generator,
    resamples: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Σ numerators / Σ denominators over blocks, with its percentile interval. Empty blocks say nothing."""
    full = (numerators != 0) | (denominators != 0)
    numerators, denominators = numerators[full], denominators[full]
    whole = float(denominators.sum())
    value = float(numerators.sum()) / whole if whole else float("nan")
    blocks = len(numerators)
    if blocks < 2:
        return Interval(value, float("nan"), float("nan"), level)
    ratios = np.empty(resamples)
    at_once = max(1, min(resamples, 4_000_000 // blocks))
    for start in range(0, resamples, at_once):
        drawn = generator.integers(0, blocks, (min(at_once, resamples - start), blocks))
        ratios[start : start + len(drawn)] = numerators[drawn].sum(axis=1) / denominators[drawn].sum(axis=1)
    low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high), level)
