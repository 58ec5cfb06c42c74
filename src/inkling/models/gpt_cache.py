"""Keys and values of texts that a transformer is in the middle of, so that the next token costs one token.

A `State` names a row of a `Cache` and a length; what stands before that length never changes, so a state can be gone on
from any number of times. A cache is written to only behind what it has given out:

    claim    the newest state of a row, with room behind it: the next place is its own, and nothing is copied
    gather   any other state: copied into a new cache

Compiled steps read every text where it lies, so texts that join others or leave them are not copied either. Without
them all texts of a step must be the rows of one cache, in order. Room that is used up becomes four times as much, so a
token is copied once at most, or nearly so.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.models.gpt_fused import Array, FusedGPT
from inkling.models.gpt_steps import CompiledSteps

FIRST_ROOM = 64  # tokens
READ_AT_ONCE = 4096  # tokens of several texts, so that memory does not grow with their number


class State(NamedTuple):
    """The first `length` tokens of one row of a cache. Never changes, whatever is done with other states."""

    cache: Cache
    row: int
    length: int


class Cache:
    """Keys and values of B texts, and their tokens; room for some more tokens than there are."""

    def __init__(self, model: FusedGPT, rows: int, room: int) -> None:
        config = model.config
        shape = (config.layers, 2, rows, config.key_heads, room, config.head_dimension)
        self.model, self.rows, self.room = model, rows, room
        # Zeros and not just anything, because what is hidden still counts, zero times.
        self.keys_values = np.zeros(shape, model.embedding.numpy().dtype)
        self.ids = np.zeros((rows, room), np.int64)
        self.lengths = [0] * rows  # places of each row that have been given out
        self._all_rows = list(range(rows))
        self._lock = Lock()
        one = config.key_heads * room * config.head_dimension
        self._address, self._row_bytes = self.keys_values.ctypes.data, one * self.keys_values.itemsize
        self._strides = rows * one, room * config.head_dimension

    @classmethod
    def of_texts(cls, model: FusedGPT, ids: NDArray[np.int64], lengths: Sequence[int]) -> tuple[Cache, Tensor]:
        """Of B texts (B×T, each as long as `lengths` says) that are read here, with room for more; and the residual
        stream (B×D) at the last place of each."""
        rows, longest = ids.shape
        made = cls(model, rows, _room(model.config.context, longest))
        made.ids[:, :longest], made.lengths = ids, list(lengths)
        at_once, last = max(1, READ_AT_ONCE // longest), []
        for first in range(0, rows, at_once):
            part = slice(first, first + at_once)
            read = model.read_texts(torch.from_numpy(ids[part]), torch.from_numpy(made.keys_values)[:, :, part])
            ends = torch.arange(len(ids[part])) * longest + torch.tensor(made.lengths[part]) - 1
            last.append(read[ends])
        return made, torch.cat(last)

    @classmethod
    def gather(cls, model: FusedGPT, states: Sequence[State]) -> Cache:
        """The states copied into a cache of their own, with room for more."""
        longest = max(state.length for state in states)
        made = cls(model, len(states), _room(model.config.context, longest))
        places: dict[int, list[int]] = {}
        for place, state in enumerate(states):
            places.setdefault(id(state.cache), []).append(place)
        for chosen in places.values():
            old, length = states[chosen[0]].cache, max(states[place].length for place in chosen)
            to, rows = _span(chosen), _span([states[place].row for place in chosen])
            made.keys_values[:, :, to, :, :length] = old.keys_values[:, :, rows, :, :length]
            made.ids[to, :length] = old.ids[rows, :length]
        made.lengths = [state.length for state in states]
        return made

    def claim(self, states: Sequence[State]) -> bool:
        """Whether `states` are the newest of all rows, in order, with room behind them; if so, it is now theirs."""
        if [row for cache, row, _ in states if cache is self] != self._all_rows or len(states) != self.rows:
            return False
        with self._lock:  # of two threads that go on from one state, one gets the place and the other a copy
            lengths = [length for _, _, length in states]
            if lengths != self.lengths or max(lengths) >= self.room:
                return False
            self.lengths = [length + 1 for length in lengths]
            return True

    def claim_row(self, row: int, length: int) -> bool:
        """The same for one row, whatever the others are."""
        with self._lock:
            if self.lengths[row] != length or length >= self.room:
                return False
            self.lengths[row] = length + 1
            return True

    def lies(self, row: int) -> tuple[int, int, int]:
        """Where a row is, as compiled steps want to know it."""
        return self._address + row * self._row_bytes, *self._strides

    def append(self, tokens: Sequence[int]) -> Array:
        """Log-probabilities (B×V) after one more token of each row, at the places that were claimed, by numpy."""
        places = [length - 1 for length in self.lengths]
        self.ids[self._all_rows, places] = tokens
        return self.model.step(self.model.inputs_of(self.ids, places), places, self.keys_values)

    def keep(self) -> None:
        """From now on nobody writes here: whoever goes on from a state does so in a copy."""
        with self._lock:
            self.lengths = [-1] * self.rows


def claim_each(model: FusedGPT, states: Sequence[State]) -> list[State]:
    """The states, the place behind each now its own: where it lies if that is free, or else in a copy."""
    found, copied = list(states), []
    for place, (cache, row, length) in enumerate(states):
        if not cache.claim_row(row, length):
            copied.append(place)
    if copied:
        made = Cache.gather(model, [states[place] for place in copied])
        made.lengths = [length + 1 for length in made.lengths]
        for row, place in enumerate(copied):
            found[place] = State(made, row, states[place].length)
    return found


def append_each(model: FusedGPT, steps: CompiledSteps, states: Sequence[State], tokens: Sequence[int]) -> Array:
    """Log-probabilities (B×V) after one more token of each state, at the places that were claimed."""
    for (cache, row, length), token in zip(states, tokens, strict=True):
        cache.ids[row, length] = token
    longest = max((1, *model.config.gram_names.values()))  # what is looked back on to find the input
    last, places = np.array(tokens, np.int64)[:, None], [0] * len(states)
    if longest > 1:
        last, places = np.zeros((len(states), longest), np.int64), []
        for i, (cache, row, length) in enumerate(states):
            begin = max(0, length + 1 - longest)
            places.append(length - begin)
            last[i, : length + 1 - begin] = cache.ids[row, begin : length + 1]
    x = model.inputs_of(last, places)
    lies = [cache.lies(row) for cache, row, _ in states]
    return steps.read_next(x, [length for _, _, length in states], lies, model.workers)


def _room(most: int, length: int) -> int:
    return min(most, max(FIRST_ROOM, 4 * length))


def _span(rows: list[int]) -> slice | list[int]:
    """A slice where the rows stand in order: what it picks is copied once, what a list picks is copied twice."""
    return slice(rows[0], rows[-1] + 1) if rows == list(range(rows[0], rows[0] + len(rows))) else rows
