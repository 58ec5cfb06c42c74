"""What a text cost, as sums: divide once, at the end, and never average averages.

    perplexity      e^(nats/tokens) = 2^(bits/tokens)           bits = nats / ln 2
    bits per byte   (token nats + spelling nats) / ln 2 / bytes of the original text

Per-token figures of models with different tokens are not comparable, and a model that calls a word unknown has not
predicted it. Bits per byte charges every byte of the text, unknown words letter by letter: it alone ranks models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from inkling.models.contracts import Scores

LN2 = math.log(2.0)


@dataclass(frozen=True)
class Tally:
    """Additive. `nats` are of the tokens, `spelling_nats` of what stands behind unknown tokens."""

    nats: float = 0.0
    spelling_nats: float = 0.0
    tokens: int = 0
    unknown: int = 0
    words: int = 0
    chars: int = 0
    bytes: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.nats + other.nats,
            self.spelling_nats + other.spelling_nats,
            self.tokens + other.tokens,
            self.unknown + other.unknown,
            self.words + other.words,
            self.chars + other.chars,
            self.bytes + other.bytes,
        )

    @property
    def total_nats(self) -> float:
        return self.nats + self.spelling_nats

    def perplexity(self, per: str = "token", base: float = math.e) -> float:
        """`base` ** (mean cost in that base): the base makes no difference. Per word, character or byte the spelling
        of unknown words is charged; per token it is forgiven, as is the custom, and not comparable between models."""
        nats, count = (self.nats, self.tokens) if per == "token" else (self.total_nats, self._count(per))
        if not count:
            return math.nan
        exponent = nats / math.log(base) / count
        try:
            return float(base**exponent)
        except OverflowError:
            return math.inf

    def bits(self, per: str = "byte") -> float:
        """Bits per byte, character or word (spelling charged), or per token (spelling forgiven)."""
        nats, count = (self.nats, self.tokens) if per == "token" else (self.total_nats, self._count(per))
        return nats / LN2 / count if count else math.nan

    @property
    def unknown_share(self) -> float:
        return self.unknown / self.tokens if self.tokens else math.nan

    def _count(self, per: str) -> int:
        return {"token": self.tokens, "word": self.words, "char": self.chars, "byte": self.bytes}[per]


def tally(scores: Scores) -> Tally:
    return Tally(
        nats=math.fsum(scores.nats),
        spelling_nats=math.fsum(scores.spelling_nats),
        tokens=len(scores.ids),
        unknown=int(scores.unknown.sum()),
        words=int(scores.words.sum()),
        chars=int(scores.chars.sum()),
        bytes=int(scores.bytes.sum()),
    )


def total(tallies: Iterable[Tally]) -> Tally:
    return sum(tallies, Tally())
