"""`inkling sample`: a model writes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inkling.cli.options import Json, RunArgument, check_seed, print_json

if TYPE_CHECKING:
    from inkling.models.sampling import Sample, SampledToken

LONG, SHORT = 500, 100  # tokens, where they are characters or bytes, and where they are words or parts of words

MOST_SAMPLES = 100_000


def sample(
    run: RunArgument,
    prompt: Annotated[str, typer.Option(help="Text to continue.")] = "",
    tokens: Annotated[
        int | None, typer.Option(help=f"How many tokens to write. [default: {SHORT}; of characters {LONG}]")
    ] = None,
    count: Annotated[int, typer.Option(help="How many samples, drawn together.")] = 1,
    temperature: Annotated[float, typer.Option(help="Below 1 safer, above 1 wilder; 0 always the likeliest.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Choose among the k likeliest tokens; 0: all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Choose among the fewest tokens that hold this probability.")] = 1.0,
    min_p: Annotated[
        float, typer.Option(help="Leave out tokens less likely than this share of the likeliest; 0: none.")
    ] = 0.0,
    repetition_penalty: Annotated[
        float, typer.Option(help="Divide the probability of the last 64 tokens by this; 1: no penalty.")
    ] = 1.0,
    stop: Annotated[
        list[str] | None, typer.Option(help="End before this text (\\n is a line end); may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the choices.")] = 0,
    show_probabilities: Annotated[
        bool, typer.Option("--show-probabilities", help="Colour each token by its surprise, on a terminal.")
    ] = False,
    json: Json = False,
) -> None:
    """Write text with a model.

    \b
    Examples:
      inkling sample runs/bigram-novel
      inkling sample runs/bigram-novel --prompt "It was" --temperature 0.8 --count 3
      inkling sample runs/gru-novel --min-p 0.05 --stop "\\n\\n" --show-probabilities
    """
    from dataclasses import replace

    import numpy as np

    from inkling.errors import UsageError
    from inkling.models.sampling import SamplingConfig, sample_many
    from inkling.models.sampling import sample as draw
    from inkling.report.surprise import is_coloured, legend, put
    from inkling.report.terminal import safe
    from inkling.runs.loading import load_language_model

    if not 1 <= count <= MOST_SAMPLES:
        raise UsageError(f"--count is {count}; give a whole number from 1 to {MOST_SAMPLES:,}.")
    check_seed(seed)
    config = SamplingConfig(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        tokens=SHORT if tokens is None else tokens,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        stop=tuple(text.replace("\\n", "\n") for text in stop or ()),
    )
    model = load_language_model(run)
    if tokens is None and model.tokeniser.kind in ("character", "byte"):
        config = replace(config, tokens=LONG)
    coloured = show_probabilities and not json and is_coloured()
    if coloured:
        put(legend() + "\n", sys.stderr)
    prompts = [prompt] * count
    if json:
        print_json([_record(drawn, show_probabilities) for drawn in sample_many(model, config, seed, prompts)])
        return
    if count == 1:
        put(safe(prompt))
        writer = _Writer(coloured)
        for token in draw(model, config, np.random.default_rng((seed, 0)), prompt):
            writer.write(token)
        writer.end()
        return
    for drawn in sample_many(model, config, seed, prompts):
        put(f"{'' if drawn.number == 0 else chr(10)}--- {drawn.number + 1} of {count} ---\n{safe(prompt)}")
        writer = _Writer(coloured)
        for token in drawn.tokens:
            writer.write(token)
        writer.end()


class _Writer:
    """Tokens to stdout, whole characters at a time; a character of several tokens costs what they cost together."""

    def __init__(self, coloured: bool) -> None:
        import codecs

        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._coloured = coloured
        self._bits = 0.0

    def write(self, token: SampledToken) -> None:
        from math import log

        self._bits += token.nats / log(2)
        self._show(self._decoder.decode(token.text))

    def end(self) -> None:
        from inkling.report.surprise import put

        self._show(self._decoder.decode(b"", final=True))
        put("\n")

    def _show(self, text: str) -> None:
        from inkling.report.surprise import put, shaded_token
        from inkling.report.terminal import safe

        if text:
            put(shaded_token(text, self._bits) if self._coloured else safe(text))
            self._bits = 0.0


def _record(drawn: Sample, with_tokens: bool) -> dict[str, Any]:
    from math import log

    found: dict[str, Any] = {
        "text": drawn.prompt + drawn.text,
        "tokens": len(drawn.tokens),
        "nats": drawn.nats,
        "stopped_by": drawn.stopped,
    }
    if with_tokens:
        found["drawn"] = [
            {"text": token.text.decode("utf-8", "replace"), "bits": token.nats / log(2), "rank": token.rank}
            for token in drawn.tokens
        ]
    return found
