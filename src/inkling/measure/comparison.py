"""Which of two models is better on a text, block by block, and whether that is more than luck.

    difference = Σ (nats of the worse − nats of the better) / ln 2 / Σ bytes       over the blocks of the original text

Both models are charged on the same blocks, so that a hard passage, hard for both, does not blur the difference. p-value
and interval come from `intervals.judge_ratios`. All pairs on one text are corrected together (Holm 1979): the chance
that any of the differences called real on a text is none stays at 5 %. Of a text of fewer than 8 blocks nothing
is claimed.

Models are compared where they read the same text: all that read every byte, and apart from them those behind the same
lossy normalisation. A model behind a lossy normalisation has an easier task, so it is never compared with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inkling.measure.evaluation import Evaluation
from inkling.measure.intervals import LEAST_BLOCKS, Interval, judge_ratios
from inkling.measure.tally import LN2

EVERY_BYTE = "every byte"
LEVEL = 0.05
ROUNDING = 1e-9


@dataclass(frozen=True)
class Comparison:
    """Two models on one text; `difference` in bits per byte, by which `worse` needs more than `better`.

    `p_value` is that of this pair alone, `corrected_p` that with all pairs on the text in mind. NaN: too few blocks.
    """

    text: str
    reading: str
    better: str
    worse: str
    difference: Interval
    p_value: float
    corrected_p: float
    blocks: int

    @property
    def too_short(self) -> bool:
        return self.blocks < LEAST_BLOCKS

    @property
    def real(self) -> bool:
        return self.corrected_p <= LEVEL  # NaN is not

    def sentence(self) -> str:
        where = place(self.text, self.reading)
        if self.too_short:
            return (
                f"{self.text} is too short to tell {self.better} from {self.worse}: {self.blocks} "
                f"block{'' if self.blocks == 1 else 's'} of text, and at least {LEAST_BLOCKS} are needed."
            )
        if not self.real:
            return f"{self.better} and {self.worse} cannot be told apart on {where} (p = {self.corrected_p:.2g})."
        d = self.difference
        return (
            f"{self.better} is better than {self.worse} on {where} by {d.value:.3f} bits per byte "
            f"({100 * d.level:g} % {d.low:.3f} to {d.high:.3f})."
        )

    def to_json(self) -> dict[str, Any]:
        record = asdict(self)
        del record["difference"]
        d = self.difference
        return {**record, "difference": d.value, "low": d.low, "high": d.high, "level": d.level, "real": self.real}


def reading(row: Evaluation) -> str:
    """What a model had before it: every byte of the text, or what a lossy normalisation left of it."""
    return row.normalisation if row.lossy else EVERY_BYTE


def place(text: str, read: str) -> str:
    return text if read == EVERY_BYTE else f"{text} after {read}"


def compare(rows: Sequence[Evaluation], seed: int = 0) -> tuple[Comparison, ...]:
    """All pairs of `rows` that read the same, on one text; the same whatever the order of `rows`."""
    ordered = sorted(rows, key=lambda row: (reading(row), row.bits_per_byte.value, row.label))
    pairs = [(a, b) for a, b in combinations(ordered, 2) if reading(a) == reading(b)]
    if not pairs:
        return ()
    sizes = pairs[0][0].blocks.bytes
    for row in rows:
        if not np.array_equal(row.blocks.bytes, sizes):
            raise ValueError(f"{row.label} was not measured on the blocks of {rows[0].label}")
    differences = np.stack([worse.blocks.nats - better.blocks.nats for better, worse in pairs]) / LN2
    # What only rounding tells apart is no difference, however often it comes.
    differences[np.abs(differences) < ROUNDING * pairs[0][0].blocks.nats] = 0.0
    found = judge_ratios(differences, sizes, np.random.default_rng(seed))
    corrected = holm(found.p_values)
    return tuple(
        Comparison(
            better.text,
            reading(better),
            better.label,
            worse.label,
            Interval(float(found.values[i]), float(found.low[i]), float(found.high[i]), found.level),
            float(found.p_values[i]),
            float(corrected[i]),
            found.blocks,
        )
        for i, (better, worse) in enumerate(pairs)
    )


def holm(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """p-values with all of them in mind: the k-th smallest of n times n − k + 1, none below the one before."""
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return corrected


def ranks(rows: Sequence[Evaluation], comparisons: Sequence[Comparison]) -> dict[str, tuple[int, int]]:
    """For each label the best and the worst place it can have among `rows`: only real differences decide places."""
    labels = {row.label for row in rows}
    found = {}
    for label in labels:
        real = [c for c in comparisons if c.real and {c.better, c.worse} <= labels]
        beaten_by = sum(c.worse == label for c in real)
        beats = sum(c.better == label for c in real)
        found[label] = (1 + beaten_by, len(labels) - beats)
    return found
