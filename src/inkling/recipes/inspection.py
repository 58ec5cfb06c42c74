"""From a model with attention heads to the census of what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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


def inspect_small(
    seed: int, texts: int, steps: int, key_noise: float, progress: Callable[[Step], None] | None = None
) -> Census:
    """The heads of a small model trained on repeated stretches, on fresh ones; only what is certain is charged."""
    if not 1 <= steps <= 100_000:
        raise UsageError(f"The number of steps is {steps}; give a whole number from 1 to 100,000.")
    model = train_induction(seed, steps=steps, progress=progress)
    fresh = repeats(np.random.default_rng((seed, 1)), texts)
    names = ["▸" if token == BEGIN else _letter(token) for token in fresh.ids[0].tolist()]
    return census(
        model,
        torch.from_numpy(fresh.ids),
        seed=seed,
        charged=torch.from_numpy(fresh.certain),
        key_noise=key_noise,
        tokens=names,
    )


def inspect_run(path: str, files: Sequence[str], texts: int, length: int, key_noise: float, seed: int) -> Census:
    """The heads of a run, on windows of text."""
    model = load_language_model(path)
    if not isinstance(model, Attentive):
        raise InklingError(
            f"{path} holds a model without attention heads; name a run that has some, or none to see a small model."
        )
    ids = windows(model.tokeniser, _texts(files), texts, length)
    names = [model.tokeniser.decode([token]) for token in ids[0].tolist()]
    return census(model, ids, seed=seed, key_noise=key_noise, tokens=names)


def windows(tokeniser: Tokeniser, texts: Iterator[str], most: int, length: int) -> torch.Tensor:
    """The first `most` stretches of `length` tokens, none across two texts; what is left over is left out."""
    if length < 3:
        raise UsageError(f"The length of a window is {length}; give at least 3 tokens.")
    found: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    for text in texts:
        ids = tokeniser.encode([text]).ids.astype(np.int64)
        for start in range(0, len(ids) - length + 1, length):
            found.append(ids[start : start + length])
            if len(found) == most:
                return torch.from_numpy(np.stack(found))
    if not found:
        raise InklingError(f"No text has {length} tokens; give longer texts, or a smaller --length.")
    return torch.from_numpy(np.stack(found))


def _texts(files: Sequence[str]) -> Iterator[str]:
    corpus = open_corpus(list(files), TextConfig(), keep_line_ends=True, keep_empty=True)
    for batch in documents(corpus):
        yield "".join(batch)


def _letter(token: int) -> str:
    return chr(ord("a") + token) if token < 26 else chr(ord("A") + token - 26)
