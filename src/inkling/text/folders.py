"""The files that a path means, and the format that a file name tells.

A folder means every file below it that ends in a known way, in the order of their paths; names that begin with a dot
are passed over, and so are run directories. Left out: wildcards (the shell has them).
"""

from __future__ import annotations

import difflib
import os
from contextlib import suppress
from pathlib import Path

from inkling.errors import InklingError
from inkling.text.files import find_compression, printable, why_not

FORMATS = ("txt", "csv", "tsv", "jsonl", "parquet")
ENDINGS = {
    ".txt": "txt",
    ".text": "txt",
    ".md": "txt",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}


def find_format(name: str) -> str | None:
    """The format that a file name ends in, before any compression; None if it says nothing."""
    return ENDINGS.get(Path(name.lower().removesuffix(find_compression(name))).suffix)


def find_files(folder: Path, any_ending: bool) -> tuple[list[Path], int]:
    """The readable files below `folder` in sorted order, and the number of those whose ending is unknown."""

    def stop(error: OSError) -> None:
        raise InklingError(
            f"The folder {printable(str(error.filename))} cannot be read: {why_not(error)}; check its permissions."
        ) from error

    files = []
    unknown = 0
    for parent, folders, names in os.walk(folder, onerror=stop):
        if {"run.json", "manifest.json"} <= set(names):  # a run directory: what we wrote is not the user's text
            folders[:] = []
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if name.startswith(".") or not Path(parent, name).is_file():
                continue
            if any_ending or find_format(name):
                files.append(Path(parent, name))
            else:
                unknown += 1
    return sorted(files, key=lambda path: path.parts), unknown


def explain_missing(path: Path) -> InklingError:
    parent = path.parent
    shown = printable(str(path))
    with suppress(OSError):
        if not parent.is_dir():
            return InklingError(
                f"{shown} does not exist, nor does the folder {printable(str(parent))}: check the path."
            )
        near = difflib.get_close_matches(path.name, [entry.name for entry in parent.iterdir()], n=1, cutoff=0.5)
        if near:
            return InklingError(f"{shown} does not exist: did you mean {printable(str(parent / near[0]))}?")
    return InklingError(f"{shown} does not exist: check the path.")
