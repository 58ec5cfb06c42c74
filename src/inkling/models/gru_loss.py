"""The loss of the recurrent model and its gradient, for chunks of text: truncated back-propagation.

The state is carried from chunk to chunk, its gradient is not. Within a chunk the gradient is exact: softmax, layers
(recurrence.py) and embedding, each by hand.

Two things make it fast without changing a number. The first layer's input has only as many values as there are
different tokens, so E·W is a table of rows to pick from, and what is due to it is added up by rows. And the texts of a
large batch are shared out among the cores, each share going through all the times by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.models.gru import NORM_EPSILON, GRUConfig, Parameters, output_of, share_out
from inkling.models.recurrence import Layer, double, split_inputs

LOGITS_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class Batch:
    """A chunk of B texts: `inputs` and `targets` (T×B token ids); `fresh[t]` are the texts that begin at time t."""

    inputs: NDArray[np.int64]
    targets: NDArray[np.int64]
    fresh: dict[int, NDArray[np.int64]] = field(default_factory=dict)


@dataclass
class GRULoss:
    """The objective of the training loop, for chunks of `times` × `texts` tokens.

    `memory` is the carried state, in two slots: a step reads that of its own parity and writes the other, so that a
    step that was interrupted can be made again.
    """

    config: GRUConfig
    parameters: Parameters
    times: int
    texts: int
    dropout: float = 0.0  # of a layer's output; the same units at all times of a chunk
    recurrent_dropout: float = 0.0  # of the state as the products with U see it; likewise
    seed: int = 0
    workers: int = 1
    memory: Parameters = field(init=False)

    def __post_init__(self) -> None:
        dtype = self.parameters["bias"].dtype
        shape = (2, self.texts, self.config.hidden)
        self.memory = {f"state{n}": torch.zeros(shape, dtype=dtype) for n in range(1, self.config.layers + 1)}
        self.workers = max(1, min(self.workers, self.texts))
        edges = [self.texts * i // self.workers for i in range(self.workers + 1)]
        self._shards = [_Shard(self, slice(a, b)) for a, b in pairwise(edges)]

    def plain(self, parameters: Parameters) -> Parameters:
        return parameters

    def gradient(self, batch: Batch, step: int) -> tuple[float, float]:
        E, W, b = (self.parameters[name] for name in ("embedding", "W1", "b1"))
        rows: NDArray[np.int64] | None = None
        places = batch.inputs
        if len(E) > batch.inputs.size:  # of a large vocabulary, only the tokens that are there
            rows, places = np.unique(batch.inputs, return_inverse=True)
        picked = E if rows is None else E[torch.from_numpy(rows)]
        table = torch.addmm(b, picked, W)
        chunk = _Chunk(batch, places.reshape(batch.inputs.shape), table, self._masks(step), step % 2)
        parts = share_out(self.workers, [partial(shard.gradient, chunk) for shard in self._shards])
        total = parts[0][1]
        for _, part in parts[1:]:
            for name, value in part.items():
                total[name] += value
        due = total.pop("table")
        total |= {"W1": picked.t() @ due, "b1": due.sum(0)}
        embedding = total.pop("output").t().contiguous() if self.config.tied else torch.zeros_like(E)
        if rows is None:
            embedding += due @ W.t()
        else:
            embedding.index_add_(0, torch.from_numpy(rows), due @ W.t())
        total["embedding"] = embedding
        for name, parameter in self.parameters.items():
            parameter.grad = total[name]
        return sum(nats for nats, _ in parts), float(batch.targets.size)

    def _masks(self, step: int) -> dict[str, Tensor]:
        """What multiplies outputs and states (layers × texts × H): 0 or 1/(1−p), a function of the step."""
        found = {}
        for number, (name, share) in enumerate((("out", self.dropout), ("state", self.recurrent_dropout))):
            if share:
                shape = (self.config.layers, self.texts, self.config.hidden)
                drawn = np.random.default_rng((self.seed, step, number)).random(shape, np.float32)
                kept = torch.from_numpy(drawn >= share).to(self.parameters["bias"].dtype)
                found[name] = kept / (1 - share)
        return found


@dataclass(frozen=True)
class _Chunk:
    """What the shards of one step share."""

    batch: Batch
    places: NDArray[np.int64]  # T×B: rows of `table`
    table: Tensor
    masks: Mapping[str, Tensor]
    slot: int


class _Shard:
    """Some of the texts of every chunk: its buffers, and its part of the gradient."""

    def __init__(self, loss: GRULoss, span: slice) -> None:
        self.loss, self.span = loss, span
        times, texts, hidden, layers = loss.times, span.stop - span.start, loss.config.hidden, loss.config.layers
        dtype = loss.parameters["bias"].dtype
        self.layers = [Layer(times, texts, hidden, dtype) for _ in range(layers)]
        self.outputs = [torch.empty(times, texts, hidden, dtype=dtype) for _ in range(layers)]
        self.above = torch.empty(times, texts, hidden, dtype=dtype)
        self.inputs = torch.empty(times * texts, 3 * hidden if layers > 1 else 0, dtype=dtype)

    def gradient(self, chunk: _Chunk) -> tuple[float, Parameters]:
        """Nats, and the gradient of all parameters but the first layer's inputs, for which there is `table`."""
        loss, span, P = self.loss, self.span, self.loss.parameters
        fresh = {}
        for t, texts in chunk.batch.fresh.items():
            mine = texts[(texts >= span.start) & (texts < span.stop)] - span.start
            if len(mine):
                fresh[t] = torch.from_numpy(mine)
        places = torch.from_numpy(np.ascontiguousarray(chunk.places[:, span]))
        keeps = [chunk.masks["state"][n, span] if "state" in chunk.masks else None for n in range(len(self.layers))]
        shape = self.above.shape
        kept = [_Norm(P, n) if loss.config.norm else None for n in range(1, len(self.layers) + 1)]
        below = self.above
        for n, layer in enumerate(self.layers):
            memory = loss.memory[f"state{n + 1}"]
            U, c, start = double(P[f"U{n + 1}"]), P[f"c{n + 1}"], memory[chunk.slot, span]
            if n == 0:
                fill = partial(_pick, layer, *split_inputs(chunk.table, c), places)
            else:
                torch.addmm(P[f"b{n + 1}"], below.view(-1, shape[2]), P[f"W{n + 1}"], out=self.inputs)
                fill = partial(_copy, layer, self.inputs.view(*shape[:2], -1), c)
            states = layer.forward(fill, U, start, fresh, keeps[n])
            memory[1 - chunk.slot, span] = states[-1]
            norm = kept[n]
            below = states if norm is None else norm.forward(states)
            if "out" in chunk.masks:
                below = torch.mul(below, chunk.masks["out"][n, span], out=self.outputs[n])
            self.outputs[n] = below

        found: Parameters = {}
        targets = torch.from_numpy(np.ascontiguousarray(chunk.batch.targets[:, span])).view(-1)
        nats = self._output(below.reshape(-1, shape[2]), targets, found)
        for n in range(len(self.layers) - 1, -1, -1):
            layer, norm = self.layers[n], kept[n]
            if "out" in chunk.masks:
                self.above.mul_(chunk.masks["out"][n, span])
            if norm is not None:
                norm.backward(self.above, found)
            found[f"U{n + 1}"], found[f"c{n + 1}"] = layer.backward(self.above, P[f"U{n + 1}"], fresh, keeps[n])
            due = layer.due_to_inputs()
            if n == 0:
                found["table"] = torch.zeros_like(chunk.table).index_add_(0, places.view(-1), due)
            else:
                found[f"W{n + 1}"] = self.outputs[n - 1].reshape(-1, shape[2]).t() @ due
                found[f"b{n + 1}"] = due.sum(0)
                torch.mm(due, P[f"W{n + 1}"].t(), out=self.above.view(-1, shape[2]))
        return nats, found

    def _output(self, hidden: Tensor, targets: Tensor, found: Parameters) -> float:
        """Softmax and its loss, a few rows at a time: nats, gradients of the output, and `above`."""
        matrix, bias = output_of(self.loss.parameters, self.loss.config), self.loss.parameters["bias"]
        found |= {"output": torch.zeros_like(matrix), "bias": torch.zeros_like(bias)}
        above = self.above.view(-1, hidden.shape[1])
        nats = 0.0
        at_once = max(64, LOGITS_AT_ONCE // matrix.shape[1])
        for first in range(0, len(targets), at_once):
            part = slice(first, first + at_once)
            wanted = targets[part].unsqueeze(1)
            log_probs = torch.log_softmax(torch.addmm(bias, hidden[part], matrix), dim=1)
            nats -= float(log_probs.gather(1, wanted).sum(dtype=torch.float64))
            due = log_probs.exp_()
            due.scatter_add_(1, wanted, torch.full_like(wanted, -1, dtype=due.dtype))
            found["output"].addmm_(hidden[part].t(), due)
            found["bias"] += due.sum(0)
            torch.mm(due, matrix.t(), out=above[part])
        return nats


def _pick(layer: Layer, gates: Tensor, candidates: Tensor, places: Tensor, first: int, stop: int) -> None:
    """Fills in the inputs of times `first` … `stop` − 1 from tables with a row for each token."""
    hidden, rows = candidates.shape[1], places[first:stop].view(-1)
    torch.index_select(gates, 0, rows, out=layer.gates[first:stop].view(-1, 3 * hidden))
    torch.index_select(candidates, 0, rows, out=layer.candidates[first:stop].view(-1, hidden))


def _copy(layer: Layer, inputs: Tensor, c: Tensor, first: int, stop: int) -> None:
    """Fills in the inputs of times `first` … `stop` − 1 from x (T×B×3H)."""
    hidden, x = len(c), inputs[first:stop]
    layer.gates[first:stop, :, : 2 * hidden] = x[..., : 2 * hidden]
    layer.gates[first:stop, :, 2 * hidden :] = 2 * c
    torch.mul(x[..., 2 * hidden :], 2, out=layer.candidates[first:stop])


class _Norm:
    """Layer normalisation of the outputs of one layer (Ba et al. 2016), with its gradient."""

    def __init__(self, parameters: Parameters, number: int) -> None:
        self.names = (f"gain{number}", f"shift{number}")
        self.gain, self.shift = (parameters[name] for name in self.names)

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        self.scale = (centred.square().mean(-1, keepdim=True) + NORM_EPSILON).rsqrt_()
        self.unit = centred.mul_(self.scale)
        return torch.addcmul(self.shift, self.unit, self.gain)

    def backward(self, above: Tensor, found: Parameters) -> None:
        """Turns `above` into the gradient of the input, in place."""
        found[self.names[0]] = (above * self.unit).sum((0, 1))
        found[self.names[1]] = above.sum((0, 1))
        above.mul_(self.gain)
        along = (above * self.unit).mean(-1, keepdim=True)
        above.sub_(above.mean(-1, keepdim=True)).sub_(self.unit * along).mul_(self.scale)
