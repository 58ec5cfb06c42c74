"""The recurrent language model: embedding → one to three GRU layers → next token, over any tokeniser.

    xₜ = E[tokenₜ₋₁]    h¹ₜ = GRU¹(xₜ, h¹ₜ₋₁)    h²ₜ = GRU²(h¹ₜ, h²ₜ₋₁) …    ln p(tokenₜ) = log softmax(hᴸₜ O + o)

Before a text stands the state zero and the token that ends a line. The cell and its gradient are in recurrence.py; this
page is the model around them: the loss with its gradient (`GRULoss`), and `begin`, `step`, `score` (`GRU`).

Two things make it fast without changing a number. The first layer's input has only as many values as there are
different tokens, so E·W is a table of rows to pick from, not a product for every token. And the texts of a batch are
shared out among the cores, each going through all the times by itself.

Left out: carrying gradients across chunks (the state is carried, its gradient is not: truncated back-propagation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import UsageError
from inkling.models.contracts import Scores, Speller, assemble_scores
from inkling.models.recurrence import Layer, cell, double, split_inputs
from inkling.text.normalise import Chain
from inkling.text.tokens import Tokeniser

Parameters = dict[str, Tensor]
Result = TypeVar("Result")
State = tuple[Tensor, ...]  # one vector (H) a layer
STRIDE, WARM_UP = 1024, 256  # tokens: long texts are scored in parts, each warmed up on what stands before it
SCORED_AT_ONCE = 256  # texts or parts side by side
NORM_EPSILON = 1e-5
LOGITS_AT_ONCE = 1 << 21
TABLE_ROWS = 20_000  # above, inputs of the first layer are worked out when needed


@dataclass(frozen=True)
class GRUConfig:
    """The sizes. `tied` uses the embedding for the output too; `norm` normalises the output of each layer."""

    dimension: int = 64
    hidden: int = 256
    layers: int = 1
    tied: bool = False
    norm: bool = False

    def __post_init__(self) -> None:
        limits = (
            ("dimension", self.dimension >= 1, "at least 1"),
            ("hidden", self.hidden >= 1, "at least 1"),
            ("layers", 1 <= self.layers <= 3, "1, 2 or 3"),
        )
        for name, fits, wanted in limits:
            if not fits:
                raise UsageError(f"--{name} is {getattr(self, name)}; give {wanted}.")
        if self.tied and self.dimension != self.hidden:
            raise UsageError(
                f"--tied needs --dimension equal to --hidden, but they are {self.dimension} and {self.hidden}."
            )


def random_parameters(
    config: GRUConfig, size: int, generator: np.random.Generator, counts: NDArray[np.int64] | None = None
) -> Parameters:
    """Uniform within ±1/√inputs. With the `counts` of the tokens, the output's bias starts at the logarithm of their
    frequencies: otherwise a model of many rare tokens spends its first steps on their rarity, and saturates its units.
    """

    def draw(rows: int, columns: int, scale: float) -> Tensor:
        return torch.from_numpy(generator.uniform(-scale, scale, (rows, columns)).astype(np.float32))

    D, H = config.dimension, config.hidden
    found = {"embedding": draw(size, D, 1.0 if not config.tied else math.sqrt(3 / D))}
    for layer in range(1, config.layers + 1):
        inputs = D if layer == 1 else H
        found[f"W{layer}"] = draw(inputs, 3 * H, math.sqrt(1 / inputs))
        found[f"U{layer}"] = draw(H, 3 * H, math.sqrt(1 / H))
        found[f"b{layer}"] = torch.zeros(3 * H)
        found[f"c{layer}"] = torch.zeros(H)
        if config.norm:
            found[f"gain{layer}"] = torch.ones(H)
            found[f"shift{layer}"] = torch.zeros(H)
    if not config.tied:
        found["output"] = draw(H, size, math.sqrt(1 / H))
    found["bias"] = torch.zeros(size)
    if counts is not None:
        softened = counts + 0.1
        found["bias"] = torch.from_numpy(np.log(softened / softened.sum()).astype(np.float32))
    return found


# ----------------------------------------------------------------------------------------------- training


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


def output_of(parameters: Parameters, config: GRUConfig) -> Tensor:
    return parameters["embedding"].t() if config.tied else parameters["output"]


def share_out(workers: int, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Runs the tasks on `workers` threads, each task's products on one core; all results, in order."""
    if workers < 2 or len(tasks) < 2:
        return [task() for task in tasks]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return list(_pool(workers).map(lambda task: task(), tasks))
    finally:
        torch.set_num_threads(threads)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Kept, because a thread's buffers for matrix products are lost with it."""
    return ThreadPoolExecutor(workers, "inkling", torch.set_num_threads, (1,))


