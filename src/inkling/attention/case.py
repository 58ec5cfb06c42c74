"""One description of attention over noisy keys, from which the exact, the integrated and the simulated start.

    kᵢ ~ N(μᵢ, Σᵢ)  independent       Σᵢ = αᵢ I + ωᵢ μᵢμᵢᵀ + Eᵢ        (in every direction, along its own mean, any)
    s_hi = κ kᵢ·q_h                    κ = 1, or 1/√d as in a transformer
    α_h = softmax(s_h)      c_h = Σᵢ α_hi vᵢ      c = Σ_h w_h c_h

Only scores enter the weights, and scores are projections of keys on H queries. So all that n keys of d dimensions have
to say is n means of H numbers and n covariances of H×H: the sufficient statistics below. A key that has d − H more
dimensions of noise need not be drawn in them.

    E[s_hi] = κ μᵢ·q_h       Cov[s_hi, s_gi] = κ² q_hᵀ Σᵢ q_g       different keys are independent
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from inkling.attention.arrays import Floats, real_array, real_number
from inkling.errors import UsageError

LARGEST = 1e8  # of any number in a case: beyond, differences of scores have no digits left
LARGEST_SCORE = 1e10
MOST_KEYS = 100_000
MOST_NUMBERS = 50_000_000  # in the matrix of key means
TOLERANCE = 1e-9  # of symmetry and of eigenvalues, relative


@dataclass(frozen=True, eq=False)
class Case:
    """`looks[h]` are the keys that head h is meant to look at; figures are about these."""

    means: Floats  # n×d
    queries: Floats  # H×d, with β in them
    values: Floats | None = None  # n×m; None: the output is the weights themselves (orthonormal values)
    alpha: Floats = field(default_factory=lambda: np.zeros(1))  # n, or 1 for all: variance in every direction
    noise: Floats = field(default_factory=lambda: np.zeros(1))  # n, or 1 for all: ω, variance along the own mean
    extra: Mapping[int, Floats] = field(default_factory=dict)  # key → d×d, added to its covariance
    combination: Floats | None = None  # H; None: the mean of the heads
    scaled: bool = False  # scores are divided by √d
    looks: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        means, queries = (
            _numbers(self.means, "The matrix of key means"),
            _numbers(self.queries, "The matrix of queries"),
        )
        n, d = means.shape
        if queries.shape[1] != d:
            raise UsageError(
                f"Queries have {queries.shape[1]} dimensions and keys {d}; give both the same number of dimensions."
            )
        values = None
        if self.values is not None:
            values = _numbers(self.values, "The matrix of values")
            if len(values) != n:
                raise UsageError(f"There are {n} keys and {len(values)} values; give one value for each key.")
        alpha, noise = (_variances(name, getattr(self, name), n) for name in ("alpha", "noise"))
        combination = np.full(len(queries), 1 / len(queries))
        if self.combination is not None:
            combination = _numbers(self.combination, "The combination of heads", 1)
            if combination.shape != (len(queries),):
                raise UsageError(f"There are {len(queries)} heads; give as many weights to combine them.")
        extra = {index: _covariance(index, value, n, d) for index, value in self.extra.items()}
        looks = tuple(tuple(keys) for keys in self.looks)
        if not looks:
            looks = tuple((int(i),) for i in (queries @ means.T).argmax(axis=1))
        if len(looks) != len(queries):
            raise UsageError(f"There are {len(queries)} heads and {len(looks)} sets of keys; name one set for each.")
        for keys in looks:
            check_keys(keys, n)
        found = {"means": means, "queries": queries, "values": values, "alpha": alpha, "noise": noise}
        for name, value in {**found, "combination": combination, "extra": extra, "looks": looks}.items():
            object.__setattr__(self, name, value)
        highest = float((np.abs(self.score_means) + 10 * self.score_deviations).max())
        if highest > LARGEST_SCORE:
            raise UsageError(
                f"Scores reach {highest:.1e}, and beyond {LARGEST_SCORE:g} their differences have no digits left; give "
                "a smaller β, smaller keys or less noise."
            )

    @property
    def keys(self) -> int:
        return len(self.means)

    @property
    def dimension(self) -> int:
        return int(self.means.shape[1])

    @property
    def heads(self) -> int:
        return len(self.queries)

    @property
    def scale(self) -> float:
        return 1 / math.sqrt(self.dimension) if self.scaled else 1.0

    @property
    def mixing(self) -> Floats:
        """The weight of each head in the output (H)."""
        assert self.combination is not None
        return self.combination

    @cached_property
    def score_means(self) -> Floats:
        """H×n."""
        return np.asarray(self.scale * (self.queries @ self.means.T))

    @cached_property
    def score_covariances(self) -> Floats:
        """n×H×H: of the scores that one key has with all heads."""
        gram = self.queries @ self.queries.T
        along = self.queries @ self.means.T  # H×n
        found = self.alpha[:, None, None] * gram + self.noise[:, None, None] * np.einsum("hi,gi->ihg", along, along)
        for index, covariance in self.extra.items():
            found[index] += self.queries @ covariance @ self.queries.T
        return np.asarray(found * self.scale**2)

    @cached_property
    def score_deviations(self) -> Floats:
        """H×n: standard deviations."""
        return np.asarray(np.sqrt(np.maximum(np.einsum("ihh->hi", self.score_covariances), 0.0)))

    @property
    def heads_are_independent(self) -> bool:
        """Whether no key's noise is seen by two heads at once."""
        C = self.score_covariances
        size = np.einsum("ihh->ih", C)
        allowed = 1e-12 * np.sqrt(size[:, :, None] * size[:, None, :])
        off = np.abs(C) > allowed
        off[:, range(self.heads), range(self.heads)] = False
        return not off.any()

    @property
    def heads_are_equal(self) -> bool:
        return bool((self.queries == self.queries[0]).all())

    @property
    def named_keys(self) -> tuple[int, ...]:
        """The keys that some head looks at, in order of first mention."""
        return tuple(dict.fromkeys(key for keys in self.looks for key in keys))

    def permuted(self, order: Sequence[int]) -> Case:
        """The same case with key `order[i]` in place i."""
        place = {old: new for new, old in enumerate(order)}
        return Case(
            self.means[list(order)],
            self.queries,
            None if self.values is None else self.values[list(order)],
            self.alpha[list(order)],
            self.noise[list(order)],
            {place[index]: value for index, value in self.extra.items()},
            self.combination,
            self.scaled,
            tuple(tuple(place[key] for key in keys) for keys in self.looks),
        )


