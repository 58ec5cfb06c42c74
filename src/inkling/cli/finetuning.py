"""`inkling finetune`: train a transformer further, on questions and answers."""

from __future__ import annotations

from typing import Annotated

import typer

from inkling.cli.following import fill_recipe, follow, run_path, write_lines
from inkling.cli.options import AnswerColumn, BadRows, ConfigFile, Header, Json, Out, QuestionColumn, Seed


def finetune(
    run: Annotated[str, typer.Argument(help="A run of `inkling train gpt` to begin from.")],
    pairs: Annotated[list[str], typer.Argument(help="Questions and answers: .tsv .csv .jsonl .parquet.")],
    documents: Annotated[
        list[str] | None, typer.Option(help="Documents, one a line, to learn from as well (or to ask about).")
    ] = None,
    ask: Annotated[
        bool,
        typer.Option(help="First read every other document, answer the same question about it, and learn that too."),
    ] = False,
    out: Out = None,
    minutes: Annotated[float | None, typer.Option(help="How long to train. [default: 5]")] = None,
    steps: Annotated[int | None, typer.Option(help="Batches to read. [default: as the minutes allow]")] = None,
    objective: Annotated[
        str | None, typer.Option(help="As for `inkling train gpt`: question=2,recall=1. [default: by what is given]")
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Of the matrices, with Muon. [default: 0.025]")] = None,
    dropout: Annotated[float | None, typer.Option(help="Share left out of layers. [default: 0]")] = None,
    decay: Annotated[float | None, typer.Option(help="Pull to zero of matrices. [default: 0]")] = None,
    batch: Annotated[int | None, typer.Option(help="A step reads so many contexts of tokens. [default: 6]")] = None,
    question_column: QuestionColumn = None,
    answer_column: AnswerColumn = None,
    header: Header = None,
    seed: Seed = None,
    bad_rows: BadRows = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train a transformer further on questions and answers, into a run of its own.

    With --ask a model that was trained with --pairs first asks itself: it reads each document that no pair is about and
    answers the same question with the book open (asked.tsv in the new run), then learns these answers with the book
    closed. Answers later come from the weights alone.

    \b
    Examples:
      inkling finetune runs/gpt-biographies questions.tsv --minutes 1
      inkling finetune runs/gpt-biographies questions.tsv --documents biographies.txt --ask --minutes 2
    """
    given = locals() | {"base": run, "files": documents or [], "ask": ask or None}
    from inkling.recipes.knowledge import KnowledgeRecipe, train_knowledge

    recipe = fill_recipe(KnowledgeRecipe, given)
    path = run_path(out, "gpt", recipe.pairs)
    follow(lambda say: train_knowledge(recipe, path, say, write_lines(path)), path, json, shared=True)
