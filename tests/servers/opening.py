"""How tests open a studio: the real command, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Opened:
    """A studio that runs: the address with its token, and its folder of runs."""

    address: str
    folder: Path
    process: subprocess.Popen[str]

    @property
    def root(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def token(self) -> str:
        return urlsplit(self.address).query.removeprefix("token=")


def inkling(*arguments: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "inkling", *arguments], cwd=folder, check=True, capture_output=True)


@contextmanager
def open_studio(folder: Path, *arguments: str) -> Iterator[Opened]:
    """`inkling studio` on the runs of `folder/runs`, until the block ends."""
    command = [sys.executable, "-m", "inkling", "studio", "--no-browser", "--port", "0", "--json", *arguments]
    environment = {**os.environ, "INKLING_RUNS": ""} if "INKLING_RUNS" in os.environ else None
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        lines = []
        while line := process.stdout.readline():
            lines.append(line)
            try:
                said = json.loads("".join(lines))
                break
            except ValueError:
                continue
        else:
            raise AssertionError(f"the studio did not start: {lines}")
        yield Opened(said["address"], folder / "runs", process)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
