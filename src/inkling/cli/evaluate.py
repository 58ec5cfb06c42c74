"""`inkling evaluate`: models on one ruler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from inkling.cli.options import (
    BadRows,
    Encoding,
    Format,
    Header,
    Json,
    LabelColumn,
    Overlap,
    TextColumn,
    check_seed,
    print_json,
    reading,
    reading_labels,
)

if TYPE_CHECKING:
    from inkling.measure.matrix import Matrix
    from inkling.recipes.classification import ClassifierMatrix


def evaluate(
    runs: Annotated[list[str], typer.Argument(help="Run directories.")],
    on: Annotated[list[str], typer.Option(help="Text to measure on, for classifiers with labels; may be repeated.")],
    normalise: Annotated[
        list[str] | None, typer.Option(help="Normalise the text first; may be repeated, for a row each.")
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option("--baselines/--no-baselines", help="Beside the runs: uniform, unigram, 6-gram, compressors."),
    ] = True,
    overlap: Overlap = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    html: Annotated[str | None, typer.Option(help="Write a page with tables and charts to this file too.")] = None,
    json: Json = False,
) -> None:
    """Measure models on texts, and say which differences are real.

    Language models: bits per byte with an interval, perplexity. Classifiers: accuracy, macro-F1, every class, whether
    the probabilities can be believed, and rows that were trained on.

    \b
    Examples:
      inkling evaluate runs/bigram-novel --on other.txt
      inkling evaluate runs/a runs/b --on x.txt --on y.txt --json
      inkling evaluate runs/a --on x.txt --normalise none --normalise lower,spaces
      inkling evaluate runs/a runs/b --on x.txt --html ruler.html
      inkling evaluate runs/dan-reviews --on test.csv --label-column stars
    """
    from pathlib import Path

    from inkling.errors import UsageError
    from inkling.report.page import write
    from inkling.report.terminal import notice, print_page, progress
    from inkling.runs.run import Run

    check_seed(seed)
    kinds = {run: Run.open(run).kind for run in runs}
    classifiers = [run for run, kind in kinds.items() if kind == "dan"]
    if classifiers and len(classifiers) < len(kinds):
        other = next(run for run in kinds if run not in classifiers)
        raise UsageError(
            f"{classifiers[0]} is a classifier and {other} a language model, which no measure has in common; give one "
            "kind at a time."
        )
    with progress(None, "Measuring", "stages" if classifiers else "bytes") as bar:

        def show(done: int, total: int, what: str) -> None:
            bar.total = total
            bar.update(done, now=what)

        found: ClassifierMatrix | Matrix
        if classifiers:
            from inkling.recipes.classification import evaluate_classifiers

            if normalise:
                raise UsageError(
                    "--normalise is for language models: a classifier reads texts as they are; leave it out."
                )
            labelled = reading_labels((), text_column, label_column, encoding, header, format, bad_rows, seed)
            found = evaluate_classifiers(runs, on, labelled, notice, show, overlap)
        else:
            from inkling.recipes.evaluation import EvaluationRecipe, evaluate_runs

            if label_column is not None:
                raise UsageError(f"--label-column is for classifiers, and {runs[0]} is a language model; leave it out.")
            read = reading(text_column, encoding, header, format, bad_rows)
            steps = tuple(normalise or ["none"])
            found = evaluate_runs(EvaluationRecipe(tuple(runs), tuple(on), steps, read, baselines, overlap, seed), show)
    if html is not None:
        write(found.page(), Path(html))
    if json:
        print_json(found.to_json())
    else:
        print_page(found.summary())
