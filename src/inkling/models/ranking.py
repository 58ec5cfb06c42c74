"""What could have stood at each place of a text: the likeliest tokens there, beside the one that does.

A model that is a `Ranker` says it for all places at once; any other is asked step by step, texts side by side. What a
token costs is what `score` charges for it (spellings aside), also where that sees less of a very long text than steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.models.contracts import LanguageModel, Ranker, Ranking

SIDE_BY_SIDE = 32  # texts


@runtime_checkable
class _Scorer(Protocol):
    def score_ids(self, ids: NDArray[np.integer], offsets: NDArray[np.int64]) -> NDArray[np.float64]: ...


def rank_tokens(model: LanguageModel[Any], texts: Sequence[Sequence[int]], count: int) -> list[Ranking]:
    """Of each text of tokens: what each costs, and the `count` likeliest at its place (0: costs only)."""
    lengths = [len(text) for text in texts]
    offsets = np.append(0, np.cumsum(lengths, dtype=np.int64))
    ids = np.array([token for text in texts for token in text], np.int64)
    if isinstance(model, Ranker) and count:
        found = model.rank_ids(ids, offsets, count)
    elif isinstance(model, _Scorer) and not count:
        found = Ranking(model.score_ids(ids, offsets), np.zeros((len(ids), 0), np.int64), np.zeros((len(ids), 0)))
    else:
        found = _by_steps(model, texts, offsets, ids, count)
    return [
        Ranking(found.nats[span], found.likeliest[span], found.log_probs[span])
        for span in (slice(int(a), int(b)) for a, b in pairwise(offsets))
    ]


def _by_steps(
    model: LanguageModel[Any],
    texts: Sequence[Sequence[int]],
    offsets: NDArray[np.int64],
    ids: NDArray[np.int64],
    count: int,
) -> Ranking:
    count = min(count, model.tokeniser.size)
    nats, likeliest, values = np.zeros(len(ids)), np.zeros((len(ids), count), np.int64), np.zeros((len(ids), count))
    for first in range(0, len(texts), SIDE_BY_SIDE):
        going = [i for i in range(first, min(first + SIDE_BY_SIDE, len(texts))) if len(texts[i])]
        if not going:
            continue
        state, beginning = model.begin()
        states, log_probs = [state] * len(going), beginning.expand(len(going), -1)
        place = 0
        while going:
            at, rows = offsets[going] + place, log_probs.detach().to(torch.float64)
            nats[at] = -rows.numpy()[np.arange(len(going)), ids[at]]
            if count:
                tops = rows.topk(count, dim=1)
                likeliest[at], values[at] = tops.indices.numpy(), tops.values.numpy()
            place += 1
            left = [row for row, i in enumerate(going) if len(texts[i]) > place]
            going, tokens = [going[row] for row in left], [int(ids[at[row]]) for row in left]
            if going:
                states, log_probs = model.step_many([states[row] for row in left], tokens)
    if isinstance(model, _Scorer):
        nats = model.score_ids(ids, offsets)
        is_same = likeliest == ids[:, None]  # a token has one cost, not two that differ in their last digits
        values[is_same] = np.broadcast_to(-nats[:, None], values.shape)[is_same]
    return Ranking(nats, likeliest, values)
