"""The loss of the transformer and its gradient, for batches of texts of any lengths.

    nats = Σ −ln p(tokenₜ₊₁ | token₀ … tokenₜ)        over the places whose target counts

Texts are filled up behind their end. A place sees nothing that comes after it, so filling changes no number before it,
and targets there are `IGNORED`; so are targets that should cost nothing, such as a question's own words.

The texts of a batch are shared out among workers, one core each, who take a few at a time forwards and backwards
(gpt_training.py). Like goes beside like in length, so that little is filled up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from inkling.errors import UsageError
from inkling.models.gpt import GPTConfig, Parameters, forward
from inkling.models.gpt_layout import tensors_of
from inkling.models.gpt_training import Dropping, Fused, Precision, Texts, Worker, runs_of, share_rows
from inkling.models.grams import gram_rows_of
from inkling.models.gru import share_out
from inkling.models.kernels import Loaded, PlainParts, load

IGNORED = -1


@dataclass(frozen=True)
class Batch:
    """`inputs` and `targets` (B×T token ids): after inputs[b, t] comes targets[b, t], or `IGNORED`."""

    inputs: NDArray[np.int64]
    targets: NDArray[np.int64]


def batch_of(texts: Sequence[NDArray[np.integer]], firsts: Sequence[int] | None = None) -> Batch:
    """Every token of each text from place 1 on, or from that of its `firsts` on, is a target; texts shorter than the
    longest are filled up."""
    short = [number for number, text in enumerate(texts) if len(text) < 2]
    if short or not texts:
        given = f"Text {short[0] + 1} of the batch has fewer than 2 tokens" if short else "The batch has no texts"
        raise UsageError(f"{given}; give texts with a token to read and one to predict.")
    longest = max(map(len, texts)) - 1
    inputs = np.zeros((len(texts), longest), np.int64)
    targets = np.full((len(texts), longest), IGNORED, np.int64)
    for row, (text, first) in enumerate(zip(texts, firsts or [1] * len(texts), strict=True)):
        inputs[row, : len(text) - 1], targets[row, first - 1 : len(text) - 1] = text[:-1], text[first:]
    return Batch(inputs, targets)


@dataclass
class GPTLoss:
    """The objective of the training loop.

    `workers` threads share the texts of a batch, one core each; how many there are changes sums in their last digits
    only. What `dropout` leaves out is decided by `seed`, step and place; `precision` is that of factors of products.
    """

    config: GPTConfig
    parameters: Parameters
    dropout: float = 0.0  # of what layers write
    seed: int = 0
    workers: int = 1
    precision: Precision = "float32"
    kernels: Loaded = field(init=False)

    def __post_init__(self) -> None:
        dtype, by_hand = self.parameters["embedding"].dtype, self.config.mlp > 0
        limits = (
            ("dropout", 0 <= self.dropout < 1 and (by_hand or not self.dropout), "a share below 1, 0 without mlp"),
            ("workers", self.workers >= 1, "at least 1"),
            ("precision", self.precision in get_args(Precision), f"one of {', '.join(get_args(Precision))}"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"{name} of a transformer's training is {getattr(self, name)!r}; give {wanted}.")
        self.kernels = Loaded(PlainParts(), False, "Training steps use torch alone for such numbers and sizes.")
        if by_hand and dtype == torch.float32:
            self.kernels = load()
        self._workers = [Worker(self.config, self.kernels.parts, dtype, self.precision) for _ in range(self.workers)]

    def plain(self, parameters: Parameters) -> Parameters:
        """As they stand in a run's directory: where there is one, in the layout of other programs."""
        return tensors_of(self.config, parameters)

    def gradient(self, batch: Batch, step: int) -> tuple[float, float]:
        counted = batch.targets != IGNORED
        nats, found = self._by_hand(batch, counted, step) if self.config.mlp else self._by_autograd(batch)
        for name, parameter in self.parameters.items():
            parameter.grad = found[name]
        return nats, float(counted.sum())

    def _by_autograd(self, batch: Batch) -> tuple[float, Parameters]:
        # The same memory, followed by autograd: what the caller holds stays plain.
        live = {name: value.detach().requires_grad_() for name, value in self.parameters.items()}
        logits = forward(live, self.config, torch.from_numpy(batch.inputs)).flatten(0, 1)
        targets = torch.from_numpy(batch.targets).flatten()
        nats = functional.cross_entropy(logits, targets, ignore_index=IGNORED, reduction="sum")
        found = torch.autograd.grad(nats, list(live.values()))
        return float(nats.detach()), dict(zip(live, found, strict=True))

    def _by_hand(self, batch: Batch, counted: NDArray[np.bool_], step: int) -> tuple[float, Parameters]:
        self._check(batch, counted)
        P = {name: value.detach().contiguous() for name, value in self.parameters.items()}
        fused = Fused(self.config, P, self.precision)
        drop = Dropping.at(self.dropout, self.config.layers, self.seed, step)
        # Behind its last target nothing of a text has an effect.
        lengths = np.where(counted, np.arange(1, counted.shape[1] + 1), 0).max(axis=1, initial=0)
        shares = [
            [self._texts(batch, counted, rows[run], int(lengths[rows[run]].max())) for run in runs_of(lengths[rows])]
            for rows in share_rows(lengths, self.workers)
        ]
        tasks = [
            partial(worker.gradient, texts, fused, drop) for worker, texts in zip(self._workers, shares, strict=True)
        ]
        parts = share_out(self.workers, tasks)
        _, total, _ = parts[0]
        for _, part, _ in parts[1:]:
            for name, value in part.items():
                total[name] += value
        found = fused.gradients(total)
        # What is due to vectors of tokens and runs: added by one, as their tables may be large and what is added small.
        for texts, (_, _, due) in zip(shares, parts, strict=True):
            for some, d_x in zip(texts, due, strict=True):
                for name, rows in some.rows.items():
                    self.kernels.parts.add_rows(d_x, rows, found[name])
        return sum(nats for nats, _, _ in parts), found

    def _check(self, batch: Batch, counted: NDArray[np.bool_]) -> None:
        """Compiled parts take rows of tables as they come."""
        for name, ids in (("inputs", batch.inputs), ("targets", batch.targets[counted])):
            if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < self.config.vocabulary:
                raise UsageError(
                    f"The {name} of a batch go from {int(ids.min())} to {int(ids.max())}, but this model knows 0 to "
                    f"{self.config.vocabulary - 1}; encode the texts with its own tokeniser."
                )

    def _texts(self, batch: Batch, counted: NDArray[np.bool_], rows: NDArray[np.int64], times: int) -> Texts:
        """Some rows of the batch, cut to `times` places."""
        ids, is_counted = batch.inputs[rows, :times], counted[rows, :times]
        tables = {"embedding": ids.astype(np.int64)}
        tables |= {name: gram_rows_of(ids, n, self.config) for name, n in self.config.gram_names.items()}
        places = (rows[:, None] * self.config.context + np.arange(times)) * self.config.dimension
        return Texts(
            count=len(rows),
            times=times,
            rows={name: torch.from_numpy(np.ascontiguousarray(table).reshape(-1)) for name, table in tables.items()},
            targets=torch.from_numpy(batch.targets[rows, :times][is_counted].astype(np.int64)),
            counted=None if is_counted.all() else torch.from_numpy(np.flatnonzero(is_counted)),
            places=torch.from_numpy(places.astype(np.int32).reshape(-1)),  # wraps around
        )
