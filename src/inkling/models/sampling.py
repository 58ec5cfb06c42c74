"""Writing with a language model, one token at a time, through `begin`, `step`, `step_many` (and `read`) alone.

Which token comes next is decided in choice.py. A sample ends after `tokens` tokens, or where what it wrote (not the
prompt) contains a stop string. The stop string is not shown: a token is given out only when it can no longer belong to
one, and the last is cut where one begins.

Writers sit side by side at a `Desk`, and a step of the model serves them all. Others may sit down or leave between two
steps; each has its own settings, and its own generator from which alone it draws. What it writes is therefore the same
alone or among others, as far as the model's `step_many` rounds alike for one text and for several. Sample k of
`sample_many` draws from `np.random.default_rng((seed, k))`.

Left out: beam search and penalties that grow with the count of a token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from inkling.errors import InklingError
from inkling.models.choice import NO_CHANCE, Chooser
from inkling.models.choice import SamplingConfig as SamplingConfig  # part of this module's face, as is the next
from inkling.models.choice import choose as choose
from inkling.models.contracts import LanguageModel, Reader

BATCH_CELLS = 1 << 22  # log-probabilities held at once: samples × vocabulary
BATCH_SAMPLES = 256


@dataclass(frozen=True)
class SampledToken:
    """`nats` and `rank` (1: the likeliest) are under the model itself, before penalty, temperature and cuts.

    `others` are the likeliest tokens at this place with their log-probabilities, as many as were asked for.
    """

    token: int
    text: bytes  # UTF-8, perhaps part of a character; the last before a stop string is cut
    nats: float
    rank: int
    others: tuple[tuple[int, float], ...] = ()


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
    for [(_, shown)] in _draw(model, [Writer(prompt_ids(model, prompt), config, generator)]):
        yield from shown


def sample_many(
    model: LanguageModel[Any], config: SamplingConfig, seed: int, prompts: Sequence[str]
) -> Iterator[Sample]:
    """One sample for each prompt, drawn together; each is given out when it and all before it have ended."""
    at_once = max(1, min(BATCH_SAMPLES, BATCH_CELLS // model.tokeniser.size))
    encoded = {prompt: prompt_ids(model, prompt) for prompt in dict.fromkeys(prompts)}
    for first in range(0, len(prompts), at_once):
        group = range(first, min(first + at_once, len(prompts)))
        waiting = [
            (k, Writer(encoded[prompts[k]], config, np.random.default_rng((seed, k))), list[SampledToken]())
            for k in group
        ]
        written = {writer: tokens for _, writer, tokens in waiting}
        for drawn in _draw(model, list(written)):
            for writer, shown in drawn:
                written[writer] += shown
            while waiting and waiting[0][1].ended:
                k, writer, tokens = waiting.pop(0)
                yield Sample(k, prompts[k], tuple(tokens), writer.stopped)


def prompt_ids(model: LanguageModel[Any], prompt: str) -> list[int]:
    """The tokens of a prompt, as the model reads it."""
    return model.tokeniser.encode([model.chain(prompt)]).ids.tolist() if prompt else []


class Writer:
    """One sample on its way: what it drew lately, and which tokens could still turn out to be a stop string.

    `others` says how many of the likeliest tokens are to be told with each. A writer ends with its last token, at a
    stop string, or by a `failure` of the model.
    """

    def __init__(
        self, prompt: Sequence[int], config: SamplingConfig, generator: np.random.Generator, others: int = 0
    ) -> None:
        self.prompt, self.config, self.generator, self.others = prompt, config, generator, others
        self.stopped: str | None = None
        self.failure: Exception | None = None
        self.left = config.tokens
        self.recent: list[int] = []
        self._remembers = config.repetition_penalty > 1
        self._stops = [(stop.encode(), stop) for stop in config.stop]
        self._held: list[SampledToken] = []
        self.see(prompt)

    @property
    def ended(self) -> bool:
        return self.stopped is not None or self.left == 0 or self.failure is not None

    def see(self, tokens: Sequence[int]) -> None:
        if self._remembers:
            self.recent = [*self.recent, *tokens][-self.config.penalty_window :]

    def take(self, drawn: SampledToken) -> list[SampledToken]:
        """Adds a token; gives back those that may now be shown."""
        self.see([drawn.token])
        self.left -= 1
        if not self._stops:
            return [drawn]
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


class Desk:
    """Writers side by side. Each `draw` gives every one of them a token; in between, others sit down and some leave.

    A writer first reads its prompt, then writes. What goes wrong for one writer becomes its `failure` and leaves the
    others as they are.
    """

    def __init__(self, model: LanguageModel[Any]) -> None:
        self.model = model
        self._reading: deque[_Reading] = deque()
        self._read: list[tuple[Writer, Any, NDArray[np.float64]]] = []  # with state and log-probabilities (V)
        self._writing: list[Writer] = []
        self._states: list[Any] = []
        self._tokens: list[int] = []  # drawn, but not yet read by the model
        self._chooser: Chooser | None = None  # of those who write now

    def __len__(self) -> int:
        return len(self._reading) + len(self._read) + len(self._writing)

    def sit(self, writers: Sequence[Writer]) -> None:
        self._reading += [_Reading(writer) for writer in writers]

    def leave(self, writer: Writer) -> None:
        self._reading = deque(reading for reading in self._reading if reading.writer is not writer)
        self._read = [entry for entry in self._read if entry[0] is not writer]
        if writer in self._writing:
            self._keep([i for i, other in enumerate(self._writing) if other is not writer])

    def read(self, tokens: int | None = None) -> list[Writer]:
        """Goes on with prompts, until all are read or about so many more tokens; gives back who failed at it."""
        failed: list[Writer] = []
        while self._reading and (tokens is None or tokens > 0):
            group, size = [self._reading.popleft()], 0
            if isinstance(self.model, Reader):
                size = group[0].size
                while self._reading and (tokens is None or size + self._reading[0].size <= tokens):
                    group.append(self._reading.popleft())
                    size += group[-1].size
                failed += self._read_at_once(self.model, group)
            else:  # token by token, and perhaps not to its end
                size, failure = group[0].go_on(self.model, tokens)
                if failure is not None:
                    failed.append(group[0].writer)
                elif group[0].log_probs is None:
                    self._reading.append(group[0])  # in turns: a short prompt does not wait for a long one
                else:
                    self._read.append((group[0].writer, group[0].state, _as_array(group[0].log_probs)))
            tokens = None if tokens is None else tokens - max(1, size)
        return failed

    def draw(self) -> list[tuple[Writer, list[SampledToken]]]:
        """One token for each writer that has read its prompt, and with it what may be shown; who ends has left."""
        failed, values = self._step()
        if self._read:
            self._writing = [*self._writing, *(writer for writer, _, _ in self._read)]
            self._states = [*self._states, *(state for _, state, _ in self._read)]
            rows = np.stack([row for _, _, row in self._read])
            values = np.concatenate([values, rows]) if len(values) else rows
            self._read, self._chooser = [], None
        found: list[tuple[Writer, list[SampledToken]]] = [(writer, []) for writer in failed]
        if not self._writing:
            return found
        tokeniser, writing = self.model.tokeniser, self._writing
        if self._chooser is None:
            configs, generators = [w.config for w in writing], [w.generator for w in writing]
            self._chooser = Chooser(configs, generators, tokeniser.unknown)
        chosen = self._chooser.choose(values, [writer.recent for writer in writing])
        costs = values[np.arange(len(values)), chosen]
        ranks = 1 + np.count_nonzero(values > costs[:, None], axis=1)
        columns = zip(writing, chosen.tolist(), costs.tolist(), ranks.tolist(), strict=True)
        for row, (writer, token, cost, rank) in enumerate(columns):
            if token < 0:
                writer.failure = InklingError(NO_CHANCE)
                found.append((writer, []))
                continue
            others = _likeliest(values[row], writer.others) if writer.others else ()
            found.append((writer, writer.take(SampledToken(token, tokeniser.piece(token), -cost, rank, others))))
        self._tokens = chosen.tolist()
        self._keep([i for i, writer in enumerate(writing) if not writer.ended])
        return found

    def _keep(self, places: list[int]) -> None:
        if len(places) < len(self._writing):
            self._writing = [self._writing[i] for i in places]
            self._states = [self._states[i] for i in places]
            self._tokens = [self._tokens[i] for i in places]
            self._chooser = None

    def _step(self) -> tuple[list[Writer], NDArray[np.float64]]:
        """The model reads what was drawn: who failed at it, and log-probabilities (B×V) of the others."""
        if not self._writing:
            return [], np.zeros((0, self.model.tokeniser.size))
        try:
            self._states, log_probs = self.model.step_many(self._states, self._tokens)
            return [], _as_array(log_probs)
        except Exception as error:
            if len(self._writing) == 1:
                failed = self._writing[0]
                failed.failure = error
                self._keep([])
                return [failed], np.zeros((0, self.model.tokeniser.size))
        # One of them, perhaps: each alone, so that the others need not suffer.
        states, rows, kept, failures = [], [], [], []
        for i, (writer, state, token) in enumerate(zip(self._writing, self._states, self._tokens, strict=True)):
            try:
                after, log_probs = self.model.step_many([state], [token])
            except Exception as error:
                writer.failure = error
                failures.append(writer)
                continue
            states.append(after[0])
            rows.append(_as_array(log_probs))
            kept.append(i)
        self._keep(kept)
        self._states = states
        return failures, np.concatenate(rows) if rows else np.zeros((0, self.model.tokeniser.size))

    def _read_at_once(self, model: Reader, group: Sequence[_Reading]) -> list[Writer]:
        """Prompts that several writers have in common are read once."""
        prompts = list({tuple(reading.writer.prompt): None for reading in group})
        try:
            states, log_probs = model.read(prompts)
        except Exception as error:
            if len(group) == 1:
                group[0].writer.failure = error
                return [group[0].writer]
            return [writer for reading in group for writer in self._read_at_once(model, [reading])]
        values, places = _as_array(log_probs), {prompt: i for i, prompt in enumerate(prompts)}
        for reading in group:
            place = places[tuple(reading.writer.prompt)]
            self._read.append((reading.writer, states[place], values[place]))
        return []


class _Reading:
    """A writer that has not read its prompt to the end."""

    def __init__(self, writer: Writer) -> None:
        self.writer, self.size = writer, len(writer.prompt)
        self.state: Any = None
        self.log_probs: torch.Tensor | None = None  # when it has
        self._place = -1  # before `begin`

    def go_on(self, model: LanguageModel[Any], tokens: int | None) -> tuple[int, Exception | None]:
        """How many tokens were read, and what went wrong."""
        first, log_probs = self._place, None
        stop = self.size if tokens is None else min(self.size, max(0, self._place) + tokens)
        try:
            if self._place < 0:
                self.state, log_probs = model.begin()
                self._place = 0
            for place in range(self._place, stop):
                self.state, log_probs = model.step(self.state, self.writer.prompt[place])
        except Exception as error:
            self.writer.failure = error
            return 0, error
        self._place = stop
        if stop == self.size:
            assert log_probs is not None, "the last token is read only once"
            self.log_probs = log_probs
        return stop - max(0, first), None


def _draw(model: LanguageModel[Any], writers: Sequence[Writer]) -> Iterator[list[tuple[Writer, list[SampledToken]]]]:
    """Drives all writers together; step by step, the writers that took part and what each may show."""
    desk = Desk(model)
    desk.sit(writers)
    failed = desk.read()
    while len(desk) and not failed:
        drawn = desk.draw()
        failed = [writer for writer, _ in drawn if writer.failure is not None]
        if not failed:
            yield drawn
    if failed and failed[0].failure is not None:
        raise failed[0].failure


def _as_array(log_probs: torch.Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = log_probs.detach().to(torch.float64).numpy()
    return found


def _likeliest(log_probs: NDArray[np.float64], count: int) -> tuple[tuple[int, float], ...]:
    order = np.argsort(-log_probs, kind="stable")[:count].tolist()
    return tuple((token, float(log_probs[token])) for token in order)
