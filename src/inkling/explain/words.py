"""Which words moved a classifier, exactly: what becomes of the verdict when they are left out.

The network sees a text as a mean, so a text without some of its words differs by what those words brought: the features
that they are part of go, and runs of words over the gap come. With sum s = Σ c_f v_f and weight n = Σ c_f of the text,

    mean without the span = (s + Σ_f δ_f v_f) / (n + Σ_f δ_f)

where δ_f is the change of c_f; all spans of all texts of a block are found in one pass, the rest of the network reads
them as one batch, and nothing is approximated. Effects are in nats of log-odds (ln p − ln(1 − p), calibrated).

Effects do not add up: of a word that stands twice, one may go and nothing happens where features count once. What each
word brings to the score is told by integrated gradients from the zero mean (Sundararajan et al. 2017), which do add up;
a run's part is shared evenly among its words. Gradient × input is there for comparison.

    gradient × input       v_f c_f / n · ∇o(a)
    integrated gradients   v_f c_f / n · ∫₀¹ ∇o(t a) dt

A word that is left out leaves its neighbours side by side; "good" without "not" before it is then judged as "good".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.models.bags import Bags, bag, blocks_of, on_all_cores
from inkling.models.dan import AveragingNetwork, read_average
from inkling.text.grams import Grams, find_grams, join, key_of

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

EXPLAINED_CHARS = 1 << 18
SENTENCE_END = re.compile(r"[.!?…]+(?=[\s\"'”’)\]<]|$)|[。！？]+|\n|<br", re.IGNORECASE)
INTEGRATION_STEPS = 50
PART_STEPS = (16, 64, 256, 1024)  # points of the integral, tried in turn
PART_ERROR = 1e-4  # nats that parts may miss the score by, before more points are taken


@dataclass(frozen=True)
class Explanation:
    """One text, the verdict, and the exact effect of each of its words and sentences.

    An effect is in nats of log-odds, ln p − ln (1 − p): with the word less without it, so that a positive number speaks
    for the label of its column.
    """

    text: str
    labels: tuple[str, ...]
    log_probs: Floats  # C, calibrated
    starts: Places  # W, where each word starts in the text, in characters
    ends: Places  # W
    known: NDArray[np.bool_]  # W, whether the word has a vector of its own
    effects: Floats  # W×C
    parts: Floats  # W×C, what each word brings to the calibrated score of each label; they add up (see above)
    sentences: Places  # S×2, the first word of each sentence and the one after its last
    sentence_effects: Floats  # S×C, of leaving out the whole sentence

    @property
    def verdict(self) -> int:
        """The label that the model gives, by its place in `labels`."""
        return int(self.log_probs.argmax())

    @property
    def probability(self) -> float:
        """Of the verdict."""
        return float(np.exp(self.log_probs.max()))

    def word(self, place: int) -> str:
        """As it stands in the text."""
        return self.text[self.starts[place] : self.ends[place]]

    def sentence(self, place: int) -> str:
        first, last = self.sentences[place]
        return self.text[self.starts[first] : self.ends[last - 1]]


# ------------------------------------------------------------------------------------------------ leaving out


def explain(network: AveragingNetwork, texts: Sequence[str], sentences: bool = True) -> list[Explanation]:
    """Every word, and every sentence, of every text left out in turn."""

    def explain_some(part: tuple[int, int]) -> list[Explanation]:
        return list(_explain_block(network, texts[part[0] : part[1]], sentences))

    network.table.rows  # noqa: B018 (made once, not by each thread)
    chars = max(1, EXPLAINED_CHARS * 4 // max(4, len(network.labels)))  # an effect for each word and label is held
    blocks = on_all_cores(explain_some, list(blocks_of(texts, chars)))
    return [explanation for block in blocks for explanation in block]


def effects_of(network: AveragingNetwork, texts: Sequence[str], spans: Sequence[Places]) -> list[Floats]:
    """The effect (S×C) of leaving out each span of words: `spans[i]` (S×2) holds first words and those after the last,
    counted within text i."""
    read = _Read(network, texts)
    offsets = read.grams.words.offsets
    absolute = np.concatenate(
        [np.asarray(span, np.int64).reshape(-1, 2) + offsets[i] for i, span in enumerate(spans)] or [np.zeros((0, 2))]
    ).astype(np.int64)
    owner = np.repeat(np.arange(len(texts)), [len(span) for span in spans])
    effects = read.effects(absolute[:, 0], absolute[:, 1], owner)
    return np.split(effects, np.cumsum([len(span) for span in spans])[:-1]) if len(texts) else []


def _explain_block(network: AveragingNetwork, texts: Sequence[str], with_sentences: bool) -> Iterator[Explanation]:
    read = _Read(network, texts)
    words = read.grams.words
    count = len(words.hashes)
    places = np.arange(count)
    owner = np.repeat(np.arange(len(texts)), words.lengths)
    effects = read.effects(places, places + 1, owner)
    parts = read.score_parts()
    spans = [
        find_sentences(text, words.starts[low:high], words.ends[low:high]) + low if with_sentences else EMPTY
        for text, low, high in zip(texts, words.offsets[:-1].tolist(), words.offsets[1:].tolist(), strict=True)
    ]
    lengths = np.array([len(span) for span in spans], np.int64)
    joined = np.concatenate(spans) if spans else EMPTY
    of_sentences = read.effects(joined[:, 0], joined[:, 1], np.repeat(np.arange(len(texts)), lengths))
    edges = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    for i, text in enumerate(texts):
        low, high = int(words.offsets[i]), int(words.offsets[i + 1])
        yield Explanation(
            text,
            network.labels,
            read.log_probs[i],
            words.starts[low:high],
            words.ends[low:high],
            read.runs[0][low:high] >= 0,
            effects[low:high],
            parts[low:high],
            spans[i] - low,
            of_sentences[edges[i] : edges[i + 1]],
        )


EMPTY = np.zeros((0, 2), np.int64)


class _Read:
    """A block of texts as the network sees it, in 64-bit arithmetic."""

    def __init__(self, network: AveragingNetwork, texts: Sequence[str]) -> None:
        self.network = network
        self.config = network.config
        table = network.table.rows
        self.grams: Grams = find_grams(texts, self.config.grams)
        self.runs = [table[keys] for keys in self.grams.runs]
        self.inside = table[self.grams.inside]
        self.bags: Bags = network.table.keep(bag(self.grams), distinct=False)
        self.features = len(network.keys)
        owner = np.repeat(np.arange(len(texts)), self.bags.lengths)
        self.pairs = owner * self.features + self.bags.rows  # ascending
        weights = np.ones(len(owner)) if self.config.distinct else self.bags.counts.astype(np.float64)
        self.sums = self._sum(owner, self.bags.rows, weights, len(texts))
        self.totals: Floats = np.bincount(owner, weights, len(texts)).astype(np.float64)
        self.means: Floats = self.sums / np.maximum(self.totals, 1)[:, None]
        self.log_probs, self.odds = self._read(self.sums, self.totals)

    def effects(self, first: Places, last: Places, owner: Places) -> Floats:
        """Log-odds with the words from `first` to before `last` less those without them, for texts `owner`."""
        spans, rows, changes = self._changes(first, last, owner)
        sums = self.sums[owner] + self._sum(spans, rows, changes, len(first))
        totals: Floats = self.totals[owner] + np.bincount(spans, changes, len(first)).astype(np.float64)
        _, odds = self._read(sums, totals)
        return self.odds[owner] - odds

    def score_parts(self) -> Floats:
        """The part of each word in the calibrated score z/T of each class (W×C), by integrated gradients: they add up
        to the score of the text less that of an empty one."""
        classes = len(self.network.labels)
        if not self.config.dimension:  # a straight line, whose slope is the same everywhere
            return self._spread(lambda owner, rows: self.network.vectors.numpy()[rows].astype(np.float64))
        layers = self.network.double_layers()

        def slope(means: Tensor, label: int) -> Tensor:
            means = means.detach().requires_grad_(True)
            scores = read_average(means, layers.layers, self.config)[:, label].sum() / self.network.temperature
            return torch.autograd.grad(scores, means)[0]

        means = torch.from_numpy(self.means)
        whole = read_average(means, layers.layers, self.config) - read_average(
            0 * means[:1], layers.layers, self.config
        )
        found = []
        for label in range(classes):
            # Where activations have kinks, more points are taken until what the means bring adds up.
            for steps in PART_STEPS:
                slopes = _along(lambda at, label=label: slope(at, label), means, steps)  # type: ignore[misc]
                off = (slopes * means).sum(dim=1) - whole[:, label] / self.network.temperature
                if float(off.abs().max()) <= PART_ERROR:
                    break
            # What little is missing still is put in along the mean, so that parts add up exactly.
            length = means.square().sum(dim=1).clamp(min=1e-30)
            found.append((slopes - (off / length)[:, None] * means).numpy())
        return self.parts(np.stack(found, axis=1))

    def parts(self, slopes: Floats) -> Floats:
        """The part of each word (W×K) in K numbers with these slopes (texts×K×D) by the mean of each text."""
        vectors = self.network.vectors.numpy()

        def dot(owner: Places, rows: NDArray[np.int32]) -> Floats:
            own = vectors[rows].astype(np.float64) * self.network.temperature  # by which `_spread` divides
            return np.stack([(own * slopes[owner, k]).sum(axis=1) for k in range(slopes.shape[1])], axis=1)

        return self._spread(dot)

    def _spread(self, value: Callable[[Places, NDArray[np.int32]], Floats]) -> Floats:
        """Σ over the features of a word: value / (T · weight of the text), shared among the words of a run, and among
        the places of a feature where it counts once."""
        words = self.grams.words
        owner = np.repeat(np.arange(len(self.bags)), words.lengths)
        holder = np.repeat(np.arange(len(owner)), np.diff(self.grams.edges))
        total: Floats | None = None
        for order, rows, places in [
            *((order, rows, np.arange(len(rows))) for order, rows in enumerate(self.runs, start=1)),
            (1, self.inside, holder),
        ]:
            known = np.flatnonzero(rows >= 0)
            text, row = owner[places[known]], rows[known]
            each = value(text, row) / (order * self.network.temperature * np.maximum(self.totals[text], 1))[:, None]
            if self.config.distinct and len(known):
                each /= self.bags.counts[np.searchsorted(self.pairs, text * self.features + row)][:, None]
            if total is None:
                total = np.zeros((len(owner), each.shape[1]))
            for column in range(each.shape[1]):
                for step in range(order):
                    total[:, column] += np.bincount(places[known] + step, each[:, column], len(owner))
        assert total is not None
        return total

    def _changes(self, first: Places, last: Places, owner: Places) -> tuple[Places, NDArray[np.int32], Floats]:
        """Which features change, for which span, by how much: one entry for each pair, in the order of the spans."""
        events = [*self._going(first, last, owner), *self._coming(first, last, owner)]
        keys = np.concatenate([(spans * self.features + rows) * 2 + sign for spans, rows, sign in events])
        keys.sort()
        signs = np.where(keys & 1, 1, -1)
        keys >>= 1
        new = np.flatnonzero(np.diff(keys, prepend=-1))
        net = np.add.reduceat(signs, new) if len(new) else np.zeros(0, np.int64)
        spans, rows = np.divmod(keys[new], self.features)
        wanted = owner[spans] * self.features + rows
        there = np.minimum(np.searchsorted(self.pairs, wanted), max(0, len(self.pairs) - 1))
        before = np.zeros(len(wanted))
        if len(self.pairs):
            found = self.pairs[there] == wanted
            before[found] = self.bags.counts[there[found]]
        changes = (before + net > 0).astype(np.float64) - (before > 0) if self.config.distinct else net.astype(float)
        kept = changes != 0
        return spans[kept], rows[kept].astype(np.int32), changes[kept]

    def _going(self, first: Places, last: Places, owner: Places) -> Iterator[tuple[Places, Places, int]]:
        """Runs that hold a word of the span, and what is inside its words."""
        begin, end = self.grams.words.offsets[owner], self.grams.words.offsets[owner + 1]
        for order, rows in enumerate(self.runs, start=1):
            low = np.maximum(begin, first - order + 1)
            high = np.minimum(last, end - order + 1)
            yield _known(*_expand(low, high), rows, 0)
        if len(self.inside):
            yield _known(*_expand(self.grams.edges[first], self.grams.edges[last]), self.inside, 0)

    def _coming(self, first: Places, last: Places, owner: Places) -> Iterator[tuple[Places, Places, int]]:
        """Runs over the gap: `left` words before it and the rest after it."""
        begin, end = self.grams.words.offsets[owner], self.grams.words.offsets[owner + 1]
        hashes, table = self.grams.words.hashes, self.network.table.rows
        for order in range(2, len(self.runs) + 1):
            for left in range(1, order):
                fits = np.flatnonzero((first - left >= begin) & (last + order - left <= end))
                value = hashes[first[fits] - left]
                for step in range(1, order):
                    place = first[fits] - left + step if step < left else last[fits] + step - left
                    value = join(value, hashes[place])
                rows = table[key_of(value, order, self.config.bits)]
                known = rows >= 0
                yield fits[known], rows[known].astype(np.int64), 1

    def _sum(self, owner: Places, rows: NDArray[np.int32], weights: Floats, count: int) -> Floats:
        """Σ weight · vector over the entries of each owner."""
        vectors = self.network.vectors.numpy()
        columns = [np.bincount(owner, weights * vectors[rows, i], count) for i in range(vectors.shape[1])]
        return np.stack(columns, axis=1)

    def _read(self, sums: Floats, totals: Floats) -> tuple[Floats, Floats]:
        means = torch.from_numpy(sums / np.maximum(totals, 1)[:, None])
        log_probs = self.network.double_layers().read(means)
        return log_probs.numpy(), log_odds(log_probs).numpy()


def _expand(low: Places, high: Places) -> tuple[Places, Places]:
    """All whole numbers from low to before high, for each pair, and which pair each belongs to."""
    counts = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(len(low)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) + np.repeat(low - first, counts)


def _known(owner: Places, places: Places, rows: NDArray[np.int32], sign: int) -> tuple[Places, Places, int]:
    found = rows[places]
    known = found >= 0
    return owner[known], found[known].astype(np.int64), sign


def log_odds(log_probs: Tensor) -> Tensor:
    """ln p − ln(1 − p) of each class; for the likeliest class 1 − p is summed over the others, not subtracted."""
    if log_probs.shape[1] == 2:
        return log_probs - log_probs.flip(1)
    likeliest = log_probs.argmax(dim=1, keepdim=True)
    others = torch.log(-torch.expm1(log_probs))
    exact = torch.logsumexp(log_probs.scatter(1, likeliest, -torch.inf), dim=1, keepdim=True)
    return log_probs - others.scatter(1, likeliest, exact)


def find_sentences(text: str, starts: Places, ends: Places) -> Places:
    """First word and the one after the last of each sentence (S×2). Marks at its end belong to a sentence."""
    if not len(starts):
        return EMPTY
    cuts = np.array([match.end() for match in SENTENCE_END.finditer(text)], np.int64)
    edges = np.unique(np.concatenate([[0], np.searchsorted(starts, cuts), [len(starts)]]))
    return np.stack([edges[:-1], edges[1:]], axis=1)


# ------------------------------------------------------------------------------------------------ gradients


def gradient_times_input(network: AveragingNetwork, texts: Sequence[str]) -> list[Floats]:
    """For each text, the part of each word (W) in the log-odds of the verdict, by the slope at the mean."""
    return _verdict_parts(network, texts, lambda slope, means: slope(means))


def integrated_gradients(
    network: AveragingNetwork, texts: Sequence[str], steps: int = INTEGRATION_STEPS
) -> list[Floats]:
    """The same by the slope on the way from the zero mean. The parts of all words add up to the log-odds of the verdict
    less those of an empty text."""
    return _verdict_parts(network, texts, lambda slope, means: _along(slope, means, steps))


Slope = Callable[[Tensor], Tensor]


def _along(slope: Slope, means: Tensor, steps: int) -> Tensor:
    """∫₀¹ slope(t · means) dt by Gauss–Legendre quadrature with `steps` points."""
    nodes, weights = _quadrature(steps)
    total = torch.zeros_like(means)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        total += float(weight) * slope(float(node) * means)
    return total


@cache
def _quadrature(steps: int) -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return nodes, weights


def _verdict_parts(
    network: AveragingNetwork, texts: Sequence[str], path: Callable[[Slope, Tensor], Tensor]
) -> list[Floats]:
    read = _Read(network, texts)
    layers = network.double_layers()
    verdict = torch.from_numpy(read.log_probs.argmax(axis=1))[:, None]

    def slope(means: Tensor) -> Tensor:
        means = means.detach().requires_grad_(True)
        odds = log_odds(layers.read(means)).gather(1, verdict).sum()
        return torch.autograd.grad(odds, means)[0]

    parts = read.parts(path(slope, torch.from_numpy(read.means)).numpy()[:, None, :])[:, 0]
    return np.split(parts, read.grams.words.offsets[1:-1]) if len(texts) else []