def orthonormal(keys: int, dimension: int | None = None) -> Floats:
    """n key means that are the first n unit vectors; which orthonormal ones they are changes no score."""
    dimension = keys if dimension is None else dimension
    _sizes(keys, dimension)
    if dimension < keys:
        raise UsageError(
            f"{keys} orthonormal keys need {keys} dimensions and there are {dimension}; give more dimensions, fewer "
            "keys, or a coherence above 0."
        )
    return np.eye(keys, dimension)


def coherent(keys: int, dimension: int, coherence: float, generator: np.random.Generator) -> Floats:
    """n random unit vectors whose largest |cosine| is `coherence`.

    Drawn at random, then moved along a line to the nearest orthonormal set (when less is wanted and there is room) or
    towards a common direction (when more is), until the largest cosine is the one asked for.
    """
    _sizes(keys, dimension)
    if not 0 <= real_number(coherence, "The coherence") < 1:
        raise UsageError(f"The coherence is {coherence}; give a number from 0 up to, but not including, 1.")
    if keys == 1:
        return _unit(generator.normal(size=(1, dimension)))
    drawn = _unit(generator.normal(size=(keys, dimension)))
    common = _unit(generator.normal(size=(1, dimension)))
    least = drawn
    if dimension >= keys:
        left, _, right = np.linalg.svd(drawn, full_matrices=False)
        least = left @ right
    if coherence < _coherence(least) - 1e-12:
        if dimension < keys:
            raise UsageError(
                f"The coherence is {coherence:g}, but {keys} random keys in {dimension} dimensions have "
                f"{_coherence(least):.3g}; give more dimensions, fewer keys, or a higher coherence."
            )
        return least
    start, end = (least, drawn) if coherence <= _coherence(drawn) else (drawn, np.broadcast_to(common, drawn.shape))
    low, high = 0.0, 1.0  # coherence at `low` is at most the one wanted
    for _ in range(60):  # a double has no more digits
        middle = (low + high) / 2
        if _coherence(_unit((1 - middle) * start + middle * end)) <= coherence:
            low = middle
        else:
            high = middle
    return _unit((1 - low) * start + low * end)


