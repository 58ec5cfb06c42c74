"""Writing: whole files or none, whole folders or none, whichever call fails and wherever the process is killed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from inkling.errors import InklingError
from inkling.runs import files
from inkling.runs.files import MANIFEST, TEMPORARY, manifest_of, sweep, verify, write_file, write_folder

CONTENT = {"a.txt": b"new a", "deep/er/b.bin": bytes(range(256)) * 40, "c": b"c"}


class Killed(BaseException):
    """The process is no more: nothing that it calls after this has any effect."""


class Machine:
    """Counts the calls that reach the disk, and makes the one numbered `fails_at` fail.

    `kill`: from then on every call fails, clean-up included, as if the power had gone. Otherwise only that one does.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails_at: int, *, kill: bool) -> None:
        self.calls: list[str] = []
        self.fails_at, self.kill = fails_at, kill
        machine = self

        def watch(owner: Any, name: str) -> None:
            real: Callable[..., Any] = getattr(owner, name)

            def watched(*arguments: Any, **options: Any) -> Any:
                machine.count(name)
                return real(*arguments, **options)

            monkeypatch.setattr(owner, name, watched)

        for owner, name in ((os, "fsync"), (os, "open"), (Path, "replace"), (Path, "rename"), (Path, "mkdir")):
            watch(owner, name)
        real_open = Path.open

        def open_watched(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if "w" not in mode:
                return real_open(path, mode, *arguments, **options)
            machine.count("create")
            return Half(real_open(path, mode, *arguments, **options), machine)

        monkeypatch.setattr(Path, "open", open_watched)
        if kill:
            watch(Path, "unlink")
            watch(shutil, "rmtree")

    @property
    def has_failed(self) -> bool:
        return len(self.calls) > self.fails_at

    def count(self, name: str) -> None:
        self.calls.append(name)
        place = len(self.calls) - 1
        if place == self.fails_at or (self.kill and place > self.fails_at):
            raise Killed if self.kill else OSError(28, f"no space left for {name}")


class Half:
    """A file of which half a write arrives when the machine fails."""

    def __init__(self, file: Any, machine: Machine) -> None:
        self.file, self.machine = file, machine

    def write(self, content: bytes) -> int:
        try:
            self.machine.count("write")
        except BaseException:
            self.file.write(content[: len(content) // 2])
            self.file.flush()
            raise
        return int(self.file.write(content))

    def __enter__(self) -> Half:
        return self

    def __exit__(self, *why: object) -> None:
        self.file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@contextmanager
def failing(fails_at: int, *, kill: bool) -> Iterator[Machine]:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine(patch, fails_at, kill=kill)
        try:
            yield machine
        except (Killed, OSError):
            assert machine.has_failed


def tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def temporary(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.startswith(TEMPORARY)]


# ------------------------------------------------------------------------------------------------ every failure


@pytest.mark.parametrize("kill", [False, True])
@pytest.mark.parametrize("before", [b"old content", None])
def test_a_file_is_old_or_new_wherever_writing_fails(tmp_path: Path, kill: bool, before: bytes | None) -> None:
    path = tmp_path / "f.json"
    outcomes = []
    for k in range(100):
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)
        with failing(k, kill=kill) as machine:
            write_file(path, b"the new content")
        outcomes.append(path.read_bytes() if path.exists() else None)
        assert outcomes[-1] in (before, b"the new content")
        assert kill or not temporary(tmp_path)
        sweep(tmp_path)
        assert [p.name for p in tmp_path.iterdir()] == ([path.name] if path.exists() else [])
        if not machine.has_failed:
            break
    assert outcomes[0] == before
    assert outcomes[-1] == b"the new content"
    assert machine.calls == ["create", "write", "fsync", "replace", "open", "fsync"]
    # Renamed only once the content is safe; what fails after that no longer undoes it.
    assert outcomes[:4] == [before] * 4
    assert outcomes[4:] == [b"the new content"] * 3


@pytest.mark.parametrize("kill", [False, True])
def test_a_folder_is_there_in_full_or_not_at_all_wherever_writing_fails(tmp_path: Path, kill: bool) -> None:
    path = tmp_path / "runs" / "new"
    whole = 0
    for k in range(200):
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        with failing(k, kill=kill) as machine:
            write_folder(path, CONTENT)
        if path.exists():
            assert tree(path) == CONTENT
            whole += 1
        if path.parent.exists():
            assert kill or not temporary(path.parent)
            sweep(path.parent)
            assert [p.name for p in path.parent.iterdir()] in ([], ["new"])
        if not machine.has_failed:
            break
    assert not machine.has_failed
    assert tree(path) == CONTENT
    assert whole == 3  # failing at the folder's own sync, at its opening, and not at all
    assert machine.calls.index("rename") == len(machine.calls) - 3


def test_every_folder_of_a_new_tree_is_forced_to_disk_before_it_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(files, "sync_folder", lambda folder: synced.append(folder.name))
    write_folder(tmp_path / "new", CONTENT)
    inside, top, parent = synced[:-2], synced[-2], synced[-1]
    assert inside == ["er", "deep"]
    assert top.startswith(TEMPORARY)
    assert parent == tmp_path.name


def test_a_folder_with_content_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").write_text("x")
    with pytest.raises(OSError, match="new"):
        write_folder(tmp_path / "new", CONTENT)
    assert tree(tmp_path) == {"new/mine": b"x"}


def test_text_is_written_as_utf_8_without_touching_line_ends(tmp_path: Path) -> None:
    write_file(tmp_path / "f", "é\r\n🦑\n")
    assert (tmp_path / "f").read_bytes() == "é\r\n🦑\n".encode()


# ------------------------------------------------------------------------------------------------ manifests


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    write_folder(tmp_path / "it", {**CONTENT, MANIFEST: manifest_of(CONTENT)})
    return tmp_path / "it"


def test_a_folder_as_it_was_written_is_sound(complete: Path) -> None:
    assert verify(complete)


def test_a_folder_without_a_manifest_is_not_complete(complete: Path) -> None:
    (complete / MANIFEST).unlink()
    assert not verify(complete)


@pytest.mark.parametrize("name", list(CONTENT))
@pytest.mark.parametrize("damage", ["bit", "cut", "longer", "gone"])
def test_any_damage_to_any_file_is_found_and_named(complete: Path, name: str, damage: str) -> None:
    path = complete / name
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "longer":
        path.write_bytes(content + b"\0")
    else:
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:] if damage == "bit" else content[:-1])
    with pytest.raises(InklingError, match=f"damaged.*{path.name}"):
        verify(complete)


