"""Forward and backward through the transformer by hand, as training wants it: the numbers of gpt.py, in less time.

A small transformer spends more time on memory than on arithmetic. So texts go through all layers a few at a time, in
memory that is kept from step to step, and each operation is a large product or one of the parts of kernels/:

    u = x r                      r = 1/√(mean x² + ε)        the norm; its gain is in the rows of the matrix behind it
    qkv = u W                    W = g ⊙ [Wq Wk Wv]          one product, likewise gate and up
    x ← x + attend(qkv) Wo
    x ← x + act(u W') Wdown      u of the new x              W' = g' ⊙ [Wgate Wup]
    nats, d_logits               from u (g″ ⊙ O)

and backwards, with d_x the gradient of the residual stream, d_W += uᵀ d_h and d_x += r (d_u − u · mean(d_u ⊙ u)) for
d_u = d_h Wᵀ. From d_W come those of its parts: d_Wq = g ⊙ its columns, d_g = Σ_columns d_W ⊙ [Wq Wk Wv].

In "bfloat16" the factors of these products are rounded to it; products, and all else, are float32.
Left out: models without a layer after attention, for which gpt_loss.py has autograd.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.models.gpt import GPTConfig, Parameters, mlp_inputs, rotary_turns
from inkling.models.kernels import Heads, Parts

Precision = Literal["float32", "bfloat16"]
LOGITS_AT_ONCE = 1 << 20
PLACES_AT_ONCE = 1024  # that go through all layers together: what is kept for the way back stays near the core


@dataclass(frozen=True)
class Dropping:
    """What is left out of what layers write: a `share`, decided by `keys` (one a layer and part) and the place."""

    share: float
    keys: tuple[int, ...]

    @classmethod
    def at(cls, share: float, layers: int, seed: int, step: int) -> Dropping | None:
        if not share:
            return None
        keys = np.random.SeedSequence((seed, step)).generate_state(2 * layers)
        return cls(share, tuple(map(int, keys)))


@dataclass(frozen=True)
class Texts:
    """Texts side by side, B×T places. `rows` are those of the embedding and of each table of hashed runs (B·T each)."""

    count: int
    times: int
    rows: Mapping[str, Tensor]
    targets: Tensor  # of the places that count
    counted: Tensor | None  # these places; None: all
    places: Tensor  # B·T, int32: where each stands in the batch, for dropping


class Fused:
    """The parameters as products want them, made once a step for all who work on it."""

    def __init__(self, config: GPTConfig, P: Mapping[str, Tensor], precision: Precision) -> None:
        self.config, self.P = config, P
        self._joined = {  # before the gain
            **{f"qkv{n}": torch.cat([P[f"layers.{n}.{name}"] for name in "qkv"], dim=1) for n in range(config.layers)},
            **{
                f"up{n}": torch.cat([P[f"layers.{n}.{name}"] for name in mlp_inputs(config)], dim=1)
                for n in range(config.layers)
            },
            "output": P["embedding"].t() if config.tied else P["output"],
        }
        matrices = {name: value * self._gain(name)[:, None] for name, value in self._joined.items()}
        for n in range(config.layers):
            matrices |= {f"{name}{n}": P[f"layers.{n}.{name}"] for name in ("o", "down")}
        if precision == "bfloat16":
            matrices = {name: value.bfloat16() for name, value in matrices.items()}
        self.matrices = matrices

    def _gain(self, name: str) -> Tensor:
        kinds = {"qkv": "attention_norm", "up": "mlp_norm"}
        kind = name.rstrip("0123456789")
        return self.P[f"layers.{name.removeprefix(kind)}.{kinds[kind]}"] if kind in kinds else self.P["norm"]

    def gradients(self, found: Mapping[str, Tensor]) -> Parameters:
        """Of the parameters, from those of the matrices; all but what vectors of tokens get as inputs."""
        config, result = self.config, dict[str, Tensor]()
        for n in range(config.layers):
            inside = f"layers.{n}."
            for kind, norm, names in (("qkv", "attention_norm", tuple("qkv")), ("up", "mlp_norm", mlp_inputs(config))):
                due, gain = found[f"{kind}{n}"], self._gain(f"{kind}{n}")
                result[inside + norm] = (due * self._joined[f"{kind}{n}"]).sum(1)
                widths = [self.P[inside + name].shape[1] for name in names]
                for name, part in zip(names, torch.split(due, widths, dim=1), strict=True):
                    result[inside + name] = part * gain[:, None]
            result |= {inside + name: found[f"{name}{n}"].clone() for name in ("o", "down")}
            if config.query_key_norm:
                result |= {f"{inside}{name}_norm": found[f"{name}_norm{n}"].clone() for name in "qk"}
        due = found["output"]
        result["norm"] = (due * self._joined["output"]).sum(1)
        due = due * self._gain("output")[:, None]
        if config.tied:
            result["embedding"] = due.t().contiguous()
        else:
            result["embedding"] = torch.zeros_like(self.P["embedding"])
            result["output"] = due
        return result | {name: torch.zeros_like(self.P[name]) for name in config.gram_names}


@dataclass
class _Memory:
    """For so many places. What a layer keeps for its way back has a first axis of layers."""

    x: Tensor
    d_x: Tensor
    d_u: Tensor
    u: Tensor  # of the last norm
    r: Tensor
    u1: Tensor
    r1: Tensor
    qkv: Tensor
    sums: Tensor
    mixed: Tensor
    u2: Tensor
    r2: Tensor
    h: Tensor
    inner: Tensor
    d_inner: Tensor

    @classmethod
    def of(cls, config: GPTConfig, places: int, dtype: torch.dtype) -> _Memory:
        L, D, M, H = config.layers, config.dimension, config.mlp, config.heads
        wide, above = D + 2 * config.key_heads * config.head_dimension, M * len(mlp_inputs(config))
        shared = {"x": (D,), "d_x": (D,), "d_u": (D,), "u": (D,), "r": (), "d_inner": (M,)}
        kept = {"u1": (D,), "r1": (), "qkv": (wide,), "sums": (2 * H,), "mixed": (D,), "u2": (D,), "r2": ()}
        kept |= {"h": (above,), "inner": (M,)}
        sizes = {name: (places, *size) for name, size in shared.items()}
        sizes |= {name: (L, places, *size) for name, size in kept.items()}
        return cls(**{name: torch.empty(size, dtype=dtype) for name, size in sizes.items()})

    def first(self, places: int) -> _Memory:
        whole = vars(self)
        shared = {name: whole[name][:places] for name in ("x", "d_x", "d_u", "u", "r", "d_inner")}
        return _Memory(**shared, **{name: value[:, :places] for name, value in whole.items() if name not in shared})


class Worker:
    """One who takes texts through the model and back, on one core, in memory of its own."""

    def __init__(self, config: GPTConfig, parts: Parts, dtype: torch.dtype, precision: Precision = "float32") -> None:
        self.config, self.parts, self.dtype, self.precision = config, parts, dtype, precision
        self._turns = rotary_turns(config, config.context, dtype)
        self._memory = _Memory.of(config, 0, dtype)
        self._d_x = torch.empty(0, config.dimension, dtype=dtype)
        self._found: dict[str, Tensor] = {}

    @torch.no_grad()
    def gradient(
        self, all_texts: Sequence[Texts], W: Fused, drop: Dropping | None
    ) -> tuple[float, dict[str, Tensor], list[Tensor]]:
        """Nats, the gradients of all matrices and gains, and those of the vectors that went in, of each of `all_texts`.

        They are valid until the next call.
        """
        sizes = [texts.count * texts.times for texts in all_texts]
        longest = max((texts.times for texts in all_texts), default=0)
        if longest > len(self._turns[0]):
            self._turns = rotary_turns(self.config, longest, self.dtype)
        if len(self._memory.x) < max(sizes, default=0):
            self._memory = _Memory.of(self.config, max(sizes), self.dtype)
        if len(self._d_x) < sum(sizes):
            self._d_x = torch.empty(sum(sizes), self.config.dimension, dtype=self.dtype)
        self._forget(W)
        nats, due = 0.0, list(torch.split(self._d_x[: sum(sizes)], sizes))
        for texts, size, d_x in zip(all_texts, sizes, due, strict=True):
            memory = self._memory.first(size)
            memory.d_x = d_x
            nats += self._take(texts, memory, W, drop)
        return nats, self._found, due

    def _forget(self, W: Fused) -> None:
        if not self._found:
            self._found = {name: torch.empty(value.shape, dtype=self.dtype) for name, value in W.matrices.items()}
            for n in range(self.config.layers if self.config.query_key_norm else 0):
                self._found |= {
                    f"{name}_norm{n}": self._turns[0].new_empty(self.config.head_dimension) for name in "qk"
                }
        for value in self._found.values():
            value.zero_()

    def _take(self, texts: Texts, m: _Memory, W: Fused, drop: Dropping | None) -> float:
        for name, rows in texts.rows.items():
            self.parts.pick_rows(W.P[name], rows, m.x, name != "embedding")
        kept = [self._forward(n, m, texts, W, drop) for n in range(self.config.layers)]
        nats = self._output(m, texts, W)
        for n in reversed(range(self.config.layers)):
            self._backward(n, m, texts, W, drop, *kept[n])
        return nats

    def _forward(self, n: int, m: _Memory, texts: Texts, W: Fused, drop: Dropping | None) -> tuple[Heads, Any]:
        """One layer; the shape of its attention, and what that keeps."""
        config, parts, epsilon = self.config, self.parts, self.config.norm_epsilon
        q_gain, k_gain = (W.P.get(f"layers.{n}.{name}_norm") for name in "qk")
        sizes = (texts.count, texts.times, config.heads, config.key_heads, config.head_dimension)
        shape = Heads(*sizes, epsilon, *self._turns, q_gain, k_gain)
        parts.norm(m.x, m.u1[n], m.r1[n], epsilon)
        self._product(m.u1[n], W.matrices[f"qkv{n}"], m.qkv[n])
        kept = parts.attend(shape, m.qkv[n], m.mixed[n], m.sums[n])
        self._write(m, m.mixed[n], W.matrices[f"o{n}"], texts, drop, 2 * n)
        parts.norm(m.x, m.u2[n], m.r2[n], epsilon)
        self._product(m.u2[n], W.matrices[f"up{n}"], m.h[n])
        (parts.gate if config.activation == "gated" else parts.squared)(m.h[n], m.inner[n])
        self._write(m, m.inner[n], W.matrices[f"down{n}"], texts, drop, 2 * n + 1)
        return shape, kept

    def _write(self, m: _Memory, read: Tensor, matrix: Tensor, texts: Texts, drop: Dropping | None, part: int) -> None:
        """x ← x + drop(read · matrix)."""
        if drop is None:
            self._product(read, matrix, m.x, add=True)
        else:
            self._product(read, matrix, m.d_u)
            self.parts.drop(m.d_u, m.x, texts.places, drop.keys[part], drop.share, True)

    def _backward(
        self, n: int, m: _Memory, texts: Texts, W: Fused, drop: Dropping | None, shape: Heads, kept: Any
    ) -> None:
        """d_x becomes the gradient of what the layer has read."""
        parts, matrices = self.parts, W.matrices
        d_written = self._due(m, texts, drop, 2 * n + 1)
        self._add(f"down{n}", m.inner[n], d_written)
        self._product(d_written, matrices[f"down{n}"].t(), m.d_inner)
        (parts.gate_back if self.config.activation == "gated" else parts.squared_back)(m.d_inner, m.h[n])
        self._add(f"up{n}", m.u2[n], m.h[n])
        self._product(m.h[n], matrices[f"up{n}"].t(), m.d_u)
        parts.norm_back(m.d_u, m.u2[n], m.r2[n], m.d_x, True)
        d_written = self._due(m, texts, drop, 2 * n)
        self._add(f"o{n}", m.mixed[n], d_written)
        self._product(d_written, matrices[f"o{n}"].t(), m.u)
        gains = (self._found[f"q_norm{n}"], self._found[f"k_norm{n}"]) if self.config.query_key_norm else None
        parts.attend_back(shape, m.qkv[n], m.mixed[n], m.u, kept, gains)
        self._add(f"qkv{n}", m.u1[n], m.qkv[n])
        self._product(m.qkv[n], matrices[f"qkv{n}"].t(), m.d_u)
        parts.norm_back(m.d_u, m.u1[n], m.r1[n], m.d_x, True)

    def _due(self, m: _Memory, texts: Texts, drop: Dropping | None, part: int) -> Tensor:
        """The gradient of what one part has written, before some of it was left out."""
        if drop is None:
            return m.d_x
        self.parts.drop(m.d_x, m.d_u, texts.places, drop.keys[part], drop.share, False)
        return m.d_u

    def _output(self, m: _Memory, texts: Texts, W: Fused) -> float:
        """Nats, the gradient of the output matrix, and d_x; logits a few rows at a time."""
        parts, matrix, nats = self.parts, W.matrices["output"], 0.0
        parts.norm(m.x, m.u, m.r, self.config.norm_epsilon)
        u, d_u = m.u, m.d_u
        if texts.counted is not None:
            u = m.u[texts.counted]
            d_u = torch.empty_like(u)
        at_once = max(64, LOGITS_AT_ONCE // matrix.shape[1])
        logits = torch.empty(min(at_once, len(u)), matrix.shape[1], dtype=self.dtype)
        for first in range(0, len(u), at_once):
            part = slice(first, first + at_once)
            some = logits[: len(u[part])]
            self._product(u[part], matrix, some)
            nats += parts.cross_entropy(some, texts.targets[part])
            self._add("output", u[part], some)
            self._product(some, matrix.t(), d_u[part])
        if texts.counted is not None:
            m.d_u.zero_()[texts.counted] = d_u
        parts.norm_back(m.d_u, m.u, m.r, m.d_x, False)
        return nats

    def _add(self, name: str, left: Tensor, right: Tensor) -> None:
        """The gradient of a matrix, leftᵀ · right, to what other texts have given."""
        self._product(left.t(), right, self._found[name], add=True)

    def _product(self, a: Tensor, b: Tensor, out: Tensor, add: bool = False) -> None:
        if self.precision == "bfloat16":
            found = torch.mm(a.bfloat16(), b.bfloat16())
            out.add_(found) if add else out.copy_(found)
        elif add:
            out.addmm_(a, b)
        else:
            torch.mm(a, b, out=out)


def share_rows(lengths: NDArray[np.int64], workers: int) -> list[NDArray[np.int64]]:
    """The rows for each worker, longest first: nearly as many tokens for one as for another. Rows of length 0: none.

    Rows in the order of their lengths go to workers 0 1 … w … 1 0 0 1 …, so that who gets the longest of one round
    gets the shortest of the next.
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: int((lengths > 0).sum())]
    turn = np.arange(len(order)) % (2 * workers)
    whose = np.minimum(turn, 2 * workers - 1 - turn)
    return [order[whose == worker] for worker in range(workers)]


def zero_start(parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    """What writes into the residual stream starts at zero, and so does an output of its own."""
    quiet = ("o", "down", "output")
    return {name: torch.zeros_like(p) if name.rpartition(".")[2] in quiet else p for name, p in parameters.items()}


def runs_of(lengths: NDArray[np.int64]) -> list[slice]:
    """Cuts rows, longest first, into runs of about `PLACES_AT_ONCE` when filled up to the longest of the run."""
    found, first = [], 0
    while first < len(lengths):
        run = slice(first, first + max(1, PLACES_AT_ONCE // int(lengths[first])))
        found.append(run)
        first = run.stop
    return found
