"""`inkling sample`: a model writes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from inkling.cli.options import Json, RunArgument, check_seed, print_json


def sample(
    run: RunArgument,
    prompt: Annotated[str, typer.Option(help="Text to continue.")] = "",
    tokens: Annotated[int, typer.Option(help="How many tokens to write.")] = 100,
    count: Annotated[int, typer.Option(help="How many samples.")] = 1,
    temperature: Annotated[float, typer.Option(help="Below 1 safer, above 1 wilder; 0 always the likeliest.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Choose among the k likeliest tokens; 0: all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Choose among the fewest tokens that hold this probability.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Decides the choices.")] = 0,
    json: Json = False,
) -> None:
    """Write text with a model.

    \b
    Examples:
      inkling sample runs/bigram-novel
      inkling sample runs/bigram-novel --prompt "It was" --temperature 0.8 --count 3
    """
    import codecs

    import numpy as np

    from inkling.errors import UsageError
    from inkling.models.sampling import SamplingConfig
    from inkling.models.sampling import sample as draw
    from inkling.report.terminal import safe
    from inkling.runs.loading import load

    if count < 1:
        raise UsageError(f"--count is {count}; give at least 1.")
    check_seed(seed)
    config = SamplingConfig(temperature, top_k, top_p, tokens)
    model = load(run)
    found = []
    for number in range(count):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = prompt
        nats = 0.0
        if not json:
            sys.stdout.write(safe(prompt))
        for token in draw(model, config, np.random.default_rng((seed, number)), prompt):
            part = decoder.decode(token.text)
            text += part
            nats += token.nats
            if not json:
                sys.stdout.write(safe(part))
                sys.stdout.flush()
        if not json:
            sys.stdout.write("\n" if number == count - 1 else "\n\n")
        found.append({"text": text, "tokens": tokens, "nats": nats})
    if json:
        print_json(found)
