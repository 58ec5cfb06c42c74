"""Writing so that nothing is lost: whole files or none, whole folders or none, and a manifest that says complete.

A file is written beside its place, forced to disk, and renamed; a folder likewise. A power cut or `kill -9` at any
moment leaves the old state or the new one. A manifest holds the SHA-256 of every file of a folder and is written last.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inkling.errors import InklingError

MANIFEST = "manifest.json"
TEMPORARY = ".writing-"


def finite(value: Any) -> Any:
    """For JSON, which has neither infinity nor NaN: such a number becomes null."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sync_folder(folder: Path) -> None:
    """Forces the folder's entries to disk, where the system can (Windows cannot open a folder)."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_file(path: Path, content: bytes | str) -> None:
    """Puts `content` at `path`, replacing what was there, in one step."""
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    try:
        write_synced(temporary, content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    """Makes the new folder `path` with these files (a name may hold `/`), all or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent)
    temporary = path.with_name(f"{TEMPORARY}{os.getpid()}-{path.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir()
        for name, content in files.items():
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            write_synced(target, content)
        folders = {temporary / parent for name in files for parent in Path(name).parents}  # also those between
        for folder in sorted(folders, key=lambda f: len(f.parts), reverse=True):
            sync_folder(folder)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(path.parent)


def manifest_of(files: Mapping[str, bytes]) -> bytes:
    return json.dumps({name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())}).encode()


def sha256_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(folder: Path) -> bool:
    """Whether the folder has a manifest. Raises if a file that it names is missing or altered."""
    manifest = folder / MANIFEST
    if not manifest.exists():
        return False
    try:
        hashes = json.loads(manifest.read_text(encoding="utf-8"))
        damaged = [name for name, digest in hashes.items() if sha256_file(folder / name) != digest]
    except (OSError, ValueError, AttributeError) as error:
        raise InklingError(
            f"The run in {folder} is damaged ({error}); restore it from a copy or train anew."
        ) from error
    if damaged:
        raise InklingError(
            f"The run in {folder} is damaged: {', '.join(damaged)} is not what was written; "
            "restore it from a copy or train anew."
        )
    return True


def sweep(folder: Path) -> None:
    """Removes what writers that are no more left behind."""
    for left in folder.glob(f"{TEMPORARY}*"):
        owner = left.name.removeprefix(TEMPORARY).partition("-")[0]
        if not owner.isdigit() or (int(owner) != os.getpid() and _alive(int(owner))):
            continue
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    if os.name == "nt":  # signal 0 would end the process there
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
