"""Who is training a run right now.

A training holds a lock on `.training` in its run's folder, with the number of its process inside. The lock goes with
the process, however that ends, so nobody takes a training that was killed for one that goes on; and no run is trained
twice at a time. Others ask `trainer`, and `stop` says to it what Ctrl-C says on a terminal.

Left out: a lock where the system has none (Windows); there the file alone counts.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from inkling.errors import InklingError
from inkling.runs.files import write_file
from inkling.runs.run import Run

LOCK, SAMPLE = ".training", ".sample"
TRIES, BETWEEN_SECONDS = 20, 0.02


@contextmanager
def present(run: Run) -> Iterator[None]:
    """Holds the run while it is trained; refused where another process does."""
    path = run.path / LOCK
    with path.open("a+", encoding="ascii") as file:
        if not _lock_soon(file):
            raise InklingError(
                f"{run.path} is being trained already, by process {trainer(run)}; wait for it, or stop it with "
                f"`inkling runs stop {run.path}`."
            )
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            (run.path / SAMPLE).unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def keep_sample(path: Path, text: str) -> None:
    """Lays down what the model in training at `path` writes by now, for who looks on; it goes with the training."""
    write_file(path / SAMPLE, text)


def newest_sample(run: Run) -> str | None:
    try:
        return (run.path / SAMPLE).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def trainer(run: Run) -> int | None:
    """The process that trains this run now, if one does."""
    try:
        with (run.path / LOCK).open("r+", encoding="ascii") as file:
            if os.name != "nt" and _lock(file):
                return None  # whoever wrote it is gone
            return int(file.read() or 0) or None
    except (OSError, ValueError):
        return None


def state_of(run: Run) -> str:
    """finished, running, interrupted or failed; as it is now, whatever was written down last."""
    if run.finished:
        return "finished"
    if trainer(run) is not None:
        return "running"
    written = str(run.info["state"])
    return "interrupted" if written == "running" else written


def stop(run: Run) -> None:
    """Tells the training to save what it has learned and to end."""
    process = trainer(run)
    if process is None:
        raise InklingError(f"{run.path} is not being trained now; `inkling runs list` shows what is.")
    os.kill(process, signal.SIGINT)


def _lock_soon(file: IO[str]) -> bool:
    """`_lock`, past those who only look: they hold it for a moment."""
    for _ in range(TRIES):
        if _lock(file):
            return True
        time.sleep(BETWEEN_SECONDS)
    return False


def _lock(file: IO[str]) -> bool:
    """Whether the file is ours now. Without waiting; let go when it is closed."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
