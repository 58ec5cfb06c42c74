"""Which token comes next, from log-probabilities ln p: the rules of sampling, for one text or for many side by side.

In this order:

    1  the unknown token, which has no spelling to write down, is ruled out
    2  repetition penalty r    ln p − ln r for each token among the last `penalty_window`, prompt included
    3  temperature T           p ∝ exp(ln p / T); at T = 0 the likeliest is taken, and nothing is drawn
    4  top-k                   the k likeliest are kept
    5  min-p                   of these, those with p ≥ min-p × the largest p
    6  top-p                   of these, the fewest that hold this share of what is left

and one uniform number picks among the rest, in the order of their probability. Tokens of equal probability rank by
their ids. The penalty divides a probability by r, so unlike the division of raw scores (Keskar et al. 2019) it does not
depend on where a model puts the zero of its logits. Top-p: Holtzman et al. 2020; min-p: Nguyen et al. 2024.

Rows of a small vocabulary are ranked all together. Of a large one, ranking everything would take longer than the model:
only the likeliest are ranked, and more of them where the uniform number or a cut lies beyond. A row's choice does not
depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WIDE = 1024  # tokens of a vocabulary, above which not all are ranked
RANKED_FIRST, RANKED_MORE = 128, 8  # of those; and how many times as many the next time
NO_CHANCE = "The model gives no probability to any token; train it on more text."


@dataclass(frozen=True)
class SamplingConfig:
    temperature: float = 1.0  # 0: always the likeliest
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    tokens: int = 100
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    penalty_window: int = 64
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        allowed = (
            (self.temperature >= 0, f"temperature {self.temperature:g}: give at least 0"),
            (self.top_k >= 0, f"top-k {self.top_k}: give at least 0"),
            (0 < self.top_p <= 1, f"top-p {self.top_p:g}: give 0 < top-p ≤ 1"),
            (0 <= self.min_p <= 1, f"min-p {self.min_p:g}: give 0 ≤ min-p ≤ 1"),
            (
                1 <= self.repetition_penalty < float("inf"),
                f"repetition penalty {self.repetition_penalty:g}: give at least 1, which is none",
            ),
            (self.penalty_window >= 1, f"penalty window {self.penalty_window}: give at least 1"),
            (self.tokens >= 1, f"tokens {self.tokens}: give at least 1"),
            (all(self.stop), "an empty stop string: give at least one character"),
        )
        for fits, sentence in allowed:
            if not fits:
                raise UsageError(f"Sampling cannot use {sentence}.")
        try:
            "".join(self.stop).encode()
        except UnicodeEncodeError as error:
            raise UsageError("Sampling cannot use a stop string that is not UTF-8: give whole characters.") from error


def choose(
    log_probs: Floats,
    config: SamplingConfig,
    generator: np.random.Generator,
    never: int | None = None,
    recent: Sequence[int] = (),
) -> int:
    """One token from log-probabilities (V), after the tokens `recent`."""
    token = int(Chooser([config], [generator], never).choose(log_probs[None], [recent])[0])
    if token < 0:
        raise InklingError(NO_CHANCE)
    return token


class Chooser:
    """Chooses for B texts at once, each by its own rules and with its own generator."""

    def __init__(
        self, configs: Sequence[SamplingConfig], generators: Sequence[np.random.Generator], never: int | None = None
    ) -> None:
        self.never, self.penalties = never, [config.repetition_penalty for config in configs]
        self.windows = [config.penalty_window for config in configs]
        self.penalised = [row for row, penalty in enumerate(self.penalties) if penalty > 1]
        self.drawn = np.array([row for row, config in enumerate(configs) if config.temperature > 0], np.int64)
        drawn = [configs[row] for row in self.drawn]
        self.generators = [generators[row] for row in self.drawn]
        self.temperature = np.array([config.temperature for config in drawn])[:, None]
        self.top_k = np.array([config.top_k or np.iinfo(np.int64).max for config in drawn], np.int64)
        self.min_p = np.array([config.min_p for config in drawn])[:, None]
        self.top_p = np.array([config.top_p for config in drawn])[:, None]
        self.is_cut = bool((self.top_p < 1).any())

    def choose(self, log_probs: Floats, recent: Sequence[Sequence[int]]) -> Ints:
        """A token for each row (B×V), after the tokens `recent` of each; −1 where no token has any probability."""
        scores = log_probs.copy()
        if self.never is not None:
            scores[:, self.never] = -np.inf
        for row in self.penalised:
            if len(recent[row]):
                scores[row, np.unique(np.asarray(recent[row][-self.windows[row] :], np.int64))] -= log(
                    self.penalties[row]
                )
        chosen: Ints = scores.argmax(axis=1)
        possible = np.isfinite(scores[np.arange(len(scores)), chosen])
        if len(self.drawn):
            uniform = np.array([generator.random() for generator in self.generators])
            if not possible.all():
                scores[~possible] = 0.0  # so that the sums below have something to divide
            way = self._draw if scores.shape[1] <= WIDE else self._draw_wide
            chosen[self.drawn] = way(scores if len(self.drawn) == len(scores) else scores[self.drawn], uniform)
        chosen[~possible] = -1
        return chosen

    def _draw(self, scores: Floats, uniform: Floats) -> Ints:
        order = np.argsort(-scores, axis=1, kind="stable")
        ranked = np.take_along_axis(scores, order, axis=1)
        kept = np.isfinite(ranked)  # what is impossible is not even the last resort of rounding
        weights = _weights(ranked, ranked[:, :1], self.temperature)
        kept &= np.arange(scores.shape[1]) < self.top_k[:, None]
        kept &= weights >= self.min_p
        shares = np.cumsum(weights * kept, axis=1)
        shares /= shares[:, -1:]
        places = _pick(shares, kept.sum(axis=1), self.top_p, uniform, self.is_cut)
        found: Ints = order[np.arange(len(order)), places]
        return found

    def _draw_wide(self, scores: Floats, uniform: Floats) -> Ints:
        return np.array([self._draw_one(i, row, uniform[i]) for i, row in enumerate(scores)], np.int64)

    def _draw_one(self, i: int, scores: Floats, uniform: float) -> int:
        """The same for one row of many tokens."""
        top_k, min_p, top_p = int(self.top_k[i]), float(self.min_p[i, 0]), float(self.top_p[i, 0])
        weights = _weights(scores, scores.max(), self.temperature[i])
        count = top_k if top_k < len(scores) else RANKED_FIRST
        while True:
            if count < len(scores):
                least = np.partition(scores, len(scores) - count)[len(scores) - count]
                likely = np.flatnonzero(scores >= least)  # with all that are as likely as the last
            else:
                likely = np.arange(len(scores))
            likely = likely[np.isfinite(scores[likely])]
            order = likely[np.argsort(-scores[likely], kind="stable")][:top_k]
            ranked = weights[order]
            kept = int(np.count_nonzero(ranked >= min_p))
            complete = kept < len(order) or len(order) == top_k or count >= len(scores)
            shares = np.cumsum(ranked[:kept])
            # All there is, unless a cut ends before it; not a number where it is not known yet where min-p cuts.
            shares /= shares[-1] if complete else weights.sum() if min_p == 0 else np.nan
            if complete or shares[-1] > max(uniform, top_p if top_p < 1 else 0.0):
                place = _pick(shares[None], np.array([kept]), np.array([[top_p]]), np.array([uniform]), top_p < 1)
                return int(order[place[0]])
            count *= RANKED_MORE


def _weights(scores: Floats, most: Floats | float, temperature: Floats) -> Floats:
    """Probabilities after temperature, as shares of the largest."""
    # At a temperature of almost nothing all but the likeliest have no chance; at an endless one −∞ has none either.
    with np.errstate(over="ignore", invalid="ignore"):
        found: Floats = np.exp((scores - most) / temperature)
    return np.nan_to_num(found, copy=False) if np.isinf(temperature).any() else found


def _pick(shares: Floats, kept: Ints, top_p: Floats, uniform: Floats, is_cut: bool) -> Ints:
    """The place that a uniform number points at in each row of cumulated shares, of which the first `kept` count.

    It is the inverse of the distribution function, so that small changes move little.
    """
    if is_cut:
        fewest = 1 + np.count_nonzero(shares < top_p, axis=1)
        kept = np.minimum(kept, np.where(top_p[:, 0] < 1, fewest, kept))
        uniform = uniform * np.where(top_p[:, 0] < 1, shares[np.arange(len(shares)), kept - 1], 1.0)
    places: Ints = np.minimum(np.count_nonzero(shares <= uniform[:, None], axis=1), kept - 1)
    return places
