"""Hashed n-grams: of the last n tokens at each place, a row of a table that is far smaller than all n-grams.

    code ← code · 1000003 + id + 1        over the n tokens, oldest first, from 0
    row = ((code · c) >> 33 & (2³¹ − 1)) mod rows        c = −7046029254386353131, that is 2⁶⁴/φ, odd

in whole numbers of 64 bits that wrap around. Multiplying by 2⁶⁴/φ brings every bit of the code into the upper ones
(Knuth, volume 3, 6.4), of which 31 are taken. A place before the beginning counts as the token `vocabulary`, which no
text has. Two n-grams that meet in one row share it: training finds what serves both, the commoner one above all.
Left out: telling apart what meets.
"""

from __future__ import annotations

from typing import Protocol, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

FOLD = np.int64(1_000_003)
MIX = np.int64(-7_046_029_254_386_353_131)
MOST_GRAMS = 3


class _Sizes(Protocol):
    """What of a GPTConfig is needed here."""

    @property
    def vocabulary(self) -> int: ...
    @property
    def gram_rows(self) -> int: ...


@overload
def gram_rows_of(ids: Tensor, n: int, config: _Sizes) -> Tensor: ...
@overload
def gram_rows_of(ids: NDArray[np.integer], n: int, config: _Sizes) -> NDArray[np.int64]: ...
def gram_rows_of(ids: Tensor | NDArray[np.integer], n: int, config: _Sizes) -> Tensor | NDArray[np.int64]:
    """For every place of B texts (B×T ids) the row (B×T) of the n tokens that end there."""
    if isinstance(ids, Tensor):
        return torch.from_numpy(gram_rows_of(ids.numpy(), n, config))
    texts, times = ids.shape
    padded = np.full((texts, n - 1 + times), config.vocabulary, np.int64)
    padded[:, n - 1 :] = ids
    code = np.zeros((texts, times), np.int64)
    for oldest in range(n):
        code = code * FOLD + (padded[:, oldest : oldest + times] + 1)
    return _rows(code, config)


def gram_rows_at(ids: NDArray[np.integer], places: NDArray[np.integer], n: int, config: _Sizes) -> NDArray[np.int64]:
    """The rows (B) of the n tokens that end at these `places` (B) of B texts (B×room ids); what is behind is not read.

    So a text that is read token by token finds the row of its newest one.
    """
    back = places[:, None] + np.arange(1 - n, 1)  # B×n
    last = np.where(back >= 0, np.take_along_axis(ids, np.maximum(back, 0), axis=1), config.vocabulary)
    code = np.zeros(len(ids), np.int64)
    for token in last.T.astype(np.int64):
        code = code * FOLD + (token + 1)
    return _rows(code, config)


def _rows(code: NDArray[np.int64], config: _Sizes) -> NDArray[np.int64]:
    found: NDArray[np.int64] = ((code * MIX) >> 33 & 0x7FFF_FFFF) % config.gram_rows
    return found
