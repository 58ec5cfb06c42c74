"""What models say of texts: `/v1/classify`, `/v1/score`, `/tokenize` and `/detokenize`.

Figures and reasons are those of `inkling score` and `inkling classify --why`, from the same code.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from inkling.serve.bodies import ClassifyRequest, DetokenizeRequest, Refusal, ScoreRequest, TokenizeRequest, shown
from inkling.serve.completions import check_length, encode_texts, token_name, work_on
from inkling.serve.exchange import Exchange
from inkling.serve.limits import Limits
from inkling.serve.metrics import Metrics
from inkling.serve.shelf import Shelf


async def classify(exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
    request = await exchange.read(ClassifyRequest)
    service = shelf.classifier(request.model)
    texts = _texts(request.input, limits)
    for place, text in enumerate(texts):
        if not text.strip():
            raise Refusal(f"'input' {place} is {shown(text)}; give a text with words.", param="input")
    items = [((text, request.why, request.all), len(text)) for text in texts]
    found = await work_on(exchange, service.pool, items)
    data = [{"index": place, **record} for place, record in enumerate(found)]
    await exchange.answer({"object": "list", "model": service.name, "data": data})


async def score(exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
    request = await exchange.read(ScoreRequest)
    service = shelf.language_model(request.model)
    texts = _texts(request.input, limits)
    found = await work_on(exchange, service.scoring, [(text, len(text)) for text in texts])
    data = [{"index": place, **record} for place, record in enumerate(found)]
    metrics.count_tokens(service.name, "in", sum(record["tokens"] for record in data))
    await exchange.answer({"object": "list", "model": service.name, "data": data})


async def tokenize(exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
    request = await exchange.read(TokenizeRequest)
    service = shelf.language_model(request.model)
    [found] = await encode_texts(service, [request.prompt])
    tokeniser, spellings = service.model.tokeniser, iter(found.spellings)
    pieces = [next(spellings) if one == tokeniser.unknown else token_name(tokeniser, one) for one in found.ids]
    unknown = [place for place, one in enumerate(found.ids) if one == tokeniser.unknown]
    await exchange.answer(
        {
            "model": service.name,
            "count": len(found.ids),
            "max_model_len": limits.prompt_tokens,
            "tokens": list(found.ids),
            "pieces": pieces,
            "unknown": unknown,
        }
    )


async def detokenize(exchange: Exchange, shelf: Shelf, limits: Limits, metrics: Metrics) -> None:
    request = await exchange.read(DetokenizeRequest)
    service = shelf.language_model(request.model)
    tokeniser = service.model.tokeniser
    check_length(len(request.tokens), limits, "tokens")
    for token in request.tokens:
        if not 0 <= token < tokeniser.size:
            known = f"'{service.name}' knows 0 to {tokeniser.size - 1}"
            raise Refusal(f"'tokens' has {shown(token)}; {known}.", param="tokens")
    text = await asyncio.to_thread(tokeniser.decode, request.tokens)
    await exchange.answer({"model": service.name, "prompt": text})


def _texts(given: str | Sequence[str], limits: Limits) -> list[str]:
    texts = [given] if isinstance(given, str) else list(given)
    if not texts:
        raise Refusal("'input' is an empty list; give at least one text.", param="input")
    if len(texts) > limits.texts:
        raise Refusal(f"'input' has {len(texts):,} texts; give at most {limits.texts}.", param="input")
    for text in texts:  # a token is a character at most, or nearly so
        if len(text) > limits.prompt_tokens * 4:
            raise Refusal(
                f"'input' has a text of {len(text):,} characters; give at most {limits.prompt_tokens * 4:,}.",
                param="input",
            )
    return texts
