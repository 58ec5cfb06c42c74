"""Interpolated Kneser-Ney: a language model that only counts.

    p_k(w | c) = (a(cw) − D_k(a(cw))) / a(c·)  +  λ(c) · p_{k−1}(w | c without its first token)
    λ(c)       = Σ_w D_k(a(cw)) / a(c·)              λ = 1 for a context never seen
    p_0(w)     = 1 / V                               so every token has a chance, and every context sums to 1

`a` is the raw count for the longest n-grams, and below them the number of different tokens seen just before the
n-gram (its continuation count): "Francisco" is frequent, but follows almost nothing except "San". A text stands behind
order − 1 begin symbols, so its first tokens too have a full context, counted raw, and every shorter n-gram has a token
before it. (Raw counts for all n-grams that start with the begin symbol, the rule for a single begin symbol, predict
worse here, because that symbol is also the end of a line.) Discounts come from the counts of counts n_1 … n_4:

    single     D = n_1 / (n_1 + 2 n_2)
    modified   D(1) = 1 − 2 D n_2/n_1    D(2) = 2 − 3 D n_3/n_2    D(3+) = 3 − 4 D n_4/n_3

Where a text is too small to estimate them, "modified" falls back to "single", and "single" to one half.

The n-grams are a trie in sorted arrays: the node of (w_1 … w_k) is the place of the key node(w_1 … w_{k−1})·V + w_k
among the keys of level k; level 1 holds all V tokens. The node that ends at token i thus costs one search per order,
from the node that ends at token i − 1, for a whole corpus at once (key_index.py; where there is no node the place is
−1, and the keys below it are negative and so never found). Each node keeps its finished probability and its λ, so
nothing is recomputed when a text is scored.

Kneser and Ney (1995), "Improved backing-off for m-gram language modeling"; Chen and Goodman (1999), "An empirical
study of smoothing techniques for language modeling". Left out: pruning, quantised probabilities, ARPA files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.models.key_index import KeyIndex, search
from inkling.text.normalise import Chain
from inkling.text.tokens import Encodings, Tokeniser

if TYPE_CHECKING:  # contracts brings torch, spelling is built on this module
    from torch import Tensor

    from inkling.models.contracts import Scores
    from inkling.models.spelling import Speller

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

CHUNK_TOKENS = 1 << 22  # counted at once, in some 0.4 GB; a longer text in one piece needs more


@dataclass(frozen=True)
class NGramConfig:
    """`order` tokens in an n-gram, that is `order` − 1 tokens of context."""

    order: int = 2
    discount: Literal["modified", "single"] = "modified"

    def __post_init__(self) -> None:
        if self.order < 1:
            raise UsageError(f"The order of an n-gram model is {self.order}, but it must be 1 or more.")
        if self.discount not in ("modified", "single"):
            raise UsageError(f'The discount is "{self.discount}", but it must be "modified" or "single".')


@dataclass(frozen=True)
class Padded:
    """Texts laid end to end, each behind `order` − 1 begin symbols. `real` are the places of the texts' own tokens."""

    stream: Ints
    real: Ints
    starts: Ints  # of each text, pads included

    @classmethod
    def lay(cls, ids: NDArray[np.integer], offsets: Ints, order: int, begin: int) -> Padded:
        pads = order - 1
        texts = len(offsets) - 1
        real = np.arange(len(ids)) + np.repeat(np.arange(1, texts + 1) * pads, np.diff(offsets))
        stream = np.full(len(ids) + texts * pads, begin, dtype=np.int64)
        stream[real] = ids
        return cls(stream, real, offsets[:-1] + np.arange(texts) * pads)

    def depths(self) -> Ints:
        """Place of each token within its own padded text."""
        lengths = np.diff(np.append(self.starts, len(self.stream)))
        return np.arange(len(self.stream)) - np.repeat(self.starts, lengths)


