"""The forward pass of the transformer as training wants it: fewer passes over memory, the same numbers.

On a CPU a small transformer spends as much time on norms, turns and gates as on products, because each of their steps
goes through memory once forwards and twice backwards. Here three of them are one step each, with the gradient by hand:

    norm            y = x r,  r = 1/√(mean x² + ε)              d_x = r (d_y − y · mean(d_y ⊙ y))
    norm and turn   out = turn(g ⊙ y)                           d_z = d_out turned back,  d_g = Σ d_z ⊙ y,  d_y = g d_z
    gate            out = silu(a) ⊙ b                           d_a = d ⊙ b ⊙ (s + silu(a)(1 − s)),  d_b = d ⊙ silu(a)

Gains of the norms before products are multiplied into the rows of the matrix behind them, which is far smaller than the
activations; q, k and v are one product, and so are gate and up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from inkling.models.gpt import GPTConfig, rotary_turns

Drop = Callable[[Tensor], Tensor]


def fits(config: GPTConfig) -> bool:
    """Whether this way of computing is made for such sizes; `gpt.forward` is for all."""
    return config.is_exportable and config.query_key_norm and config.key_heads == config.heads


def training_logits(P: Mapping[str, Tensor], config: GPTConfig, ids: Tensor, drop: Drop | None = None) -> Tensor:
    """Logits (BT×V) of the token after each of `ids` (B×T); `drop` leaves out some of what layers write."""
    B, T = ids.shape
    D, H, d = config.dimension, config.heads, config.head_dimension
    cosine, sine = rotary_turns(config, T, P["embedding"].dtype)
    cosines = torch.cat([cosine, cosine], dim=-1)[:, None]  # T×1×d
    sines = torch.cat([-sine, sine], dim=-1)[:, None]

    def add(x: Tensor, written: Tensor, matrix: Tensor) -> Tensor:
        return torch.addmm(x, written, matrix) if drop is None else x + drop(written @ matrix)

    x = functional.embedding(ids.reshape(-1), P["embedding"])  # BT×D
    for n in range(config.layers):
        layer = {name: P[f"layers.{n}.{name}"] for name in ("attention_norm", "mlp_norm", "q_norm", "k_norm")}
        read = _unit(x, config.norm_epsilon)
        matrix = torch.cat([P[f"layers.{n}.{name}"] for name in "qkv"], dim=1) * layer["attention_norm"][:, None]
        qkv = (read @ matrix).view(B, T, 3 * H, d)
        gains = torch.cat([layer["q_norm"].expand(H, d), layer["k_norm"].expand(H, d)])
        qk = _turned(qkv[:, :, : 2 * H], gains, cosines, sines, config.norm_epsilon)
        q, k, v = (part.transpose(1, 2) for part in (qk[:, :, :H], qk[:, :, H:], qkv[:, :, 2 * H :]))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # B×H×T×d
        x = add(x, mixed.transpose(1, 2).reshape(B * T, D), P[f"layers.{n}.o"])
        matrix = torch.cat([P[f"layers.{n}.{name}"] for name in ("gate", "up")], dim=1) * layer["mlp_norm"][:, None]
        inner = _gated(_unit(x, config.norm_epsilon) @ matrix)
        x = add(x, inner, P[f"layers.{n}.down"])
    output = P["embedding"].t() if config.tied else P["output"]
    return _unit(x, config.norm_epsilon) @ (output * P["norm"][:, None])


def dropping(share: float, seed: int) -> Drop | None:
    """Each number is left out with probability `share`, the others grow by 1/(1 − share); decided by the seed."""
    if not share:
        return None
    generator = torch.Generator().manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        kept = torch.empty_like(x).bernoulli_(1 - share, generator=generator)
        return x * kept.div_(1 - share)

    return drop


def _inverse_length(x: Tensor, epsilon: float) -> Tensor:
    """1/√(mean x² + ε) over the last axis."""
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return length.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()


def _unit(x: Tensor, epsilon: float) -> Tensor:
    found: Tensor = _Norm.apply(x, epsilon)  # type: ignore[no-untyped-call]
    return found


def _turned(x: Tensor, gains: Tensor, cosines: Tensor, sines: Tensor, epsilon: float) -> Tensor:
    found: Tensor = _NormTurn.apply(x, gains, cosines, sines, epsilon)  # type: ignore[no-untyped-call]
    return found


def _gated(x: Tensor) -> Tensor:
    found: Tensor = _Gate.apply(x)  # type: ignore[no-untyped-call]
    return found


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, epsilon: float) -> Tensor:
        r = _inverse_length(x, epsilon)
        y = x * r
        ctx.save_for_backward(y, r)
        return y

    @staticmethod
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor, None]:
        y, r = ctx.saved_tensors
        return torch.addcmul(d_y, y, (d_y * y).mean(-1, keepdim=True), value=-1).mul_(r), None


class _NormTurn(torch.autograd.Function):
    """x is B×T×heads×d, gains heads×d; cosines and sines T×1×d, the sines of the first half negative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gains: Tensor, cosines: Tensor, sines: Tensor, epsilon: float) -> Tensor:
        r = _inverse_length(x, epsilon)
        y = x * r
        ctx.save_for_backward(y, r, gains, cosines, sines)
        z = y * gains
        return (z * cosines).addcmul_(_halves_changed(z), sines)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        y, r, gains, cosines, sines = ctx.saved_tensors
        d_z = (d_out * cosines).addcmul_(_halves_changed(d_out), sines, value=-1)  # by the opposite angle
        d_gains = (d_z * y).sum((0, 1))
        d_y = d_z.mul_(gains)
        return d_y.addcmul_(y, (d_y * y).mean(-1, keepdim=True), value=-1).mul_(r), d_gains, None, None, None


class _Gate(torch.autograd.Function):
    """silu of the first half of the columns times the second."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        s = torch.sigmoid(a)
        silu = a * s
        ctx.save_for_backward(x, s, silu)
        return silu * b

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> Tensor:
        x, s, silu = ctx.saved_tensors
        _, b = x.chunk(2, dim=-1)
        d_x = torch.empty_like(x)
        d_a, d_b = d_x.chunk(2, dim=-1)
        torch.mul(d_out, silu, out=d_b)
        torch.mul(torch.addcmul(silu, silu, s, value=-1).add_(s).mul_(b), d_out, out=d_a)
        return d_x


def _halves_changed(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat([x[..., half:], x[..., :half]], dim=-1)


def zero_start(parameters: dict[str, Tensor]) -> dict[str, Tensor]:
    """What writes into the residual stream starts at zero, and so does an output of its own."""
    quiet = ("o", "down", "output")
    return {name: torch.zeros_like(p) if name.rpartition(".")[2] in quiet else p for name, p in parameters.items()}
