"""When a training has come apart: its loss per token jumps far above where it was, and stays there.

    limit = max(2 m, m + 8 d, m + ½)      m = median of the recent losses      d = 1.4826 median |loss − m|

d is the standard deviation where losses are normal, and a few wild ones do not move it. One spike is no reason to stop:
`IN_A_ROW` of them are. Twice the median is little enough to catch a model that has fallen back to the frequencies of
its tokens; the half nat keeps out a loss near zero, which doubles for nothing. Spikes are not counted among the recent
losses, or they would soon look usual. All of this is arithmetic on losses, and those are the same to the bit when a
training is resumed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

RECENT = 50  # losses that the median is over
LEAST = 20  # losses, before anything is called a spike
IN_A_ROW = 10
TIMES, DEVIATIONS, RISE = 2.0, 8.0, 0.5
ROBUST = 1.4826  # the standard deviation of a normal variable over its median absolute deviation


def limit(recent: Sequence[float]) -> float:
    """The loss above which a step is a spike; infinite while too few are known."""
    if len(recent) < LEAST:
        return math.inf
    middle = median(recent)
    deviation = ROBUST * median(abs(loss - middle) for loss in recent)
    return max(TIMES * middle, middle + DEVIATIONS * deviation, middle + RISE)


def seen(recent: tuple[float, ...], above: int, loss: float) -> tuple[tuple[float, ...], int]:
    """The recent losses and the spikes in a row, after one more loss (nats per token)."""
    if loss > limit(recent):
        return recent, above + 1
    return (*recent, loss)[-RECENT:], 0
