"""What can be known of a case without drawing a sample.

    weights at the means        softmax(κ Mq): what noise-free keys give
    E2, a margin m              the wanted scores lie above all others by m  ⟹  their weight is ≥ k/(k + (n−k) e^{−m})
    scores                      N(κ μᵢ·q, κ² qᵀΣᵢq)
    weights                     logistic-normal: softmax of independent normals. Means and variances by quadrature.py
    share of one of two keys    α_a/(α_a+α_b) = σ(s_a − s_b): logit-normal, in closed form, whatever the others do
    failure of a head           P(the weight on what it looks at < ½): Φ where the others are certain, else log_sum.py

The output of several heads: means add up. Variances do too where heads are independent (no key's noise seen by two of
them) or equal; where they share noise, covariances come from two_heads.py, for the keys that somebody looks at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist
from typing import Any

import numpy as np

from inkling.attention.arrays import Floats
from inkling.attention.case import Case
from inkling.attention.head import softmax
from inkling.attention.log_sum import log_sum, probability_below, share_below
from inkling.attention.quadrature import weight_moments
from inkling.attention.two_heads import weight_products
from inkling.figures import Cell, Column, Table

QUANTILES = (0.05, 0.5, 0.95)
HALF = 0.5


@dataclass(frozen=True)
class LogitNormal:
    """The law of σ(Z), Z ~ N(mean, deviation²)."""

    mean: float
    deviation: float

    def logit_quantile(self, p: float) -> float:
        return self.mean + self.deviation * NormalDist().inv_cdf(p)

    def quantile(self, p: float) -> float:
        return logistic(self.logit_quantile(p))

    def below(self, share: float) -> float:
        """P(σ(Z) ≤ share)."""
        if not 0 < share < 1:
            return float(share >= 1)
        logit = math.log(share / (1 - share))
        if not self.deviation:
            return float(self.mean <= logit)
        return NormalDist(self.mean, self.deviation).cdf(logit)


@dataclass(frozen=True, eq=False)
class HeadLaw:
    """What is known of one head. All per key unless said."""

    looks: tuple[int, ...]
    score_means: Floats
    score_deviations: Floats
    weights_at_means: Floats
    mean_weights: Floats
    weight_variances: Floats
    margin: float  # lowest wanted mean score less the highest other one; infinite where all keys are wanted
    bound: float  # the least total weight on the wanted keys, by the margin at the means
    failure_probability: float  # of a weight below one half on the wanted keys
    pair: LogitNormal | None  # where two keys are wanted: the law of the first one's share of both

    def quantile(self, p: float) -> float:
        """Of the weight on the wanted keys together."""
        if not self.score_deviations.any():
            return float(self.weights_at_means[list(self.looks)].sum())
        wanted = np.isin(np.arange(len(self.score_means)), self.looks)
        if wanted.all():
            return 1.0
        first, second = (log_sum(self.score_means[part], self.score_deviations[part]) for part in (wanted, ~wanted))
        low, high = -1.0, 1.0  # of the logit
        while probability_below(first, second, low) > p and low > -1e12:
            low *= 2
        while probability_below(first, second, high) < p and high < 1e12:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if probability_below(first, second, middle) < p else (low, middle)
        return logistic((low + high) / 2)


@dataclass(frozen=True, eq=False)
class Exact:
    case: Case
    heads: tuple[HeadLaw, ...]
    mean_coefficients: Floats  # n: what each value is multiplied by in the output, on average
    coefficient_variances: Floats  # n; NaN where heads share noise and nobody looks at the key
    mean_output: Floats  # m

    def to_json(self) -> dict[str, Any]:
        return {
            "mean_coefficients": self.mean_coefficients.tolist(),
            "coefficient_variances": self.coefficient_variances.tolist(),
            "heads": [
                {
                    "looks": list(law.looks),
                    "weights_at_means": law.weights_at_means.tolist(),
                    "mean_weights": law.mean_weights.tolist(),
                    "weight_variances": law.weight_variances.tolist(),
                    "margin": law.margin,
                    "bound": law.bound,
                    "failure_probability": law.failure_probability,
                }
                for law in self.heads
            ],
        }

    def table(self) -> Table:
        """Head by head, of the keys that it looks at together."""
        columns = (
            Column("head", "d"),
            Column("looks at key", note="numbered from 1"),
            Column("margin", ".4g", note="lowest wanted mean score less the highest other one"),
            Column("weight at least", ".6f", note="by the margin, for keys at their means"),
            Column("weight at the means", ".6f"),
            Column("mean weight", ".6f"),
            Column("failure probability", ".6f", note="less than half of the weight on what it looks at"),
        )
        rows: list[tuple[Cell, ...]] = []
        for number, law in enumerate(self.heads, start=1):
            looks = list(law.looks)
            names = " and ".join(str(key + 1) for key in looks)
            weights = (float(each[looks].sum()) for each in (law.weights_at_means, law.mean_weights))
            rows.append((number, names, law.margin, law.bound, *weights, law.failure_probability))
        return Table("Attention, exactly", columns, tuple(rows))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def exact(case: Case, solve: bool = True, on_integral: Callable[[], None] = lambda: None) -> Exact:
    """All that is known; without `solve` only what needs no integral, and NaN for the rest. `on_integral` is called
    after those of each head."""
    laws = []
    for h in range(case.heads):
        laws.append(_head(case, h, solve))
        on_integral()
    mixing = case.mixing
    means = mixing @ np.stack([law.mean_weights for law in laws])
    if case.heads_are_equal:
        variances = mixing.sum() ** 2 * laws[0].weight_variances
    elif case.heads_are_independent or not solve:
        variances = mixing**2 @ np.stack([law.weight_variances for law in laws])
    else:
        variances = _correlated(case, laws)
    output = means if case.values is None else means @ case.values
    return Exact(case, tuple(laws), means, variances, output)


def _correlated(case: Case, laws: Sequence[HeadLaw]) -> Floats:
    """Variances of the coefficients where heads share noise: of the keys that are looked at, NaN for the others."""
    keys, mixing = list(case.named_keys), case.mixing
    found = np.full(case.keys, math.nan)
    found[keys] = mixing**2 @ np.stack([law.weight_variances[keys] for law in laws])
    for g, h in combinations(range(case.heads), 2):
        pair = [g, h]
        products = weight_products(case.score_means[pair], case.score_covariances[:, pair][:, :, pair], keys)
        covariances = products - laws[g].mean_weights[keys] * laws[h].mean_weights[keys]
        found[keys] += 2 * mixing[g] * mixing[h] * covariances
    return found


def _head(case: Case, h: int, solve: bool) -> HeadLaw:
    m, s, looks = case.score_means[h], case.score_deviations[h], case.looks[h]
    wanted = np.zeros(case.keys, np.bool_)
    wanted[list(looks)] = True
    k, n = len(looks), case.keys
    margin = float(m[wanted].min() - m[~wanted].max()) if k < n else math.inf
    unknown = np.full(n, math.nan)
    means, variances, failure = unknown, unknown, math.nan
    if solve:
        moments = weight_moments(m, s)
        means, variances = moments.means, moments.variances
        failure = share_below(m, s, np.array(looks), HALF)
    pair = None
    if k == 2:
        a, b = looks
        pair = LogitNormal(float(m[a] - m[b]), math.hypot(s[a], s[b]))
    return HeadLaw(
        looks=looks,
        score_means=m,
        score_deviations=s,
        weights_at_means=softmax(m),
        mean_weights=means,
        weight_variances=variances,
        margin=margin,
        bound=margin_bound(n, margin, k),
        failure_probability=failure,
        pair=pair,
    )


def margin_bound(keys: int, margin: float, wanted: int = 1) -> float:
    """The least weight on k wanted keys whose scores lie above all others by `margin`: k/(k + (n−k) e^{−m})."""
    if margin < -700:  # e^700 is as large as numbers get, and 0 is a bound too
        return 0.0 if wanted < keys else 1.0
    return wanted / (wanted + (keys - wanted) * math.exp(-min(margin, 700.0)))


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(max(x, -700.0)) / (1 + math.exp(max(x, -700.0)))


def failure_formula(keys: int, beta: float, noise: float) -> float:
    """E7, α vanishing: P(γβ < ln(n−1)) with γ ~ N(1, noise), which is Φ((ln(n−1)/β − 1)/√noise) where β > 0."""
    if keys == 1:
        return 0.0
    needed = math.log(keys - 1)
    if not noise or not beta:
        return float(beta < needed)
    below = NormalDist(1.0, math.sqrt(noise)).cdf(needed / beta)
    return below if beta > 0 else 1 - below
