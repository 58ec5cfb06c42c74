"""`POST /v1/completions`, as OpenAI's clients and the lm-evaluation-harness speak it.

Choice i is sample i of `sample_many` with the request's seed, its prompts each repeated n times; without a seed, one is
drawn. The first token of a prompt has a probability too, that of standing at the beginning of a line, so with `echo` no
`token_logprobs` is null and their sum is what `inkling score` says, spellings of unknown words included (a prompt of
token ids has none). A prompt is echoed as the model sees it, behind its normalisation.
"""

from __future__ import annotations

import asyncio
import codecs
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inkling.models.contracts import Ranking
from inkling.models.sampling import SampledToken, SamplingConfig, Writer
from inkling.serve.bodies import CompletionRequest, Refusal, shown
from inkling.serve.engine import Task, Text
from inkling.serve.exchange import Exchange, Gone, as_json
from inkling.serve.failures import refusal_of
from inkling.serve.limits import Limits
from inkling.serve.metrics import Metrics
from inkling.serve.shelf import LanguageService, Prompt, Shelf
from inkling.text.tokens import Tokeniser

DEFAULT_TOKENS = 16  # OpenAI's
LONG_CHARS = 1 << 14  # from which tokenising is left to another thread


@dataclass(frozen=True)
class Asked:
    """A prompt: its tokens, and the spellings of those that are unknown."""

    ids: tuple[int, ...]
    spellings: tuple[str, ...] = ()


