"""The transformer of gpt.py for reading only: the same function from fewer and larger products.

At these sizes a product takes about as long as calling it, so calls are what is saved:

    norm(x) W = x / √(|x|² + Dε) · (√D g W)     the gain g goes into W once, and so does 1/√d of the scores
    [q k v] = norm(x) [Wq Wk Wv]                one product instead of three; so with gate and up, if there is a gate
    R(t) [q k] = [q k] ⊙ e^{iθt}                coordinates i and i + d/2, which turn together, stand side by side in
                                                a head, as the two parts of one complex number; q · k does not mind

`read_texts` reads whole texts with torch, `step` one more token of each of several texts with numpy, which makes
a small call in a third of the time; from `FEW` texts on torch multiplies, which is twice as fast there. Weights are in
memory once for both. Where there is a C compiler, float32 and more than `PATIENCE` steps, gpt_steps.py does them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from inkling.models.gpt import GPTConfig, initial_parameters, mlp_inputs, rotary_turns, vectors_of
from inkling.models.gpt_steps import CompiledSteps, open_library
from inkling.models.grams import gram_rows_at

Array = NDArray[Any]  # float32 or float64, as the model is
FEW = 8  # texts, below which numpy multiplies
PATIENCE = 2000  # tokens that are read one by one before it pays to compile something for it
NEAR = 1e-4  # what is compiled must come as near as this, on a small example


class FusedLayer(NamedTuple):
    """None: `query_key_gain` without a norm of queries and keys, `inner` and `down` without a layer after attention."""

    qkv: Tensor  # D × (H + 2K)d, for H heads that share K different keys
    query_key_gain: Tensor | None  # (H + K) × d
    o: Tensor  # D × D
    inner: Tensor | None  # D × 2M, gate and up; or D × M, up alone
    down: Tensor | None  # M × D


class FusedGPT:
    """The parameters, prepared."""

    def __init__(self, config: GPTConfig, parameters: Mapping[str, Tensor], workers: int = 1) -> None:
        P = {name: value.detach().double() for name, value in parameters.items()}
        H, K, d, D = config.heads, config.key_heads, config.head_dimension, config.dimension
        dtype = parameters["embedding"].dtype
        side_by_side = torch.arange(d).view(2, d // 2).t().flatten()  # 0, d/2, 1, d/2 + 1, …
        within = (torch.arange(H + K)[:, None] * d + side_by_side).flatten()

        def prepared(value: Tensor) -> Tensor:
            return value.to(dtype).contiguous()

        def layer(n: int) -> FusedLayer:
            q, k, v, o = (P[f"layers.{n}.{name}"] for name in "qkvo")
            gain = None
            if config.query_key_norm:
                # Of q: √d of its norm times 1/√d of the scores.
                gains = [P[f"layers.{n}.q_norm"].expand(H, d), math.sqrt(d) * P[f"layers.{n}.k_norm"].expand(K, d)]
                gain = prepared(torch.cat(gains)[:, side_by_side])
            else:
                q = q / math.sqrt(d)
            read = math.sqrt(D) * P[f"layers.{n}.attention_norm"][:, None]
            qkv = prepared(read * torch.cat([torch.cat([q, k], dim=1)[:, within], v], dim=1))
            if not config.mlp:
                return FusedLayer(qkv, gain, prepared(o), None, None)
            read = math.sqrt(D) * P[f"layers.{n}.mlp_norm"][:, None]
            inner = prepared(read * torch.cat([P[f"layers.{n}.{name}"] for name in mlp_inputs(config)], dim=1))
            return FusedLayer(qkv, gain, prepared(o), inner, prepared(P[f"layers.{n}.down"]))

        self.config, self.workers = config, workers
        self.tables = {name: prepared(P[name]) for name in ("embedding", *config.gram_names)}
        self.embedding = self.tables["embedding"]  # V×D
        self.layers = tuple(layer(n) for n in range(config.layers))
        output = P["embedding"].t() if config.tied else P["output"]
        self.output = prepared(math.sqrt(D) * P["norm"][:, None] * output)  # D×V
        self.turns = torch.complex(*rotary_turns(config, config.context, dtype))  # context × d/2
        self._steps: CompiledSteps | None = None
        self._without = 0 if dtype == torch.float32 else -1  # tokens read without them; below zero: there are none
        # The same memory, as numpy sees it.
        self._tables = {name: table.numpy() for name, table in self.tables.items()}
        self._output, self._turns = self.output.numpy(), self.turns.numpy()
        self.arrays: list[tuple[Any, ...]]
        self.arrays = [tuple(None if value is None else value.numpy() for value in layer) for layer in self.layers]

    def read_texts(self, ids: Tensor, keys_values: Tensor | None = None) -> Tensor:
        """The residual stream (BT×D) of B texts of T tokens; `keys_values` (layers×2×B×K×room×d) keeps what it says."""
        config, (B, T) = self.config, ids.shape
        H, K, d = config.heads, config.key_heads, config.head_dimension
        turns = self.turns[:T, None]
        x = vectors_of(self.tables, config, ids).flatten(0, 1)
        for n, (qkv, gain, o, inner, down) in enumerate(self.layers):
            parts = torch.mm(self._unit(x), qkv).view(B, T, H + 2 * K, d)
            qk, v = parts[:, :, : H + K], parts[:, :, H + K :]
            if gain is not None:
                qk = self._unit(qk).mul_(gain)
            qk.view(self.turns.dtype).mul_(turns)
            q, k, v = (part.transpose(1, 2) for part in (qk[:, :, :H], qk[:, :, H:], v))  # B×heads×T×d
            if keys_values is not None:
                keys_values[n, 0, :, :, :T], keys_values[n, 1, :, :, :T] = k, v
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0, enable_gqa=K < H)
            x.addmm_(mixed.transpose(1, 2).reshape(B * T, -1), o)
            if inner is not None and down is not None:
                x.addmm_(self._activated(torch.mm(self._unit(x), inner)), down)
        return x

    def _activated(self, inner: Tensor) -> Tensor:
        """What the layer after attention gives to `down`; `inner` is written over."""
        if self.config.activation == "squared_relu":
            return inner.relu_().square_()
        gate, up = inner.chunk(2, dim=1)
        return functional.silu(gate).mul_(up)

    def logits(self, residual: Tensor) -> Tensor:
        """N×V, from the residual stream (N×D) after the last layer."""
        return torch.mm(self._unit(residual), self.output)

    def _unit(self, x: Tensor) -> Tensor:
        length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x / length.square_().add_(x.shape[-1] * self.config.norm_epsilon).sqrt_()

    def inputs_of(self, ids: NDArray[np.int64], places: Sequence[int]) -> Array:
        """What goes in (B×D) for one more token of each of B texts: the one at its place in `ids` (B×room)."""
        rows, at = np.arange(len(places)), np.array(places)
        x: Array = self._tables["embedding"][ids[rows, at]]  # B×D
        for name, n in self.config.gram_names.items():
            x += self._tables[name][gram_rows_at(ids, at, n, self.config)]
        return x

    def compiled_steps(self, tokens: int) -> CompiledSteps | None:
        """For so many more tokens: those of an earlier process at once, new ones when enough were read without."""
        if self._steps is None and self._without >= 0:
            first, late = self._without == 0, self._without >= PATIENCE
            self._without += tokens
            library = _checked_library(kept=not late) if first or late else None
            if library is not None:
                self._steps = CompiledSteps(library, self)
            elif late:
                self._without = -1
        return self._steps

    def step(self, x: Array, places: Sequence[int], keys_values: Array) -> Array:
        """Log-probabilities (B×V) from the input (B×D) of one more token of each of B texts, by numpy.

        `keys_values` (layers×2×B×K×room×d) holds what stands before, and then also what is new.
        """
        config, B, last = self.config, len(places), max(places)
        H, K, d = config.heads, config.key_heads, config.head_dimension
        even, times = min(places) == last, np.matmul if len(places) < FEW else _product
        turns, hidden, at = self._turns[last], None, np.array(places)
        here: tuple[Any, ...] = (slice(None), slice(None), last)
        if not even:  # shorter texts have nothing yet where longer ones have keys
            hidden = np.where(np.arange(last + 1) > at[:, None, None, None], -np.inf, 0)
            turns, here = self._turns[at][:, None], (np.arange(B), slice(None), at)
        for (keys, values), (qkv, gain, o, inner, down) in zip(keys_values, self.arrays, strict=True):
            parts = times(self._unit_array(x), qkv).reshape(B, H + 2 * K, d)
            qk = parts[:, : H + K]
            if gain is not None:
                qk = self._unit_array(qk)
                qk *= gain
            as_complex = qk.view(turns.dtype)
            as_complex *= turns
            keys[here], values[here] = qk[:, H:], parts[:, H + K :]
            scores = qk[:, :H].reshape(B, K, -1, d) @ keys[:, :, : last + 1].swapaxes(2, 3)  # B × K × H/K × T
            if hidden is not None:
                scores += hidden
            weights = torch.softmax(torch.from_numpy(scores), dim=3).numpy()
            x += times((weights @ values[:, :, : last + 1]).reshape(B, -1), o)
            if inner is not None:
                x += times(self._activated(torch.from_numpy(times(self._unit_array(x), inner))).numpy(), down)
        log_probs: Array = torch.log_softmax(torch.from_numpy(times(self._unit_array(x), self._output)), dim=1).numpy()
        return log_probs

    def _unit_array(self, x: Array) -> Array:
        lengths: Array = np.vecdot(x, x)
        lengths += x.shape[-1] * self.config.norm_epsilon
        np.sqrt(lengths, out=lengths)
        unit: Array = x / lengths[..., None]
        return unit


def _product(a: Array, b: Array) -> Array:
    found: Array = torch.mm(torch.from_numpy(a), torch.from_numpy(b)).numpy()
    return found


@cache
def _checked_library(kept: bool) -> Any:
    """What steps.c does, compiled, if it can be had and agrees with numpy on a small example; else None."""
    library = open_library(kept)
    if library is None:
        return None
    config, random = GPTConfig(37, 24, 2, 6, mlp=19, context=5, key_value_heads=3), np.random.default_rng(0)
    model = FusedGPT(config, initial_parameters(config, random))
    steps, (kept_here, kept_there) = CompiledSteps(library, model), np.zeros((2, 2, 2, 3, 3, 5, 4), np.float32)
    lies = [(kept_here[0, 0, row].ctypes.data, 3 * 3 * 5 * 4, 5 * 4) for row in range(3)]
    agree = True
    for place in range(5):
        x = random.standard_normal((3, 24)).astype(np.float32)
        found = steps.read_next(x, [place] * 3, lies, workers=1)
        agree &= np.allclose(found, model.step(x, [place] * 3, kept_there), rtol=0, atol=NEAR)
    return library if agree else None
