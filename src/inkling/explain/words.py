"""Which words moved a classifier, exactly: what becomes of the verdict when they are left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Explanation:
    """One text, the verdict, and the exact effect of each of its words and sentences.

    An effect is in nats of log-odds, ln p − ln (1 − p): with the word less without it, so that a positive number speaks
    for the label of its column.
    """

    text: str
    labels: tuple[str, ...]
    log_probs: Floats  # C, calibrated
    starts: Places  # W, where each word starts in the text, in characters
    ends: Places  # W
    known: NDArray[np.bool_]  # W, whether the model has ever seen the word
    effects: Floats  # W×C
    sentences: Places  # S×2, the first word of each sentence and the one after its last
    sentence_effects: Floats  # S×C, of leaving out the whole sentence

    @property
    def verdict(self) -> int:
        """The label that the model gives, by its place in `labels`."""
        return int(self.log_probs.argmax())

    @property
    def probability(self) -> float:
        """Of the verdict."""
        return float(np.exp(self.log_probs.max()))

    def word(self, place: int) -> str:
        """As it stands in the text."""
        return self.text[self.starts[place] : self.ends[place]]

    def sentence(self, place: int) -> str:
        first, last = self.sentences[place]
        return self.text[self.starts[first] : self.ends[last - 1]]
