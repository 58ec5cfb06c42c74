"""`inkling evaluate | score | filter | sample`: what a trained model is good for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import (
    BadRows,
    Encoding,
    Format,
    Header,
    Json,
    TextColumn,
    check_bad_rows,
    check_seed,
    print_json,
)

RunArgument = Annotated[str, typer.Argument(help="A run directory.")]
FileArgument = Annotated[list[str], typer.Argument(help="Text: files, folders, - or data:NAME.")]


def evaluate(
    runs: Annotated[list[str], typer.Argument(help="Run directories.")],
    on: Annotated[list[str], typer.Option(help="Text to measure on; may be repeated.")],
    normalise: Annotated[
        list[str] | None, typer.Option(help="Normalise the text first; may be repeated, for a row each.")
    ] = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    json: Json = False,
) -> None:
    """Measure models on texts: bits per byte with an interval, perplexity, unknown words.

    \b
    Examples:
      inkling evaluate runs/bigram-novel --on other.txt
      inkling evaluate runs/a runs/b --on x.txt --on y.txt --json
      inkling evaluate runs/a --on x.txt --normalise none --normalise lower,spaces
    """
    from inkling.measure.evaluation import evaluate as measure
    from inkling.measure.evaluation import evaluation_table
    from inkling.recipes.data import TextConfig, documents, open_corpus
    from inkling.report.terminal import print_table, progress
    from inkling.runs.loading import load
    from inkling.text.normalise import Chain

    check_seed(seed)
    config = TextConfig(
        text_column=text_column, encoding=encoding, header=header, format=format, bad_rows=check_bad_rows(bad_rows)
    )
    models = [(name, load(run)) for name, run in zip(_distinct_names(runs), runs, strict=True)]
    chains = [Chain.parse(names) for names in normalise or ["none"]]
    corpora = [
        (name, open_corpus([text], config, keep_line_ends=True, keep_empty=True))
        for name, text in zip(_distinct_names(on), on, strict=True)
    ]
    rows = []
    with progress(len(models) * len(corpora) * len(chains), "Measuring", "texts") as bar:
        for name, corpus in corpora:
            for model_name, model in models:
                for chain in chains:
                    rows.append(
                        measure(
                            model,
                            documents(corpus),
                            model_name=model_name,
                            text_name=name,
                            chain=chain,
                            seed=seed,
                        )
                    )
                    bar.update(len(rows))
    if json:
        print_json([row.to_json() for row in rows])
    else:
        print_table(evaluation_table(rows))


def score(
    run: RunArgument,
    files: FileArgument,
    out: Annotated[
        str | None, typer.Option(help="Write here: .jsonl, .csv or .parquet. [default: JSON lines on stdout]")
    ] = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    json: Json = False,
) -> None:
    """Score every line or row: nats, tokens, unknown tokens, bytes, bits per byte. Streams files of any size.

    \b
    Examples:
      inkling score runs/bigram-novel corpus.txt > scores.jsonl
      inkling score runs/bigram-novel reviews.csv --text-column review --out scores.parquet
      cat corpus.txt | inkling score runs/bigram-novel -
    """
    from inkling.recipes.data import TextConfig, open_corpus
    from inkling.recipes.scoring import ScoreWriter, score_lines
    from inkling.report.terminal import notice, progress
    from inkling.runs.loading import load

    del json  # lines of JSON are the default
    config = TextConfig(
        text_column=text_column, encoding=encoding, header=header, format=format, bad_rows=check_bad_rows(bad_rows)
    )
    model = load(run)
    corpus = open_corpus(files, config, keep_line_ends=True, keep_empty=True)
    for note in corpus.notes:
        notice(note)
    several = len(corpus.sources) > 1
    with progress(corpus.size_bytes, "Scoring", "B") as bar, ScoreWriter(out, several_files=several) as writer:
        for rows, scores in score_lines(model, corpus, bar.update):
            writer.write(rows, scores)
    if corpus.intake.rows_reported:
        notice(corpus.intake.describe())


def filter_rows(
    run: RunArgument,
    files: FileArgument,
    keep: Annotated[str, typer.Option(help="A share such as 80%, or a limit of bits per byte such as 2.5.")] = "80%",
    out: Annotated[str | None, typer.Option(help="Write kept rows here: .txt, .jsonl, .csv or .parquet.")] = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    json: Json = False,
) -> None:
    """Keep the rows that the model finds most natural (fewest bits per byte), and show what goes and what stays.

    \b
    Examples:
      inkling filter runs/bigram-novel web.txt --keep 80% --out clean.txt
      inkling filter runs/bigram-novel web.txt --keep 3.2
    """
    from inkling.recipes.data import TextConfig, open_corpus
    from inkling.recipes.scoring import filter_corpus
    from inkling.report.terminal import notice, print_table, progress
    from inkling.runs.loading import load

    config = TextConfig(
        text_column=text_column, encoding=encoding, header=header, format=format, bad_rows=check_bad_rows(bad_rows)
    )
    model = load(run)
    corpus = open_corpus(files, config)
    for note in corpus.notes:
        notice(note)
    with progress(2 * corpus.size_bytes, "Filtering", "B") as bar:
        result = filter_corpus(model, corpus, keep, Path(out) if out else None, bar.update)
    if json:
        print_json(result.to_json())
    else:
        print_table(result.table())
        if out is None:
            notice("Nothing was written; name a file with --out to keep the rows.")


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


def _distinct_names(paths: list[str]) -> list[str]:
    """The last part of each path, or the whole of each where two would be called the same."""
    names = [Path(path).absolute().name for path in paths]
    return names if len(set(names)) == len(set(paths)) else paths
