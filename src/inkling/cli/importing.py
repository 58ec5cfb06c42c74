"""`inkling import`: models of other programs as runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.following import announce
from inkling.cli.options import Json, runs_folder


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
    from inkling.recipes.importing import import_run
    from inkling.report.terminal import notice
    from inkling.runs.run import unused_path

    source = Path(folder)
    path = Path(out) if out else unused_path(runs_folder(), source.absolute().name)
    run = import_run(source, path, notice)
    announce(run, json, (f"Next: inkling sample {run.path}",))
