"""`inkling study …`: trainings in pairs, for one question about your own text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.following import fill_recipe
from inkling.cli.options import (
    AnswerColumn,
    BadRows,
    ConfigFile,
    Header,
    Json,
    QuestionColumn,
    Seed,
    TextColumn,
    print_json,
    runs_folder,
)

app = typer.Typer(
    help="Train models in pairs for one question, and see whether the difference is real.\n\n\b\nExample:\n"
    "  inkling study pretraining biographies.txt questions.tsv",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def pretraining(
    corpus: Annotated[str, typer.Argument(help="Documents, one a line: a file, a folder, or data:NAME.")],
    pairs: Annotated[str, typer.Argument(help="Questions and answers: .tsv .csv .jsonl .parquet.")],
    seeds: Annotated[int, typer.Option(help="Trainings of each kind, unlike in their random numbers.")] = 3,
    minutes: Annotated[float | None, typer.Option(help="Of one training; there are two a seed. [default: 5]")] = None,
    steps: Annotated[int | None, typer.Option(help="Of one training, in place of minutes.")] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Pairs to judge by. [default: a fifth of the pairs, set aside]")
    ] = None,
    tokens: Annotated[str | None, typer.Option(help="bpe, character, byte or word. [default: bpe]")] = None,
    out: Annotated[str | None, typer.Option(help="Folder of the trainings. [default: runs/pretraining-CORPUS]")] = None,
    html: Annotated[str | None, typer.Option(help="Also write the page with the plots to this file.")] = None,
    text_column: TextColumn = None,
    question_column: QuestionColumn = None,
    answer_column: AnswerColumn = None,
    header: Header = None,
    bad_rows: BadRows = None,
    seed: Seed = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Does reading a corpus help to answer questions about it? Two trainings a seed, with the same pairs and budget.

    One reads the corpus with the pairs, then asks itself about every other document and learns that; one has the pairs
    alone. Both answer questions that neither has seen. After Ctrl-C the same command goes on; more seeds may follow.

    \b
    Examples:
      inkling study pretraining biographies.txt questions.tsv --minutes 1
      inkling study pretraining biographies.txt train.tsv --test dev.tsv --seeds 5 --out runs/study
    """
    given = locals() | {"files": [corpus], "pairs": [pairs]}
    from inkling.errors import UsageError
    from inkling.recipes.data import run_name
    from inkling.recipes.knowledge import KnowledgeRecipe
    from inkling.recipes.pretraining import PretrainingRecipe, run_study
    from inkling.report.page import write
    from inkling.report.terminal import notice, print_page, progress

    if html and (Path(html).is_dir() or not Path(html).parent.is_dir()):  # before minutes of work
        raise UsageError(f"--html is '{html}', which cannot be written; name a file in a folder that exists.")
    recipe = PretrainingRecipe(fill_recipe(KnowledgeRecipe, given), tuple(test or ()), seeds)
    folder = Path(out) if out else runs_folder() / run_name("pretraining", (corpus,))
    try:
        with progress(None, "Training", "steps") as bar:
            found = run_study(recipe, folder, notice, bar.show)
    except KeyboardInterrupt:
        if folder.exists():
            notice(f"Stopped; what was trained is kept in {folder}. Go on with the same command.")
        raise
    pages = [folder / "report.html", *([Path(html)] if html else [])]
    for page in pages:
        write(found.page(), page)
    if json:
        print_json({"folder": str(folder), "report": str(pages[-1]), **found.to_json()})
        return
    print_page(found.summary())
    notice(f"A page with the plots: {pages[-1]}")
