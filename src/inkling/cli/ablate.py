"""`inkling ablate …`: many trainings for one question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from inkling.cli.options import (
    BadRows,
    Encoding,
    Files,
    Format,
    Header,
    Json,
    LabelColumn,
    TextColumn,
    check_seed,
    print_json,
    reading_labels,
    runs_folder,
)

Item = TypeVar("Item")

app = typer.Typer(
    help="Train many networks for one question, and see which differences are real.\n\n\b\nExample:\n"
    "  inkling ablate dan reviews.csv --vectors data:glove-50d",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command()
def dan(
    files: Files,
    vectors: Annotated[
        list[str] | None, typer.Option(help="Word vectors: a file, or data:glove-50d; may be repeated.")
    ] = None,
    test: Annotated[list[str] | None, typer.Option(help="Files to judge by. [default: a fifth of the rows]")] = None,
    depths: Annotated[str, typer.Option(help="Hidden layers.")] = "0,1,2,3",
    activations: Annotated[
        str,
        typer.Option(help="relu sigmoid mish tanh leaky_relu silu, joined by commas; relu+sigmoid: layers take turns."),
    ] = "relu,sigmoid,mish",
    dropouts: Annotated[str, typer.Option(help="Shares of words dropped.")] = "0,0.1,0.2,0.3,0.4,0.5",
    widths: Annotated[str, typer.Option(help="Units of a hidden layer.")] = "100",
    seeds: Annotated[int, typer.Option(help="Trainings of each combination, unlike in their random numbers.")] = 5,
    epochs: Annotated[int, typer.Option(help="Passes over the texts.")] = 20,
    batch: Annotated[int, typer.Option(help="Texts in a step.")] = 100,
    rate: Annotated[float, typer.Option(help="Learning rate of Adam.")] = 0.001,
    standardise: Annotated[bool, typer.Option(help="Give each dimension of the averages deviation 1 first.")] = False,
    out: Annotated[str | None, typer.Option(help="Folder of the results. [default: runs/ablation-FILE]")] = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    encoding: Encoding = None,
    header: Header = None,
    format: Format = None,
    bad_rows: BadRows = None,
    seed: Annotated[int, typer.Option(help="Of the rows that are set aside.")] = 0,
    json: Json = False,
) -> None:
    """Train a grid of deep averaging networks on frozen word vectors: every combination of the lists, for each seed.

    Networks are trained many at a time. Results have intervals over seeds, and differences are called real when both
    the seeds and the texts say so. After Ctrl-C the same command goes on; so a grid may also grow.

    \b
    Examples:
      inkling ablate dan reviews.csv --vectors data:glove-50d --depths 0,1,2 --dropouts 0,0.3
      inkling ablate dan train.csv --test test.csv --vectors glove.6B.100d.txt --out runs/grid
      inkling ablate dan train.csv --vectors a.txt --vectors b.txt --activations relu,relu+sigmoid --seeds 10
    """
    from inkling.errors import UsageError
    from inkling.recipes.ablation import AblationRecipe, run_ablation
    from inkling.recipes.data import run_name
    from inkling.report.page import write
    from inkling.report.terminal import notice, print_page, progress
    from inkling.studies.ablation_page import page, summary

    check_seed(seed)
    if not 1 <= seeds <= 1000:
        raise UsageError(f"--seeds is {seeds}; give a whole number from 1 to 1,000.")
    recipe = AblationRecipe(
        files=tuple(files),
        test=tuple(test or ()),
        vectors=tuple(vectors or ()),
        depths=_items("--depths", depths, int, "whole numbers"),
        activations=_items("--activations", activations, str, "names"),
        dropouts=_items("--dropouts", dropouts, float, "numbers"),
        widths=_items("--widths", widths, int, "whole numbers"),
        seeds=seeds,
        epochs=epochs,
        batch=batch,
        rate=rate,
        standardise=standardise,
        reading=reading_labels((), text_column, label_column, encoding, header, format, bad_rows, seed),
    )
    folder = Path(out) if out else runs_folder() / run_name("ablation", recipe.files)
    try:
        with progress(None, "Training", "epochs") as bar:

            def show(done: int, total: int) -> None:
                bar.total = total
                bar.update(done)

            found = run_ablation(recipe, folder, notice, show)
    except KeyboardInterrupt:
        if folder.exists():
            notice(f"Stopped; finished trainings are kept in {folder}. Go on with the same command.")
        raise
    report = folder / "report.html"
    write(page(found), report)
    if json:
        print_json({"folder": str(folder), "report": str(report), **found.to_json()})
        return
    print_page(summary(found))
    notice(f"A page with the curves: {report}")


def _items(flag: str, given: str, kind: Callable[[str], Item], what: str) -> tuple[Item, ...]:
    from inkling.errors import UsageError

    try:
        found = tuple(kind(item.strip()) for item in given.split(",") if item.strip())
    except ValueError:
        found = ()
    if not found:
        raise UsageError(f"{flag} is '{given}'; give {what} joined by commas.")
    return found
