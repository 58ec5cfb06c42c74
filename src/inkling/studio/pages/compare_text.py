"""The text of the page Compare: pasted, handed in as a file, or made from the grammar whose entropy is known."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nicegui import ui

from inkling.errors import InklingError, UsageError
from inkling.pictures.harmless import safe
from inkling.studio.intake import Received, upload
from inkling.studio.state import Studio
from inkling.studio.views_compare import MOST_CHARS, cut, split
from inkling.studio.work import Child, aside

SOURCES = {"paste": "Paste", "upload": "Hand in a file", "made": "Have it made"}
PASTED_CHARS = 200_000
MADE_WORDS = 4_000
MOST_WORDS = 200_000
SHOWN_CHARS = 400


class TextChoice:
    """Fields to say which text, and then that text: as a file for a child, or as documents to look at."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._received: Received | None = None
        self._looked: dict[str, Any] = {}
        with ui.element("div").classes("panel"):
            self._source = ui.toggle(SOURCES, value="paste").props('unelevated no-caps dense aria-label="The text"')
            self._source.classes("compare-toggle")
            with ui.element("div").bind_visibility_from(self._source, "value", value="paste"):
                self._pasted = ui.textarea(placeholder="Paste a text here …").classes("compare-field")
                self._pasted.props(f'outlined maxlength={PASTED_CHARS} aria-label="Text to compare on"')
            with ui.element("div").classes("line top").bind_visibility_from(self._source, "value", value="upload"):
                upload(studio, "Text, a table, or either packed", self._take)
                with ui.element("div").classes("grow"):
                    self._file = ui.label("A text file, or a table with a text in each row; it stays here.")
                    self._file.classes("quiet text-block")
                    self._beginning = ui.label().classes("sample text-block")
                    self._beginning.set_visibility(False)
            with ui.element("div").classes("line").bind_visibility_from(self._source, "value", value="made"):
                self._words = ui.number("Words", value=MADE_WORDS, min=10, max=MOST_WORDS, step=1000, precision=0)
                self._seed = ui.number("Seed", value=1, min=0, max=2**32 - 1, step=1, precision=0)
                for field in (self._words, self._seed):
                    field.props("outlined dense").classes("compare-number")
                ui.label(
                    "Sentences of a grammar whose entropy is known: no model can do better than 0.568 bits per byte. "
                    "It is what `inkling data make text` writes; seed 0 is what it writes unless told otherwise."
                ).classes("quiet grow")

    async def _take(self, received: Received) -> None:
        self._received = None
        self._file.text = f"Reading {received.name} …"
        self._beginning.set_visibility(False)
        try:
            looked = await Child("look-at-file", {"path": str(received.path)}, lambda done, sentence: None).result()
        except InklingError as error:
            self._file.text = "Nothing was taken in; try another file."
            raise InklingError(str(error).replace(str(received.path), received.name)) from error
        self._received, self._looked = received, looked
        notes = [note.replace(str(received.path), received.name) for note in looked["notes"]]
        self._file.text = " ".join([f"{received.name}, {received.size_bytes:,} bytes.", *notes])
        rows = [row.removesuffix("\n") for row in split(looked["text"][:SHOWN_CHARS], looked["lengths"])]
        self._beginning.text = safe("\n".join(rows)) + (" …" if len(looked["text"]) > SHOWN_CHARS else "")
        self._beginning.set_visibility(True)

    async def documents(self) -> tuple[str, list[str], bool]:
        """What the text is called, its documents, and whether they are only a beginning."""
        if self._source.value == "upload":
            received = self._handed_in()
            whole = split(self._looked["text"], self._looked["lengths"])
            name, was_cut = received.name, bool(self._looked["cut"])
        elif self._source.value == "made":
            name, whole, was_cut = self._made_name(), [await aside(_made, *self._numbers())], False
        else:
            name, whole, was_cut = "the pasted text", [self._typed()], False
        documents = cut(whole)
        return name, documents, was_cut or sum(map(len, whole)) > MOST_CHARS

    @asynccontextmanager
    async def file(self) -> AsyncIterator[tuple[str, Path]]:
        """What the text is called, and a file that holds all of it until the block ends."""
        folder = self._studio.hidden / "texts" / secrets.token_hex(8)
        try:
            if self._source.value == "upload":
                received = self._handed_in()
                path = folder / f"uploaded{''.join(received.path.suffixes)}"  # a name that tables can show
                await aside(_link, path, received.path)
                yield received.name, path
            elif self._source.value == "made":
                path = folder / f"{self._made_name()}.txt"
                await aside(_write, path, await aside(_made, *self._numbers()))
                yield self._made_name(), path
            else:
                path = folder / "pasted.txt"
                await aside(_write, path, self._typed())
                yield "the pasted text", path
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _typed(self) -> str:
        text = str(self._pasted.value or "")
        if not text.strip():
            raise UsageError("There is no text to compare on; paste some, hand in a file, or have one made.")
        return text

    def _handed_in(self) -> Received:
        if self._received is None:
            raise UsageError("No file was handed in yet; choose one, or paste a text.")
        return self._received

    def _numbers(self) -> tuple[int, int]:
        return int(self._words.value or MADE_WORDS), int(self._seed.value or 0)

    def _made_name(self) -> str:
        return f"made-{self._numbers()[1]}"


def _made(words: int, seed: int) -> str:
    import numpy as np

    from inkling.text.grammar import grammar_text

    if not 1 <= words <= MOST_WORDS:
        raise UsageError(f"{words:,} words were asked for; give a number from 1 to {MOST_WORDS:,}.")
    if not 0 <= seed < 1 << 32:
        raise UsageError(f"The seed is {seed}; give a whole number from 0 to 4294967295.")
    return grammar_text(np.random.default_rng(seed), words)


def _write(path: Path, content: str) -> None:
    from inkling.runs.files import write_file

    path.parent.mkdir(parents=True)
    write_file(path, content)


def _link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True)
    path.hardlink_to(to)
