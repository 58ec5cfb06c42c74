"""Files that people hand in: capped, named by us, and read only by a process of its own.

The name that a file came with is shown and never used as a path; of it only the ending is looked at, and only if it is
one that we read. The file stays in the folder of runs, because a training that was interrupted reads it again; so there
is a limit to what lies there, and to how full the disk may become.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from nicegui import events, ui

from inkling.errors import InklingError
from inkling.pictures.harmless import one_line
from inkling.studio.state import Studio
from inkling.studio.work import say_error, told

MOST_BYTES = 200 << 20
MOST_KEPT_BYTES = 4 << 30  # of all files that were handed in
LEAST_FREE_BYTES = 1 << 30  # of the disk, when a file has come
KINDS = ("txt", "csv", "tsv", "jsonl", "parquet")
PACKED = ("gz", "xz", "zst")
SHOWN_CHARS = 80


@dataclass(frozen=True)
class Received:
    """A file that came: the name it was given, to be shown, and where it lies."""

    name: str
    path: Path
    size_bytes: int


def ending(name: str) -> str:
    """`.csv.gz` of a name, if that is something we read; `.txt` of any other."""
    parts = name.lower().split(".")[1:]
    packed = parts.pop() if parts and parts[-1] in PACKED else ""
    kind = parts[-1] if parts and parts[-1] in KINDS else "txt"
    return f".{kind}.{packed}" if packed else f".{kind}"


def check_room(folder: Path, size_bytes: int) -> None:
    """Raises `InklingError` where a file of this size is more than should lie in `folder`."""
    if size_bytes > MOST_BYTES:
        raise InklingError(f"The file is larger than {MOST_BYTES >> 20} MB; give a part of it.")
    if sum(file.stat().st_size for file in folder.iterdir()) + size_bytes > MOST_KEPT_BYTES:
        raise InklingError(f"Files that were handed in take {MOST_KEPT_BYTES >> 30} GB; remove some of {folder}.")
    if shutil.disk_usage(folder).free - size_bytes < LEAST_FREE_BYTES:
        raise InklingError(f"The disk is nearly full; make room on it, or remove some of {folder}.")


def upload(studio: Studio, label: str, on_file: Callable[[Received], Awaitable[None]]) -> ui.upload:
    """A place to drop a file; `on_file` is called when it is here."""

    async def receive(event: events.UploadEventArguments) -> None:
        folder = studio.hidden / "uploads"
        folder.mkdir(mode=0o700, exist_ok=True)
        check_room(folder, event.file.size())
        path = folder / f"{secrets.token_hex(8)}{ending(event.file.name)}"
        path.touch(0o600)
        await event.file.save(path)
        name = one_line(event.file.name.replace("\\", "/").rsplit("/", 1)[-1])[:SHOWN_CHARS]
        await on_file(Received(name, path, event.file.size()))

    found = ui.upload(label=label, max_file_size=MOST_BYTES, max_files=1, auto_upload=True, on_upload=told(receive))
    found.on("rejected", lambda: say_error(f"The file is larger than {MOST_BYTES >> 20} MB; give a part of it."))
    return found.props('flat bordered accept=".txt,.csv,.tsv,.jsonl,.parquet,.gz,.xz,.zst,text/*"')


class OneFile:
    """A place for a file, and the one that was handed in last; `on_change` is called when that is another, or none."""

    def __init__(self, studio: Studio, label: str, on_change: Callable[[], Awaitable[None] | None]) -> None:
        self.file: Received | None = None
        self._changed = on_change
        self._place = upload(studio, label, self._receive)

    async def _receive(self, file: Received) -> None:
        self.file = file
        self._place.reset()
        await self._tell()

    async def forget(self) -> None:
        self.file = None
        await told(self._tell)()

    async def _tell(self) -> None:
        found = self._changed()
        if found is not None:
            await found
