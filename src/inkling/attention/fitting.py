"""Which tokens to look at so that one V gives all wishes: the search, and what V is left with.

For a choice of sets L_i let y_i be the mean input of L_i (coefficients over the components). V is fitted to the wishes
w_i by least squares,

    components   V = diag(g)     g_c = Σ_i y_ic w_ic / Σ_i y_ic²          it re-weights components, never makes one
    linear       V = (Y⁺ W)ᵀ                                              any linear map

and the choice with the smallest residual wins, then the one that looks at the fewest tokens. Tokens with equal inputs
ask the same and look at the same. Every choice is tried while there are at most 20,000 of them (5,000 for any linear
map); beyond that one set is changed at a time from several starts, which can stop early.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from inkling.attention.arrays import Floats
from inkling.attention.looking import Looks

Values = Literal["components", "linear"]
Set = tuple[int, ...]
Ints = NDArray[np.int64]

MOST_CHOICES: dict[Values, int] = {"components": 20_000, "linear": 5_000}
KEPT = 400  # choices handed on, best first
STARTS = 8


@dataclass(frozen=True, eq=False)
class Wanted:
    """Wishes of some tokens: what a choice of sets is judged by."""

    inputs: Floats  # T×m
    tokens: Set
    wishes: Floats  # W×m
    squares: Floats  # m, squared lengths of the components
    values: Values

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """For each wishing token the number of its group: tokens with equal inputs are one."""
        rows = [tuple(self.inputs[i].tolist()) for i in self.tokens]
        order = list(dict.fromkeys(rows))
        return tuple(order.index(row) for row in rows)

    @property
    def count(self) -> int:
        return max(self.groups) + 1

    def first(self, group: int) -> int:
        return self.tokens[self.groups.index(group)]

    def means(self, sets: Sequence[Set]) -> Floats:
        return np.array([self.inputs[list(one)].mean(axis=0) for one in sets])

    def value_map(self, looks: Looks) -> Floats:
        """V over the components (m×m) that fits these looks best."""
        y = self.means([looks[i] for i in self.tokens])
        if self.values == "linear":
            return np.asarray((np.linalg.pinv(y, rcond=1e-10) @ self.wishes).T, np.float64)
        return np.diag(_gains(y[None], self.wishes)[0])

    def misfits(self, y: Floats) -> Floats:
        """Root of the squared residual of N choices (y: N×W×m), as a share of the wishes, to nine digits."""
        if self.values == "linear":
            fitted = y @ (np.linalg.pinv(y, rcond=1e-10) @ self.wishes)
        else:
            fitted = _gains(y, self.wishes)[:, None] * y
        squared = ((fitted - self.wishes) ** 2 @ self.squares).sum(axis=1)
        scale = float((self.wishes**2 @ self.squares).sum())
        return np.asarray(np.round(np.sqrt(squared / (scale or 1.0)), 9), np.float64)


def _gains(y: Floats, wishes: Floats) -> Floats:
    """N×m"""
    own = (y**2).sum(axis=1)
    return np.asarray((y * wishes).sum(axis=1) / np.where(own > 0, own, 1.0), np.float64)


def sets_of(tokens: int, wide: bool = True) -> list[Set]:
    """Single tokens; with `wide` pairs and all tokens together too."""
    singles: list[Set] = [(j,) for j in range(tokens)]
    if not wide:
        return singles
    return singles + list(combinations(range(tokens), 2)) + ([tuple(range(tokens))] if tokens > 2 else [])


@dataclass(frozen=True)
class Ranking:
    """Choices of sets, best first; `misfit` is a share of the wishes, `exhaustive` where every choice was tried."""

    choices: tuple[tuple[Set, ...], ...]
    misfits: tuple[float, ...]
    exhaustive: bool


def rank(wanted: Wanted, options: Sequence[Sequence[Set]]) -> Ranking:
    """The best choices of one set for each group of wishing tokens, out of `options`."""
    means = [wanted.means(sets) for sets in options]
    lengths = [np.array([len(one) for one in sets]) for sets in options]
    counts = [len(sets) for sets in options]
    exhaustive = math.prod(counts) <= MOST_CHOICES[wanted.values]
    picks = np.indices(counts).reshape(len(counts), -1).T if exhaustive else _walk(wanted, means, lengths)
    misfits = _judge(wanted, means, picks)
    looked = np.sum([lengths[g][picks[:, g]] for g in wanted.groups], axis=0)
    order = np.lexsort((np.arange(len(picks)), looked, misfits))[:KEPT]
    choices = tuple(tuple(options[g][picks[row, g]] for g in wanted.groups) for row in order)
    return Ranking(choices, tuple(misfits[order].tolist()), exhaustive)


def _judge(wanted: Wanted, means: Sequence[Floats], picks: Ints) -> Floats:
    """Misfits of the rows of `picks`, one option for each group."""
    return wanted.misfits(np.stack([means[g][picks[:, g]] for g in wanted.groups], axis=1))


def _walk(wanted: Wanted, means: Sequence[Floats], lengths: Sequence[Ints]) -> Ints:
    """Change one set at a time while that helps; all choices on the way of all starts."""
    generator = np.random.default_rng(0)
    alone = []
    for g, mean in enumerate(means):
        of = [i for i, group in enumerate(wanted.groups) if group == g]
        lone = replace(wanted, tokens=tuple(wanted.tokens[i] for i in of), wishes=wanted.wishes[of])
        alone.append(int(np.lexsort((lengths[g], lone.misfits(np.stack([mean] * len(of), axis=1))))[0]))
    starts = [np.array(alone)] + [generator.integers([len(mean) for mean in means]) for _ in range(STARTS)]
    seen = dict[tuple[int, ...], None]()
    for start in starts:
        current = start
        for _ in range(20):
            before = current.copy()
            for g, mean in enumerate(means):
                tried = np.repeat(current[None], len(mean), axis=0)
                tried[:, g] = np.arange(len(mean))
                current = tried[int(np.lexsort((lengths[g], _judge(wanted, means, tried)))[0])]
                seen[tuple(current.tolist())] = None
            if (current == before).all():
                break
    return np.array(list(seen))
