"""Attention over noisy keys, drawn: means, standard errors, quantiles and clouds, in bounded memory.

A sample needs the scores, not the keys: for each key one normal vector as long as the rank of its H×H covariance
(case.py), instead of d normal numbers. Two heads on 100 keys of 128 dimensions are 200 numbers a sample, not 12,800; a
key without noise is none. Of samples only sums are kept (to the fourth power for the keys that somebody looks at, which
gives the standard error of a variance), and the first ones whole, for quantiles and pictures.

Samples are drawn in parts that fit the cache, each from a stream of its own that the generator spawns, so the result
does not depend on how many threads draw them. Scores up to 256 are drawn in single precision, larger ones in double:
what rounding does to a weight stays below 1e-5 of it.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.attention.arrays import Floats
from inkling.attention.case import Case
from inkling.errors import UsageError
from inkling.figures import Cell, Column, Table

PART_NUMBERS = 1 << 18  # scores a part, which fit the cache
LEAST_PARTS = 32  # whose means tell the standard error of the output
MOST_KEPT = 1 << 22  # numbers
SINGLE_LIMIT = 256.0
POWERS = 4

Drawn = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    value: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Simulated:
    """Of N samples. `named` are the keys that somebody looks at; arrays over them follow that order."""

    case: Case
    samples: int
    weight_sums: Floats  # H×n
    weight_squares: Floats  # H×n
    named_weight_powers: Floats  # 4×H×named: Σ αᵖ
    coefficient_powers: Floats  # 4×named: Σ cᵖ of the coefficients of the output
    coefficient_sums: Floats  # n: Σ over samples of what each value is multiplied by
    output_spread: Floats  # m: Σ over parts of samples × (mean output of the part)², for the standard error
    parts: int
    failures: NDArray[np.int64]  # H: samples with less than half of the weight on what the head looks at
    all_fail: int  # samples where every head fails
    kept_weights: NDArray[np.float32]  # kept×H×named
    kept_coefficients: NDArray[np.float32]  # kept×named
    kept_leads: NDArray[np.float32]  # kept×H: of a head that looks at two keys, the first one's score less the second's

    @property
    def named(self) -> tuple[int, ...]:
        return self.case.named_keys

    @property
    def mean_weights(self) -> Floats:
        return self.weight_sums / self.samples

    def mean_weight(self, head: int, key: int) -> Estimate:
        if not self.case.score_deviations[head].any():
            return Estimate(float(self.weight_sums[head, key]) / self.samples, 0.0)
        return _mean(self.weight_sums[head, key], self.weight_squares[head, key], self.samples)

    def weight_variance(self, head: int, key: int) -> Estimate:
        return _variance(self.named_weight_powers[:, head, self.named.index(key)], self.samples)

    def mean_coefficient(self, key: int) -> Estimate:
        total, squares, *_ = self.coefficient_powers[:, self.named.index(key)].tolist()
        return _mean(total, squares, self.samples)

    def coefficient_variance(self, key: int) -> Estimate:
        return _variance(self.coefficient_powers[:, self.named.index(key)], self.samples)

    def mean_output(self) -> tuple[Floats, Floats]:
        """The mean output (m) and its standard errors, from how far the means of the parts lie apart."""
        coefficients = self.coefficient_sums / self.samples
        mean = coefficients if self.case.values is None else coefficients @ self.case.values
        spread = np.maximum(self.output_spread - self.samples * mean**2, 0.0)
        return mean, np.sqrt(spread / max(1, self.parts - 1) / self.samples)

    def failure(self, head: int) -> Estimate:
        return share(int(self.failures[head]), self.samples)

    def weight_below(self, head: int, key: int, weight: float) -> Estimate:
        """The share of the kept samples whose weight is at most `weight`."""
        values = self.kept_weights[:, head, self.named.index(key)]
        return share(int((values <= np.float32(weight)).sum()), len(values))

    def quantile(self, head: int, key: int, p: float) -> float:
        return float(np.quantile(self.kept_weights[:, head, self.named.index(key)], p))

    def to_json(self) -> dict[str, Any]:
        return {
            "samples": self.samples,
            "mean_weights": self.mean_weights.tolist(),
            "failures": self.failures.tolist(),
            "mean_output": self.mean_output()[0].tolist(),
        }

    def table(self) -> Table:
        """Mean weights of the keys that somebody looks at, and failures, head by head."""
        columns = (Column("head", "d"), Column("figure"), Column("simulated", ".6f"), Column("standard error", ".1e"))
        rows: list[tuple[Cell, ...]] = []
        for h in range(self.case.heads):
            figures = {f"mean weight on key {key + 1}": self.mean_weight(h, key) for key in self.named}
            figures["failure probability"] = self.failure(h)
            rows += [(h + 1, name, found.value, found.standard_error) for name, found in figures.items()]
        return Table("Attention, simulated", columns, tuple(rows), (f"{self.samples:,} samples.",))

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def simulate(
    case: Case,
    generator: np.random.Generator,
    samples: int,
    *,
    keep: int = 100_000,
    threads: int | None = None,
) -> Simulated:
    """`samples` draws of all keys; the first `keep` of them are kept for quantiles and pictures."""
    if isinstance(samples, bool) or not isinstance(samples, int) or not 1 <= samples <= 10**11:
        raise UsageError(f"The number of samples is {samples!r}; give a whole number from 1 to 100,000,000,000.")
    keep = min(keep, samples, MOST_KEPT // (len(case.named_keys) * case.heads))
    plan = _Plan(case)
    size = max(1, min(samples // LEAST_PARTS, PART_NUMBERS // (case.keys * case.heads)))
    starts = range(0, samples, size)
    named, H = len(case.named_keys), case.heads
    kept_weights, kept_coefficients = np.empty((keep, H, named), np.float32), np.empty((keep, named), np.float32)
    kept_leads = np.empty((keep, H), np.float32)
    total: _Sums | None = None
    threads = threads or cores()
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(starts), 8 * threads):  # a few at a time: memory does not grow with the samples
            group = starts[first : first + 8 * threads]
            seeds = generator.bit_generator.seed_seq.spawn(len(group))  # type: ignore[attr-defined]
            tasks = [
                partial(_part, plan, seed, min(size, samples - start), max(0, min(size, keep - start)))
                for start, seed in zip(group, seeds, strict=True)
            ]
            for start, found in zip(group, pool.map(lambda task: task(), tasks), strict=True):
                kept = len(found.kept_coefficients)
                kept_weights[start : start + kept] = found.kept_weights
                kept_coefficients[start : start + kept] = found.kept_coefficients
                kept_leads[start : start + kept] = found.kept_leads
                total = found if total is None else total.plus(found)
    assert total is not None
    return Simulated(
        case=case,
        samples=samples,
        weight_sums=total.weights,
        weight_squares=total.squares,
        named_weight_powers=total.weight_powers,
        coefficient_powers=total.coefficient_powers,
        coefficient_sums=total.coefficients,
        output_spread=total.output_spread,
        parts=len(starts),
        failures=total.failures,
        all_fail=total.all_fail,
        kept_weights=kept_weights,
        kept_coefficients=kept_coefficients,
        kept_leads=kept_leads,
    )


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class _Sums:
    weights: Floats
    squares: Floats
    weight_powers: Floats
    coefficient_powers: Floats
    coefficients: Floats
    output_spread: Floats
    failures: NDArray[np.int64]
    all_fail: int
    kept_weights: NDArray[np.float32]
    kept_coefficients: NDArray[np.float32]
    kept_leads: NDArray[np.float32]

    def plus(self, other: _Sums) -> _Sums:
        return _Sums(
            self.weights + other.weights,
            self.squares + other.squares,
            self.weight_powers + other.weight_powers,
            self.coefficient_powers + other.coefficient_powers,
            self.coefficients + other.coefficients,
            self.output_spread + other.output_spread,
            self.failures + other.failures,
            self.all_fail + other.all_fail,
            self.kept_weights,
            self.kept_coefficients,
            self.kept_leads,
        )


class _Plan:
    """The case made ready for drawing: which keys are noisy, and how normal numbers become scores."""

    def __init__(self, case: Case) -> None:
        self.case = case
        H = case.heads
        means = case.score_means  # H×n
        deviations = case.score_deviations
        reach = float((np.abs(means) + 6 * deviations).max())
        self.dtype: Any = np.float32 if reach <= SINGLE_LIMIT else np.float64
        # The mean score of a head is no use to a softmax: with the highest taken off, exponentials stay in range.
        self.centre = means.max(axis=1)
        self.means = np.ascontiguousarray((means - self.centre[:, None])[..., None], self.dtype)  # H×n×1
        self.independent = case.heads_are_independent
        self.noisy = [np.flatnonzero(deviations[h]) for h in range(H)]
        if self.independent:
            self.deviations = [np.ascontiguousarray(deviations[h][self.noisy[h], None], self.dtype) for h in range(H)]
        else:
            values, vectors = np.linalg.eigh(case.score_covariances)  # n×H, n×H×H
            factors = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]  # n×H×rank
            largest = values.max(axis=1, initial=0.0)
            # One term for each rank: all keys that have it, and what their normal number adds to each head.
            self.terms = []
            for r in range(H):
                held = np.flatnonzero(values[:, r] > 1e-13 * largest)
                if len(held):
                    self.terms.append((held, np.ascontiguousarray(factors[held, :, r].T[..., None], self.dtype)))
        self.safe = all((6.5 * deviations[h] + means[h] - self.centre[h]).max() < 60 for h in range(H))
        self.mixing = case.mixing.astype(self.dtype)
        self.named = np.array(case.named_keys)

    def scores(self, generator: np.random.Generator, count: int) -> list[Drawn]:
        """For each head n×count scores, less the head's highest mean."""
        H, n = self.case.heads, self.case.keys
        if self.independent:
            found: list[Drawn] = []
            for h in range(H):
                held = self.noisy[h]
                if len(held) == n:
                    score = generator.standard_normal((n, count), dtype=self.dtype)
                    score *= self.deviations[h]
                    score += self.means[h]
                else:
                    score = np.repeat(self.means[h], count, axis=1)
                    if len(held):
                        drawn = generator.standard_normal((len(held), count), dtype=self.dtype)
                        score[held] += drawn * self.deviations[h]
                found.append(score)
            return found
        found = [np.repeat(self.means[h], count, axis=1) for h in range(H)]
        for held, factor in self.terms:
            drawn = generator.standard_normal((len(held), count), dtype=self.dtype)
            for h in range(H):
                found[h][held] += drawn * factor[h]
        return found