async def complete(exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
    request = await exchange.read(CompletionRequest)
    request.refuse_what_is_missing()
    service = shelf.language_model(request.model)
    config = sampling_of(request, limits)
    if request.logprobs is not None and request.logprobs > limits.others:
        raise Refusal(f"'logprobs' is {request.logprobs}; give 0 to {limits.others}.", param="logprobs")
    prompts = await asked_prompts(request, service, limits)
    n = request.n or 1
    if n * len(prompts) > limits.texts:
        raise Refusal(
            f"'n' is {n} for {len(prompts)} prompts, which makes {n * len(prompts):,} texts; ask for at most "
            f"{limits.texts} at once.",
            param="n",
        )
    job = Completion(exchange, service, request, config, prompts, limits, metrics)
    await job.run()


class Completion:
    """One request on its way."""

    def __init__(
        self,
        exchange: Exchange,
        service: LanguageService,
        request: CompletionRequest,
        config: SamplingConfig | None,
        prompts: Sequence[Asked],
        limits: Limits,
        metrics: Metrics,
    ) -> None:
        self.exchange, self.service, self.request, self.metrics = exchange, service, request, metrics
        self.prompts, self.n = prompts, request.n or 1
        self.config, self.limits = config, limits
        self.deadline = time.monotonic() + limits.seconds
        self.news = asyncio.Event()
        self.texts: list[Live] = []
        self.ranked: list[Ranking] = []
        seed = secrets.randbits(63) if request.seed is None else request.seed % 2**64
        if config is not None:
            for number in range(len(prompts) * self.n):
                writer = Writer(
                    prompts[number // self.n].ids,
                    config,
                    np.random.default_rng((seed, number)),
                    others=request.logprobs or 0,
                )
                self.texts.append(Live(writer, bool(request.stream), self.deadline, news=self.news))

    async def run(self) -> None:
        self.metrics.count_tokens(self.service.name, "in", sum(len(prompt.ids) for prompt in self.prompts))
        try:
            if self.request.echo and self.request.logprobs is not None:
                self.ranked = await rank_prompts(self.exchange, self.service, self.prompts, self.request.logprobs)
            if self.texts:
                self.service.engine.submit(self.texts)
            self.choices = [self._choice(i) for i in range(len(self.prompts) * self.n)]
            async with self.exchange.watched(self.news.set):
                if self.request.stream:
                    await self._stream()
                else:
                    await self._answer()
        finally:
            if not all(text.done for text in self.texts):
                self.service.engine.give_up(self.texts)
            self.metrics.count_tokens(self.service.name, "out", self.written)

    @property
    def written(self) -> int:
        """Tokens that were drawn, also those that a stop string took back."""
        return sum(text.writer.config.tokens - text.writer.left for text in self.texts)

    def _choice(self, number: int) -> Choice:
        place = number // self.n
        ranked = self.ranked[place] if self.ranked else None
        return Choice(number, self.service, self.prompts[place], self.request, ranked)

    async def _all_written(self) -> None:
        while not all(text.done for text in self.texts):
            await self._wait()

    async def _wait(self) -> None:
        await self.news.wait()
        self.news.clear()
        if self.exchange.is_gone:
            raise Gone

    async def _answer(self) -> None:
        await self._all_written()
        for text in self.texts:
            if text.writer.failure is not None:
                raise text.writer.failure
        records = []
        for number, choice in enumerate(self.choices):
            tokens = self.texts[number].tokens if self.texts else []
            parts = choice.parts(tokens, with_prompt=True, final=True)
            records.append(choice.record(*parts, finish_reason=self._reason(number)))
        await self.exchange.answer({**self._head(), "choices": records, "usage": self._usage()})

    async def _stream(self) -> None:
        await self.exchange.begin_events()
        include_usage = self.request.stream_options is not None and self.request.stream_options.include_usage
        head = {**self._head(), **({"usage": None} if include_usage else {})}
        opened = [choice.parts([], with_prompt=True) for choice in self.choices] if self.request.echo else []
        events = [
            as_json({**head, "choices": [choice.record(*parts)]})
            for choice, parts in zip(self.choices, opened, strict=False)
        ]
        open_texts = set(range(len(self.choices)))
        while True:
            for number in sorted(open_texts):
                text, choice = (self.texts[number] if self.texts else None), self.choices[number]
                if text is not None and text.writer.failure is not None and text.done:
                    await self.exchange.send_events([*events, as_json(refusal_of(text.writer.failure).record())])
                    await self.exchange.end_events()
                    return
                done = text is None or text.done
                fresh = text.take() if text is not None else []
                parts = choice.parts(fresh, final=done)
                if parts[0] or fresh or done:
                    reason = self._reason(number) if done else None
                    events.append(as_json({**head, "choices": [choice.record(*parts, finish_reason=reason)]}))
                if done:
                    open_texts.discard(number)
            if events:
                await self.exchange.send_events(events)
                events = []
            if not open_texts:
                break
            await self._wait()
        if include_usage:
            await self.exchange.send_events([as_json({**self._head(), "choices": [], "usage": self._usage()})])
        await self.exchange.end_events()

    def _reason(self, number: int) -> str:
        return "stop" if self.texts and self.texts[number].writer.stopped is not None else "length"

    def _head(self) -> dict[str, Any]:
        if not hasattr(self, "_name"):
            self._name, self._created = f"cmpl-{secrets.token_hex(12)}", int(time.time())
        return {
            "id": self._name,
            "object": "text_completion",
            "created": self._created,
            "model": self.service.name,
        }

    def _usage(self) -> dict[str, int]:
        read = sum(len(prompt.ids) for prompt in self.prompts)
        return {"prompt_tokens": read, "completion_tokens": self.written, "total_tokens": read + self.written}


class Live(Text):
    """A text whose news wake the request that waits for them."""

    def __init__(self, writer: Writer, streams: bool, deadline: float, news: asyncio.Event) -> None:
        super().__init__(writer, streams, deadline)
        self._news = news

    def receive(self, tokens: Sequence[SampledToken], done: bool) -> None:
        super().receive(tokens, done)
        self._news.set()

    def take(self) -> list[SampledToken]:
        taken, self.tokens = self.tokens, []
        return taken


class Choice:
    """One text as it goes out, whole characters at a time, and where each token begins in it."""

    def __init__(
        self, number: int, service: LanguageService, prompt: Asked, request: CompletionRequest, ranked: Ranking | None
    ) -> None:
        self.number, self.prompt, self.ranked = number, prompt, ranked
        self.model, self.tokeniser = service.model, service.model.tokeniser
        self.echo, self.logprobs = bool(request.echo), request.logprobs
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._place = 0  # in characters, of what comes next
        if not self.echo and self.logprobs is not None:
            self._place = len(self.tokeniser.decode(prompt.ids, prompt.spellings))

    def parts(
        self, tokens: Sequence[SampledToken], *, with_prompt: bool = False, final: bool = False
    ) -> tuple[str, dict[str, list[Any]] | None]:
        """Text and log-probabilities of some more tokens; with the prompt before them, if it is to be echoed."""
        texts: list[str] = []
        found: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}

        def add(raw: bytes, name: str, value: float | None, others: Sequence[tuple[int, float]]) -> None:
            shown_text = self._decoder.decode(raw)
            texts.append(shown_text)
            if self.logprobs is not None:
                top = {token_name(self.tokeniser, token): log_prob for token, log_prob in others}
                if value is not None:
                    top.setdefault(name, value)
                found["tokens"].append(name)
                found["token_logprobs"].append(value)
                found["top_logprobs"].append(top)
                found["text_offset"].append(self._place)
            self._place += len(shown_text)

        if with_prompt and self.echo:
            self._add_prompt(add)
        for token in tokens:
            add(token.text, token_name(self.tokeniser, token.token), -token.nats, token.others)
        if final:
            texts.append(self._decoder.decode(b"", final=True))
        return "".join(texts), found if self.logprobs is not None else None

    def _add_prompt(self, add: Any) -> None:
        spellings = iter(self.prompt.spellings)
        ranked, unknown = self.ranked, self.tokeniser.unknown
        costs: list[float | None] = [None] * len(self.prompt.ids)
        if ranked is not None:
            nats = ranked.nats.copy()
            if self.prompt.spellings:
                places = [i for i, token in enumerate(self.prompt.ids) if token == unknown]
                speller = getattr(self.model, "speller", None)
                if speller is not None:
                    nats[places] += speller.nats(self.prompt.spellings)
            costs = [-float(cost) for cost in nats]
        for i, token in enumerate(self.prompt.ids):
            spelling = next(spellings, "\ufffd") if token == unknown else None
            raw = self.tokeniser.piece(token) if spelling is None else spelling.encode()
            others: list[tuple[int, float]] = []
            if ranked is not None:
                others = list(zip(ranked.likeliest[i].tolist(), ranked.log_probs[i].tolist(), strict=True))
            add(raw, token_name(self.tokeniser, token) if spelling is None else spelling, costs[i], others)

    def record(
        self, text: str, logprobs: dict[str, list[Any]] | None, finish_reason: str | None = None
    ) -> dict[str, Any]:
        return {"text": text, "index": self.number, "logprobs": logprobs, "finish_reason": finish_reason}


def token_name(tokeniser: Tokeniser, token: int) -> str:
    """A token as text; part of a character as its bytes, in OpenAI's way."""
    if token == tokeniser.unknown:
        return "<unknown>"
    raw = tokeniser.piece(token)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in raw)


