"""The neural word bigram model: one hidden layer between the previous token and the next.

    x = E[i]                       the vector of the previous token i, 1×D
    h = σ(xW₁ + b₁)                1×H
    θ = hW₂ + b₂                   1×V
    p(j | i) = exp θⱼ / Σₖ exp θₖ

Loss of a corpus with pair counts C and row totals n (see pairs.py), in nats, as a sum:

    J = Σᵢ nᵢ ln Σₖ exp θᵢₖ − Σᵢⱼ Cᵢⱼ θᵢⱼ

Derivation, all V contexts as the rows of matrices X (V×D), H, Θ, P (V×V):

    ∂J/∂Θ  = diag(n) P − C                          (softmax minus target, each row weighted by its count)
    ∂J/∂W₂ = Hᵀ ∂J/∂Θ          ∂J/∂b₂ = Σ_rows ∂J/∂Θ
    ∂J/∂H  = ∂J/∂Θ W₂ᵀ
    ∂J/∂A  = ∂J/∂H ⊙ H ⊙ (1 − H)                    A = XW₁ + b₁
    ∂J/∂W₁ = Xᵀ ∂J/∂A          ∂J/∂b₁ = Σ_rows ∂J/∂A          ∂J/∂E = ∂J/∂A W₁ᵀ

This is the same number that a pass over every pair of the corpus would sum up, at the price of V contexts.

Plain gradient steps on it are slow: σ's outputs are never negative and word vectors are far from round, so the columns
of H and of X are nearly parallel. `ExactLoss` therefore works in round coordinates, in which both have mean 0 and
covariance I over the corpus at the start: X' = (X − m)R and H' = (H − c)T. That is the same family of models, and
`plain` folds the change back into E, W₁, b₁, W₂, b₂. The start itself is a weighted least-squares fit of Θ to the
smoothed logarithm ln((C + k u)/((n + k) u)) + ln u with u the unigram distribution: closed form, one product.

Reference: Bengio et al. 2003 for the model. Left out: tied vectors, several hidden layers, more context (gru.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.models import gradients
from inkling.models.contracts import Scores, Speller, assemble_scores, log_probs_tensor
from inkling.models.pairs import PairCounts, contexts_of
from inkling.text.normalise import Chain
from inkling.text.tokens import Tokeniser

TABLE_SIZE = 4096  # up to this vocabulary the V×V table of log-probabilities is kept
RARE_TOKENS = 1000  # a context seen this often gets half the dropout
BLOCK_CELLS = 1 << 21  # logits held at once while the loss is computed


@dataclass(frozen=True)
class BigramConfig:
    """Sizes of the network."""

    dimension: int = 50
    hidden: int = 200


class Bigram:
    """A trained model. `parameters`: vectors V×D, W1 D×H, b1 H, W2 H×V, b2 V."""

    def __init__(
        self,
        config: BigramConfig,
        parameters: Mapping[str, Tensor],
        tokeniser: Tokeniser,
        chain: Chain | None = None,
        speller: Speller | None = None,
    ) -> None:
        self.config = config
        self.parameters = dict(parameters)
        self.tokeniser = tokeniser
        self.chain = chain or Chain()
        self.speller = speller
        self._table: NDArray[np.float64] | None = None
        self._large: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]] | None = None

    @property
    def context(self) -> str:
        return "1 token"

    def logits(self, contexts: Tensor) -> Tensor:
        """Θ for the given contexts, in float64."""
        W2, b2 = self.parameters["W2"].double(), self.parameters["b2"].double()
        return (self._hidden(contexts) @ W2).add_(b2)  # B×V

    def _hidden(self, contexts: Tensor) -> Tensor:
        p = {name: self.parameters[name].double() for name in ("vectors", "W1", "b1")}
        return torch.sigmoid(p["vectors"][contexts] @ p["W1"] + p["b1"])  # B×H

    def log_probs(self, contexts: Tensor) -> Tensor:
        return torch.log_softmax(self.logits(contexts), dim=1)

    def begin(self) -> tuple[int, Tensor]:
        return self.step(0, self.tokeniser.begin)

    def step(self, state: int, token: int) -> tuple[int, Tensor]:
        """The state is the last token: a bigram model remembers nothing else."""
        if self.tokeniser.size <= TABLE_SIZE:
            return token, log_probs_tensor(self.table()[token])
        return token, self.log_probs(torch.tensor([token]))[0]

    def step_many(self, states: Sequence[int], tokens: Sequence[int]) -> tuple[list[int], Tensor]:
        """The same as `step` to the bit: a product of matrices would round by how many rows there are."""
        size = self.tokeniser.size
        if size <= TABLE_SIZE:
            return list(tokens), log_probs_tensor(self.table()[np.asarray(tokens, np.int64)])
        W1, b1, W2, b2 = (self.parameters[name].double() for name in ("W1", "b1", "W2", "b2"))
        places = {token: place for place, token in enumerate(dict.fromkeys(tokens))}
        rows = torch.empty(len(places), size, dtype=torch.float64)
        for token, place in places.items():
            hidden = torch.sigmoid(self.parameters["vectors"][[token]].double() @ W1 + b1)
            rows[place] = torch.log_softmax((hidden @ W2).add_(b2), dim=1)[0]
        return list(tokens), rows[[places[token] for token in tokens]]

    def score(self, texts: Sequence[str]) -> Scores:
        normalised = [self.chain(text) for text in texts] if self.chain.names else texts
        encodings = self.tokeniser.encode(normalised)
        contexts = contexts_of(encodings, self.tokeniser.begin)
        return assemble_scores(texts, encodings, self.pair_nats(contexts, encodings.ids), self.tokeniser, self.speller)

    def tensors(self) -> dict[str, Tensor]:
        return dict(self.parameters)

    def table(self) -> NDArray[np.float64]:
        if self._table is None:
            table = self.logits(torch.arange(self.tokeniser.size))  # V×V, and the only one of its size
            for rows in torch.split(table, 32):  # few at once, so that this takes hardly more memory than the table
                rows.copy_(torch.log_softmax(rows, dim=1))
            self._table = np.asarray(table.numpy(), np.float64)
        return self._table

    def pair_nats(self, contexts: NDArray[np.int64], ids: NDArray[np.integer]) -> NDArray[np.float64]:
        """−ln p of each token after its context: the same to the last bit, whatever pairs stand beside it."""
        size = self.tokeniser.size
        if size <= TABLE_SIZE:
            nats: NDArray[np.float64] = -self.table().reshape(-1)[contexts * size + ids]
            return nats
        # A large vocabulary: hidden layer and normaliser of each context once, then one dot product per distinct pair.
        if self._large is None:
            blocks = torch.split(torch.arange(size), max(1, BLOCK_CELLS // size))
            hidden = torch.cat([self._hidden(block) for block in blocks])
            log_totals = torch.cat([torch.logsumexp(self.logits(block), dim=1) for block in blocks])
            W2 = np.ascontiguousarray(self.parameters["W2"].double().numpy().T)  # V×H
            self._large = (hidden.numpy(), W2, log_totals.numpy())
        hidden_rows, W2_rows, totals = self._large
        b2 = self.parameters["b2"].double().numpy()
        keys, where = np.unique(contexts * size + ids, return_inverse=True)
        nats = np.empty(len(keys))
        for start in range(0, len(keys), 1 << 14):
            context, token = np.divmod(keys[start : start + (1 << 14)], size)
            # Summed row by row, where a product of matrices would round by how many rows there are.
            logits = (hidden_rows[context] * W2_rows[token]).sum(axis=1) + b2[token]
            nats[start : start + (1 << 14)] = totals[context] - logits
        return nats[where]


def random_parameters(
    config: BigramConfig, size: int, generator: np.random.Generator, vectors: NDArray[np.float32] | None = None
) -> dict[str, Tensor]:
    """The plain start: weights uniform within ±√(6/(in+out)) (Glorot), biases zero, vectors given or N(0, 1)."""

    def uniform(rows: int, columns: int) -> Tensor:
        limit = (6 / (rows + columns)) ** 0.5
        return torch.from_numpy(generator.uniform(-limit, limit, (rows, columns)).astype(np.float32))

    if vectors is None:
        vectors = generator.standard_normal((size, config.dimension)).astype(np.float32)
    return {
        "vectors": torch.from_numpy(np.array(vectors, np.float32)),
        "W1": uniform(config.dimension, config.hidden),
        "b1": torch.zeros(config.hidden),
        "W2": uniform(config.hidden, size),
        "b2": torch.zeros(size),
    }


def spectral_vectors(counts: PairCounts, dimension: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors out of the counts alone: the leading directions in which contexts differ in what follows them.

    Singular vectors of the matrix of ln((C + u)/u), u unigram, its rows weighted by √n and its columns by √u, so that
    common pairs matter most (Levy and Goldberg 2014 tell why this resembles word vectors learned by prediction).
    """
    unigram = (counts.column_totals + 1e-3) / (counts.tokens + 1e-3 * counts.size)
    n = counts.row_totals
    i, j = np.divmod(counts.keys, counts.size)
    weight = np.sqrt(n / counts.tokens)
    values = np.log1p(counts.values / unigram[j]) * weight[i] * np.sqrt(unigram[j])
    sparse = torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([i, j])), torch.from_numpy(values), (counts.size, counts.size), check_invariants=False
    )
    dimension = min(dimension, counts.size)
    # Randomised range finder (Halko et al. 2011), by hand because torch's own takes no generator.
    basis = torch.randn(
        counts.size,
        min(counts.size, dimension + 10),
        dtype=torch.float64,
        generator=torch.Generator().manual_seed(seed),
    )
    for _ in range(3):
        basis, _ = torch.linalg.qr(torch.sparse.mm(sparse.t(), torch.sparse.mm(sparse, basis)))
    left, strength, _ = torch.linalg.svd(torch.sparse.mm(sparse, basis), full_matrices=False)
    vectors = left[:, :dimension] * strength[:dimension] / torch.from_numpy(np.maximum(weight, 1e-4))[:, None]
    return np.asarray(vectors.float().numpy(), np.float32)


