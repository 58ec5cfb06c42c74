"""A corpus as one long row of token ids on disk, and what models read of it: chunks (recurrent) or windows (others).

B readers stand at equal distances in the row, and each chunk takes the next T tokens of every reader, so that the state
after a chunk is the state before the next one. When the readers have gone through their stretch, an epoch ends: they
jump to new places (all shifted by one random distance) and begin with an empty state. A chunk is a pure function of its
number.

Windows are read by models that carry nothing on. An epoch cuts the row, which is taken for a circle, into stretches of
T tokens from a random place on and reads each of them once, in random order. The order is never written down, or it
would need memory in proportion to the corpus: four rounds of a Feistel network (Luby and Rackoff 1988) map the numbers
of all stretches one to one onto themselves, over a power of four that holds them; what falls outside is mapped again.

The ids lie in an unnamed temporary file that is mapped into memory: a corpus need not fit there.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from inkling.models.gru_loss import Batch
from inkling.text.tokens import Tokeniser

ROUNDS = 4
SPREADS = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio, odd: high bits of a product with it depend on all
RESTARTS = 0.02  # share of the readers whose state is emptied at a chunk, so that texts may begin anywhere


@dataclass(frozen=True)
class TokenStream:
    """`starts` marks the tokens that begin a text; None where all is one text."""

    ids: NDArray[np.integer]
    starts: NDArray[np.bool_] | None
    begin: int
    chars: int
    spellings: Counter[str]
    counts: NDArray[np.int64]  # of each token

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each text begins, and the end."""
        return self.part(len(self))[1]

    def part(self, at_most: int) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
        """The first tokens, and where texts begin among them, with the end."""
        size = min(at_most, len(self))
        first = [0] if self.starts is None else np.flatnonzero(self.starts[:size])
        return self.ids[:size], np.append(first, size).astype(np.int64)

    def windows(self, numbers: NDArray[np.int64], times: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """B×T each: the token before, and the token, of each place of the windows with these numbers."""
        size = len(self)
        in_epoch = max(1, size // times)
        epochs, within = np.divmod(numbers, in_epoch)
        first = np.empty(len(numbers), np.int64)
        for epoch in np.unique(epochs).tolist():
            here, key = epochs == epoch, (seed, times, epoch, 3)
            shift = int(np.random.default_rng(key).integers(0, size))
            first[here] = shift + times * shuffled(within[here], in_epoch, key)
        places = (first[:, None] + np.arange(times)) % size
        inputs, targets = self.ids[places - 1].astype(np.int64), self.ids[places].astype(np.int64)
        inputs[places == 0 if self.starts is None else self.starts[places]] = self.begin
        return inputs, targets

    def chunks_in_epoch(self, times: int, readers: int) -> int:
        return max(1, len(self) // readers // times)

    def chunk(self, number: int, times: int, readers: int, seed: int) -> Batch:
        """T×B: the tokens that reader b reads at time t, each with the token before it."""
        size = len(self)
        epoch, within = divmod(number, self.chunks_in_epoch(times, readers))
        shift = int(np.random.default_rng((seed, epoch, 1)).integers(0, size)) if epoch else 0
        first = shift + np.arange(readers) * (size // readers) + within * times
        places = (first[None, :] + np.arange(times)[:, None]) % size
        inputs, targets = self.ids[places - 1].astype(np.int64), self.ids[places].astype(np.int64)
        begins = places == 0 if self.starts is None else self.starts[places]
        inputs[begins] = self.begin
        if within == 0:
            begins[0] = True
        else:
            begins[0] |= np.random.default_rng((seed, number, 2)).random(readers) < RESTARTS
        fresh = {int(t): np.flatnonzero(begins[t]) for t in np.flatnonzero(begins.any(axis=1))}
        return Batch(inputs, targets, fresh)


def shuffled(numbers: NDArray[np.int64], size: int, seed: tuple[int, ...]) -> NDArray[np.int64]:
    """Where each of `numbers` (below `size`) stands in a random order of 0 … size − 1 that the seed decides."""
    half = np.uint64(max(1, ((size - 1).bit_length() + 1) // 2))
    low = np.uint64((1 << int(half)) - 1)
    keys = np.random.default_rng(seed).integers(0, 1 << 63, ROUNDS, dtype=np.uint64)
    found = numbers.astype(np.uint64)
    outside = np.ones(len(found), np.bool_)
    while outside.any():
        left, right = found[outside] >> half, found[outside] & low
        for key in keys:
            mixed = (right + key) * SPREADS
            left, right = right, left ^ ((mixed ^ (mixed >> np.uint64(29))) * SPREADS >> np.uint64(32) & low)
        found[outside] = left << half | right
        outside = found >= np.uint64(size)
    return found.astype(np.int64)


def encode_stream(blocks: Iterable[list[str]], tokeniser: Tokeniser, separate: bool) -> TokenStream:
    """All the texts of `blocks`, end to end. `separate`: each is a text of its own; else they are lines of one."""
    kind = np.uint8 if tokeniser.size <= 1 << 8 else np.uint16 if tokeniser.size <= 1 << 16 else np.int32
    chars = 0
    counts = np.zeros(tokeniser.size, np.int64)
    spellings: Counter[str] = Counter()
    with tempfile.TemporaryFile() as ids, tempfile.TemporaryFile() as starts:
        for block in blocks:
            encodings = tokeniser.encode(block if separate else ["".join(block)])
            chars += sum(map(len, block))
            spellings.update(encodings.spellings)
            counts += np.bincount(encodings.ids, minlength=tokeniser.size)
            ids.write(encodings.ids.astype(kind).tobytes())
            if separate:
                begins = np.zeros(len(encodings.ids), np.bool_)
                first = encodings.offsets[:-1]
                begins[first[np.diff(encodings.offsets) > 0]] = True
                starts.write(begins.tobytes())
        mapped = _mapped(starts, np.bool_) if separate else None
        return TokenStream(_mapped(ids, kind), mapped, tokeniser.begin, chars, spellings, counts)


def _mapped(file: IO[bytes], kind: type[Any]) -> NDArray[Any]:
    """The map outlives the open file."""
    file.flush()
    return np.memmap(file, kind, "r") if file.tell() else np.zeros(0, kind)
