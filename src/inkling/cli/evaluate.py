"""`inkling evaluate`: models on one ruler."""

from __future__ import annotations

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


def _distinct_names(paths: list[str]) -> list[str]:
    """The last part of each path, or the whole of each where two would be called the same."""
    names = [Path(path).absolute().name for path in paths]
    return names if len(set(names)) == len(set(paths)) else paths
