"""`inkling gradcheck | claims | doctor`: what can be trusted here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import Json, check_seed, print_json


def gradcheck(seed: Annotated[int, typer.Option(help="Of the random points.")] = 0, json: Json = False) -> None:
    """Check every derivative written by hand against central differences and against autograd.

    Exits with 1 if any is further off than 1e-7 (differences) or 1e-12 (autograd), relative, in float64.

    \b
    Example:
      inkling gradcheck
    """
    import numpy as np

    from inkling.figures import Column, Table
    from inkling.models.gradients import AUTOGRAD_LIMIT, DIFFERENCES_LIMIT, check
    from inkling.report.terminal import print_table

    check_seed(seed)
    checks = check(np.random.default_rng(seed))
    failed = [c for c in checks if not c.passes]
    if json:
        print_json(
            [
                {
                    "layer": c.layer,
                    "gradient": c.gradient,
                    "differences": c.differences,
                    "autograd": c.autograd,
                    "passes": c.passes,
                }
                for c in checks
            ]
        )
    else:
        columns = (
            Column("layer"),
            Column("gradient"),
            Column("against central differences", ".1e"),
            Column("against autograd", ".1e"),
            Column("passes"),
        )
        rows = tuple((c.layer, c.gradient, c.differences, c.autograd, c.passes) for c in checks)
        notes = (
            f"Relative errors in float64; allowed: {DIFFERENCES_LIMIT:g} against central differences, "
            f"{AUTOGRAD_LIMIT:g} against autograd.",
            f"{len(checks) - len(failed)} of {len(checks)} gradients pass.",
        )
        print_table(Table("Gradients by hand", columns, rows, notes))
    if failed:
        raise typer.Exit(1)


def claims(
    which: Annotated[list[str] | None, typer.Argument(help="Ids or letters, such as A or C1. [default: all]")] = None,
    data: Annotated[str | None, typer.Option(help="Folder of real data sets, for claims that need them.")] = None,
    may_fail: Annotated[
        list[str] | None, typer.Option(help="A row that is known not to come out; may be repeated.")
    ] = None,
    html: Annotated[str | None, typer.Option(help="Also write the ledger as a page with its plots.")] = None,
    json: Json = False,
) -> None:
    """Run the ledger: every statement, what was published, what comes out here, and a verdict.

    Exits with 1 if a statement fails that was not named by --may-fail.

    \b
    Examples:
      inkling claims
      inkling claims A C1 --data ~/datasets --html ledger.html
    """
    from inkling.claims.ledger import Context, ledger_table, select
    from inkling.claims.ledger import run as run_claims
    from inkling.claims.rows import CLAIMS
    from inkling.errors import UsageError
    from inkling.figures import Page
    from inkling.report.page import write
    from inkling.report.terminal import notice, print_page

    folder = Path(data) if data else None
    if folder is not None and not folder.is_dir():
        raise UsageError(f"--data is '{data}', which is not a folder; give the folder that holds the data sets.")
    if html and (Path(html).is_dir() or not Path(html).parent.is_dir()):  # before minutes of work
        raise UsageError(f"--html is '{html}', which cannot be written; name a file in a folder that exists.")
    chosen = select(CLAIMS, which or [])
    known = {claim.id for claim in select(CLAIMS, may_fail)} if may_fail else set()
    rows = list(run_claims(chosen, Context(folder, notice)))
    page = Page("Inkling: the ledger", (ledger_table(rows), *(exhibit for row in rows for exhibit in row.exhibits)))
    if html:
        write(page, Path(html))
    if json:
        print_json([row.to_json() for row in rows])
    else:
        print_page(page)
    if any(row.verdict == "fails" and row.id not in known for row in rows):
        raise typer.Exit(1)


def doctor(json: Json = False) -> None:
    """Say what this computer can do: torch, threads, precision, memory, disk, and what to do about it.

    \b
    Example:
      inkling doctor
    """
    from dataclasses import asdict

    from inkling.doctor import doctor as examine
    from inkling.figures import Column, Table
    from inkling.report.terminal import notice, print_table

    findings = examine(progress=notice)
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = tuple((f.subject, f.value, f.verdict, f.advice) for f in findings)
        columns = (Column("what"), Column("found"), Column("verdict"), Column("advice"))
        print_table(Table("This computer", columns, rows))
    if any(finding.verdict == "problem" for finding in findings):
        raise typer.Exit(1)
