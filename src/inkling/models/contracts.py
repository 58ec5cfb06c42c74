"""What every model promises, so that measuring, sampling and serving need to know only this page.

    LanguageModel   begin/step: next-token log-probabilities; score: what each token of a text costs, in nats
    Classifier      log_probs: the logarithm of the probability of each label
    Attentive       look: what the attention heads do on given tokens, also after a `Touch`

`score` charges every byte of every text exactly once: a token that the tokeniser cannot name costs its unknown id plus
its spelling, letter by letter, so no vocabulary wins by being small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, overload, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import InklingError
from inkling.text.normalise import Chain
from inkling.text.pieces import count_words
from inkling.text.tokens import Encodings, Tokeniser

State = TypeVar("State")


@dataclass(frozen=True)
class TokenScores:
    """What each token of one text costs. `byte_ends[i]` is where token i ends in the (normalised) text's UTF-8."""

    ids: NDArray[np.int32]
    nats: NDArray[np.float64]  # of the token
    spelling_nats: NDArray[np.float64]  # of its spelling; zero but for unknown tokens
    unknown: NDArray[np.bool_]
    byte_ends: NDArray[np.int64]
    words: int  # of the original text, before normalisation: runs between white space
    chars: int
    bytes: int


@dataclass(frozen=True)
class Scores(Sequence[TokenScores]):
    """The scores of several texts, laid end to end; `scores[i]` is a view of one text."""

    ids: NDArray[np.int32]  # N
    nats: NDArray[np.float64]  # N
    spelling_nats: NDArray[np.float64]  # N
    unknown: NDArray[np.bool_]  # N
    byte_lengths: NDArray[np.int64]  # N, of the normalised text
    offsets: NDArray[np.int64]  # texts + 1
    words: NDArray[np.int64]  # texts
    chars: NDArray[np.int64]  # texts
    bytes: NDArray[np.int64]  # texts

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> TokenScores: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TokenScores]: ...
    def __getitem__(self, index: int | slice) -> TokenScores | Sequence[TokenScores]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        span = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        return TokenScores(
            ids=self.ids[span],
            nats=self.nats[span],
            spelling_nats=self.spelling_nats[span],
            unknown=self.unknown[span],
            byte_ends=np.cumsum(self.byte_lengths[span]),
            words=int(self.words[index]),
            chars=int(self.chars[index]),
            bytes=int(self.bytes[index]),
        )

    def __iter__(self) -> Iterator[TokenScores]:
        return (self[i] for i in range(len(self)))

    def per_text(self, values: NDArray[np.float64] | NDArray[np.bool_]) -> NDArray[np.float64]:
        """Sum of `values` (one a token) over each text, in an order that does not depend on its neighbours."""
        sums = np.zeros(len(self))
        filled = np.flatnonzero(np.diff(self.offsets))
        if len(filled):
            sums[filled] = np.add.reduceat(values.astype(np.float64), self.offsets[filled])
        return sums


class LanguageModel(Protocol[State]):
    @property
    def tokeniser(self) -> Tokeniser: ...
    @property
    def chain(self) -> Chain:
        """The normalisation that the model was trained behind; `score` applies it."""
        ...

    @property
    def context(self) -> str:
        """How much of what stands before a token `score` lets the model see, in words: "5 tokens"."""
        ...

    def begin(self) -> tuple[State, Tensor]:
        """The state before a text, and the log-probabilities (V) of its first token."""
        ...

    def step(self, state: State, token: int) -> tuple[State, Tensor]: ...
    def step_many(self, states: Sequence[State], tokens: Sequence[int]) -> tuple[list[State], Tensor]:
        """`step` for several texts at once: the next states, and log-probabilities (B×V)."""
        ...

    def score(self, texts: Sequence[str]) -> Scores: ...


@runtime_checkable
class Reader(Protocol):
    """A language model that reads what is known in advance faster than a token at a time."""

    def read(self, texts: Sequence[Sequence[int]]) -> tuple[list[Any], Tensor]:
        """What `begin` and a `step` for each token give in the end, of B texts: states, and log-probabilities (B×V)."""
        ...


@dataclass(frozen=True)
class Ranking:
    """What each of N tokens costs, and the k tokens that were likeliest at its place, best first."""

    nats: NDArray[np.float64]  # N
    likeliest: NDArray[np.int64]  # N×k
    log_probs: NDArray[np.float64]  # N×k, of those


