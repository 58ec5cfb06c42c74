"""The small decoder-only transformer: rotary positions, RMS norms before each part, no biases (as Llama and Qwen3).

    x = E[token] (+ Σₙ Gₙ[row of the last n tokens])                      the residual stream, T×D
    q, k, v = norm(x) Wq, norm(x) Wk, norm(x) Wv                          cut into H heads of d = D/H
    sₜⱼ = R(t) qₜ · R(j) kⱼ / √d    j ≤ t        α = softmax(s)           R turns pairs of coordinates by t·base^(−2i/d)
    x ← x + Σ_heads (α v) Wo_head
    y = norm(x)      x ← x + (silu(y Wgate) ⊙ y Wup) Wdown                left out where `mlp` is 0
    ln p = log softmax(norm(x) O)                                         O = Eᵀ where tied

    norm(x) = g ⊙ x / √(mean x² + ε)

Two options that no other program opens: `activation` "squared_relu" has x ← x + relu(y Wup)² Wdown instead of the gated
layer, and `grams` adds tables Gₙ of vectors for hashed runs of the last 2, 3, … tokens to the input (grams.py).

`forward` is the fast way, with torch's fused attention, for training. `GPT.look` is the same in plain products, and
keeps what it finds on the way: scores, weights, and what each head adds to the residual stream (contract `Attentive`).
Parameters are a plain dict; matrices stand inputs × outputs.

Vaswani et al. (2017); Su et al. (2021) on rotary positions; Zhang and Sennrich (2019) on the norm; Shazeer (2020) on
the gated layer; So et al. (2021) on the squared one; Ainslie et al. (2023) on keys shared by several heads. Left out:
dropout, biases, a context longer than was trained. The same model over a tokeniser, which scores and writes texts of
any length, is in gpt_model.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from inkling.errors import UsageError
from inkling.models.contracts import Head, Look, Touch
from inkling.models.grams import MOST_GRAMS, gram_rows_of

Parameters = dict[str, Tensor]
Activation = Literal["gated", "squared_relu"]
NORM_EPSILON = 1e-6


@dataclass(frozen=True)
class GPTConfig:
    """The sizes. `mlp` is the width of the layer after attention, 0 for none; `context` the most tokens of a text.

    `query_key_norm` normalises the queries and keys of each head; `tied` uses the embedding for the output too.
    `key_value_heads` is the number of different keys and values, each shared by as many heads in a row; 0: one a head.
    `grams` is the number of tables of hashed runs of tokens: of 2, of 2 and 3, …; `gram_rows` the rows of each.
    """

    vocabulary: int
    dimension: int = 128
    layers: int = 4
    heads: int = 4
    mlp: int = 256
    context: int = 256
    query_key_norm: bool = True
    tied: bool = True
    rotary_base: float = 10_000.0
    key_value_heads: int = 0
    norm_epsilon: float = NORM_EPSILON
    activation: Activation = "gated"
    grams: int = 0
    gram_rows: int = 0

    def __post_init__(self) -> None:
        limits = (
            ("vocabulary", self.vocabulary >= 2, "at least 2 tokens"),
            ("dimension", self.dimension >= 2, "at least 2"),
            ("layers", self.layers >= 1, "at least 1"),
            ("heads", self.heads >= 1, "at least 1"),
            ("mlp", self.mlp >= 0, "a width of at least 1, or 0 for attention only"),
            ("context", self.context >= 2, "at least 2 tokens"),
            ("rotary_base", 1 < self.rotary_base < math.inf, "a number above 1"),
            ("norm_epsilon", 0 < self.norm_epsilon < math.inf, "a small number above 0"),
            ("activation", self.activation in get_args(Activation), f"one of {', '.join(get_args(Activation))}"),
            ("grams", 0 <= self.grams <= MOST_GRAMS, f"0 for none, or up to {MOST_GRAMS} tables"),
            ("gram_rows", 0 < self.gram_rows < 1 << 31 or not self.grams, "the rows of each table of grams"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"{name} of a GPT is {getattr(self, name)}; give {wanted}.")
        if self.dimension % (2 * self.heads):
            raise UsageError(
                f"dimension of a GPT is {self.dimension}, which {self.heads} heads cannot share in pairs of "
                f"coordinates; give a multiple of {2 * self.heads}."
            )
        if self.key_value_heads < 0 or self.heads % (self.key_value_heads or 1):
            raise UsageError(
                f"key_value_heads of a GPT is {self.key_value_heads}, which {self.heads} heads cannot share evenly; "
                f"give a divisor of {self.heads}, or 0 for one a head."
            )

    @property
    def head_dimension(self) -> int:
        return self.dimension // self.heads

    @property
    def key_heads(self) -> int:
        """The number of different keys and values."""
        return self.key_value_heads or self.heads

    @property
    def gram_names(self) -> dict[str, int]:
        """The parameters of the tables of hashed runs, each with the length n of its runs."""
        return {f"grams.{n}": n for n in range(2, self.grams + 2)}

    @property
    def is_exportable(self) -> bool:
        """Whether there is a layout that other programs open (gpt_layout.py)."""
        return self.mlp > 0 and self.activation == "gated" and not self.grams


def initial_parameters(config: GPTConfig, generator: np.random.Generator) -> Parameters:
    """Normal with deviation 1/√inputs; what writes into the residual stream 1/√(2 layers) of that, so that many layers
    add up to a length that does not depend on their number. An embedding that is not the output too has deviation 1.
    Tables of hashed runs start at zero.
    """

    def draw(rows: int, columns: int, deviation: float) -> Tensor:
        return torch.from_numpy((generator.standard_normal((rows, columns)) * deviation).astype(np.float32))

    V, D, d = config.vocabulary, config.dimension, config.head_dimension
    plain, quiet = 1 / math.sqrt(D), 1 / math.sqrt(2 * config.layers)
    found = {"embedding": draw(V, D, plain if config.tied else 1.0)}
    found |= {name: torch.zeros(config.gram_rows, D) for name in config.gram_names}
    for n in range(config.layers):
        found[f"layers.{n}.attention_norm"] = torch.ones(D)
        found[f"layers.{n}.q"] = draw(D, D, plain)
        found |= {f"layers.{n}.{name}": draw(D, config.key_heads * d, plain) for name in "kv"}
        found[f"layers.{n}.o"] = draw(D, D, plain * quiet)
        if config.query_key_norm:
            found |= {f"layers.{n}.{name}_norm": torch.ones(d) for name in "qk"}
        if config.mlp:
            found[f"layers.{n}.mlp_norm"] = torch.ones(D)
            found |= {f"layers.{n}.{name}": draw(D, config.mlp, plain) for name in mlp_inputs(config)}
            found[f"layers.{n}.down"] = draw(config.mlp, D, quiet / math.sqrt(config.mlp))
    found["norm"] = torch.ones(D)
    if not config.tied:
        found["output"] = draw(D, V, plain)
    return found


def mlp_inputs(config: GPTConfig) -> tuple[str, ...]:
    """The matrices through which the layer after attention reads."""
    return ("gate", "up") if config.activation == "gated" else ("up",)


def forward(P: Mapping[str, Tensor], config: GPTConfig, ids: Tensor) -> Tensor:
    """Logits (B×T×V) of the token after each of `ids` (B×T)."""
    x = vectors_of(P, config, ids)
    turns = rotary_turns(config, ids.shape[1], x.dtype)
    for n in range(config.layers):
        q, k, v = queries_keys_values(P, config, n, x, turns)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # B×H×T×d
        x = x + mixed.transpose(1, 2).flatten(2) @ P[f"layers.{n}.o"]
        if config.mlp:
            x = x + mlp_layer(P, config, n, x)
    return logits_of(P, config, x)


def vectors_of(P: Mapping[str, Tensor], config: GPTConfig, ids: Tensor) -> Tensor:
    """What the first layer reads (B×T×D): of each token its vector, and those of the runs that end with it."""
    x = functional.embedding(ids, P["embedding"])
    for name, n in config.gram_names.items():
        x = x + functional.embedding(gram_rows_of(ids, n, config), P[name])
    return x


def rms_norm(x: Tensor, gain: Tensor, epsilon: float = NORM_EPSILON) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon) * gain


def rotary_turns(config: GPTConfig, times: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine (T × d/2) of the angle of each pair of coordinates at each place."""
    pairs = torch.arange(config.head_dimension // 2, dtype=torch.float64)
    angles = torch.outer(
        torch.arange(times, dtype=torch.float64), config.rotary_base ** (-2 * pairs / config.head_dimension)
    )
    return angles.cos().to(dtype), angles.sin().to(dtype)


def turned(x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Coordinate i and coordinate i + d/2 are a pair."""
    cosine, sine = turns
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)


def queries_keys_values(
    P: Mapping[str, Tensor], config: GPTConfig, layer: int, x: Tensor, turns: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Of one layer, B×H×T×d each, positions turned in; keys and values that heads share are there once for each."""
    epsilon = config.norm_epsilon
    read = rms_norm(x, P[f"layers.{layer}.attention_norm"], epsilon)
    shape = (*x.shape[:2], -1, config.head_dimension)
    q, k, v = ((read @ P[f"layers.{layer}.{name}"]).view(shape).transpose(1, 2) for name in "qkv")
    if config.query_key_norm:
        q, k = rms_norm(q, P[f"layers.{layer}.q_norm"], epsilon), rms_norm(k, P[f"layers.{layer}.k_norm"], epsilon)
    q, k = turned(q, turns), turned(k, turns)
    if config.key_heads < config.heads:
        k, v = (shared.repeat_interleave(config.heads // config.key_heads, dim=1) for shared in (k, v))
    return q, k, v


def mlp_layer(P: Mapping[str, Tensor], config: GPTConfig, layer: int, x: Tensor) -> Tensor:
    read = rms_norm(x, P[f"layers.{layer}.mlp_norm"], config.norm_epsilon)
    inner = read @ P[f"layers.{layer}.up"]
    if config.activation == "gated":
        inner = functional.silu(read @ P[f"layers.{layer}.gate"]) * inner
    else:
        inner = functional.relu(inner).square()
    return inner @ P[f"layers.{layer}.down"]


def logits_of(P: Mapping[str, Tensor], config: GPTConfig, residual: Tensor) -> Tensor:
    output = P["embedding"].t() if config.tied else P["output"]
    return rms_norm(residual, P["norm"], config.norm_epsilon) @ output


class GPT:
    """The trained model (contract Attentive)."""

    def __init__(self, config: GPTConfig, parameters: Mapping[str, Tensor]) -> None:
        self.config, self.parameters = config, {name: value.detach() for name, value in parameters.items()}

    @property
    def layers(self) -> int:
        return self.config.layers

    @property
    def heads(self) -> int:
        return self.config.heads

    def tensors(self) -> Parameters:
        return dict(self.parameters)

    @torch.no_grad()
    def log_probs(self, ids: Tensor) -> Tensor:
        """B×T×V, of the token after each of `ids` (B×T), the fast way."""
        self._check(ids)
        return torch.log_softmax(forward(self.parameters, self.config, ids), dim=-1)

    @torch.no_grad()
    def unembed(self, residual: Tensor) -> Tensor:
        return logits_of(self.parameters, self.config, residual)

    @torch.no_grad()
    def look(self, ids: Tensor, touch: Touch | None = None) -> Look:
        touch = touch or Touch()
        self._check(ids, *touch.replaced, *touch.key_noise)
        P, config, times = self.parameters, self.config, ids.shape[1]
        x = vectors_of(P, config, ids)
        turns = rotary_turns(config, times, x.dtype)
        hidden = torch.ones(times, times, dtype=torch.bool).triu(1)  # what comes later
        all_scores, all_weights, all_outputs = [], [], []
        for n in range(config.layers):
            q, k, v = queries_keys_values(P, config, n, x, turns)
            for (layer, head), share in touch.key_noise.items():
                if layer == n:
                    k[:, head] += _noise(k[:, head], share, (touch.seed, n, head), touch.first_text)
            scores = (q @ k.mT / math.sqrt(config.head_dimension)).masked_fill(hidden, -math.inf)  # B×H×T×T
            weights = torch.softmax(scores, dim=-1)
            by_head = P[f"layers.{n}.o"].view(config.heads, config.head_dimension, -1)  # H×d×D
            outputs = weights @ v @ by_head  # B×H×T×D
            for (layer, head), vector in touch.replaced.items():
                if layer == n:
                    outputs[:, head] = vector
            x = x + outputs.sum(1)
            if config.mlp:
                x = x + mlp_layer(P, config, n, x)
            all_scores.append(scores)
            all_weights.append(weights)
            all_outputs.append(outputs)
        log_probs = torch.log_softmax(self.unembed(x), dim=-1)
        return Look(tuple(all_scores), tuple(all_weights), tuple(all_outputs), x, log_probs)

    def _check(self, ids: Tensor, *touched: Head) -> None:
        config = self.config
        if ids.ndim != 2 or ids.dtype not in (torch.int32, torch.int64):
            raise UsageError(
                f"The tokens are of shape {tuple(ids.shape)} and type {ids.dtype}; give whole numbers, texts × tokens."
            )
        if ids.shape[1] > config.context:
            raise UsageError(
                f"A text has {ids.shape[1]} tokens, but this model reads {config.context} at most; cut the text."
            )
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < config.vocabulary:
            raise UsageError(
                f"The tokens go from {int(ids.min())} to {int(ids.max())}, but this model knows 0 to "
                f"{config.vocabulary - 1}; encode the text with its own tokeniser."
            )
        for layer, head in touched:
            if not (0 <= layer < config.layers and 0 <= head < config.heads):
                raise UsageError(
                    f"There is no head {head} in layer {layer}: both count from 0, and this model has {config.layers} "
                    f"layers of {config.heads} heads; name one of them."
                )


def _noise(keys: Tensor, share: float, seed: tuple[int, int, int], first_text: int) -> Tensor:
    """For the keys of one head (B×T×d), each text's from its own generator."""
    drawn = [
        np.random.default_rng((*seed, first_text + row)).standard_normal(keys.shape[1:]) for row in range(len(keys))
    ]
    lengths = keys.square().sum(-1).mean(-1).sqrt()  # B
    noise = torch.from_numpy(np.stack(drawn)) if drawn else torch.zeros(keys.shape)
    return share * lengths[:, None, None] * noise.to(keys.dtype)
