"""What knows nothing: every token equally likely.

    p(w) = 1 / V           log₂ V bits per token; over the 256 bytes exactly 8 bits per byte, whatever the text

A unigram model is `ngram.py` with order 1. Left out: uniform over characters (there is no last character).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from inkling.models.contracts import Scores, Speller, assemble_scores, log_probs_tensor
from inkling.text.normalise import Chain
from inkling.text.tokens import Tokeniser


@dataclass(frozen=True)
class Uniform:
    """A LanguageModel without parameters; a tokeniser with unknown pieces needs a speller to charge them."""

    tokeniser: Tokeniser
    chain: Chain = Chain()  # noqa: RUF009 (frozen)
    speller: Speller | None = None

    @property
    def context(self) -> str:
        return "nothing"

    def begin(self) -> tuple[None, Tensor]:
        size = self.tokeniser.size
        return None, log_probs_tensor(np.full(size, -math.log(size)))

    def step(self, state: None, token: int) -> tuple[None, Tensor]:
        return self.begin()

    def step_many(self, states: Sequence[None], tokens: Sequence[int]) -> tuple[list[None], Tensor]:
        size = self.tokeniser.size
        return [None] * len(tokens), log_probs_tensor(np.full((len(tokens), size), -math.log(size)))

    def score(self, texts: Sequence[str]) -> Scores:
        encodings = self.tokeniser.encode([self.chain(text) for text in texts] if self.chain.names else texts)
        nats = np.full(len(encodings.ids), math.log(self.tokeniser.size))
        return assemble_scores(texts, encodings, nats, self.tokeniser, self.speller)
