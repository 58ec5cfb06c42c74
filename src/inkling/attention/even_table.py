"""A smooth function of one variable, known at even points and read between them by polynomials through eight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inkling.attention.arrays import Floats

STENCIL = np.arange(-3, 5)  # the eight points around a place
_THROUGH = np.linalg.inv(np.vander(STENCIL.astype(np.float64), increasing=True))  # from values to coefficients


@dataclass(frozen=True)
class EvenTable:
    """`values` at low, low + step, …; before the first point and beyond the last the function is constant."""

    low: float
    step: float
    values: Floats
    before: float
    after: float

    @property
    def high(self) -> float:
        return self.low + self.step * (len(self.values) - 1)

    @cached_property
    def pieces(self) -> Floats:
        """For each cell the coefficients (8×cells, lowest power first) of the polynomial through the points around."""
        padded = np.concatenate([np.full(3, self.before), self.values, np.full(3, self.after)])
        windows = np.lib.stride_tricks.sliding_window_view(padded, len(STENCIL))
        return np.ascontiguousarray((windows @ _THROUGH.T).T)

    def at(self, x: Floats) -> Floats:
        cells = len(self.values) - 1
        place = (x - self.low) * (1 / self.step)
        cell = np.clip(place, 0, cells - 1).astype(np.int64)
        offset = place - cell
        found = self.pieces[-1][cell]
        for power in self.pieces[-2::-1]:
            found *= offset
            found += power[cell]
        found[place < 0] = self.before
        found[place > cells] = self.after
        return np.asarray(found)
