"""Writing with a language model, one token at a time, through `begin` and `step` alone.

    p ∝ exp(log-probability / temperature), cut to the `top_k` likeliest and to the smallest set that holds `top_p`

The unknown token has no spelling to write down, so it is never drawn. The same seed writes the
same text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.models.contracts import LanguageModel


@dataclass(frozen=True)
class SamplingConfig:
    temperature: float = 1.0  # 0: always the likeliest
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    tokens: int = 100

    def __post_init__(self) -> None:
        if not (self.temperature >= 0 and self.top_k >= 0 and 0 < self.top_p <= 1 and self.tokens >= 1):
            raise UsageError(
                f"Sampling cannot use temperature {self.temperature:g}, top-k {self.top_k}, top-p {self.top_p:g}, "
                f"tokens {self.tokens}: give temperature and top-k of at least 0, 0 < top-p ≤ 1, tokens of at least 1."
            )


@dataclass(frozen=True)
class SampledToken:
    token: int
    text: bytes  # UTF-8, perhaps part of a character
    nats: float  # under the model itself, before temperature and cuts


def sample(
    model: LanguageModel[Any], config: SamplingConfig, generator: np.random.Generator, prompt: str = ""
) -> Iterator[SampledToken]:
    """Tokens that continue `prompt`, as they are drawn."""
    tokeniser = model.tokeniser
    state, log_probs = model.begin()
    for token in tokeniser.encode([model.chain(prompt)]).ids.tolist() if prompt else ():
        state, log_probs = model.step(state, token)
    for _ in range(config.tokens):
        values = log_probs.to(torch.float64).numpy()
        token = choose(values, config, generator, tokeniser.unknown)
        yield SampledToken(token, tokeniser.piece(token), -float(values[token]))
        state, log_probs = model.step(state, token)


def choose(
    log_probs: NDArray[np.float64], config: SamplingConfig, generator: np.random.Generator, never: int | None = None
) -> int:
    """One token from log-probabilities (V)."""
    scores = log_probs.copy()
    if never is not None:
        scores[never] = -np.inf
    if not np.isfinite(scores.max()):
        raise InklingError("The model gives no probability to any token; train it on more text.")
    if config.temperature == 0:
        return int(scores.argmax())
    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order])]  # what is impossible is not even the last resort of rounding
    if config.top_k:
        order = order[: config.top_k]
    ranked = np.exp((scores[order] - scores[order[0]]) / config.temperature)
    ranked /= ranked.sum()
    if config.top_p < 1:
        kept = int(np.searchsorted(np.cumsum(ranked), config.top_p)) + 1
        order, ranked = order[:kept], ranked[:kept] / ranked[:kept].sum()
    # Inverse of the distribution function, so that one uniform number decides and small changes move little.
    place = int(np.searchsorted(np.cumsum(ranked), generator.random(), side="right"))
    return int(order[min(place, len(order) - 1)])