@dataclass(frozen=True)
class Counts:
    """How often each n-gram was seen; `keys[k − 1]` and `counts[k − 1]` hold the k-grams.

    A node may have count 0: begin symbols are context, never predicted.
    """

    size: int
    keys: list[Ints]
    counts: list[Ints]

    @classmethod
    def of(cls, ids: NDArray[np.integer], offsets: Ints, weights: Ints, size: int, order: int, begin: int) -> Counts:
        """`weights` says how often each text counts."""
        padded = Padded.lay(ids, offsets, order, begin)
        depths = padded.depths()
        seen = np.zeros(len(padded.stream))
        seen[padded.real] = np.repeat(weights, np.diff(offsets))
        nodes = padded.stream
        keys, counts = [np.arange(size)], [_sums(nodes, seen, size)]
        for level in range(2, order + 1):
            ends = np.flatnonzero(depths >= level - 1)  # where a whole n-gram of this text ends
            found, places = _unique(nodes[ends - 1] * size + padded.stream[ends], len(keys[-1]) * size)
            keys.append(found)
            counts.append(_sums(places, seen[ends], len(found)))
            nodes = np.full(len(padded.stream), -1)
            nodes[ends] = places
        return cls(size, keys, counts)

    def __add__(self, other: Counts) -> Counts:
        keys, counts = [self.keys[0]], [self.counts[0] + other.counts[0]]
        moved = [self.keys[0], other.keys[0]]  # old node → node of the sum, for the level above
        for level in range(1, len(self.keys)):
            renamed = [
                moved[side][part.keys[level] // self.size] * self.size + part.keys[level] % self.size
                for side, part in enumerate((self, other))
            ]
            both = np.sort(np.concatenate(renamed), kind="stable")  # two sorted runs: a merge
            merged = both[np.append(True, both[1:] != both[:-1])]
            moved = [np.searchsorted(merged, names) for names in renamed]
            total = np.zeros(len(merged), dtype=np.int64)
            total[moved[0]] += self.counts[level]
            total[moved[1]] += other.counts[level]
            keys.append(merged)
            counts.append(total)
        return Counts(self.size, keys, counts)


@dataclass(frozen=True)
class KneserNey:
    """The smoothed trie over plain ids below `size`; it knows nothing of text.

    `backoffs[k − 1]` is λ of each k-gram as a context, with a 1 after the last for "no such context" (place −1).
    """

    size: int
    begin: int
    keys: list[Ints]
    probs: list[Floats]
    backoffs: list[Floats]

    @property
    def order(self) -> int:
        return len(self.keys)

    @classmethod
    def smooth(cls, counts: Counts, begin: int, discount: Literal["modified", "single"]) -> KneserNey:
        size, keys, order = counts.size, counts.keys, len(counts.keys)
        if counts.counts[0].sum() == 0:
            raise InklingError(
                "The text to count n-grams in has no tokens, but at least one is needed; give a text that is not empty."
            )
        suffixes = [np.zeros(size, dtype=np.int64)]  # node of each n-gram without its first token
        for level in range(1, order):
            parents, tokens = np.divmod(keys[level], size)
            suffixes.append(search(keys[level - 1], suffixes[-1][parents] * size + tokens))
        lower: Floats = np.full(1, 1 / size)
        probs: list[Floats] = []
        backoffs: list[Floats] = []
        for level in range(order):
            adjusted = counts.counts[level]
            if level + 1 < order:
                before = suffixes[level + 1][counts.counts[level + 1] > 0]
                adjusted = np.bincount(before, minlength=len(adjusted))
            taken = discounts(adjusted, discount)[np.minimum(adjusted, 3)]
            parents = keys[level] // size  # level 1: all 0, the empty context
            contexts = len(keys[level - 1]) if level else 1
            totals = np.bincount(parents, weights=adjusted, minlength=contexts)
            seen = totals > 0
            totals[~seen] = 1.0
            backoff = np.where(seen, np.bincount(parents, weights=taken, minlength=contexts) / totals, 1.0)
            lower = (adjusted - taken) / totals[parents] + backoff[parents] * lower[suffixes[level]]
            probs.append(lower)
            if level:
                backoffs.append(np.append(backoff, 1.0))
        return cls(size, begin, keys, probs, backoffs)

    @cached_property
    def _indices(self) -> list[KeyIndex]:
        return [KeyIndex(keys) for keys in self.keys]

    def nats(self, ids: NDArray[np.integer], offsets: Ints) -> Floats:
        """What each token costs; text i is `ids[offsets[i]:offsets[i + 1]]`."""
        padded = Padded.lay(ids, offsets, self.order, self.begin)
        # A node of a pad may reach back into the text before it, but the nodes below a text's own token never do.
        nodes = padded.stream
        chances = self.probs[0][padded.stream[padded.real]]
        for level in range(1, self.order):
            contexts = nodes[:-1]
            nodes = np.append(-1, self._indices[level].find(contexts * self.size + padded.stream[1:]))
            mine = nodes[padded.real]
            backed_off = self.backoffs[level - 1][contexts[padded.real - 1]] * chances
            chances = np.where(mine >= 0, self.probs[level][mine], backed_off)
        return -np.log(chances)

    def log_probs(self, context: Sequence[int]) -> Floats:
        """Of every token after `context`, whose last `order` − 1 tokens matter; the same arithmetic as `nats`."""
        chances = self.probs[0].copy()
        for level in range(1, min(self.order, len(context) + 1)):
            node = context[-level]
            for depth in range(1, level):
                node = int(search(self.keys[depth], np.array([node * self.size + context[depth - level]]))[0])
            if node >= 0:
                chances *= self.backoffs[level - 1][node]
                first, last = np.searchsorted(self.keys[level], [node * self.size, (node + 1) * self.size])
                chances[self.keys[level][first:last] % self.size] = self.probs[level][first:last]
        return np.log(chances)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        named: dict[str, NDArray[np.generic]] = {"probs.1": self.probs[0]}
        for level in range(1, self.order):
            named[f"keys.{level + 1}"] = self.keys[level]
            named[f"probs.{level + 1}"] = self.probs[level]
            named[f"backoffs.{level + 1}"] = self.backoffs[level - 1]
        return named

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[np.generic]], order: int, size: int, begin: int) -> KneserNey:
        wanted = {"probs.1"} | {f"{name}.{k}" for name in ("keys", "probs", "backoffs") for k in range(2, order + 1)}
        if set(tensors) != wanted:
            raise InklingError(
                f"The stored n-gram model holds the arrays {sorted(tensors)}, but order {order} needs "
                f"{sorted(wanted)}; use the model.safetensors that belongs to this config.json."
            )
        keys = [np.arange(size)] + [_stored_ints(tensors[f"keys.{k}"]) for k in range(2, order + 1)]
        probs = [np.asarray(tensors[f"probs.{k}"], dtype=np.float64) for k in range(1, order + 1)]
        backoffs = [np.asarray(tensors[f"backoffs.{k}"], dtype=np.float64) for k in range(2, order + 1)]
        fits = all(
            len(keys[k]) == len(probs[k])
            and bool(np.all(keys[k][1:] > keys[k][:-1]))
            and (k == 0 or (len(backoffs[k - 1]) == len(keys[k - 1]) + 1))
            and (k == 0 or (len(keys[k]) > 0 and keys[k][0] >= 0 and keys[k][-1] < len(keys[k - 1]) * size))
            for k in range(order)
        )
        if not fits:
            raise InklingError(
                f"The arrays of the stored n-gram model do not fit each other or its {size} tokens; "
                "use the model.safetensors and the tokenizer.json of the same run."
            )
        return cls(size, begin, keys, probs, backoffs)


