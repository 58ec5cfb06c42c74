"""The recurrent language model: embedding → one to three GRU layers → next token, over any tokeniser.

    xₜ = E[tokenₜ₋₁]    h¹ₜ = GRU¹(xₜ, h¹ₜ₋₁)    h²ₜ = GRU²(h¹ₜ, h²ₜ₋₁) …    ln p(tokenₜ) = log softmax(hᴸₜ O + o)

Before a text stands the state zero and the token that ends a line. The cell is in recurrence.py, the loss and its
gradient in gru_loss.py; here are the parameters, and `begin`, `step` and `score`.

Two things make scoring fast without changing a number. The first layer's input has only as many values as there are
different tokens, so E·W is a table of rows to pick from, not a product for every token. And texts go side by side,
longest first, shared out among the cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import UsageError
from inkling.models.contracts import Scores, Speller, assemble_scores
from inkling.models.recurrence import cell, double, split_inputs
from inkling.text.normalise import Chain
from inkling.text.tokens import Tokeniser

Parameters = dict[str, Tensor]
Result = TypeVar("Result")
State = tuple[Tensor, ...]  # one vector (H) a layer
STRIDE, WARM_UP = 1024, 256  # tokens: long texts are scored in parts, each warmed up on what stands before it
SCORED_AT_ONCE = 256  # texts or parts side by side
NORM_EPSILON = 1e-5
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


def output_of(parameters: Parameters, config: GRUConfig) -> Tensor:
    return parameters["embedding"].t() if config.tied else parameters["output"]


def share_out(workers: int, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
    """Runs the tasks on `workers` threads, each task's products on one core; all results, in order."""
    if workers < 2 or len(tasks) < 2:
        return [task() for task in tasks]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if len(tasks) > workers:
            return list(_pool(workers).map(lambda task: task(), tasks))
        others = [_pool(workers).submit(task) for task in tasks[1:]]
        try:
            first = tasks[0]()  # here: of few small tasks, one more that waits for a thread would be felt
        finally:
            wait(others)
        return [first, *(other.result() for other in others)]
    finally:
        torch.set_num_threads(threads)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Kept, because a thread's buffers for matrix products are lost with it."""
    return ThreadPoolExecutor(workers, "inkling", torch.set_num_threads, (1,))


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
