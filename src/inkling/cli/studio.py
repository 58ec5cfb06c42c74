"""`inkling studio`: the page in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from inkling.cli.options import Json, print_json, runs_folder


def studio(
    folder: Annotated[str | None, typer.Argument(metavar="[DIR]", help="Folder of runs. [default: runs]")] = None,
    port: Annotated[int, typer.Option(help="Where to listen; 0: any free port.")] = 8899,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")] = True,
    data: Annotated[str | None, typer.Option(help="Folder of real data sets, for claims that need them.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    elsewhere: Annotated[
        bool,
        typer.Option("--elsewhere", help="Allow an address that other computers reach; the token is still needed."),
    ] = False,
    name: Annotated[
        list[str] | None, typer.Option(help="A name that this computer is also reached by; may be repeated.")
    ] = None,
    json: Json = False,
) -> None:
    """Open the studio: train, watch, compare, write, classify, look inside, in your browser.

    Everything stays on this computer. The address that is printed has a token in it, without which nobody gets in; a
    training that was started in the studio goes on when the page or the studio is closed.

    \b
    Examples:
      inkling studio
      inkling studio experiments --port 9000
      inkling studio --no-browser                   print the address and open nothing
      inkling studio --host 0.0.0.0 --elsewhere --name lab.example
    """
    from inkling.cli.servers import needs
    from inkling.errors import UsageError
    from inkling.report.terminal import notice

    needs("studio", "nicegui", "websockets")
    if data is not None and not Path(data).is_dir():
        raise UsageError(f"--data is '{data}', which is not a folder; give the folder that holds the data sets.")
    where = Path(folder) if folder else runs_folder()
    if where.exists() and not where.is_dir():
        raise UsageError(f"{where} is a file; give a folder of runs.")

    from inkling.studio.site import run_studio
    from inkling.studio.state import Studio

    def ready(address: str) -> None:
        if json:
            print_json({"address": address, "folder": str(where)})
        else:
            typer.echo(address)
            notice(f"The studio of {where} is open at this address; Ctrl-C closes it, and trainings go on.")
        if browser:
            import webbrowser

            webbrowser.open(address)

    run_studio(
        Studio(where.absolute(), Path(data).absolute() if data else None),
        host=host,
        port=port,
        elsewhere=elsewhere,
        names=tuple(name or ()),
        on_ready=ready,
    )
