"""`inkling evaluate`: models on one ruler."""

from __future__ import annotations

from typing import Annotated

import typer

from inkling.cli.options import (
    BadRows,
    Encoding,
    Format,
    Header,
    Json,
    TextColumn,
    check_seed,
    print_json,
    reading,
)


def evaluate(
    runs: Annotated[list[str], typer.Argument(help="Run directories.")],
    on: Annotated[list[str], typer.Option(help="Text to measure on; may be repeated.")],
    normalise: Annotated[
        list[str] | None, typer.Option(help="Normalise the text first; may be repeated, for a row each.")
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option("--baselines/--no-baselines", help="Beside the runs: uniform, unigram, 6-gram, compressors."),
    ] = True,
    overlap: Annotated[
        bool | None,
        typer.Option(
            "--overlap/--no-overlap",
            help="Look for the texts in the training text. [default: unless it is over 200 MB]",
        ),
    ] = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    html: Annotated[str | None, typer.Option(help="Write a page with tables and charts to this file too.")] = None,
    json: Json = False,
) -> None:
    """Measure models on texts: bits per byte with an interval, perplexity, and which differences are real.

    \b
    Examples:
      inkling evaluate runs/bigram-novel --on other.txt
      inkling evaluate runs/a runs/b --on x.txt --on y.txt --json
      inkling evaluate runs/a --on x.txt --normalise none --normalise lower,spaces
      inkling evaluate runs/a runs/b --on x.txt --html ruler.html
    """
    from pathlib import Path

    from inkling.recipes.evaluation import EvaluationRecipe, evaluate_runs
    from inkling.report.page import write
    from inkling.report.terminal import print_page, progress

    check_seed(seed)
    read = reading(text_column, encoding, header, format, bad_rows)
    recipe = EvaluationRecipe(tuple(runs), tuple(on), tuple(normalise or ["none"]), read, baselines, overlap, seed)
    with progress(None, "Measuring", "bytes") as bar:

        def show(done: int, total: int, what: str) -> None:
            bar.total = total
            bar.update(done, now=what)

        found = evaluate_runs(recipe, show)
    if html is not None:
        write(found.page(), Path(html))
    if json:
        print_json(found.to_json())
    else:
        print_page(found.summary())