def discounts(counts: Ints, kind: Literal["modified", "single"]) -> Floats:
    """What is taken from n-grams counted 0, 1, 2, and 3 or more times."""
    n1, n2, n3, n4 = (int(np.count_nonzero(counts == times)) for times in (1, 2, 3, 4))
    single = n1 / (n1 + 2 * n2) if n1 and n2 else 0.5
    if kind == "modified" and n1 and n2 and n3 and n4:
        three = (1 - 2 * single * n2 / n1, 2 - 3 * single * n3 / n2, 3 - 4 * single * n4 / n3)
        if all(taken > 0 for taken in three):  # odd counts of counts can ask for less than nothing
            return np.array([0.0, *three])
    return np.array([0.0, single, single, single])


@dataclass(frozen=True)
class NGram:
    """Kneser-Ney behind a tokeniser: a LanguageModel. The state is the tuple of the last `order` − 1 ids."""

    tokeniser: Tokeniser
    chain: Chain
    config: NGramConfig
    speller: Speller | None
    table: KneserNey

    @classmethod
    def fit(
        cls,
        encodings: Iterable[Encodings],
        tokeniser: Tokeniser,
        config: NGramConfig,
        chain: Chain = Chain(),  # noqa: B008 (frozen)
        speller: Speller | None = None,
    ) -> NGram:
        total: Counts | None = None
        for ids, offsets in _chunks(encodings):
            ones = np.ones(len(offsets) - 1, dtype=np.int64)
            part = Counts.of(ids, offsets, ones, tokeniser.size, config.order, tokeniser.begin)
            total = part if total is None else total + part
        if total is None:
            raise InklingError("There is no text to count n-grams in; give at least one text.")
        return cls(tokeniser, chain, config, speller, KneserNey.smooth(total, tokeniser.begin, config.discount))

    @property
    def context(self) -> str:
        tokens = self.config.order - 1
        return f"{tokens or 'no'} token{'s' * (tokens != 1)}"

    def begin(self) -> tuple[tuple[int, ...], Tensor]:
        state = (self.tokeniser.begin,) * (self.config.order - 1)
        return state, self._next(state)

    def step(self, state: tuple[int, ...], token: int) -> tuple[tuple[int, ...], Tensor]:
        state = (*state, int(token))[1:]
        return state, self._next(state)

    def step_many(
        self, states: Sequence[tuple[int, ...]], tokens: Sequence[int]
    ) -> tuple[list[tuple[int, ...]], Tensor]:
        """Texts in the same state (many, after a common prompt) are looked up once."""
        from inkling.models.contracts import log_probs_tensor

        following = [(*state, int(token))[1:] for state, token in zip(states, tokens, strict=True)]
        rows = {state: self.table.log_probs(state) for state in dict.fromkeys(following)}
        return following, log_probs_tensor(np.array([rows[s] for s in following]).reshape(-1, self.tokeniser.size))

    def _next(self, state: tuple[int, ...]) -> Tensor:
        from inkling.models.contracts import log_probs_tensor

        return log_probs_tensor(self.table.log_probs(state))

    def score_ids(self, ids: NDArray[np.integer], offsets: Ints) -> Floats:
        """Nats of each token; spellings of unknown tokens are not included."""
        return self.table.nats(ids, offsets)

    def score(self, texts: Sequence[str]) -> Scores:
        from inkling.models.contracts import assemble_scores

        encoded = self.tokeniser.encode([self.chain(text) for text in texts] if self.chain.names else texts)
        nats = self.score_ids(encoded.ids, encoded.offsets)
        return assemble_scores(texts, encoded, nats, self.tokeniser, self.speller)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """The whole model but for its config, tokeniser, chain and speller."""
        return self.table.tensors()

    @classmethod
    def from_tensors(
        cls,
        config: NGramConfig,
        tensors: Mapping[str, NDArray[np.generic]],
        tokeniser: Tokeniser,
        chain: Chain = Chain(),  # noqa: B008 (frozen)
        speller: Speller | None = None,
    ) -> NGram:
        table = KneserNey.from_tensors(tensors, config.order, tokeniser.size, tokeniser.begin)
        return cls(tokeniser, chain, config, speller, table)


