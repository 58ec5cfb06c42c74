"""The loss of the transformer and its gradient by autograd, for batches of texts of any lengths.

    nats = Σ −ln p(tokenₜ₊₁ | token₀ … tokenₜ)        over the places whose target counts

Texts are filled up behind their end. A place sees nothing that comes after it, so filling changes no number before it,
and targets there are `IGNORED`; so are targets that should cost nothing, such as a question's own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from inkling.errors import UsageError
from inkling.models.gpt import GPTConfig, Parameters, forward
from inkling.models.gpt_layout import tensors_of
from inkling.models.gpt_training import dropping, fits, training_logits

IGNORED = -1


@dataclass(frozen=True)
class Batch:
    """`inputs` and `targets` (B×T token ids): after inputs[b, t] comes targets[b, t], or `IGNORED`."""

    inputs: NDArray[np.int64]
    targets: NDArray[np.int64]


def batch_of(texts: Sequence[NDArray[np.integer]]) -> Batch:
    """Every token of each text but its first is a target; texts shorter than the longest are filled up."""
    short = [number for number, text in enumerate(texts) if len(text) < 2]
    if short or not texts:
        given = f"Text {short[0] + 1} of the batch has fewer than 2 tokens" if short else "The batch has no texts"
        raise UsageError(f"{given}; give texts with a token to read and one to predict.")
    longest = max(map(len, texts)) - 1
    inputs = np.zeros((len(texts), longest), np.int64)
    targets = np.full((len(texts), longest), IGNORED, np.int64)
    for row, text in enumerate(texts):
        inputs[row, : len(text) - 1], targets[row, : len(text) - 1] = text[:-1], text[1:]
    return Batch(inputs, targets)


@dataclass
class GPTLoss:
    """The objective of the training loop. What `dropout` leaves out is decided by `seed` and the step."""

    config: GPTConfig
    parameters: Parameters
    dropout: float = 0.0  # of what layers write; for sizes that gpt_training.py is made for
    seed: int = 0

    def plain(self, parameters: Parameters) -> Parameters:
        """As other programs lay them out."""
        return tensors_of(self.config, parameters)

    def gradient(self, batch: Batch, step: int) -> tuple[float, float]:
        # The same memory, followed by autograd: what the caller holds stays plain.
        live = {name: value.detach().requires_grad_() for name, value in self.parameters.items()}
        targets = torch.from_numpy(batch.targets)
        inputs = torch.from_numpy(batch.inputs)
        if fits(self.config):
            drop = dropping(self.dropout, int(np.random.SeedSequence((self.seed, step)).generate_state(1)[0]))
            logits = training_logits(live, self.config, inputs, drop)
        else:
            logits = forward(live, self.config, inputs).flatten(0, 1)
        nats = functional.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED, reduction="sum")
        gradients = torch.autograd.grad(nats, list(live.values()))
        for parameter, gradient in zip(self.parameters.values(), gradients, strict=True):
            parameter.grad = gradient
        return float(nats.detach()), float((batch.targets != IGNORED).sum())
