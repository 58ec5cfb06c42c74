"""The commands of the README, in the order they stand there; as they stand there, but for the minutes of trainings."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

SERVERS = ("inkling studio", "inkling serve")
SHARE_OF_MINUTES = 0.3
README = Path(__file__).parents[1] / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands() -> list[str]:
    return [line[2:] for block in blocks("console") for line in block.split("\n") if line.startswith("$ ")]


def test_the_readme_shows_commands() -> None:
    assert len(commands()) >= 8
    assert any(command.startswith("inkling train") for command in commands())


def opens_and_ends(command: str, folder: Path, environment: dict[str, str]) -> None:
    """A command that serves: it says where, refuses who has no token, and ends when it is told to."""
    pipe = subprocess.PIPE
    words = [*shlex.split(command), "--port", "0"]
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        try:
            found = next(re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stdout if "http://" in line)
            assert found is not None
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(found.group(), timeout=10)
            assert refused.value.code == 401
            refused.value.close()
        finally:
            process.send_signal(signal.SIGINT)
            out, words_in_the_end = process.communicate(timeout=30)
    assert process.returncode == 0, out + words_in_the_end
    assert "Traceback" not in words_in_the_end


def hurried(command: str) -> str:
    return re.sub(r"(?<=--minutes )[\d.]+", lambda found: f"{SHARE_OF_MINUTES * float(found.group()):g}", command)


@pytest.mark.slow
def test_every_command_of_the_readme_works(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in commands():
        if command.startswith(SERVERS):
            opens_and_ends(command, tmp_path, {**environment, "BROWSER": "true"})
            continue
        done = subprocess.run(
            hurried(command), shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        assert "Traceback" not in done.stderr
    for program in blocks("python"):
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "kept.txt").read_text(encoding="utf-8").count("\n") > 1000
