"""Writing as the page Write shows it: drafts that grow token by token, and branches of them.

A draft from a prompt is what `inkling sample RUN --seed S` writes with the same settings. A branch keeps what stands
before a place, puts another token there and goes on as from a prompt: it draws from the same generator anew, so it is
what `inkling sample` writes where the kept text is given as the prompt (and is cut into the same tokens).
"""

from __future__ import annotations

import codecs
import shlex
import time
from dataclasses import dataclass, field
from math import log
from typing import TYPE_CHECKING, Any

from inkling.errors import UsageError
from inkling.studio.continuations import Possible, piece_text, possible

if TYPE_CHECKING:
    from inkling.models.choice import SamplingConfig
    from inkling.models.contracts import LanguageModel
    from inkling.models.sampling import SampledToken

OTHERS = 10  # likeliest tokens that are kept for each place
MOST_TOKENS = 5_000
MOST_SEED = (1 << 32) - 1
LONG, SHORT = (
    500,
    100,
)  # tokens at first, where they are characters or bytes, and where they are words or parts of words


@dataclass(frozen=True)
class Settings:
    """What the fields of the page say. `stop` has a stop string a line, in which \\n stands for a line end."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    tokens: int = SHORT
    seed: int = 0
    stop: str = ""

    @property
    def stops(self) -> tuple[str, ...]:
        return tuple(line for line in self.stop.split("\n") if line)

    def config(self) -> SamplingConfig:
        from inkling.models.choice import SamplingConfig

        if not 1 <= self.tokens <= MOST_TOKENS:
            raise UsageError(f"{self.tokens:,} tokens were asked for; give a number from 1 to {MOST_TOKENS:,}.")
        if not 0 <= self.seed <= MOST_SEED:
            raise UsageError(f"The seed is {self.seed}; give a whole number from 0 to {MOST_SEED}.")
        return SamplingConfig(
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            tokens=self.tokens,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
            stop=tuple(stop.replace("\\n", "\n") for stop in self.stops),
        )

    def command(self, run: str, prompt: str) -> str:
        """The same on the command line; what is as always is left out."""
        parts = ["inkling", "sample", run]
        if prompt:
            parts += [f"--prompt={prompt}"]
        named = (("temperature", 1.0), ("top_k", 0), ("top_p", 1.0), ("min_p", 0.0), ("repetition_penalty", 1.0))
        for name, usual in named:
            if getattr(self, name) != usual:
                parts += [f"--{name.replace('_', '-')}", f"{getattr(self, name):g}"]
        parts += ["--tokens", str(self.tokens), "--seed", str(self.seed)]
        for stop in self.stops:
            parts += [f"--stop={stop}"]
        return shlex.join(parts)


@dataclass(frozen=True)
class Stretch:
    """A piece of a draft that is shown as one: a token, or several that make one character."""

    text: str
    bits: float
    first: int  # number of its first token
    tokens: int


@dataclass
class Draft:
    """What was written after a prompt, or is being written. `origin` says where a branch came from."""

    number: int
    run: str
    prompt: str
    settings: Settings
    model: LanguageModel[Any]
    tokens: list[SampledToken] = field(default_factory=list)
    stopped: str | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        self.stretches: list[Stretch] = []
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._bits, self._held = 0.0, 0
        kept, self.tokens = self.tokens, []
        self.add(kept)
        self._is_whole = self._held == 0  # or a branch begins within a character, which no prompt can say
        self._before = self.text

    @property
    def text(self) -> str:
        """With its prompt, as `inkling sample --json` has it."""
        return self.prompt + "".join(stretch.text for stretch in self.stretches)

    def add(self, tokens: list[SampledToken], *, last: bool = False) -> list[Stretch]:
        """Takes tokens in; the stretches that are whole with them, or all that is left where these are the last."""
        new: list[Stretch] = []
        for token in tokens:
            self.tokens.append(token)
            self._bits += token.nats / log(2)
            self._held += 1
            new += self._stretch(self._decoder.decode(token.text))
        if last:
            new += self._stretch(self._decoder.decode(b"", final=True))
        self.stretches += new
        return new

    def _stretch(self, text: str) -> list[Stretch]:
        if not text:
            return []
        found = Stretch(text, self._bits, len(self.tokens) - self._held, self._held)
        self._bits, self._held = 0.0, 0
        return [found]

    def possible(self, stretch: int, count: int = OTHERS) -> list[Possible]:
        """What could have stood where a stretch begins, the token that was drawn marked."""
        token = self.tokens[self.stretches[stretch].first]
        return possible(self.model.tokeniser, token.others, count, token.token, -token.nats)

    def shade(self, stretch: int) -> str:
        from inkling.explain.surprise import level

        found = level(self.stretches[stretch].bits)
        return f"s{found}" if found else ""

    def note(self, stretch: int) -> str:
        shown = self.stretches[stretch]
        if shown.tokens > 1:
            return f"{shown.bits:.2f} bits, {shown.tokens} tokens"
        return f"{shown.bits:.2f} bits, {_ordinal(self.tokens[shown.first].rank)} likeliest"

    def branch(self, number: int, stretch: int, token: int, settings: Settings) -> Draft:
        """A new draft: all before a stretch, then `token`; to be gone on with."""
        from inkling.models.sampling import SampledToken

        place = self.stretches[stretch].first
        instead = self.tokens[place]
        ranked = {other: (rank, value) for rank, (other, value) in enumerate(instead.others, start=1)}
        rank, value = ranked[token]
        piece = self.model.tokeniser.piece(token)
        put = SampledToken(token, piece, -value, rank, instead.others)
        origin = f"from {self.number}: “{piece_text(self.model.tokeniser, token)}” at token {place + 1:,}"
        kept = [*self.tokens[:place], put]
        return Draft(number, self.run, self.prompt, settings, self.model, kept, origin=origin)

    def command(self, folder: str) -> str:
        """What writes the same on the command line, if anything does; `folder` is that of the runs."""
        return self.settings.command(f"{folder}/{self.run}", self._before) if self._is_whole else ""

    def summary(self) -> str:
        """In words, what it cost the model."""
        drawn = len(self.tokens)
        size = sum(len(token.text) for token in self.tokens)
        bits = sum(token.nats for token in self.tokens) / log(2)
        said = f"{drawn:,} token{'s' * (drawn != 1)}"
        if size:
            said += f", {bits:,.0f} bits, {bits / size:.3f} bits per byte"
        return f"{said}; stopped before “{self.stopped}”." if self.stopped is not None else f"{said}."


class Pen:
    """Goes on with a draft. Each `write` draws for a moment; call it aside."""

    def __init__(self, draft: Draft) -> None:
        import numpy as np

        from inkling.models.sampling import Desk, Writer, prompt_ids

        config = draft.settings.config()
        before = [*prompt_ids(draft.model, draft.prompt), *(token.token for token in draft.tokens)]
        generator = np.random.default_rng((draft.settings.seed, 0))
        # One more than is shown, because the unknown token may be among them.
        self._writer = Writer(before, config, generator, OTHERS + 1)
        self._desk = Desk(draft.model)
        self._desk.sit([self._writer])
        self.draft = draft

    @property
    def ended(self) -> bool:
        return self._writer.ended

    def write(self, seconds: float) -> list[SampledToken]:
        """What was drawn in about this time, and may be shown."""
        self._desk.read()
        until = time.monotonic() + seconds
        drawn: list[SampledToken] = []
        while not self._writer.ended:
            for _, shown in self._desk.draw():
                drawn += shown
            if time.monotonic() >= until:
                break
        if self._writer.failure is not None:
            raise self._writer.failure
        self.draft.stopped = self._writer.stopped
        return drawn


def usual_tokens(model: LanguageModel[Any]) -> int:
    """How many tokens `inkling sample` writes unless told otherwise."""
    return LONG if model.tokeniser.kind in ("character", "byte") else SHORT


def _ordinal(rank: int) -> str:
    if rank == 1:
        return "the"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(rank % 10, "th") if rank % 100 not in (11, 12, 13) else "th"
    return f"the {rank}{ending}"
