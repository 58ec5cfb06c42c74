"""From a model with attention heads to the census of what they do.

`inspect_small` trains the small model of recipes/induction.py and watches it on texts that it has not seen: their
generator begins at (seed, 0, 1), that of training step k at (seed, k). `inspect_run` opens a run and watches it on
windows of text, read as the model reads it: behind its normalisation, cut by its tokeniser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch

from inkling.errors import InklingError, UsageError
from inkling.explain.census import Census
from inkling.explain.heads import census
from inkling.models.contracts import Attentive
from inkling.recipes.data import TextConfig, documents, open_corpus
from inkling.recipes.induction import BEGIN, repeats, train_induction
from inkling.runs.loading import load_language_model
from inkling.text.tokens import Tokeniser
from inkling.training.loop import Step

AT_ONCE = 1 << 22  # weights, or log-probabilities, in memory: of as many texts as that allows


def inspect_small(
    seed: int,
    texts: int,
    steps: int,
    key_noise: float,
    progress: Callable[[Step], None] | None = None,
    looking: Callable[[int, int], None] | None = None,
) -> Census:
    """The heads of a small model trained on repeated stretches, on fresh ones; only what is certain is charged."""
    if not 1 <= steps <= 100_000:
        raise UsageError(f"The number of training steps is {steps}; give a whole number from 1 to 100,000.")
    model = train_induction(seed, steps=steps, progress=progress)
    fresh = repeats(np.random.default_rng((seed, 0, 1)), texts)
    names = ["▸" if token == BEGIN else _letter(token) for token in fresh.ids[0].tolist()]
    return census(
        model,
        torch.from_numpy(fresh.ids),
        seed=seed,
        charged=torch.from_numpy(fresh.certain),
        key_noise=key_noise,
        tokens=names,
        progress=looking,
    )


def inspect_run(
    path: str,
    files: Sequence[str],
    texts: int,
    length: int,
    key_noise: float,
    seed: int,
    looking: Callable[[int, int], None] | None = None,
) -> Census:
    """The heads of a run, on windows of text."""
    _check_length(length)
    model = load_language_model(path)
    if not isinstance(model, Attentive):
        raise InklingError(
            f"{path} holds a model without attention heads (bigram, ngram and gru have none); name no run, and a small "
            "model that has heads is trained and shown."
        )
    ids = windows(model.tokeniser, map(model.chain, _texts(files)), texts, length)
    names = [model.tokeniser.decode([token]) for token in ids[0].tolist()]
    numbers = length * max(length * model.heads * model.layers, model.tokeniser.size)  # of one text
    at_once = max(1, min(64, AT_ONCE // numbers))
    return census(model, ids, seed=seed, key_noise=key_noise, tokens=names, texts_at_once=at_once, progress=looking)


def windows(tokeniser: Tokeniser, texts: Iterable[str], most: int, length: int) -> torch.Tensor:
    """The first `most` stretches of `length` tokens, none across two texts; what is left over is left out."""
    _check_length(length)
    found: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    for text in texts:
        ids = tokeniser.encode([text]).ids.astype(np.int64)
        for start in range(0, len(ids) - length + 1, length):
            found.append(ids[start : start + length])
            if len(found) == most:
                return torch.from_numpy(np.stack(found))
    if not found:
        raise InklingError(f"No text has as many as {length} tokens; give longer texts, or a smaller --length.")
    return torch.from_numpy(np.stack(found))


def _check_length(length: int) -> None:
    if length < 3:
        raise UsageError(
            f"The length of a window is {length} tokens; give at least 3, with fewer a head has no choice."
        )


def _texts(files: Sequence[str]) -> Iterator[str]:
    """The files of running text, and the rows of tables."""
    corpus = open_corpus(list(files), TextConfig(), keep_line_ends=True, keep_empty=True)
    for batch in documents(corpus):
        yield from batch


def _letter(token: int) -> str:
    return chr(ord("a") + token) if token < 26 else chr(ord("A") + token - 26)
