"""Trainings that are started from the studio, each the command `inkling train …` in a process of its own.

The process belongs to no terminal and no page: closing the page or the studio leaves it alone, and the next studio
finds its run in the folder like any other. What it says is kept beside the runs, so that a training that could not
begin can tell why.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from inkling.errors import InklingError, UsageError
from inkling.runs.presence import state_of, stop
from inkling.runs.run import Run, unused_path

Kind = Literal["gpt", "gru", "bigram", "ngram", "dan"]
KINDS: dict[Kind, str] = {
    "gpt": "small transformer",
    "gru": "recurrent model",
    "bigram": "neural bigram of words",
    "ngram": "Kneser-Ney n-gram of words",
    "dan": "classifier of texts with labels",
}
TOKENS = ("character", "byte", "bpe", "word")
MADE = {"text": "world.txt", "reviews": "reviews.csv", "biographies": "lives.txt"}
MOST_MINUTES = 24 * 60
LAST_BYTES = 8192


@dataclass(frozen=True)
class Wish:
    """What somebody wants to have trained. `file` is ours (an upload, something generated) or `data:NAME`."""

    kind: Kind
    file: str
    title: str  # what the run is called after
    minutes: float = 1.0
    tokens: str = "character"
    seed: int = 0
    pairs: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"A model of kind '{self.kind}' cannot be trained; choose one of {', '.join(KINDS)}.")
        if not 0 < self.minutes <= MOST_MINUTES:
            raise UsageError(f"The time is {self.minutes:g} minutes; give a number above 0 and up to {MOST_MINUTES}.")
        if self.tokens not in TOKENS:
            raise UsageError(f"The tokens are '{self.tokens}'; choose one of {', '.join(TOKENS)}.")

    def command(self, out: Path) -> list[str]:
        """The words after `inkling`."""
        words = ["train", self.kind, self.file, "--out", str(out)]
        if self.kind != "ngram":  # counting has no chance in it
            words += ["--seed", str(self.seed)]
        if self.kind in ("gpt", "gru", "bigram"):
            words += ["--minutes", f"{self.minutes:g}"]
        if self.kind in ("gpt", "gru") and self.pairs is None:
            words += ["--tokens", self.tokens]
        if self.pairs is not None:
            words += ["--pairs", self.pairs]
        return words


@dataclass
class Started:
    """A training of this studio. It is pending until its run appears."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def failed(self) -> bool:
        return bool(self.process.poll())  # a number that is not 0

    def last_words(self) -> str:
        """What it said last, without the name of the command before it."""
        lines = [line for line in said(self.log).splitlines() if line.strip()]
        return lines[-1].removeprefix("inkling: ") if lines else "It ended without a word."


@dataclass
class Trainings:
    folder: Path  # of runs
    logs: Path
    _started: dict[str, Started] = field(default_factory=dict)

    def start(self, wish: Wish) -> str:
        """Begins a training; the name of the run that it will be."""
        self.folder.mkdir(parents=True, exist_ok=True)
        taken = {name for name, started in self._started.items() if started.process.poll() is None}
        path = unused_path(self.folder, f"{wish.kind}-{slug(wish.title)}")
        base, number = path.name, 1
        while path.name in taken or path.exists():  # one that is still getting ready has no folder yet
            number += 1
            path = self.folder / f"{base}-{number}"
        self._begin(path.name, wish.command(path))
        return path.name

    def resume(self, run: Run) -> None:
        if state_of(run) in ("finished", "running"):
            raise InklingError(f"{run.path.name} is {state_of(run)}; only what was interrupted can go on.")
        self._begin(run.path.name, ["resume", str(run.path)])

    def stop(self, run: Run) -> None:
        stop(run)

    def pending(self) -> list[Started]:
        """Trainings that have no run yet, because they are getting ready or could not begin."""
        return [started for started in self._started.values() if not (self.folder / started.name).exists()]

    def forget(self, name: str) -> None:
        """Ends a training that has no run yet, and shows it no more."""
        started = self._started.pop(name, None)
        if started is not None and started.process.poll() is None:
            started.process.kill()
            started.process.wait()

    def words(self, name: str) -> str:
        """What a training said, the end of it; nothing where it was not started here."""
        return said(self.logs / f"{name}.log")

    def _begin(self, name: str, words: list[str]) -> None:
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "inkling", *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C at the terminal of the studio is not meant for it
                env={**os.environ, "NO_COLOR": "1"},
            )
        self._started[name] = Started(name, process, log)


def slug(title: str) -> str:
    """A part of a folder's name: letters, digits and hyphens of ASCII, and never empty."""
    found = re.sub(r"[^a-z0-9]+", "-", title.lower().split(".")[0]).strip("-")
    return found[:40].strip("-") or "text"


def said(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - LAST_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def make_data(kind: str, folder: Path) -> Path:
    """Generated data of this kind, made when it is first asked for."""
    from inkling.recipes.world import make_world

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / MADE[kind]
    if not path.exists():
        make_world(kind, path, None, 0)
    return path
