"""The parts of a training step in torch: for every machine and every number format, and what compiled.py must equal."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from inkling.models.kernels.contract import Heads

WORD = 0xFFFF_FFFF


class PlainParts:
    """Contract Parts."""

    def norm(self, x: Tensor, y: Tensor, r: Tensor, epsilon: float) -> None:
        torch.linalg.vector_norm(x, dim=-1, out=r)
        r.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
        torch.mul(x, r[:, None], out=y)

    def norm_back(self, d_y: Tensor, y: Tensor, r: Tensor, d_x: Tensor, add: bool) -> None:
        along = (d_y * y).mean(-1, keepdim=True)
        found = torch.addcmul(d_y, y, along, value=-1)
        if add:
            d_x.addcmul_(found, r[:, None])
        else:
            torch.mul(found, r[:, None], out=d_x)

    def gate(self, h: Tensor, out: Tensor) -> None:
        a, b = h.chunk(2, dim=-1)
        torch.mul(functional.silu(a), b, out=out)

    def gate_back(self, d_out: Tensor, h: Tensor) -> None:
        a, b = h.chunk(2, dim=-1)
        s = torch.sigmoid(a)
        silu = a * s
        torch.mul(torch.addcmul(silu, silu, s, value=-1).add_(s).mul_(b), d_out, out=a)
        torch.mul(d_out, silu, out=b)

    def squared(self, h: Tensor, out: Tensor) -> None:
        torch.clamp(h, min=0, out=out).square_()

    def squared_back(self, d_out: Tensor, h: Tensor) -> None:
        h.clamp_(min=0).mul_(d_out).mul_(2)

    def cross_entropy(self, logits: Tensor, targets: Tensor) -> float:
        log_probs = torch.log_softmax(logits, dim=1)
        nats = -float(log_probs.gather(1, targets[:, None]).sum(dtype=torch.float64))
        torch.exp(log_probs, out=logits)
        logits.scatter_add_(1, targets[:, None], logits.new_full((len(targets), 1), -1.0))
        return nats

    def drop(self, x: Tensor, out: Tensor, places: Tensor, key: int, share: float, add: bool) -> None:
        h = places.to(torch.int64)[:, None] + torch.arange(x.shape[1])
        h = h * 0x9E3779B1 + key & WORD
        h = (h ^ h >> 16) * 0x85EBCA6B & WORD
        h = (h ^ h >> 13) * 0xC2B2AE35 & WORD
        kept = ((h ^ h >> 16) >= int(share * 2**32)).to(x.dtype).mul_(1 / (1 - share))
        if add:
            out.addcmul_(x, kept)
        else:
            torch.mul(x, kept, out=out)

    def pick_rows(self, table: Tensor, rows: Tensor, out: Tensor, add: bool) -> None:
        if add:
            out.add_(table[rows])
        else:
            torch.index_select(table, 0, rows, out=out)

    def add_rows(self, x: Tensor, rows: Tensor, table: Tensor) -> None:
        table.index_add_(0, rows, x)

    def attend(self, shape: Heads, qkv: Tensor, out: Tensor, sums: Tensor) -> Any:
        with torch.enable_grad():
            leaf = qkv.data.requires_grad_()  # detached, autograd would take a change of another layer for one of this
            gains = [gain.detach().requires_grad_() for gain in (shape.q_gain, shape.k_gain) if gain is not None]
            mixed = _attention(shape, leaf, gains)
        out.copy_(mixed.detach())
        return mixed, leaf, gains

    def attend_back(
        self, shape: Heads, qkv: Tensor, out: Tensor, d_out: Tensor, kept: Any, d_gains: tuple[Tensor, Tensor] | None
    ) -> None:
        mixed, leaf, gains = kept
        d_qkv, *d_found = torch.autograd.grad(mixed, [leaf, *gains], d_out)
        qkv.copy_(d_qkv)
        for total, due in zip(d_gains or (), d_found, strict=True):
            total += due


def _attention(shape: Heads, qkv: Tensor, gains: list[Tensor]) -> Tensor:
    H, K, d = shape.heads, shape.key_heads, shape.width
    parts = qkv.view(shape.texts, shape.times, H + 2 * K, d)
    turned = parts[:, :, : H + K]
    cosine, sine = shape.cosine[: shape.times, None], shape.sine[: shape.times, None]
    if gains:
        gain = torch.cat([gains[0].expand(H, d), gains[1].expand(K, d)])
        cosines, sines = torch.cat([cosine, cosine], dim=-1), torch.cat([-sine, sine], dim=-1)  # T×1×d
        turned = _NormTurn.apply(turned, gain, cosines, sines, shape.epsilon)  # type: ignore[no-untyped-call]
    else:
        a, b = turned.chunk(2, dim=-1)
        turned = torch.cat([a * cosine - b * sine, b * cosine + a * sine], dim=-1)
    q, k, v = (part.transpose(1, 2) for part in (turned[:, :, :H], turned[:, :, H:], parts[:, :, H + K :]))
    if K < H:
        k, v = (shared.repeat_interleave(H // K, dim=1) for shared in (k, v))
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)  # B×H×T×d
    return mixed.transpose(1, 2).reshape(shape.texts * shape.times, H * d)


class _NormTurn(torch.autograd.Function):
    """out = turn(g ⊙ y), y the norm of x: d_z is d_out turned back, d_g = Σ d_z ⊙ y, d_y = g ⊙ d_z."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gains: Tensor, cosines: Tensor, sines: Tensor, epsilon: float) -> Tensor:
        r: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        r.square_().div_(x.shape[-1]).add_(epsilon).rsqrt_()
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


def _halves_changed(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat([x[..., half:], x[..., :half]], dim=-1)