def _part(plan: _Plan, seed: np.random.SeedSequence, count: int, keep: int) -> _Sums:
    generator = np.random.Generator(np.random.SFC64(seed))
    case, named = plan.case, plan.named
    H, n = case.heads, case.keys
    sums, squares = np.empty((H, n)), np.empty((H, n))
    named_weights = np.empty((H, len(named), count), plan.dtype)
    failed = np.empty((H, count), np.bool_)
    leads = np.zeros((keep, H), np.float32)
    for h, score in enumerate(plan.scores(generator, count)):
        if len(case.looks[h]) == 2:
            first, second = case.looks[h]
            leads[:, h] = score[first, :keep] - score[second, :keep]
        if not plan.safe:
            score -= score.max(axis=0)
        np.exp(score, out=score)
        # Summed in double precision: a thousand small numbers lose five digits otherwise.
        score *= np.reciprocal(score.sum(axis=0, dtype=np.float64)).astype(plan.dtype)  # now weights, n×count
        sums[h] = score.sum(axis=1)
        squares[h] = np.einsum("ic,ic->i", score, score)
        named_weights[h] = score[named]
        failed[h] = score[list(case.looks[h])].sum(axis=0) < 0.5
    totals = case.mixing @ sums
    means = totals / count if case.values is None else totals / count @ case.values
    coefficients = np.tensordot(plan.mixing, named_weights, 1)
    return _Sums(
        weights=sums,
        squares=squares,
        weight_powers=_powers(named_weights),
        coefficient_powers=_powers(coefficients),
        coefficients=totals,
        output_spread=count * means**2,
        failures=failed.sum(axis=1),
        all_fail=int(failed.all(axis=0).sum()),
        kept_weights=np.moveaxis(named_weights[..., :keep], -1, 0).astype(np.float32),
        kept_coefficients=coefficients[:, :keep].T.astype(np.float32),
        kept_leads=leads,
    )


