"""The gated recurrent unit (Cho et al. 2014; the form that resets after the product), forwards and backwards by hand.

    r = σ(xʳ + h Uʳ)    z = σ(xᶻ + h Uᶻ)    q = h Uⁿ + c    n = tanh(xⁿ + r∘q)    h′ = n + z∘(h − n)

with x = (input) W + b. Backwards, with d = ∂L/∂h′:

    ∂n̂ = d∘(1−z)∘(1−n²)    ∂ẑ = d∘(h−n)∘z∘(1−z)    ∂r̂ = ∂n̂∘q∘r∘(1−r)    ∂q = ∂n̂∘r
    ∂L/∂h = d∘z + [∂r̂ ∂ẑ ∂q] Uᵀ        ∂L/∂U = Σ hᵀ [∂r̂ ∂ẑ ∂q]        ∂L/∂x = [∂r̂ ∂ẑ ∂n̂]

Why by hand: little is left in the loop over time but one matrix product each way. The product that gives ∂U is made
once for all times; what the gradient needs of the gates is worked out for several times at once; buffers and their
views are made once for all steps (fresh memory costs more than the arithmetic), and the gates are overwritten by their
own gradients. tanh(a) is 2σ(2a) − 1, three times as fast as torch's tanh, so candidates are kept doubled: 2x and 2q.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

CACHED = 1 << 15  # numbers of one array that are worked on at a time

MINUS_ONE = {kind: torch.tensor(-1.0, dtype=kind) for kind in (torch.float32, torch.float64)}


def cell(gates: Tensor, candidates: Tensor, h: Tensor, seen: Tensor, doubled: Tensor, out: Tensor) -> None:
    """One time for B texts. `gates` (B×3H) holds xʳ, xᶻ, 2c and then r, z, 2q; `candidates` (B×H) holds 2xⁿ and then
    n; `doubled` is U with its last third doubled; `seen` is h, or h with units left out; `out` becomes the new state.
    """
    hidden = h.shape[1]
    _cell(gates, *_thirds(gates, hidden), candidates, h, seen, doubled, out)


def double(U: Tensor) -> Tensor:
    """U (H×3H) as `cell` wants it."""
    found = U.clone()
    found[:, 2 * (U.shape[1] // 3) :] *= 2
    return found


def split_inputs(x: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """From x (N×3H): what `cell` wants in `gates` (N×3H) and in `candidates` (N×H)."""
    hidden = len(c)
    gates = torch.cat([x[:, : 2 * hidden], (2 * c).expand(len(x), hidden)], dim=1)
    return gates, 2 * x[:, 2 * hidden :]


class Layer:
    """Buffers for T times × B texts × H units of one layer, and the two passes over them."""

    def __init__(self, times: int, texts: int, hidden: int, dtype: torch.dtype) -> None:
        self.sizes = (times, texts, hidden)
        self.states = torch.zeros(times + 1, texts, hidden, dtype=dtype)  # states[t] stands before time t
        self.seen = self.states  # what the products with U see: the states, or those with units left out
        self.gates = torch.empty(times, texts, 3 * hidden, dtype=dtype)
        self.candidates = torch.empty(times, texts, hidden, dtype=dtype)
        self.due = torch.empty(texts, hidden, dtype=dtype)
        self.block = max(1, min(times, CACHED // (texts * hidden)))
        self._work = [torch.empty(self.block, texts, hidden, dtype=dtype) for _ in range(2)]
        # Views are made here once: making them anew at every time would cost as much as small products do.
        self._views = [
            (self.gates[t], *_thirds(self.gates[t], hidden), self.candidates[t], self.states[t], self.states[t + 1])
            for t in range(times)
        ]
        self._back = [(self.gates[t].view(texts, 3, hidden), self.gates[t]) for t in range(times)]

    def forward(
        self,
        fill: Callable[[int, int], None],
        doubled: Tensor,
        start: Tensor,
        fresh: Mapping[int, Tensor],
        keep: Tensor | None = None,
    ) -> Tensor:
        """States after each time (T×B×H, a view of the buffer).

        `fill(a, b)` puts the inputs of times a…b−1 into `gates` and `candidates`; `fresh[t]` are the texts that begin
        at time t; `keep` (B×H) multiplies what the products with U see (dropout of units, the same at all times).
        """
        times = self.sizes[0]
        self.states[0] = start
        if keep is not None and self.seen is self.states:
            self.seen = torch.empty_like(self.states)
        for t in range(times):
            if t % self.block == 0:
                fill(t, min(t + self.block, times))
            gates, rz, r, z, q, candidates, h, out = self._views[t]
            if t in fresh:  # the state stays what it was for what is above, and is zero for what comes next
                h = h.index_fill(0, fresh[t], 0)
            seen = h if keep is None else torch.mul(h, keep, out=self.seen[t])
            _cell(gates, rz, r, z, q, candidates, h, seen, doubled, out)
        return self.states[1:]

    def backward(
        self, above: Tensor, U: Tensor, fresh: Mapping[int, Tensor], keep: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """∂U (H×3H) and ∂c (H), from what is due to the states after each time, `above` (T×B×H), which is used up."""
        times, texts, hidden = self.sizes
        back = U.t().contiguous()
        for t, begun in fresh.items():  # nobody above needs these states any more
            self.states[t, begun] = 0
        d = self.due.zero_()
        for first in range((times - 1) // self.block * self.block, -1, -self.block):
            span = slice(first, min(first + self.block, times))
            z = self._coefficients(span)
            for t in range(span.stop - 1, first - 1, -1):
                thirds, gates = self._back[t]
                due = above[t].add_(d)
                thirds.mul_(due.unsqueeze(1))
                torch.mm(gates, back, out=d)
                if keep is not None:
                    d.mul_(keep)
                d.addcmul_(due, z[t - first])
                if t in fresh:
                    d[fresh[t]] = 0
            self.candidates[span].mul_(above[span])  # ∂n̂
        flat = self.gates.view(times * texts, 3 * hidden)
        return self.seen[:-1].view(times * texts, hidden).t() @ flat, flat[:, 2 * hidden :].sum(0)

    def _coefficients(self, span: slice) -> Tensor:
        """What d is multiplied by to give ∂r̂, ∂ẑ, ∂q (in place of the gates) and ∂n̂ (in place of n); gives z back."""
        gates, n, h = self.gates[span], self.candidates[span], self.states[span]
        hidden = self.sizes[2]
        r, z, q = gates[..., :hidden], gates[..., hidden : 2 * hidden], gates[..., 2 * hidden :]
        count = span.stop - span.start
        kept, work = self._work[0][:count], self._work[1][:count]
        kept.copy_(z)
        torch.sub(h, n, out=work)
        n.mul_(n).mul_(-1).add_(1)  # 1 − n²
        n.addcmul_(n, kept, value=-1)  # ∘(1 − z)
        z.addcmul_(z, z, value=-1).mul_(work)  # (h − n)∘z∘(1 − z)
        torch.mul(n, r, out=work)
        q.mul_(work).mul_(0.5)
        r.mul_(q).sub_(q).mul_(-1)  # ∂q∘q∘(1 − r)
        q.copy_(work)
        return kept

    def due_to_inputs(self) -> Tensor:
        """∂x as (T·B)×3H, once, after `backward`."""
        times, texts, hidden = self.sizes
        self.gates[:, :, 2 * hidden :] = self.candidates
        return self.gates.view(times * texts, 3 * hidden)


def _cell(
    gates: Tensor,
    rz: Tensor,
    r: Tensor,
    z: Tensor,
    q: Tensor,
    candidates: Tensor,
    h: Tensor,
    seen: Tensor,
    doubled: Tensor,
    out: Tensor,
) -> None:
    gates.addmm_(seen, doubled)
    rz.sigmoid_()
    candidates.addcmul_(r, q).sigmoid_()
    torch.add(MINUS_ONE[h.dtype], candidates, alpha=2, out=candidates)
    torch.lerp(candidates, h, z, out=out)


def _thirds(gates: Tensor, hidden: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """r and z together, r, z, q."""
    rz, q = gates[:, : 2 * hidden], gates[:, 2 * hidden :]
    return rz, gates[:, :hidden], gates[:, hidden : 2 * hidden], q