def build(
    keys: int,
    beta: float,
    looks: Sequence[Sequence[int]],
    *,
    dimension: int | None = None,
    alpha: float = 0.0,
    noise: float = 0.0,
    scaled: bool = False,
    coherence: float = 0.0,
    generator: np.random.Generator | None = None,
    values: Floats | None = None,
) -> Case:
    """Heads with queries q_h = β Σ μ_i over the keys that head h looks at; `noise` is of the first key looked at."""
    if abs(real_number(beta, "β")) > LARGEST:
        raise UsageError(f"β is {beta:g}; give a number whose size is at most {LARGEST:g}.")
    for name, variance in (("alpha", alpha), ("noise", noise)):
        real_number(variance, f"The variance {name}", least=0)
    if not len(looks):
        raise UsageError("There are 0 heads; name the keys that at least one head looks at.")
    if dimension is None:
        _sizes(keys, 1)
        dimension = keys
    if coherence:
        means = coherent(keys, dimension, coherence, generator or np.random.default_rng(0))
    else:
        means = orthonormal(keys, dimension)
    for chosen in looks:
        check_keys(chosen, keys)
    queries = np.stack([beta * means[list(chosen)].sum(axis=0) for chosen in looks])
    along = np.zeros(keys)
    along[looks[0][0]] = noise
    return Case(
        means=means,
        queries=queries,
        values=values,
        alpha=np.full(keys, alpha),
        noise=along,
        scaled=scaled,
        looks=tuple(tuple(chosen) for chosen in looks),
    )


def check_keys(chosen: Sequence[int], keys: int) -> None:
    """Refuses keys that are not there or are named twice. Messages count from 1, as people do."""
    if not len(chosen):
        raise UsageError("A head is told to look at no key; name at least one.")
    for key in chosen:
        if not _whole(key):
            raise UsageError(f"Key {key!r} is named, which is not a whole number; give numbers from 1 to {keys}.")
        if not 0 <= key < keys:
            raise UsageError(f"Key {key + 1} is named and there are {keys}; give numbers from 1 to {keys}.")
    if len(set(chosen)) < len(chosen):
        twice = next(key for key in chosen if list(chosen).count(key) > 1)
        raise UsageError(f"Key {twice + 1} is named twice; a and b must be two different keys.")


def _sizes(keys: int, dimension: int) -> None:
    if not _whole(keys) or not 1 <= keys <= MOST_KEYS:
        raise UsageError(f"The number of keys is {keys!r}; give a whole number from 1 to {MOST_KEYS:,}.")
    if not _whole(dimension) or dimension < 1:
        raise UsageError(f"The number of dimensions is {dimension!r}; give a whole number of at least 1.")
    if keys * dimension > MOST_NUMBERS:
        raise UsageError(
            f"{keys} keys of {dimension} dimensions are {keys * dimension:,} numbers, and {MOST_NUMBERS:,} is the "
            "most; give fewer keys or fewer dimensions."
        )


def _whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _numbers(value: Any, what: str, dimensions: int = 2) -> Floats:
    return real_array(value, what, dimensions, LARGEST)


def _variances(name: str, value: Any, n: int) -> Floats:
    found = _numbers(np.atleast_1d(np.asarray(value)), f"The list of variances ({name})", 1)
    if (found < 0).any():
        raise UsageError(f"A variance ({name}) is {found.min():g}; give 0 or more.")
    if len(found) not in (1, n):
        raise UsageError(f"There are {n} keys and {found.size} variances ({name}); give one for all, or one for each.")
    return np.broadcast_to(found, (n,)).copy()


def _covariance(index: int, value: Any, n: int, d: int) -> Floats:
    check_keys((index,), n)
    found = _numbers(value, f"The covariance of key {index + 1}")
    if found.shape != (d, d):
        rows, columns = found.shape
        raise UsageError(f"The covariance of key {index + 1} is {rows}×{columns}; give {d}×{d}.")
    size = np.abs(found).max()
    if np.abs(found - found.T).max() > TOLERANCE * size:
        raise UsageError(f"The covariance of key {index + 1} is not symmetric; give (C + Cᵀ)/2.")
    found = (found + found.T) / 2
    values, vectors = np.linalg.eigh(found)
    if values[0] < -TOLERANCE * size:
        raise UsageError(
            f"The covariance of key {index + 1} is not positive semidefinite (an eigenvalue is {values[0]:.3g}); a "
            "variance cannot be negative in any direction."
        )
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _coherence(vectors: Floats) -> float:
    cosines = np.abs(vectors @ vectors.T)
    np.fill_diagonal(cosines, 0.0)
    return float(cosines.max())