def _powers(values: Drawn) -> Floats:
    """Σ xᵖ over the last axis, p = 1 … 4, in double precision."""
    x = values.astype(np.float64)
    found, power = [], np.ones_like(x)
    for _ in range(POWERS):
        power = power * x
        found.append(power.sum(axis=-1))
    return np.stack(found)


def _mean(total: float, squares: float, samples: int) -> Estimate:
    mean = total / samples
    return Estimate(float(mean), math.sqrt(max(squares / samples - mean**2, 0.0) / samples))


def _variance(powers: Floats, samples: int) -> Estimate:
    """The variance and its standard error, √((m₄ − m₂²)/N), from sums of powers."""
    m, m2, m3, m4 = powers / samples
    variance = max(m2 - m**2, 0.0)
    fourth = m4 - 4 * m * m3 + 6 * m**2 * m2 - 3 * m**4
    return Estimate(float(variance), math.sqrt(max(fourth - variance**2, 0.0) / samples))


def share(count: int, samples: int) -> Estimate:
    p = count / samples
    return Estimate(p, math.sqrt(p * (1 - p) / samples))


def chosen_keys(scores: Floats, generator: np.random.Generator, samples: int) -> NDArray[np.int64]:
    """How often each key is chosen when keys are drawn by their weights: the highest score plus Gumbel noise wins."""
    counts = np.zeros(len(scores), np.int64)
    at_once = max(1, PART_NUMBERS // len(scores))
    for first in range(0, samples, at_once):
        noise = generator.gumbel(size=(min(at_once, samples - first), len(scores)))
        counts += np.bincount((scores + noise).argmax(axis=1), minlength=len(scores))
    return counts
