"""The small transformer over a tokeniser: it scores texts of any length, writes, and can be looked into.

Before a text stands the token that ends a line. The model sees at most C = `context` tokens, that one included. Where
a text goes on, it begins anew from the last ⌊C/2⌋ of them, so with S = C − ⌊C/2⌋

    window w      the tokens at places wS … wS + C − 1
    after place p (p < C) window 0 says what comes next, later the first window that reaches as far as p

Each token is thus predicted from all before it, or at least from ⌊C/2⌋ + 1 of them, and never read more than twice:
`score` reads windows side by side, and `step` the same windows one token at a time, with keys and values kept.

The mathematics is in gpt.py and, in the form that is used here, in gpt_fused.py; what is kept is in gpt_cache.py.
Left out: a window that slides token by token, whose keys above the first layer would all change with each token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import UsageError
from inkling.models.contracts import Ranking, Scores, Speller, assemble_scores
from inkling.models.gpt import GPT, GPTConfig
from inkling.models.gpt_cache import READ_AT_ONCE, Cache, State, append_each, claim_each
from inkling.models.gpt_fused import FusedGPT
from inkling.models.gru import share_out
from inkling.text.normalise import Chain
from inkling.text.tokens import Tokeniser

LOGITS_AT_ONCE = 1 << 20  # tokens × vocabulary


class Transformer(GPT):
    """The trained model (contracts LanguageModel and Attentive). The state is a place in kept keys and values."""

    def __init__(
        self,
        config: GPTConfig,
        parameters: Mapping[str, Tensor],
        tokeniser: Tokeniser,
        chain: Chain | None = None,
        speller: Speller | None = None,
        workers: int = 0,
    ) -> None:
        super().__init__(config, parameters)
        if config.vocabulary != tokeniser.size:
            raise UsageError(
                f"The model knows {config.vocabulary} tokens and its tokeniser {tokeniser.size}; give the tokeniser "
                "that the model was trained with."
            )
        self.tokeniser, self.chain, self.speller = tokeniser, chain or Chain(), speller
        self.workers = workers or torch.get_num_threads()

    @property
    def context(self) -> str:
        """As `score` and `step` have it, in words."""
        most = self.config.context
        return f"the whole text up to {most} tokens; beyond, the {most // 2 + 1} to {most} tokens before"

    @cached_property
    def _fused(self) -> FusedGPT:
        return FusedGPT(self.config, self.parameters, self.workers)

    def begin(self) -> tuple[State, Tensor]:
        state, log_probs = self._beginning
        return state, log_probs.clone()

    @cached_property
    def _beginning(self) -> tuple[State, Tensor]:
        empty = Cache(self._fused, 1, 1)
        states, log_probs = self.step_many([State(empty, 0, 0)], [self.tokeniser.begin])
        states[0].cache.keep()  # or the first text that is written would live in it
        return states[0], log_probs[0]

    def step(self, state: State, token: int) -> tuple[State, Tensor]:
        states, log_probs = self.step_many([state], [token])
        return states[0], log_probs[0]

    def step_many(self, states: Sequence[State], tokens: Sequence[int]) -> tuple[list[State], Tensor]:
        if not states:
            return [], self._fused.embedding.new_zeros(0, self.config.vocabulary)
        states = self._with_room(states)
        steps = self._fused.compiled_steps(len(states))
        if steps is not None:
            states = claim_each(self._fused, states)
            log_probs = torch.from_numpy(append_each(self._fused, steps, states, tokens))
            return [State(cache, row, length + 1) for cache, row, length in states], log_probs
        cache = states[0].cache
        if not cache.claim(states):
            cache = Cache.gather(self._fused, states)
            cache.claim([State(cache, row, state.length) for row, state in enumerate(states)])
        log_probs = torch.from_numpy(cache.append(tokens))
        return [State(cache, row, state.length + 1) for row, state in enumerate(states)], log_probs

    @torch.no_grad()
    def read(self, texts: Sequence[Sequence[int]]) -> tuple[list[State], Tensor]:
        most = self.config.context
        stride = most - most // 2
        windows = []  # where `step` would be, had it begun anew as often as it does
        for text in texts:
            begun_anew = max(0, -(-(len(text) + 1 - most) // stride))
            windows.append([self.tokeniser.begin, *text][begun_anew * stride :])
        if not windows:
            return [], self._fused.embedding.new_zeros(0, self.config.vocabulary)
        lengths = [len(window) for window in windows]
        filled = np.full((len(windows), max(lengths)), self.tokeniser.begin)  # nobody looks at what stands behind
        for row, window in enumerate(windows):
            filled[row, : len(window)] = window
        cache, residual = Cache.of_texts(self._fused, filled, lengths)
        states = [State(cache, row, length) for row, length in enumerate(lengths)]
        return states, torch.log_softmax(self._fused.logits(residual), dim=1)

    @torch.inference_mode()
    def _with_room(self, states: Sequence[State]) -> Sequence[State]:
        """The states; those that have seen a whole context are begun anew from its second half."""
        most = self.config.context
        if all(state.length < most for state in states):
            return states
        full = [place for place, state in enumerate(states) if state.length == most]
        kept = np.stack([states[place].cache.ids[states[place].row, most - most // 2 : most] for place in full])
        cache, _ = Cache.of_texts(self._fused, kept, [most // 2] * len(full))
        begun = {place: State(cache, row, most // 2) for row, place in enumerate(full)}
        return [begun.get(place, state) for place, state in enumerate(states)]

    def score(self, texts: Sequence[str]) -> Scores:
        encodings = self.tokeniser.encode([self.chain(text) for text in texts] if self.chain.names else texts)
        nats = self.score_ids(encodings.ids, encodings.offsets)
        return assemble_scores(texts, encodings, nats, self.tokeniser, self.speller)

    def score_ids(self, ids: NDArray[np.integer], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
        """Nats of each token of texts laid end to end; text i is ids[offsets[i] : offsets[i + 1]]."""
        return self._score_ids(ids, offsets, None)

    def rank_ids(self, ids: NDArray[np.integer], offsets: NDArray[np.int64], count: int) -> Ranking:
        """The same, and the `count` likeliest tokens at each place."""
        count = min(count, self.config.vocabulary)
        found = Ranking(np.zeros(len(ids)), np.zeros((len(ids), count), np.int64), np.zeros((len(ids), count)))
        return replace(found, nats=self._score_ids(ids, offsets, found))

    def _score_ids(
        self, ids: NDArray[np.integer], offsets: NDArray[np.int64], ranking: Ranking | None
    ) -> NDArray[np.float64]:
        opens, lengths, is_first = _windows(offsets, self.config.context)
        order = np.argsort(-lengths, kind="stable")  # like beside like, so that little is filled up
        opens, lengths, is_first = opens[order], lengths[order], is_first[order]
        tokens = np.concatenate([ids.astype(np.int64), [self.tokeniser.begin]])
        nats = np.zeros(len(ids))
        most = min(READ_AT_ONCE, -(-int(lengths.sum()) // max(1, self.workers)))
        tasks, first = [], 0
        while first < len(order):
            group = slice(first, first + max(1, most // int(lengths[first])))
            tasks.append(
                partial(self._score_group, tokens, opens[group], lengths[group], is_first[group], nats, ranking)
            )
            first = group.stop
        share_out(self.workers, tasks)
        return nats

    @torch.inference_mode()
    def _score_group(
        self,
        tokens: NDArray[np.int64],
        opens: NDArray[np.int64],
        lengths: NDArray[np.int64],
        is_first: NDArray[np.bool_],
        nats: NDArray[np.float64],
        ranking: Ranking | None,
    ) -> None:
        """Windows side by side. The first of a text reads `begin` and then its tokens from place `opens` on; a later
        one reads from the token before `opens` on, and what the window before it has predicted is not counted."""
        times = np.arange(int(lengths[0]))
        places = np.minimum(opens[:, None] + times, len(tokens) - 2)  # B×T, of what is predicted
        inputs = tokens[places - 1]
        inputs[is_first, 0] = tokens[-1]
        repeated = np.where(is_first, 0, self.config.context // 2)
        counted = (times >= repeated[:, None]) & (times < lengths[:, None])
        residual = self._fused.read_texts(torch.from_numpy(inputs))
        chosen, targets = np.flatnonzero(counted), places[counted]
        at_once = max(1, LOGITS_AT_ONCE // self.config.vocabulary)
        for first in range(0, len(chosen), at_once):
            part = slice(first, first + at_once)
            log_probs = torch.log_softmax(self._fused.logits(residual[torch.from_numpy(chosen[part])]), dim=1)
            found = log_probs.gather(1, torch.from_numpy(tokens[targets[part]])[:, None])
            nats[targets[part]] = -found[:, 0].double().numpy()
            if ranking is not None:
                values, tops = log_probs.topk(ranking.likeliest.shape[1], dim=1)
                ranking.likeliest[targets[part]] = tops.numpy()
                ranking.log_probs[targets[part]] = values.double().numpy()


def _windows(offsets: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Of each window: the place of the first token it could predict, its length, and whether its text begins there."""
    sizes, stride = np.diff(offsets), most - most // 2
    counts = np.where(sizes > 0, 1 + -(-np.maximum(sizes - most, 0) // stride), 0)
    number = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    opens = np.repeat(offsets[:-1], counts) + number * stride
    return opens, np.minimum(most, np.repeat(offsets[1:], counts) - opens), number == 0