def _chunks(encodings: Iterable[Encodings]) -> Iterator[tuple[NDArray[np.int32], Ints]]:
    """Whole texts, joined until they are worth counting, and cut apart where a batch is large."""
    waiting: list[tuple[NDArray[np.int32], Ints]] = []  # ids, lengths of texts
    tokens = 0

    def joined() -> tuple[NDArray[np.int32], Ints]:
        lengths = np.concatenate([lengths for _, lengths in waiting])
        return np.concatenate([ids for ids, _ in waiting]), np.append(0, np.cumsum(lengths))

    for batch in encodings:
        first = 0
        while first < len(batch):
            room = int(batch.offsets[first]) + CHUNK_TOKENS - tokens
            last = max(int(np.searchsorted(batch.offsets, room, side="right")) - 1, first + 1)
            span = batch.offsets[first : last + 1]
            waiting.append((batch.ids[span[0] : span[-1]], np.diff(span)))
            tokens += int(span[-1] - span[0])
            first = last
            if tokens >= CHUNK_TOKENS or first < len(batch):
                yield joined()
                waiting, tokens = [], 0
    if waiting:
        yield joined()


def _unique(keys: Ints, bound: int) -> tuple[Ints, Ints]:
    """The different keys, sorted, and the place of each key among them. Keys are below `bound`.

    A small range is ticked off in a table, several times faster than sorting; the result is the same.
    """
    if bound > 16 * len(keys):
        return np.unique(keys, return_inverse=True)
    present = np.zeros(bound, dtype=np.bool_)
    present[keys] = True
    places = np.cumsum(present, dtype=np.int32)
    return np.flatnonzero(present), places[keys].astype(np.int64) - 1


def _sums(places: Ints, values: Floats, length: int) -> Ints:
    return np.bincount(places, weights=values, minlength=length).astype(np.int64)  # exact below 2^53


def _stored_ints(values: NDArray[np.generic]) -> Ints:
    if not np.issubdtype(values.dtype, np.integer):
        raise InklingError(f"The stored n-gram keys are {values.dtype}, but must be integers; the file is damaged.")
    return values.astype(np.int64, copy=False)
