"""Writing with a language model, one token at a time, through `begin`, `step`, `step_many` (and `read`) alone.

From the log-probabilities ln p of the next token, in this order:

    1  the unknown token, which has no spelling to write down, is ruled out
    2  repetition penalty r    ln p − ln r for each token among the last `penalty_window`, prompt included
    3  temperature T           p ∝ exp(ln p / T); at T = 0 the likeliest is taken, and nothing is drawn
    4  top-k                   the k likeliest are kept
    5  min-p                   of these, those with p ≥ min-p × the largest p
    6  top-p                   of these, the fewest that hold this share of what is left

and one uniform number picks among the rest. Tokens of equal probability rank by their ids. The penalty divides a
probability by r, so unlike the division of raw scores (Keskar et al. 2019) it does not depend on where a model puts
the zero of its logits. Top-p: Holtzman et al. 2020; min-p: Nguyen et al. 2024.

A sample ends after `tokens` tokens, or where what it wrote (not the prompt) contains a stop string. The stop string
is not shown: a token is given out only when it can no longer belong to one, and the last is cut where one begins.

Sample k draws from `np.random.default_rng((seed, k))` and from nothing else, so it is the same alone or among others,
as far as the model's `step_many` rounds alike for one text and for several.

Left out: beam search and penalties that grow with the count of a token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.models.contracts import LanguageModel, Reader

BATCH_CELLS = 1 << 22  # log-probabilities held at once: samples × vocabulary
BATCH_SAMPLES = 256


@dataclass(frozen=True)
class SamplingConfig:
    temperature: float = 1.0  # 0: always the likeliest
    top_k: int = 0  # 0: all
    top_p: float = 1.0
    tokens: int = 100
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    penalty_window: int = 64
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        allowed = (
            (self.temperature >= 0, f"temperature {self.temperature:g}: give at least 0"),
            (self.top_k >= 0, f"top-k {self.top_k}: give at least 0"),
            (0 < self.top_p <= 1, f"top-p {self.top_p:g}: give 0 < top-p ≤ 1"),
            (0 <= self.min_p <= 1, f"min-p {self.min_p:g}: give 0 ≤ min-p ≤ 1"),
            (
                1 <= self.repetition_penalty < float("inf"),
                f"repetition penalty {self.repetition_penalty:g}: give at least 1, which is none",
            ),
            (self.penalty_window >= 1, f"penalty window {self.penalty_window}: give at least 1"),
            (self.tokens >= 1, f"tokens {self.tokens}: give at least 1"),
            (all(self.stop), "an empty stop string: give at least one character"),
        )
        for fits, sentence in allowed:
            if not fits:
                raise UsageError(f"Sampling cannot use {sentence}.")
        try:
            "".join(self.stop).encode()
        except UnicodeEncodeError as error:
            raise UsageError("Sampling cannot use a stop string that is not UTF-8: give whole characters.") from error


@dataclass(frozen=True)
class SampledToken:
    """`nats` and `rank` (1: the likeliest) are under the model itself, before penalty, temperature and cuts."""

    token: int
    text: bytes  # UTF-8, perhaps part of a character; the last before a stop string is cut
    nats: float
    rank: int


@dataclass(frozen=True)
class Sample:
    """What was written after `prompt`; `stopped` is the stop string that ended it, if one did."""

    number: int
    prompt: str
    tokens: tuple[SampledToken, ...]
    stopped: str | None

    @property
    def text(self) -> str:
        return b"".join(token.text for token in self.tokens).decode("utf-8", "replace")

    @property
    def nats(self) -> float:
        return sum(token.nats for token in self.tokens)


def sample(
    model: LanguageModel[Any], config: SamplingConfig, generator: np.random.Generator, prompt: str = ""
) -> Iterator[SampledToken]:
    """Tokens that continue `prompt`, as they are drawn."""
    for _, shown in _draw(model, config, [_Writer(0, prompt, config, generator)]):
        yield from shown


def sample_many(
    model: LanguageModel[Any], config: SamplingConfig, seed: int, prompts: Sequence[str]
) -> Iterator[Sample]:
    """One sample for each prompt, drawn together; each is given out when it and all before it have ended."""
    at_once = max(1, min(BATCH_SAMPLES, BATCH_CELLS // model.tokeniser.size))
    for first in range(0, len(prompts), at_once):
        group = range(first, min(first + at_once, len(prompts)))
        writers = [_Writer(k, prompts[k], config, np.random.default_rng((seed, k))) for k in group]
        written: dict[int, list[SampledToken]] = {k: [] for k in group}
        waiting = list(writers)
        for writer, shown in _draw(model, config, writers):
            written[writer.number] += shown
            while waiting and waiting[0].ended:
                done = waiting.pop(0)
                yield Sample(done.number, done.prompt, tuple(written.pop(done.number)), done.stopped)


def choose(
    log_probs: NDArray[np.float64],
    config: SamplingConfig,
    generator: np.random.Generator,
    never: int | None = None,
    recent: Sequence[int] = (),
) -> int:
    """One token from log-probabilities (V), after the tokens `recent`."""
    scores = log_probs.copy()
    if never is not None:
        scores[never] = -np.inf
    if not np.isfinite(scores.max()):
        raise InklingError("The model gives no probability to any token; train it on more text.")
    if config.repetition_penalty > 1 and len(recent):
        repeated = np.unique(np.asarray(recent[-config.penalty_window :], np.int64))
        scores[repeated] -= log(config.repetition_penalty)
    if config.temperature == 0:
        return int(scores.argmax())
    order = np.argsort(-scores, kind="stable")
    order = order[np.isfinite(scores[order])]  # what is impossible is not even the last resort of rounding
    if config.top_k:
        order = order[: config.top_k]
    with np.errstate(over="ignore"):  # at a temperature of almost nothing, all but the likeliest have no chance
        ranked = np.exp((scores[order] - scores[order[0]]) / config.temperature)  # the first is 1
    kept = int(np.count_nonzero(ranked >= config.min_p))
    order, ranked = order[:kept], ranked[:kept] / ranked[:kept].sum()
    if config.top_p < 1:
        kept = int(np.searchsorted(np.cumsum(ranked), config.top_p)) + 1
        order, ranked = order[:kept], ranked[:kept] / ranked[:kept].sum()
    # Inverse of the distribution function, so that one uniform number decides and small changes move little.
    place = int(np.searchsorted(np.cumsum(ranked), generator.random(), side="right"))
    return int(order[min(place, len(order) - 1)])


class _Writer:
    """One sample on its way: what it drew lately, and which tokens could still turn out to be a stop string."""

    def __init__(self, number: int, prompt: str, config: SamplingConfig, generator: np.random.Generator) -> None:
        self.number, self.prompt, self.generator = number, prompt, generator
        self.stopped: str | None = None
        self.left = config.tokens
        self.recent: list[int] = []
        self._window = config.penalty_window
        self._stops = [(stop.encode(), stop) for stop in config.stop]
        self._held: list[SampledToken] = []

    @property
    def ended(self) -> bool:
        return self.stopped is not None or self.left == 0

    def see(self, tokens: Sequence[int]) -> None:
        self.recent = [*self.recent, *tokens][-self._window :]

    def take(self, drawn: SampledToken) -> list[SampledToken]:
        """Adds a token; gives back those that may now be shown."""
        self.see([drawn.token])
        self.left -= 1
        self._held.append(drawn)
        text = b"".join(token.text for token in self._held)
        # Held are only the tokens that a stop string could begin in, so one that is complete lies within them.
        found = [(text.find(stop), name) for stop, name in self._stops if stop in text]
        shown = len(text)
        if found:
            shown, self.stopped = min(found)
        elif self.left:
            shown -= self._could_become_a_stop(text)
        released: list[SampledToken] = []
        end = 0
        while self._held and (end := end + len(self._held[0].text)) <= shown:
            released.append(self._held.pop(0))
        if self.stopped is not None and self._held:
            first = self._held[0]
            kept = first.text[: shown - (end - len(first.text))]
            if kept:
                released.append(replace(first, text=kept))
        return released

    def _could_become_a_stop(self, text: bytes) -> int:
        """Length of the longest end of `text` with which a stop string begins."""
        longest = max((len(stop) - 1 for stop, _ in self._stops), default=0)
        for length in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop, _ in self._stops):
                return length
        return 0


def _draw(
    model: LanguageModel[Any], config: SamplingConfig, writers: Sequence[_Writer]
) -> Iterator[tuple[_Writer, list[SampledToken]]]:
    """Drives all writers together; each token in turn, and with it what its writer may show."""
    tokeniser = model.tokeniser
    prompts = list({writer.prompt: None for writer in writers})
    ids = [tokeniser.encode([model.chain(prompt)]).ids.tolist() if prompt else [] for prompt in prompts]
    read, log_probs = _read(model, ids)
    which = [prompts.index(writer.prompt) for writer in writers]
    for writer, place in zip(writers, which, strict=True):
        writer.see(ids[place])
    states = [read[place] for place in which]
    values = log_probs.detach().to(torch.float64).numpy()[which]  # B×V
    going = list(writers)
    while True:
        tokens = []
        for writer, row in zip(going, values, strict=True):
            token = choose(row, config, writer.generator, tokeniser.unknown, writer.recent)
            rank = 1 + int(np.count_nonzero(row > row[token]))
            yield writer, writer.take(SampledToken(token, tokeniser.piece(token), -float(row[token]), rank))
            tokens.append(token)
        left = [i for i, writer in enumerate(going) if not writer.ended]
        if not left:
            return
        going = [going[i] for i in left]
        states, log_probs = model.step_many([states[i] for i in left], [tokens[i] for i in left])
        values = log_probs.detach().to(torch.float64).numpy()


def _read(model: LanguageModel[Any], texts: Sequence[Sequence[int]]) -> tuple[list[Any], torch.Tensor]:
    """The states after texts of tokens, and log-probabilities (B×V)."""
    if isinstance(model, Reader):
        return model.read(texts)
    found = []
    for text in texts:
        state, log_probs = model.begin()
        for token in text:
            state, log_probs = model.step(state, token)
        found.append((state, log_probs))
    return [state for state, _ in found], torch.stack([log_probs for _, log_probs in found])
