"""`inkling train …` and `inkling resume`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inkling.cli.options import (
    BadRows,
    ConfigFile,
    Encoding,
    Files,
    Format,
    Header,
    Json,
    Normalise,
    Out,
    Seed,
    TextColumn,
    check_bad_rows,
    print_json,
)

if TYPE_CHECKING:
    from inkling.runs.run import Run
    from inkling.training.loop import Step

app = typer.Typer(
    help="Train a model on your text.\n\n\b\nExample:\n  inkling train bigram novel.txt",
    no_args_is_help=True,
    rich_markup_mode=None,
)

HeldOut = Annotated[list[str] | None, typer.Option(help="Files to judge by. [default: a tenth of the text]")]
Vocabulary = Annotated[int | None, typer.Option(help="How many ids; rarer words are spelled out as unknown.")]
Cut = Annotated[str | None, typer.Option("--pieces", help="words, or spaces for text that is already tokenised.")]
Exclude = Annotated[list[str] | None, typer.Option(help="Words that get no id, such as <unk>; may be repeated.")]


@app.command()
def bigram(
    files: Files,
    held_out: HeldOut = None,
    out: Out = None,
    vocabulary: Vocabulary = None,
    hidden: Annotated[int | None, typer.Option(help="Hidden units. [default: 100]")] = None,
    vectors: Annotated[str | None, typer.Option(help="Word vectors to start from: a file, or data:glove-50d.")] = None,
    fixed_vectors: Annotated[bool, typer.Option(help="Keep the vectors as they are.")] = False,
    method: Annotated[str | None, typer.Option(help="exact (default), or sgd as published.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after this time at the latest.")] = None,
    steps: Annotated[int | None, typer.Option(help="Passes over all pairs (exact) or batches (sgd).")] = None,
    rate: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Share of features left out in each step.")] = None,
    discount: Annotated[float | None, typer.Option(help="Taken off the count of each pair, 0 to 1.")] = None,
    pieces: Cut = None,
    exclude: Exclude = None,
    normalise: Normalise = None,
    seed: Seed = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Train the neural word bigram model.

    The whole text enters through its pair counts, so training takes seconds to a minute. A tenth of the text is held
    out to know when to stop. Ctrl-C keeps what was learned; `inkling resume` goes on.

    \b
    Examples:
      inkling train bigram novel.txt
      inkling train bigram reviews.csv --text-column review --vocabulary 8000
      inkling train bigram news/ --vectors glove.6B.50d.txt --out runs/news
      inkling train bigram ptb.train.txt --held-out ptb.valid.txt --pieces spaces --exclude "<unk>"
    """
    from inkling.errors import UsageError
    from inkling.recipes.bigram import BigramRecipe, train_bigram

    flags = {
        "files": tuple(files),
        "held_out": tuple(held_out) if held_out else None,
        "vocabulary": vocabulary,
        "hidden": hidden,
        "vectors": vectors,
        "learn_vectors": False if fixed_vectors else None,
        "method": method,
        "minutes": minutes,
        "steps": steps,
        "rate": rate,
        "dropout": dropout,
        "discount": discount,
        "pieces": pieces,
        "exclude": tuple(exclude) if exclude else None,
        "normalise": normalise,
        "seed": seed,
        "text_column": text_column,
        "encoding": encoding,
        "header": header,
        "format": format,
        "bad_rows": check_bad_rows(bad_rows) if bad_rows else None,
    }
    for name in ("steps", "rate", "minutes"):
        if flags[name] == 0:
            raise UsageError(f"--{name} is 0; give a number above 0, or leave it out.")
    recipe = _fill(BigramRecipe, flags, config)
    path = _where(out, "bigram", recipe.files)
    _follow(lambda say: train_bigram(recipe, path, say), recipe.training().steps, path, json)


