"""`inkling evaluate`: models on one ruler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from inkling.cli.options import (
    AnswerColumn,
    BadRows,
    Beam,
    Encoding,
    Format,
    Header,
    Json,
    LabelColumn,
    Overlap,
    QuestionColumn,
    TextColumn,
    check_seed,
    print_json,
    reading,
    reading_labels,
    reading_pairs,
)

if TYPE_CHECKING:
    from inkling.measure.answers import AnswerMatrix
    from inkling.measure.matrix import Matrix
    from inkling.recipes.answers import AnswersRecipe
    from inkling.recipes.classification import ClassifierMatrix
    from inkling.recipes.evaluation import EvaluationRecipe
    from inkling.recipes.labelled import LabelledConfig


def evaluate(
    runs: Annotated[list[str], typer.Argument(help="Run directories.")],
    on: Annotated[
        list[str] | None, typer.Option(help="Text to measure on, for classifiers with labels; may be repeated.")
    ] = None,
    pairs: Annotated[
        list[str] | None, typer.Option(help="Instead of text: questions with answers, to be answered exactly.")
    ] = None,
    train_pairs: Annotated[
        list[str] | None, typer.Option(help="Pairs for baselines. [default: those that the runs were trained on]")
    ] = None,
    corpus: Annotated[
        list[str] | None, typer.Option(help="Text, a document a line, that judges the answers afterwards.")
    ] = None,
    beam: Beam = 1,
    promise: Annotated[
        float, typer.Option(help="Accuracy for which a threshold of the confidence of answers is sought.")
    ] = 0.9,
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
    question_column: QuestionColumn = None,
    answer_column: AnswerColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    html: Annotated[str | None, typer.Option(help="Write a page with tables and charts to this file too.")] = None,
    json: Json = False,
) -> None:
    """Measure models on texts or by their answers, and say which differences are real.

    Language models: bits per byte with an interval, perplexity. Classifiers: accuracy, macro-F1, every class, whether
    the probabilities can be believed, and rows that were trained on. Answers: exact match with an interval, against
    always the commonest answer and the nearest name, whether the confidence can be believed, and what a corpus says.

    \b
    Examples:
      inkling evaluate runs/bigram-novel --on other.txt
      inkling evaluate runs/a runs/b --on x.txt --on y.txt --json
      inkling evaluate runs/a --on x.txt --normalise none --normalise lower,spaces
      inkling evaluate runs/a runs/b --on x.txt --html ruler.html
      inkling evaluate runs/dan-reviews --on test.csv --label-column stars
      inkling evaluate runs/gpt-lives --pairs dev.tsv --corpus lives.txt --html answers.html
    """
    from pathlib import Path

    from inkling.errors import UsageError
    from inkling.report.page import write
    from inkling.report.terminal import print_page
    from inkling.runs.run import Run

    check_seed(seed)
    kinds = {run: Run.open(run).kind for run in runs}
    classifiers = [run for run, kind in kinds.items() if kind == "dan"]
    found: AnswerMatrix | ClassifierMatrix | Matrix
    if pairs:
        if on or normalise or text_column or label_column or overlap is not None or not baselines:
            raise UsageError("--pairs has the questions and answers to measure by; leave out the options for texts.")
        from inkling.models.answering import AnsweringConfig
        from inkling.recipes.answers import AnswersRecipe

        how = reading_pairs(question_column, answer_column, encoding, header, format, bad_rows)
        others = tuple(train_pairs or ()), tuple(corpus or ())
        found = _by_answers(AnswersRecipe(tuple(runs), tuple(pairs), *others, how, AnsweringConfig(beam), promise))
    elif train_pairs or corpus or question_column or answer_column or beam != 1:
        raise UsageError("Options for answers were given without questions; name a file of them with --pairs.")
    elif not on:
        raise UsageError(
            "There is nothing to measure on: name text with --on, or questions and answers with --pairs; see `inkling "
            "evaluate --help`."
        )
    elif classifiers:
        if len(classifiers) < len(kinds):
            other = next(run for run in kinds if run not in classifiers)
            raise UsageError(
                f"{classifiers[0]} is a classifier and {other} a language model, which no measure has in common; give "
                "one kind at a time."
            )
        if normalise:
            raise UsageError("--normalise is for language models: a classifier reads texts as they are; leave it out.")
        labelled = reading_labels((), text_column, label_column, encoding, header, format, bad_rows, seed)
        found = _by_verdicts(runs, on, labelled, overlap)
    else:
        if label_column is not None:
            raise UsageError(f"--label-column is for classifiers, and {runs[0]} is a language model; leave it out.")
        from inkling.recipes.evaluation import EvaluationRecipe

        read, steps = reading(text_column, encoding, header, format, bad_rows), tuple(normalise or ["none"])
        found = _by_text(EvaluationRecipe(tuple(runs), tuple(on), steps, read, baselines, overlap, seed))
    if html is not None:
        write(found.page(), Path(html))
    if json:
        print_json(found.to_json())
    else:
        print_page(found.summary())


def _by_answers(recipe: AnswersRecipe) -> AnswerMatrix:
    from inkling.recipes.answers import evaluate_answers
    from inkling.report.terminal import notice, progress

    with progress(None, "Answering", "questions") as bar:
        return evaluate_answers(recipe, notice, bar.show)


def _by_verdicts(
    runs: Sequence[str], on: Sequence[str], labelled: LabelledConfig, overlap: bool | None
) -> ClassifierMatrix:
    from inkling.recipes.classification import evaluate_classifiers
    from inkling.report.terminal import notice, progress

    with progress(None, "Measuring", "stages") as bar:
        return evaluate_classifiers(runs, on, labelled, notice, bar.show, overlap)


def _by_text(recipe: EvaluationRecipe) -> Matrix:
    from inkling.recipes.evaluation import evaluate_runs
    from inkling.report.terminal import progress

    with progress(None, "Measuring", "bytes") as bar:
        return evaluate_runs(recipe, bar.show)