# ------------------------------------------------------------------------------------------------ what was asked for


def sampling_of(request: CompletionRequest, limits: Limits) -> SamplingConfig | None:
    """None: nothing is to be written."""
    tokens = DEFAULT_TOKENS if request.max_tokens is None else request.max_tokens
    if tokens > limits.max_tokens:
        raise Refusal(f"'max_tokens' is {shown(tokens)}; give at most {limits.max_tokens}.", param="max_tokens")
    if not tokens and not request.echo:
        raise Refusal("'max_tokens' is 0, which leaves nothing to say; give at least 1, or 'echo'.", param="max_tokens")
    stop = [request.stop] if isinstance(request.stop, str) else request.stop or []
    if len(stop) > limits.stops or any(not 0 < len(one) <= limits.stop_chars for one in stop):
        raise Refusal(
            f"'stop' is {shown(request.stop)}; give up to {limits.stops} strings of 1 to {limits.stop_chars} "
            "characters.",
            param="stop",
        )
    if not tokens:
        return None
    given: dict[str, Any] = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "min_p": request.min_p,
        "repetition_penalty": request.repetition_penalty,
        "top_k": None if request.top_k is None else max(0, request.top_k),
    }
    return SamplingConfig(
        tokens=tokens, stop=tuple(stop), **{name: value for name, value in given.items() if value is not None}
    )


async def asked_prompts(request: CompletionRequest, service: LanguageService, limits: Limits) -> list[Asked]:
    given: list[Any]
    if isinstance(request.prompt, str) or (request.prompt and isinstance(request.prompt[0], int)):
        given = [request.prompt]
    else:
        given = list(request.prompt)
    if not given:
        raise Refusal("'prompt' is an empty list; give at least one prompt.", param="prompt")
    if len(given) > limits.texts:
        raise Refusal(f"'prompt' has {len(given):,} prompts; give at most {limits.texts}.", param="prompt")
    found: list[Asked] = []
    if isinstance(given[0], str):
        found = await encode_texts(service, given)
    else:
        size = service.model.tokeniser.size
        for ids in given:
            wrong = [token for token in ids if not 0 <= token < size]
            if wrong:
                raise Refusal(
                    f"'prompt' has the token {shown(wrong[0])}; '{service.name}' knows 0 to {size - 1}.", param="prompt"
                )
            found.append(Asked(tuple(ids)))
    for one in found:
        check_length(len(one.ids), limits, "prompt")
    return found


def check_length(tokens: int, limits: Limits, param: str) -> None:
    if tokens > limits.prompt_tokens:
        raise Refusal(f"'{param}' has {tokens:,} tokens; give at most {limits.prompt_tokens:,}.", param=param)


async def encode_texts(service: LanguageService, texts: Sequence[str]) -> list[Asked]:
    """The tokens of each text; of long ones in another thread."""

    def encode() -> list[Asked]:
        model, found = service.model, []
        for text in texts:
            encoded = model.tokeniser.encode([model.chain(text)])
            found.append(Asked(tuple(encoded.ids.tolist()), encoded.spellings))
        return found

    return await asyncio.to_thread(encode) if sum(map(len, texts)) > LONG_CHARS else encode()


async def rank_prompts(
    exchange: Exchange, service: LanguageService, prompts: Sequence[Asked], others: int
) -> list[Ranking]:
    tasks = [(Prompt(prompt.ids, others), len(prompt.ids)) for prompt in prompts]
    results = await work_on(exchange, service.scoring, tasks)
    return [result for result in results if isinstance(result, Ranking)]


async def work_on(exchange: Exchange, pool: Any, items: Sequence[tuple[Any, int]]) -> list[Any]:
    """Results of a pool for items and their sizes, in order; given up when the client goes away."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    left = len(items)

    def finish(task: Task[Any, Any]) -> None:
        nonlocal left
        left -= 1
        if not left and not ended.done():
            ended.set_result(None)

    tasks = [Task[Any, Any](item, finish, size) for item, size in items]
    if not tasks:
        return []
    try:
        pool.submit(tasks)
        await exchange.unless_gone(ended)
    except (Gone, asyncio.CancelledError):
        for task in tasks:
            task.given_up = True
        raise
    for task in tasks:
        if task.failure is not None:
            raise task.failure
    return [task.result for task in tasks]