@runtime_checkable
class Ranker(Protocol):
    """A language model that ranks tokens at all places of a text faster than a step at a time."""

    def rank_ids(self, ids: NDArray[np.integer], offsets: NDArray[np.int64], count: int) -> Ranking:
        """Of texts laid end to end; text i is ids[offsets[i] : offsets[i + 1]]."""
        ...


class Classifier(Protocol):
    @property
    def labels(self) -> tuple[str, ...]: ...
    def log_probs(self, texts: Sequence[str]) -> Tensor:
        """B×labels."""
        ...


Head = tuple[int, int]  # layer and head, both from 0


@dataclass(frozen=True)
class Touch:
    """What is changed inside a model while it reads; heads that are not named stay as they are.

    `replaced` gives the vector (D) that a head adds to the residual stream at every place instead of its own output:
    zeros, or its mean. `key_noise` gives the standard deviation, along any direction, of the Gaussian noise on a head's
    keys, as a share of the root-mean-square length of the keys of that head in that text (k ~ N(μ, αI) with |μ| = 1 is
    the share √α). The noise is a function of `seed`, layer, head and the number of the text, which is `first_text` for
    the first row: it does not depend on the texts beside.
    """

    replaced: Mapping[Head, Tensor] = field(default_factory=dict)
    key_noise: Mapping[Head, float] = field(default_factory=dict)
    seed: int = 0
    first_text: int = 0


@dataclass(frozen=True)
class Look:
    """What was seen inside a model that read B texts of T tokens; the tuples have one tensor a layer."""

    scores: tuple[Tensor, ...]  # B×H×T×T, query × key, after scaling; −inf where a key may not be seen
    weights: tuple[Tensor, ...]  # B×H×T×T, softmax of the scores
    outputs: tuple[Tensor, ...]  # B×H×T×D, as each head's output is added to the residual stream
    residual: Tensor  # B×T×D, after the last layer, before the last norm
    log_probs: Tensor  # B×T×V, of the token that comes next


@runtime_checkable
class Attentive(Protocol):
    """A model with attention heads that can be looked into. A place sees itself and what stands before it."""

    @property
    def layers(self) -> int: ...
    @property
    def heads(self) -> int:
        """Of each layer."""
        ...

    def look(self, ids: Tensor, touch: Touch | None = None) -> Look:
        """Reads B×T token ids; all that `Look` holds, without gradients."""
        ...

    def unembed(self, residual: Tensor) -> Tensor:
        """Logits (…×V) from what stands in the residual stream (…×D) after the last layer, or from a part of it."""
        ...


def log_probs_tensor(values: NDArray[np.float64] | NDArray[np.float32]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values))


class Speller(Protocol):
    def nats(self, spellings: Sequence[str]) -> NDArray[np.float64]: ...


def assemble_scores(
    texts: Sequence[str],
    encodings: Encodings,
    nats: NDArray[np.float64],
    tokeniser: Tokeniser,
    speller: Speller | None,
) -> Scores:
    """What `score` gives back, from the cost of each token: spellings charged, bytes and words counted."""
    ids = encodings.ids
    unknown = np.zeros(len(ids), np.bool_) if tokeniser.unknown is None else ids == tokeniser.unknown
    byte_lengths = tokeniser.byte_lengths[ids]
    spelling_nats = np.zeros(len(ids))
    if encodings.spellings:
        if speller is None:
            count, first = len(encodings.spellings), encodings.spellings[0]
            raise InklingError(
                f"The texts hold unknown pieces ({count}, the first {first!r}), but this model has no speller to "
                "charge them; fit it with one."
            )
        # Unknown pieces come again and again: each different one is measured once.
        numbers = {spelling: i for i, spelling in enumerate(dict.fromkeys(encodings.spellings))}
        which = np.fromiter(map(numbers.__getitem__, encodings.spellings), np.int64, len(encodings.spellings))
        byte_lengths[unknown] = np.fromiter(map(len, map(str.encode, numbers)), np.int64, len(numbers))[which]
        spelling_nats[unknown] = speller.nats(list(numbers))[which]
    return Scores(
        ids=ids,
        nats=nats,
        spelling_nats=spelling_nats,
        unknown=unknown,
        byte_lengths=byte_lengths,
        offsets=encodings.offsets,
        words=count_words(texts),
        chars=np.fromiter(map(len, texts), np.int64, len(texts)),
        bytes=np.fromiter(map(len, map(str.encode, texts)), np.int64, len(texts)),
    )