class PlainLoss:
    """The loss of a handful of sampled pairs, layer by layer in NumPy (gradients.py): the reference method.

    `vectors` stay as they are. A batch is (contexts, next tokens).
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self.parameters = {name: parameters[name] for name in ("W1", "b1", "W2", "b2")}
        self.vectors = parameters["vectors"].numpy()

    def gradient(self, batch: tuple[NDArray[np.int64], NDArray[np.int64]], step: int) -> tuple[float, float]:
        contexts, following = batch
        W1, b1, W2, b2 = (self.parameters[name].detach().numpy() for name in ("W1", "b1", "W2", "b2"))
        targets = np.zeros((len(following), len(b2)), W2.dtype)
        targets[np.arange(len(following)), following] = 1
        nats, backprop = gradients.network(self.vectors[contexts], W1, b1, W2, b2, targets)
        _, *found = backprop()
        for name, gradient in zip(self.parameters, found, strict=True):
            self.parameters[name].grad = torch.from_numpy(gradient)
        return nats, float(len(following))

    def plain(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"vectors": torch.from_numpy(self.vectors), **parameters}


class ExactLoss:
    """Loss and gradient of the whole corpus through its pair counts, in round coordinates (module docstring).

    `parameters` are those of the round coordinates; `plain(parameters)` gives those of the model. A batch is the
    `PairCounts` to fit. With `dropout`, each feature of context i is left out with probability dropout/(1 + nᵢ/1000) in
    each step: what follows a common token is well known, and one mask for a tenth of the corpus would be mere noise.
    (The choice is a function of `seed` and the step alone, so that a resumed run makes the same.)
    """

    def __init__(
        self,
        counts: PairCounts,
        plain: Mapping[str, Tensor],
        *,
        learn_vectors: bool = True,
        dropout: float = 0.0,
        seed: int = 0,
        smoothing: float = 1000.0,
    ) -> None:
        self.dropout, self.seed, self.learn_vectors = dropout, seed, learn_vectors
        dtype = plain["W1"].dtype
        totals = torch.from_numpy(counts.row_totals).to(dtype)
        self.left_out = (dropout / (1 + totals / RARE_TOKENS)).float()[:, None]  # V×1
        weight = totals / totals.sum()
        self.mean, self.rounding = _rounding(plain["vectors"], weight)
        inputs = (plain["vectors"] - self.mean) @ self.rounding
        W1, b1 = plain["W1"].clone(), plain["b1"].clone()
        h = torch.sigmoid(inputs @ W1 + b1)
        self.centre, self.whitening = _rounding(h, weight)
        features = (h - self.centre) @ self.whitening  # V×H
        W2, b2 = _least_squares_start(counts, features, weight, smoothing)
        self.parameters = {"W1": W1, "b1": b1, "W2": W2, "b2": b2}
        self._inputs = inputs
        if learn_vectors:
            self.parameters["vectors"] = inputs

    def gradient(self, batch: PairCounts, step: int) -> tuple[float, float]:
        nats, found = self.loss(self.parameters, batch, step if self.dropout else None)
        for name, parameter in self.parameters.items():
            parameter.grad = found[name]
        return nats, batch.tokens

    def nats(self, parameters: Mapping[str, Tensor], counts: PairCounts) -> float:
        """J alone, at a third of the price."""
        return self.loss(parameters, counts, gradient=False)[0]

    def loss(
        self,
        parameters: Mapping[str, Tensor],
        counts: PairCounts,
        dropout_step: int | None = None,
        gradient: bool = True,
    ) -> tuple[float, dict[str, Tensor]]:
        """J and its gradient with respect to each of `parameters`. Contexts without counts cost nothing."""
        p = dict(parameters)
        size, contexts = counts.size, torch.from_numpy(counts.contexts)  # N of the V contexts
        inputs = p.get("vectors", self._inputs)[contexts]  # N×D
        dtype = inputs.dtype
        h = torch.sigmoid(torch.addmm(p["b1"], inputs, p["W1"]))  # N×H
        features = (h - self.centre) @ self.whitening
        kept = None
        if dropout_step is not None:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + dropout_step)
            left_out = self.left_out[contexts]
            kept = torch.rand(features.shape, generator=generator, dtype=torch.float32) >= left_out
            kept = kept.to(dtype) / (1 - left_out).to(dtype)
            features = features * kept
        totals = torch.from_numpy(counts.row_totals).to(dtype)[contexts]
        values = torch.from_numpy(counts.values).to(dtype)
        spread, base = torch.from_numpy(counts.spread).to(dtype)[contexts], torch.from_numpy(counts.base).to(dtype)
        softened = bool(counts.spread.any())

        nats = 0.0
        d_W2, d_b2, d_features = torch.zeros_like(p["W2"]), torch.zeros_like(p["b2"]), torch.empty_like(features)
        rows = max(1, BLOCK_CELLS // size)
        for start in range(0, len(contexts), rows):
            stop = min(len(contexts), start + rows)
            cells, pairs = _cells(counts, start, stop)
            n, f = totals[start:stop, None], features[start:stop]
            logits = torch.addmm(p["b2"], f, p["W2"])  # rows×V
            log_total = torch.logsumexp(logits, dim=1, keepdim=True)
            nats += float((n * log_total).sum(dtype=torch.float64))
            nats -= float((logits.view(-1)[cells] * values[pairs]).sum(dtype=torch.float64))
            if softened:
                nats -= float((spread[start:stop] * (logits @ base)).sum(dtype=torch.float64))
            if not gradient:
                continue
            d_logits = logits.sub_(log_total).exp_().mul_(n)
            d_logits.view(-1).index_add_(0, cells, values[pairs], alpha=-1)
            if softened:
                d_logits.addr_(spread[start:stop], base, alpha=-1)
            d_W2.addmm_(f.T, d_logits)
            d_b2 += d_logits.sum(dim=0)
            d_features[start:stop] = d_logits @ p["W2"].T

        if not gradient:
            return nats, {}
        if kept is not None:
            d_features *= kept
        d_a = (d_features @ self.whitening.T).mul_(h).mul_(1 - h)  # N×H
        found = {"W1": inputs.T @ d_a, "b1": d_a.sum(dim=0), "W2": d_W2, "b2": d_b2}
        if "vectors" in p:
            found["vectors"] = torch.zeros_like(p["vectors"]).index_copy_(0, contexts, d_a @ p["W1"].T)
        return nats, found

    def plain(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The model's own parameters: H' = (H − c)T folded into W₂, b₂; X' = (X − m)R into W₁, b₁ when X is fixed."""
        p = {name: value.detach() for name, value in parameters.items()}
        W2 = self.whitening @ p["W2"]
        folded = {"W1": p["W1"], "b1": p["b1"], "W2": W2, "b2": p["b2"] - self.centre @ W2}
        if self.learn_vectors:
            return {"vectors": p["vectors"].clone(), **folded}
        folded["W1"] = self.rounding @ p["W1"]
        folded["b1"] = p["b1"] - self.mean @ folded["W1"]
        vectors = self._inputs @ torch.linalg.inv(self.rounding) + self.mean
        return {"vectors": vectors, **folded}