# ----------------------------------------------------------------------------------------------- using


class GRU:
    """The trained model (contract LanguageModel). The state is one vector (H) a layer."""

    def __init__(
        self,
        config: GRUConfig,
        parameters: Mapping[str, Tensor],
        tokeniser: Tokeniser,
        chain: Chain | None = None,
        speller: Speller | None = None,
        workers: int = 0,
    ) -> None:
        self.config, self.parameters = config, {name: value.detach() for name, value in parameters.items()}
        self.tokeniser, self.chain, self.speller = tokeniser, chain or Chain(), speller
        self.workers = workers or torch.get_num_threads()
        P = self.parameters
        self._doubled = [double(P[f"U{n}"]) for n in range(1, config.layers + 1)]
        self._tables: tuple[Tensor, Tensor] | None = None  # the first layer's inputs, for each token
        if tokeniser.size <= TABLE_ROWS:
            self._tables = split_inputs(torch.addmm(P["b1"], P["embedding"], P["W1"]), P["c1"])

    @property
    def context(self) -> str:
        return f"the whole text, in parts of {STRIDE:,} tokens that each see at least {WARM_UP} more before them"

    def tensors(self) -> Parameters:
        return dict(self.parameters)

    def begin(self) -> tuple[State, Tensor]:
        zero = self.parameters["bias"].new_zeros(self.config.hidden)
        return self.step((zero,) * self.config.layers, self.tokeniser.begin)

    def step(self, state: State, token: int) -> tuple[State, Tensor]:
        states, log_probs = self.step_many([state], [token])
        return states[0], log_probs[0]

    def step_many(self, states: Sequence[State], tokens: Sequence[int]) -> tuple[list[State], Tensor]:
        ids = torch.as_tensor(tokens, dtype=torch.int64)
        before = [torch.stack([state[n] for state in states]) for n in range(self.config.layers)]
        after = [torch.empty_like(h) for h in before]
        top = self._advance(ids, before, after, [self._workspace(len(states)) for _ in before])
        log_probs = torch.log_softmax(torch.addmm(self.parameters["bias"], top, self._output), dim=1)
        return [tuple(h[i] for h in after) for i in range(len(states))], log_probs

    def score(self, texts: Sequence[str]) -> Scores:
        encodings = self.tokeniser.encode([self.chain(text) for text in texts] if self.chain.names else texts)
        nats = self.score_ids(encodings.ids, encodings.offsets)
        return assemble_scores(texts, encodings, nats, self.tokeniser, self.speller)

    def score_ids(
        self, ids: NDArray[np.integer], offsets: NDArray[np.int64], stride: int = STRIDE, warm_up: int = WARM_UP
    ) -> NDArray[np.float64]:
        """Nats of each token. Texts are cut every `stride` tokens; a part sees the `warm_up` tokens before it and no
        more, so with a stride of 1 each token is predicted from exactly `warm_up` others (fewer where a text begins).
        """
        starts, stops = _parts(offsets, stride)
        texts = np.searchsorted(offsets, starts, side="right") - 1
        opens = np.maximum(starts - warm_up, offsets[texts])  # the first token that is read
        is_cold = opens > offsets[texts]  # begins inside its text: the token before is not known
        nats = np.zeros(len(ids))
        order = np.argsort(opens - stops, kind="stable")  # longest first
        tokens = np.concatenate([ids.astype(np.int64), [self.tokeniser.begin]])

        def group(chosen: NDArray[np.int64]) -> None:
            self._score_group(tokens, opens[chosen], starts[chosen], stops[chosen], is_cold[chosen], nats)

        at_once = min(SCORED_AT_ONCE, -(-len(order) // max(1, self.workers))) or 1
        tasks = [partial(group, order[a : a + at_once]) for a in range(0, len(order), at_once)]
        share_out(self.workers, tasks)
        return nats

    def _score_group(
        self,
        tokens: NDArray[np.int64],
        opens: NDArray[np.int64],
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        is_cold: NDArray[np.bool_],
        nats: NDArray[np.float64],
    ) -> None:
        """Parts side by side, longest first, so that those still going are always the first ones."""
        P, H = self.parameters, self.config.hidden
        # The input at time t is the token at place opens + t − 1; the token to predict stands at opens + t. A cold
        # part's first input is a token, so it predicts from its second on.
        first = opens + is_cold
        lengths = stops - first
        widest = len(lengths)
        states = [P["bias"].new_zeros(widest, H) for _ in range(self.config.layers)]
        spare = [torch.empty_like(h) for h in states]
        spaces = [self._workspace(widest) for _ in states]
        for t in range(int(lengths.max(initial=0))):
            live = int(np.searchsorted(-lengths, -t, side="left"))
            place = first[:live] + t
            inputs = tokens[np.where((t == 0) & ~is_cold[:live], -1, place - 1)]
            before, after = [h[:live] for h in states], [h[:live] for h in spare]
            top = self._advance(torch.from_numpy(inputs), before, after, spaces)
            states, spare = spare, states
            counted = place >= starts[:live]
            if counted.any():
                log_probs = torch.log_softmax(torch.addmm(P["bias"], top, self._output), dim=1)
                found = log_probs.gather(1, torch.from_numpy(tokens[place]).unsqueeze(1)).squeeze(1)
                nats[place[counted]] = -found.to(torch.float64).numpy()[counted]

    @property
    def _output(self) -> Tensor:
        return output_of(self.parameters, self.config)

    def _workspace(self, texts: int) -> tuple[Tensor, Tensor]:
        H, like = self.config.hidden, self.parameters["bias"]
        return like.new_empty(texts, 3 * H), like.new_empty(texts, H)

    def _advance(
        self, ids: Tensor, before: list[Tensor], after: list[Tensor], spaces: list[tuple[Tensor, Tensor]]
    ) -> Tensor:
        """One token for each of B texts: fills `after` and gives the output of the last layer (B×H)."""
        P, live = self.parameters, len(ids)
        x = before[0]
        for n in range(1, self.config.layers + 1):
            gates, candidates = (space[:live] for space in spaces[n - 1])
            if n > 1:
                first, second = split_inputs(torch.addmm(P[f"b{n}"], x, P[f"W{n}"]), P[f"c{n}"])
                gates.copy_(first)
                candidates.copy_(second)
            elif self._tables is not None:
                torch.index_select(self._tables[0], 0, ids, out=gates)
                torch.index_select(self._tables[1], 0, ids, out=candidates)
            else:
                rows = torch.addmm(P["b1"], P["embedding"][ids], P["W1"])
                first, second = split_inputs(rows, P["c1"])
                gates.copy_(first)
                candidates.copy_(second)
            h, out = before[n - 1], after[n - 1]
            cell(gates, candidates, h, h, self._doubled[n - 1], out)
            x = out
            if self.config.norm:
                x = torch.nn.functional.layer_norm(x, x.shape[-1:], P[f"gain{n}"], P[f"shift{n}"], NORM_EPSILON)
        return x


def _parts(offsets: NDArray[np.int64], stride: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each part of each text starts and stops."""
    lengths = np.diff(offsets)
    counts = -(-lengths // stride)
    first = np.repeat(offsets[:-1], counts)
    number = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = first + number * stride
    return starts, np.minimum(starts + stride, np.repeat(offsets[1:], counts))
