"""The studio as a web application: pages in their frame, behind the door.

Pages are modules of `pages/`, imported when they are first opened; torch is imported when a page first needs it, so
that the first page is there at once.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from inkling.studio.state import Studio

MOST_UPLOAD_BYTES = 256 << 20  # a file and what goes with it
MOST_BODY_BYTES = 2 << 20  # of anything else
UPLOADS = "/_nicegui/client/"  # where NiceGUI receives files
SPOOLED_BYTES = 1 << 16  # of each file of an upload, before it lies on the disk
FAVICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'>"
    "<path fill='#1d5fa8' d='M16 2c5 7 9 11 9 17a9 9 0 0 1-18 0c0-6 4-10 9-17z'/></svg>"
)


def make_site(studio: Studio) -> Any:
    """The ASGI application, without its door."""
    from fastapi import FastAPI
    from fastapi.responses import FileResponse
    from nicegui import ui
    from starlette.formparsers import MultiPartParser

    from inkling.studio.components.live import BRUSH
    from inkling.studio.frame import ENTRIES, Entry, frame
    from inkling.studio.nonces import Nonces

    MultiPartParser.spool_max_size = SPOOLED_BYTES  # or a thousand small files would lie in memory
    logging.getLogger("nicegui").setLevel(logging.ERROR)  # a path that is not there is no matter for the terminal
    outer = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)

    @outer.get("/studio.css")
    def looks() -> FileResponse:
        return FileResponse(Path(__file__).with_name("studio.css"), media_type="text/css")

    @outer.get(BRUSH)
    def brush() -> FileResponse:
        return FileResponse(Path(__file__).parent / "components" / BRUSH[1:], media_type="text/javascript")

    def register(entry: Entry) -> None:
        @ui.page(entry.path, title=f"{entry.title} · Inkling", response_timeout=20)
        async def page() -> None:
            build = import_module(f"inkling.studio.pages.{entry.module}").build
            with frame(studio, entry):
                found = build(studio)
                if inspect.isawaitable(found):
                    await found

    for entry in ENTRIES:
        register(entry)
    ui.run_with(
        outer,
        title="Inkling",
        favicon=FAVICON,
        dark=None,
        tailwind=False,
        gzip_middleware_factory=None,
        show_welcome_message=False,
        binding_refresh_interval=0.25,
        reconnect_timeout=4.0,
    )
    return Nonces(outer)


def run_studio(
    studio: Studio,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    elsewhere: bool = False,
    names: tuple[str, ...] = (),
    token: str | None = None,
    on_ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serves the studio until it is stopped; `on_ready` is told the address that opens it."""
    from inkling.door.guard import Guard
    from inkling.door.listening import open_socket, port_of, run_server
    from inkling.door.policy import Policy, hosts_of, new_token

    listening = open_socket(host, port, elsewhere)
    port = port_of(listening)
    policy = Policy(
        token or new_token(),
        hosts_of(host, port, names),
        largest_body_bytes=MOST_BODY_BYTES,
        body_seconds=10.0,
        request_seconds=180.0,
        uploads=(UPLOADS,),
        largest_upload_bytes=MOST_UPLOAD_BYTES,
        cookie=f"inkling-{port}",
        pages=True,
    )
    shown = names[0] if names else "127.0.0.1" if host in ("0.0.0.0", "::") else host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/?token={policy.token}"
    run_server(Guard(make_site(studio), policy), listening, lambda: on_ready(address))