def _cells(counts: PairCounts, start: int, stop: int) -> tuple[Tensor, slice]:
    """For the contexts numbered `start` … `stop − 1` of `counts.contexts`: where their pairs stand in a block of logits
    laid flat, and where in `counts.values`."""
    pairs = slice(int(counts.starts[start]), int(counts.starts[stop]))
    row, column = np.divmod(counts.keys[pairs], counts.size)
    return torch.from_numpy(np.searchsorted(counts.contexts[start:stop], row) * counts.size + column), pairs


def _rounding(rows: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of the rows under `weight`, and the symmetric matrix that makes their covariance the identity."""
    mean = weight @ rows
    centred = rows - mean
    covariance = (centred * weight[:, None]).T @ centred
    ridge = 1e-3 * covariance.diagonal().mean()
    values, axes = torch.linalg.eigh(covariance + ridge * torch.eye(len(covariance), dtype=rows.dtype))
    return mean, axes @ torch.diag(values.rsqrt()) @ axes.T


def _least_squares_start(
    counts: PairCounts, features: Tensor, weight: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """W₂ and b₂ that fit ln((C + k u)/((n + k) u)) + ln u best, contexts weighted by how often they occur.

    With round features (mean 0, covariance I) least squares is a product. Where C = 0 the target is ln(k/(n + k)) in
    every column, so only the cells that occur are corrected.
    """
    size, dtype = counts.size, features.dtype
    unigram = counts.column_totals / counts.tokens
    unigram = (unigram + 1e-9) / (unigram + 1e-9).sum()
    n = counts.row_totals
    empty = np.log(smoothing / (n + smoothing))  # V
    i, j = np.divmod(counts.keys, size)
    extra = np.log((counts.values + smoothing * unigram[j]) / (smoothing * unigram[j]))
    sparse = torch.sparse_coo_tensor(
        torch.from_numpy(np.stack([j, i])),
        torch.from_numpy(extra * weight.double().numpy()[i]).to(dtype),
        (size, size),
        check_invariants=False,
    )
    weighted = torch.from_numpy(empty).to(dtype) * weight  # V
    W2 = torch.sparse.mm(sparse, features).T + (features.T @ weighted)[:, None]
    b2 = torch.sparse.sum(sparse, dim=1).to_dense() + weighted.sum() + torch.from_numpy(np.log(unigram)).to(dtype)
    return W2.contiguous(), b2