@pytest.mark.parametrize("manifest", [b"", b'{"a.txt": ', b"[]", b"\xff", b'{"a.txt": 3}'])
def test_a_damaged_manifest_is_damage(complete: Path, manifest: bytes) -> None:
    (complete / MANIFEST).write_bytes(manifest)
    with pytest.raises(InklingError, match="damaged"):
        verify(complete)


def test_a_manifest_is_the_same_for_the_same_files_in_any_order() -> None:
    content = manifest_of({"b": b"2", "a": b"1"})
    assert content == manifest_of({"a": b"1", "b": b"2"})
    # SHA-256 of "1", as any tool prints it.
    assert json.loads(content)["a"] == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"


# ------------------------------------------------------------------------------------------------ what is left behind


def test_what_dead_writers_left_is_swept_and_what_living_ones_write_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_alive", lambda process: process == 42)
    (tmp_path / f"{TEMPORARY}7-file").write_text("")
    (tmp_path / f"{TEMPORARY}7-folder" / "inside").mkdir(parents=True)
    (tmp_path / f"{TEMPORARY}{os.getpid()}-mine").write_text("")
    for kept in (f"{TEMPORARY}42-file", f"{TEMPORARY}x-stranger", "run"):
        (tmp_path / kept).write_text("")
    sweep(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [f"{TEMPORARY}42-file", f"{TEMPORARY}x-stranger", "run"]
    )


def test_this_process_is_alive_and_an_impossible_one_is_not() -> None:
    assert files._alive(os.getpid())
    assert not files._alive(2**22 + 1)  # above the largest process id of Linux


def test_what_is_no_number_becomes_null_however_deep_it_stands() -> None:
    value = {"a": [1.5, float("nan")], "b": ({"c": float("-inf")}, "nan", 2, None, True)}
    assert json.dumps(files.finite(value)) == '{"a": [1.5, null], "b": [{"c": null}, "nan", 2, null, true]}'
