"""`inkling import`: models of other programs as runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import Json, print_json


def import_model(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="With config.json, *.safetensors and tokenizer.json.")],
    out: Annotated[str | None, typer.Option(help="Name the run directory. [default: runs/DIR]")] = None,
    json: Json = False,
) -> None:
    """Make a run from a model in the layout of the transformers library.

    A transformer of the qwen3 or llama family, with weights as safetensors and one of Inkling's tokenisers (or
    byte-level BPE without added tokens), is then scored, sampled and measured like any other run. The other way round
    nothing is needed: the directory of a gpt run opens in the transformers library as it is.

    \b
    Examples:
      inkling import exported/
      inkling import exported/ --out runs/theirs
      inkling evaluate runs/theirs runs/gpt-novel --on other.txt
    """
    from inkling.figures import Column, Table
    from inkling.recipes.importing import import_run
    from inkling.report.terminal import notice, print_table
    from inkling.runs.run import unused_path

    source = Path(folder)
    path = Path(out) if out else unused_path(Path(os.environ.get("INKLING_RUNS", "runs")), source.absolute().name)
    run = import_run(source, path, notice)
    summary = run.info["summary"]
    if json:
        print_json({"run": str(run.path), "kind": run.kind, **summary})
        return
    rows = tuple((name, value) for name, value in summary.items())
    columns = (Column("figure"), Column("value", ",.10g"))
    print_table(Table(f"{run.path}", columns, rows, (f"Next: inkling sample {run.path}",)))
