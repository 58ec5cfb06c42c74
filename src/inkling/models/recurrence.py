"""The gated recurrent unit (Cho et al. 2014; the form that resets after the product), forwards and backwards by hand.

    r = σ(xʳ + h Uʳ)    z = σ(xᶻ + h Uᶻ)    q = h Uⁿ + c    n = tanh(xⁿ + r∘q)    h′ = n + z∘(h − n)

with x = (input) W + b. Backwards, with d = ∂L/∂h′:

    ∂n̂ = d∘(1−z)∘(1−n²)    ∂ẑ = d∘(h−n)∘z∘(1−z)    ∂r̂ = ∂n̂∘q∘r∘(1−r)    ∂q = ∂n̂∘r
    ∂L/∂h = d∘z + [∂r̂ ∂ẑ ∂q] Uᵀ        ∂L/∂U = Σ hᵀ [∂r̂ ∂ẑ ∂q]        ∂L/∂x = [∂r̂ ∂ẑ ∂n̂]

Why by hand: in the loop over time only one matrix product and a few passes over what is in the cache are left. The
product that gives ∂U is made once for all times; buffers are made once for all steps (fresh memory costs more than the
arithmetic); the gates are overwritten by their own gradients; tanh is 2σ(2·) − 1, which is three times as fast.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Layer:
    """Buffers for T times × B texts × H units of one layer, and the two passes over them."""

    def __init__(self, times: int, texts: int, hidden: int, dtype: torch.dtype) -> None:
        self.sizes = (times, texts, hidden)
        self.states = torch.zeros(times + 1, texts, hidden, dtype=dtype)  # states[t] stands before time t
        self.seen = self.states  # what the products with U see: the states, or those with units left out
        self.gates = torch.empty(times, texts, 3 * hidden, dtype=dtype)  # r, z, n; then ∂r̂, ∂ẑ, ∂q
        self.candidates = torch.empty(times, texts, hidden, dtype=dtype)  # q; then ∂n̂
        self.product = torch.empty(texts, 3 * hidden, dtype=dtype)
        self.chosen = torch.empty_like(self.product)
        self.work = [torch.empty(texts, hidden, dtype=dtype) for _ in range(3)]

    def forward(
        self,
        inputs: Tensor,
        rows: Tensor | None,
        U: Tensor,
        c: Tensor,
        start: Tensor,
        fresh: dict[int, Tensor],
        keep: Tensor | None = None,
    ) -> Tensor:
        """States after each time (T×B×H, a view of the buffer). The input of time t is `inputs[rows[t]]`, or
        `inputs[t]` without `rows`. `fresh[t]` are the texts (indices) that begin at time t; `keep` (B×H) multiplies
        what the products with U see (dropout of units, the same at all times)."""
        times = self.sizes[0]
        self.states[0] = start
        if keep is not None and self.seen is self.states:
            self.seen = torch.empty_like(self.states)
        for t in range(times):
            h = self.states[t]
            if t in fresh:  # the state stays what it was for what is above, and is zero for what comes next
                h = h.index_fill(0, fresh[t], 0)
            seen = h if keep is None else torch.mul(h, keep, out=self.seen[t])
            x = inputs[t] if rows is None else torch.index_select(inputs, 0, rows[t], out=self.chosen)
            cell(x, h, seen, U, c, self.product, self.gates[t], self.candidates[t], self.states[t + 1])
        return self.states[1:]

    def backward(
        self, above: Tensor, U: Tensor, fresh: dict[int, Tensor], keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """∂U (H×3H) and ∂c (H), from what is due to the states after each time; `above` (T×B×H) is only read."""
        times, texts, hidden = self.sizes
        d, work, part = self.work
        d.zero_()
        Ut = U.t().contiguous()
        for t, texts_fresh in fresh.items():  # nobody above needs these states any more
            self.states[t, texts_fresh] = 0
        for t in range(times - 1, -1, -1):
            d += above[t]
            gates, q, h = self.gates[t], self.candidates[t], self.states[t]
            r, z, n = gates[:, :hidden], gates[:, hidden : 2 * hidden], gates[:, 2 * hidden :]
            torch.mul(d, z, out=part)  # what goes straight to the state before
            torch.sub(d, part, out=work)  # d∘(1−z)
            # ∂ẑ = d∘z∘(1−z)∘(h−n), with d∘z∘(1−z) = part − part∘z
            torch.addcmul(part, part, z, value=-1, out=z)
            z.mul_(torch.sub(h, n, out=d))
            n.mul_(n).mul_(work)
            torch.sub(work, n, out=work)  # ∂n̂
            torch.mul(work, r, out=n)  # ∂q
            # ∂r̂ = ∂n̂∘q∘r∘(1−r) = ∂q∘q∘(1−r)
            q.mul_(n)
            torch.addcmul(q, q, r, value=-1, out=r)
            q.copy_(work)
            torch.mm(gates, Ut, out=d)
            if keep is not None:
                d.mul_(keep)
            d += part
            if t in fresh:
                d[fresh[t]] = 0
        flat = self.gates.view(times * texts, 3 * hidden)
        return self.seen[:-1].view(times * texts, hidden).t() @ flat, flat[:, 2 * hidden :].sum(0)

    def due_to_inputs(self) -> Tensor:
        """∂x as (T·B)×3H, once, after `backward`."""
        times, texts, hidden = self.sizes
        self.gates[:, :, 2 * hidden :] = self.candidates
        return self.gates.view(times * texts, 3 * hidden)


def cell(
    x: Tensor, h: Tensor, seen: Tensor, U: Tensor, c: Tensor, product: Tensor, gates: Tensor, q: Tensor, out: Tensor
) -> None:
    """One time for B texts: fills `gates` (B×3H: r, z, n), `q` (B×H) and `out` (B×H); `product` (B×3H) is for work."""
    hidden = h.shape[1]
    torch.mm(seen, U, out=product)
    rz = gates[:, : 2 * hidden]
    torch.add(x[:, : 2 * hidden], product[:, : 2 * hidden], out=rz)
    rz.sigmoid_()
    torch.add(product[:, 2 * hidden :], c, out=q)
    n = gates[:, 2 * hidden :]
    torch.addcmul(x[:, 2 * hidden :], gates[:, :hidden], q, out=n)
    n.mul_(2).sigmoid_().mul_(2).sub_(1)  # tanh
    torch.lerp(n, h, gates[:, hidden : 2 * hidden], out=out)
