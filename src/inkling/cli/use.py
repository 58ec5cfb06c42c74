"""`inkling score | filter`: a model at work on a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import (
    BadRows,
    Encoding,
    FileArgument,
    Format,
    Header,
    Json,
    RunArgument,
    TextColumn,
    print_json,
    reading,
)


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
    from inkling.recipes.data import open_corpus
    from inkling.recipes.scoring import ScoreWriter, score_lines
    from inkling.report.terminal import notice, progress
    from inkling.runs.loading import load_language_model

    del json  # lines of JSON are the default
    config = reading(text_column, encoding, header, format, bad_rows)
    model = load_language_model(run)
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
    from inkling.recipes.data import open_corpus
    from inkling.recipes.scoring import filter_corpus
    from inkling.report.terminal import notice, print_table, progress
    from inkling.runs.loading import load_language_model

    config = reading(text_column, encoding, header, format, bad_rows)
    model = load_language_model(run)
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
