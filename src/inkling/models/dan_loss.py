"""What training the deep averaging network brings down, and its gradient.

`ScoreLoss`, for vectors that are class scores (dimension 0): the sum over texts of −ln p(label), and how far the scores
have moved from where naive Bayes puts them. Convex, so it has one answer and needs no learning rate:

    z_i = (1/n_i) Σ_f S_f ⊙ u_f + b        J = Σᵢ wᵢ · −ln softmax(z_i)[yᵢ] + (λ/2) Σ_f ‖u_f − m‖²
    S_fc = k · ln [ p(f | c) / p(f | not c) ]      counts with 1 added; k makes the scores of size 1 on average

The ratio S is that of Wang and Manning (2012): a feature that tells the classes apart moves easily, one that does not
hardly at all. m = 0 is their model; m > 0 starts at naive Bayes and falls back to it where the data say little, which
short and small corpora like. Two classes need one column, the difference of the scores.

`NetworkLoss`, for vectors of any dimension with layers above: cross-entropy over batches of texts, word dropout (every
occurrence of a feature is left out with probability p, and the mean is taken over what is left; a text that would lose
everything keeps everything), gradient by autograd.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inkling.models.bags import Bags, on_all_cores
from inkling.models.dan import DANConfig, average, read_average

Ints = NDArray[np.int64]

# The bias counts in every text, a feature in few and only by its share: in this unit one step suits both.
BIAS_UNIT = 0.05
LEAST_SIZE = 0.01  # of mean naive Bayes scores: below it the words say nothing, and chance must not be blown up


class Product:
    """The matrix of counts (texts × features), and its transpose, as products with dense matrices."""

    def __init__(self, bags: Bags, features: int) -> None:
        self.bags, self.features = bags, features
        self.plain = bool((bags.counts == 1).all())
        self._forward = _Half(bags.rows, bags.offsets, None if self.plain else bags.counts)

    @cached_property
    def _backward(self) -> _Half:
        texts = np.repeat(np.arange(len(self.bags), dtype=np.int64), self.bags.lengths)
        order = _sorted_places(self.bags.rows, texts, len(self.bags))
        counts = None
        if not self.plain:
            pairs = np.argsort(self.bags.rows, kind="stable")
            counts = self.bags.counts[pairs]
        offsets = np.zeros(self.features + 1, np.int64)
        np.cumsum(np.bincount(self.bags.rows, minlength=self.features), out=offsets[1:])
        return _Half(order, offsets, counts)

    def forward(self, scores: Tensor) -> Tensor:
        """texts × columns, from features × columns."""
        return self._forward.times(scores)

    def backward(self, values: Tensor) -> Tensor:
        """features × columns, from texts × columns."""
        return self._backward.times(values)


class _Half:
    def __init__(self, inner: NDArray[np.int32], offsets: Ints, counts: NDArray[np.float32] | None) -> None:
        self.inner = torch.from_numpy(inner)
        self.offsets = torch.from_numpy(offsets[:-1].astype(np.int32))
        self.counts = None if counts is None else torch.from_numpy(counts)

    def times(self, dense: Tensor) -> Tensor:
        counts = None if self.counts is None else self.counts.to(dense.dtype)
        return functional.embedding_bag(self.inner, dense, self.offsets, mode="sum", per_sample_weights=counts)


def _sorted_places(rows: NDArray[np.int32], texts: Ints, count: int) -> NDArray[np.int32]:
    """The texts of each row, row after row. Sorting a pair as one number is the fastest way there is without C; a half
    of the rows for each core."""
    bits = max(1, int(count - 1).bit_length())
    pairs = (rows.astype(np.int64) << bits) | texts
    if len(pairs) < 1 << 16:
        return (np.sort(pairs) & ((1 << bits) - 1)).astype(np.int32)
    middle = np.partition(pairs[:: len(pairs) // 4096], 2048)[2048]
    below = pairs < middle
    halves = on_all_cores(lambda half: np.sort(half), [pairs[below], pairs[~below]])
    return (np.concatenate(halves) & ((1 << bits) - 1)).astype(np.int32)


@dataclass
class ScoreLoss:
    """J above as a function of one long vector (u, then b). `weights` says how much each text counts; 0: held out."""

    product: Product
    truth: Ints
    classes: int
    weights: NDArray[np.float32]
    strength: float  # λ
    trust: float  # m, in naive Bayes

    def __post_init__(self) -> None:
        self.columns = 1 if self.classes == 2 else self.classes
        self.shrink = torch.from_numpy(1 / np.maximum(self.product.bags.sums(self.product.bags.counts), 1))[:, None]
        self.target = torch.from_numpy(self.truth)
        self.weight = torch.from_numpy(self.weights)
        self.scale = self._scale()
        # Of two columns with the same penalty each, one that is their difference has twice the penalty.
        self.penalty = 2 * self.strength if self.columns == 1 else self.strength

    def _scale(self) -> Tensor:
        marked = torch.zeros(len(self.truth), self.classes)
        marked[torch.arange(len(self.truth)), self.target] = (self.weight > 0).float()
        counts = self.product.backward(marked) + 1
        shares = counts / counts.sum(dim=0)
        others = counts.sum(dim=1, keepdim=True) - counts
        ratio = torch.log(shares / (others / others.sum(dim=0)))
        if self.columns == 1:
            ratio = ratio[:, 1:]
        scores = (self.product.forward(ratio.contiguous()) * self.shrink)[self.weight > 0]
        size = float(scores.square().mean().sqrt())
        return ratio.contiguous() * ((2 if self.columns == 1 else 1) / max(size, LEAST_SIZE))

    def start(self) -> Tensor:
        """u = m and no bias."""
        size = self.product.features * self.columns
        point = torch.full((size + self.columns,), float(self.trust))
        point[size:] = 0.0
        return point

    def __call__(self, point: Tensor) -> tuple[float, Tensor]:
        size = self.product.features * self.columns
        moved = point[:size].view(-1, self.columns)
        scores = self.scores(point)
        if self.columns == 1:
            sign = torch.where(self.target == 1, 1.0, -1.0)
            margin = sign * scores[:, 0]
            nats = functional.softplus(-margin)
            slope = (-sign * torch.sigmoid(-margin))[:, None]
        else:
            logs = torch.log_softmax(scores, dim=1)
            nats = -logs.gather(1, self.target[:, None])[:, 0]
            slope = logs.exp()
            slope[torch.arange(len(self.target)), self.target] -= 1
        slope = slope * self.weight[:, None]
        away = moved - self.trust
        value = float((nats.double() * self.weight).sum()) + self.penalty / 2 * float(away.double().square().sum())
        gradient = torch.empty_like(point)
        inner = self.scale * self.product.backward(slope * self.shrink) + self.penalty * away
        gradient[:size] = inner.reshape(-1)
        gradient[size:] = BIAS_UNIT * slope.sum(dim=0)
        return value, gradient

    def scores(self, point: Tensor) -> Tensor:
        """z of every text; with two classes, the one difference."""
        size = self.product.features * self.columns
        vectors = self.scale * point[:size].view(-1, self.columns)
        return self.product.forward(vectors) * self.shrink + BIAS_UNIT * point[size:]

    def both(self, scores: Tensor) -> Tensor:
        """z with a column for each class."""
        return torch.cat([-scores / 2, scores / 2], dim=1) if self.columns == 1 else scores

    def parameters(self, point: Tensor) -> dict[str, Tensor]:
        """Of the network: the vectors and the bias."""
        size = self.product.features * self.columns
        vectors = self.scale * point[:size].view(-1, self.columns)
        return {
            "vectors": self.both(vectors).contiguous(),
            "bias": self.both(BIAS_UNIT * point[None, size:])[0].contiguous(),
        }


@dataclass
class NetworkLoss:
    """The objective of training/loop.py. A batch is an array of texts; a step always draws the same dropout."""

    config: DANConfig
    parameters: dict[str, Tensor]  # that learn; `vectors` among them if they do
    vectors: Tensor
    bags: Bags
    truth: Ints
    class_weights: Tensor | None = None
    word_dropout: float = 0.0
    weight_decay: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        self.learns_vectors = "vectors" in self.parameters
        # With fixed vectors and no dropout the mean of a text never changes.
        self.fixed = average(self.bags, self.vectors) if not (self.learns_vectors or self.word_dropout) else None

    def gradient(self, batch: Ints, step: int) -> tuple[float, float]:
        for value in self.parameters.values():
            value.grad = None
            value.requires_grad_(True)
        target = torch.from_numpy(self.truth[batch])
        scores = read_average(self._averages(batch, step), self.parameters, self.config)
        weights = torch.ones(len(batch)) if self.class_weights is None else self.class_weights[target]
        nats = (functional.cross_entropy(scores, target, reduction="none") * weights).sum()
        total = float(weights.sum())
        weighed = [value.square().sum() for name, value in self.parameters.items() if name.endswith(".W")]
        penalty = torch.stack(weighed).sum() if weighed else torch.zeros(())
        (nats + self.weight_decay / 2 * total * penalty).backward()  # type: ignore[no-untyped-call]
        for value in self.parameters.values():
            value.requires_grad_(False)
        return float(nats.detach()), total

    def _averages(self, batch: Ints, step: int) -> Tensor:
        if self.fixed is not None:
            return self.fixed[torch.from_numpy(batch)]
        bags = self.bags.take(batch)
        if self.word_dropout:
            bags = drop_words(bags, self.word_dropout, np.random.default_rng((self.seed, step)))
        return average(bags, self.parameters["vectors"] if self.learns_vectors else self.vectors)


def drop_words(bags: Bags, share: float, generator: np.random.Generator) -> Bags:
    """Each occurrence goes with probability `share`; a text that would lose all keeps all."""
    once = bags.counts == 1
    kept = np.zeros(len(bags.counts), np.float32)
    kept[once] = generator.random(int(once.sum()), dtype=np.float32) >= share
    kept[~once] = generator.binomial(bags.counts[~once].astype(np.int64), 1 - share)
    lost = bags.sums(kept) == 0
    again = np.repeat(lost, bags.lengths)
    kept[again] = bags.counts[again]
    return Bags(bags.rows, kept, bags.offsets)


def balanced_weights(truth: Ints, classes: int) -> NDArray[np.float32]:
    """One weight a class, so that all classes weigh the same together and the mean over texts is 1."""
    counts = np.bincount(truth, minlength=classes)
    return (len(truth) / (np.maximum(counts, 1) * max(1, int((counts > 0).sum())))).astype(np.float32)
