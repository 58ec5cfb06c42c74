"""How tests drive the command line: in this process, or on a terminal of their own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inkling.cli.app import main


class Cli:
    """One command, called as a function: gives stdout, keeps stderr in `notes`, and insists on the exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *command: str) -> None:
        self.capsys, self.command, self.notes = capsys, command, ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self.capsys.readouterr()
        found = main([*self.command, *arguments])
        out, self.notes = self.capsys.readouterr()
        assert found == code, self.notes
        return out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))


def on_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """All that a command writes when stdout and stderr are a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "inkling", *arguments]
    environment = os.environ | {"TERM": "xterm-256color", "NO_COLOR": ""} | variables
    with subprocess.Popen(command, stdout=slave, stderr=slave, stdin=slave, env=environment, cwd=folder) as process:
        os.close(slave)
        parts = []
        try:
            while part := os.read(master, 65536):
                parts.append(part)
        except OSError:  # the other end is closed
            pass
        assert process.wait(60) == 0
    os.close(master)
    return b"".join(parts).decode("utf-8").replace("\r\n", "\n")
