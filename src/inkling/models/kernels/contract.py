"""The parts of a training step besides its large products, as a contract: plain.py and compiled.py both keep it.

Rows are places of texts laid end to end. Each part writes into memory that the caller has: `out`, or what its sentence
names. Gradients are d_…; where `add` is true they are added to what is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor


@dataclass(frozen=True)
class Heads:
    """The shape of attention: `texts` of `times` places, heads of `width` numbers, turned by cosine and sine.

    `q_gain` and `k_gain` (width) are those of the norm of queries and keys, None without it.
    """

    texts: int
    times: int
    heads: int
    key_heads: int
    width: int
    epsilon: float
    cosine: Tensor  # at least times × width/2
    sine: Tensor
    q_gain: Tensor | None
    k_gain: Tensor | None


class Parts(Protocol):
    def norm(self, x: Tensor, y: Tensor, r: Tensor, epsilon: float) -> None:
        """y = x r, r = 1/√(mean x² + ε) for each row."""

    def norm_back(self, d_y: Tensor, y: Tensor, r: Tensor, d_x: Tensor, add: bool) -> None:
        """d_x = r (d_y − y · mean(d_y ⊙ y))."""

    def gate(self, h: Tensor, out: Tensor) -> None:
        """out = silu(a) ⊙ b, with a and b the halves of each row of h."""

    def gate_back(self, d_out: Tensor, h: Tensor) -> None:
        """h becomes its gradient: d_a = d ⊙ b ⊙ (s + silu(a)(1 − s)), s = 1/(1 + e^−a), and d_b = d ⊙ silu(a)."""

    def squared(self, h: Tensor, out: Tensor) -> None:
        """out = max(h, 0)²."""

    def squared_back(self, d_out: Tensor, h: Tensor) -> None:
        """h becomes its gradient: 2 d ⊙ max(h, 0)."""

    def cross_entropy(self, logits: Tensor, targets: Tensor) -> float:
        """Nats, summed; logits become their gradient, softmax − 1 at the target."""

    def drop(self, x: Tensor, out: Tensor, places: Tensor, key: int, share: float, add: bool) -> None:
        """out = x/(1 − share) where kept and 0 elsewhere.

        Number i of row n is left out where hash(places[n] + i, key) < share · 2³², so that what is left out depends on
        neither the order of rows nor who works on them.
        """

    def pick_rows(self, table: Tensor, rows: Tensor, out: Tensor, add: bool) -> None:
        """out[n] = table[rows[n]]."""

    def add_rows(self, x: Tensor, rows: Tensor, table: Tensor) -> None:
        """table[rows[n]] += x[n], one n after the other."""

    def attend(self, shape: Heads, qkv: Tensor, out: Tensor, sums: Tensor) -> Any:
        """Attention, from rows of queries, keys and values (H + 2K heads): norm, turn, causal softmax, mix.

        What comes back is handed to `attend_back`; `sums` (two numbers for each row and head) may be part of it.
        """

    def attend_back(
        self, shape: Heads, qkv: Tensor, out: Tensor, d_out: Tensor, kept: Any, d_gains: tuple[Tensor, Tensor] | None
    ) -> None:
        """qkv becomes its gradient; those of q_gain and k_gain are added to `d_gains`."""
