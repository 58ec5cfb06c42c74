"""What could stand at a place of a text: the likeliest tokens there, for a model that has read what stands before.

A place is looked at with as much of the text as `score` lets the model see there. So the share of the token that does
stand there is what it was charged for, and a place deep in a long text costs no more than one near its beginning:

    transformer     the window of that place, read at once
    n-gram, bigram  the few tokens that the model remembers
    recurrent       the part of the text that the place is scored in, with its warm-up

The unknown token stands for no text in particular, so it is never among the likeliest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from inkling.models.contracts import LanguageModel
    from inkling.text.tokens import Tokeniser


@dataclass(frozen=True)
class Possible:
    """A token that could stand at a place. `text` shows bytes that are part of a character as escapes."""

    token: int
    text: str
    share: float
    chosen: bool = False


def likeliest_at(model: LanguageModel[Any], ids: Sequence[int], place: int, count: int) -> list[Possible]:
    """The likeliest tokens at `place` of the text `ids`, best first; behind them the one that stands there, if it is
    none of them."""
    log_probs = log_probs_at(model, ids, place)
    # One more than is wanted, because the unknown token may be among them.
    order = np.argsort(-log_probs, kind="stable")[: count + 1].tolist()
    ranked = [(token, float(log_probs[token])) for token in order]
    here = int(ids[place]) if place < len(ids) else None
    return possible(model.tokeniser, ranked, count, here, None if here is None else float(log_probs[here]))


def possible(
    tokeniser: Tokeniser,
    ranked: Sequence[tuple[int, float]],
    count: int,
    chosen: int | None = None,
    log_prob: float | None = None,
) -> list[Possible]:
    """The first `count` of tokens with their log-probabilities, and the chosen one marked or put behind them."""
    unknown = tokeniser.unknown
    shown = [(token, value) for token, value in ranked if token != unknown][:count]
    if chosen is not None and log_prob is not None and chosen != unknown and chosen not in dict(shown):
        shown.append((chosen, log_prob))
    return [
        Possible(token, piece_text(tokeniser, token), float(np.exp(value)), token == chosen) for token, value in shown
    ]


def piece_text(tokeniser: Tokeniser, token: int) -> str:
    return tokeniser.piece(token).decode("utf-8", "backslashreplace")


def log_probs_at(model: LanguageModel[Any], ids: Sequence[int], place: int) -> NDArray[np.float64]:
    """Log-probabilities (V) of the token at `place` (from 0; the length of `ids` is the place after the last)."""
    import torch

    from inkling.models.bigram import Bigram
    from inkling.models.contracts import Reader
    from inkling.models.gru import GRU, STRIDE, WARM_UP
    from inkling.models.ngram import NGram

    opens = 0
    if isinstance(model, NGram):
        opens = max(0, place - (model.config.order - 1))
    elif isinstance(model, Bigram):
        opens = max(0, place - 1)
    elif isinstance(model, GRU):
        opens = max(0, place - place % STRIDE - WARM_UP)
    before = [int(token) for token in ids[opens:place]]
    with torch.inference_mode():
        if isinstance(model, Reader):
            log_probs = model.read([before])[1][0]
        else:
            state: Any
            state, log_probs = model.begin()
            if isinstance(model, GRU) and opens:  # such a part begins without a token before it
                state = (model.parameters["bias"].new_zeros(model.config.hidden),) * model.config.layers
            for token in before:
                state, log_probs = model.step(state, token)
    found: NDArray[np.float64] = log_probs.to(torch.float64).numpy()
    return found