@app.command()
def ngram(
    files: Files,
    held_out: HeldOut = None,
    out: Out = None,
    order: Annotated[int | None, typer.Option(help="Tokens in an n-gram: 2 is a bigram. [default: 2]")] = None,
    tokens: Annotated[str | None, typer.Option(help="word (default), character, byte or bpe.")] = None,
    vocabulary: Vocabulary = None,
    discounts: Annotated[str | None, typer.Option(help="modified (default, three a level) or single.")] = None,
    pieces: Cut = None,
    exclude: Exclude = None,
    normalise: Normalise = None,
    text_column: TextColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    config: ConfigFile = None,
    json: Json = False,
) -> None:
    """Count n-grams with Kneser-Ney smoothing: the honest baseline, in seconds.

    \b
    Examples:
      inkling train ngram novel.txt --order 3
      inkling train ngram novel.txt --order 6 --tokens character
    """
    from inkling.recipes.ngram import NGramRecipe, train_ngram
    from inkling.report.terminal import notice

    flags = {
        "files": tuple(files),
        "held_out": tuple(held_out) if held_out else None,
        "order": order,
        "tokens": tokens,
        "vocabulary": vocabulary,
        "discounts": discounts,
        "pieces": pieces,
        "exclude": tuple(exclude) if exclude else None,
        "normalise": normalise,
        "text_column": text_column,
        "encoding": encoding,
        "header": header,
        "format": format,
        "bad_rows": check_bad_rows(bad_rows) if bad_rows else None,
    }
    recipe = _fill(NGramRecipe, flags, config)
    _announce(train_ngram(recipe, _where(out, "ngram", recipe.files), notice), json)


def resume(
    run: Annotated[str, typer.Argument(help="A run directory that was interrupted.")], json: Json = False
) -> None:
    """Go on with a training that was interrupted, as if it had not been.

    \b
    Example:
      inkling resume runs/bigram-novel
    """
    from inkling.configuration import from_record
    from inkling.errors import InklingError
    from inkling.recipes.bigram import BigramRecipe, resume_bigram
    from inkling.runs.run import Run

    opened = Run.open(run)
    if opened.finished:
        raise InklingError(f"{run} is finished; there is nothing to resume, so train anew for a longer run.")
    if opened.kind != "bigram":
        raise InklingError(f"{run} is a {opened.kind}, which is made in one pass; train it anew.")
    recipe = from_record(BigramRecipe, opened.info["recipe"], run)
    _follow(lambda say: resume_bigram(opened, say), recipe.training().steps, opened.path, json)


def _fill(kind: type[Any], flags: dict[str, Any], config: str | None) -> Any:
    """The recipe, from flags, file and environment; the recipe itself refuses values out of range."""
    from inkling.configuration import fill

    return fill(kind, flags, Path(config) if config else None)


def _where(out: str | None, kind: str, files: tuple[str, ...]) -> Path:
    from inkling.recipes.data import run_name
    from inkling.runs.run import unused_path

    return Path(out) if out else unused_path(Path(os.environ.get("INKLING_RUNS", "runs")), run_name(kind, files))


def _follow(
    begin: Callable[[Callable[[str], None]], Iterator[tuple[Run, Step]]], steps: int, path: Path, json: bool
) -> None:
    """Draws a training as it goes, and its figures when it ends."""
    from inkling.report.terminal import notice, progress
    from inkling.runs.run import Run

    try:
        info: dict[str, Any] = {}  # the last held-out figure stays in view until the next
        with progress(steps, f"Training {path.name}", "steps") as bar:
            for _, step in begin(notice):
                info["perplexity"] = round(_perplexity(step.nats / step.tokens), 2)
                if step.held_out_nats is not None:
                    info["held out"] = round(_perplexity(step.held_out_nats), 2)
                bar.update(step.step, **info)
    except KeyboardInterrupt:
        if path.exists():
            notice(f"Stopped; what was learned is kept. Go on with: inkling resume {path}")
        raise
    _announce(Run.open(path), json)


def _perplexity(nats: float) -> float:
    return math.exp(min(nats, 700.0))


def _announce(run: Run, json: bool) -> None:
    from inkling.figures import Column, Table
    from inkling.report.terminal import print_table

    summary = run.info["summary"]
    if json:
        print_json({"run": str(run.path), "kind": run.kind, **summary})
        return
    rows = tuple((name.replace("_", " "), value) for name, value in summary.items())
    table = Table(
        f"{run.path}",
        (Column("figure"), Column("value", ",.10g")),
        rows,
        (
            "Held-out text was not trained on, but chose when to stop; `inkling evaluate` measures on other text.",
            f"Next: inkling sample {run.path}",
        ),
    )
    print_table(table)
