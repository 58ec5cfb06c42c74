"""Where one attention head looks and how sharply, place by place: sums over places, to be divided once.

At place t a head has n = t + 1 keys, scores s and weights α = softmax(s):

    entropy          H = −Σ α ln α            keys in use: e^H, n for an even spread, 1 for a single key
    margin           highest minus second score
    effective β      e^β / (e^β + n − 1) = highest weight, so β = logit(α) + ln(n − 1): as sharp as orthonormal keys
                     kⱼ asked by q = β kⱼ; 0 for an even spread
    one back, first token, itself             weight on t − 1, on 0, on t
    induction        weight on the places j ≤ t whose token j − 1 is token t, where there are any; an even spread would
                     put (number of such j) / n there
    copies           of all tokens, the head's own output raises the logit of the most attended token most

logit(α) is worked out from the scores, as the highest minus ln Σ exp of the others, so that a weight of 1 − 10⁻²⁰ still
has its β. Margin and β are kept for every place, because their median is asked for and medians do not add up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class HeadSums:
    """Sums over places of what stands above; `a + b` is what both have together."""

    places: int
    keys: int  # available
    even: float  # what an even spread puts on one key, 1/n
    top_weight: float
    copies: int
    entropy_nats: float
    keys_in_use: float
    one_back: float
    first_token: float
    itself: float
    induction_places: int  # where there is a place to look for
    induction: float
    induction_even: float
    margins: Floats  # places
    betas: Floats  # places

    def __add__(self, other: HeadSums) -> HeadSums:
        parts: dict[str, Any] = {}
        for one in fields(self):
            mine, theirs = getattr(self, one.name), getattr(other, one.name)
            parts[one.name] = np.concatenate([mine, theirs]) if isinstance(mine, np.ndarray) else mine + theirs
        return HeadSums(**parts)


def effective_beta(scores: Tensor) -> Tensor:
    """β of each row of scores (…×n, −inf where masked, two keys or more): logit of the highest weight + ln(n − 1)."""
    top, at = scores.max(-1, keepdim=True)
    others = scores.scatter(-1, at, -math.inf)
    keys = scores.isfinite().sum(-1)
    return top[..., 0] - others.logsumexp(-1) + (keys - 1).to(scores.dtype).log()


def induction_places(ids: Tensor) -> Tensor:
    """B×T×T: at place t, the places j ≤ t that follow an earlier occurrence of token t."""
    before = torch.nn.functional.pad(ids[:, :-1], (1, 0), value=-1)  # B×T: the token before place j
    return (ids[:, :, None] == before[:, None, :]).tril()


def sum_of_head(ids: Tensor, scores: Tensor, weights: Tensor, raised: Tensor, skipped: int) -> HeadSums:
    """One head on texts `ids` (B×T): scores and weights B×T×T, `raised` the logits of its own output (B×T×V).

    The first `skipped` places of each text are left out: with one key there is nothing to choose, and with two what is
    one back is also the first token.
    """
    times = ids.shape[1]
    scores, weights = scores.double()[:, skipped:], weights.double()[:, skipped:]
    queries = torch.arange(skipped, times)
    here = torch.arange(times - skipped)
    keys = (queries + 1).double().expand(len(ids), -1)  # B×places
    entropy = -torch.special.xlogy(weights, weights).sum(-1)
    top, at = weights.max(-1)
    looked_for = induction_places(ids)[:, skipped:]
    found = looked_for.sum(-1)
    best = scores.topk(2, dim=-1).values
    attended = ids.gather(1, at)  # B×places: the token that is looked at most
    logits = raised[:, skipped:]
    rivals = (logits >= logits.gather(2, attended[..., None])).sum(-1)  # itself among them
    return HeadSums(
        places=entropy.numel(),
        keys=int(keys.sum()),
        even=float((1 / keys).sum()),
        top_weight=float(top.sum()),
        copies=int((rivals == 1).sum()),
        entropy_nats=float(entropy.sum()),
        keys_in_use=float(entropy.exp().sum()),
        one_back=float(weights[:, here, queries - 1].sum()),
        first_token=float(weights[:, :, 0].sum()),
        itself=float(weights[:, here, queries].sum()),
        induction_places=int((found > 0).sum()),
        induction=float((weights * looked_for).sum()),
        induction_even=float((found / keys).sum()),
        margins=(best[..., 0] - best[..., 1]).flatten().numpy(),
        betas=effective_beta(scores).flatten().numpy(),
    )
