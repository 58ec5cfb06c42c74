"""`inkling serve`: what it says, what it refuses, and how it ends."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import httpx
import numpy as np
import pytest

from inkling.cli.app import main
from inkling.cli.serve import _say
from inkling.models.bigram import BigramConfig, random_parameters
from inkling.runs.loading import constant_files, dump_arrays
from inkling.runs.recording import dump
from inkling.runs.run import Checkpoint, Run
from inkling.serve.shelf import Opened
from inkling.text.tokenise import train_tokeniser


@pytest.fixture
def run(tmp_path: Path) -> Path:
    tokeniser, sizes = train_tokeniser("word", [["the boat and the net\n"]]), BigramConfig(dimension=4, hidden=4)
    weights = dump(random_parameters(sizes, tokeniser.size, np.random.default_rng(0)))
    Run.create(
        tmp_path / "small",
        info={"kind": "bigram", "recipe": {}, "normalise": "none", "seed": 0, "threads": 1, "data": {}},
        constant=constant_files("bigram", asdict(sizes), tokeniser, None),
        checkpoint=Checkpoint(0, weights, dump_arrays({}), {"step": 0}),
    )
    return tmp_path / "small"


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "inkling", "serve", *arguments, "--port", "0"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=20)
    return process.returncode, complaints


def test_it_says_where_it_is_answers_and_ends_cleanly_even_while_it_writes(run: Path, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    process = started(str(run), "--json", "--token-file", str(token_file), "--max-tokens", "100000000")
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    assert said["models"] == [{"id": "small", "kind": "bigram"}]
    assert said["base_url"] == said["url"] + "/v1"
    assert said["url"].startswith("http://127.0.0.1:")
    assert token_file.read_text().strip() == said["token"]
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    headers = {"Authorization": f"Bearer {said['token']}"}
    assert httpx.get(said["url"] + "/health", headers=headers).json()["status"] == "ok"
    assert httpx.get(said["url"] + "/health").status_code == 401
    body = {"max_tokens": 100_000_000, "stream": True}
    with httpx.stream("POST", said["base_url"] + "/completions", headers=headers, json=body, timeout=20) as answer:
        lines = answer.iter_lines()  # kept, for the connection is closed with it
        assert next(lines).startswith("data: ")
        code, complaints = ended(process)
    assert code == 0
    assert "Traceback" not in complaints


def test_people_are_told_the_address_the_token_and_what_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    _say("http://127.0.0.1:8000", "T" * 20, [Opened("small", "bigram", 0, None)], json=False)
    lines = capsys.readouterr().out.splitlines()
    assert "small (bigram)" in lines[0]
    assert lines[1].split() == ["at", "http://127.0.0.1:8000/v1"]
    assert lines[2].split() == ["token", "T" * 20]
    assert lines[4].startswith("  curl http://127.0.0.1:8000/v1/completions -H 'Authorization: Bearer TTTT")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--host", "0.0.0.0"], "--elsewhere"),
        (["--host", "not an address"], "--host"),
        (["--port", "70000"], "--port is 70000"),
        (["--batch", "0"], "--batch is 0"),
        (["--queue", "-1"], "--queue is -1"),
        (["--max-tokens", "0"], "--max-tokens is 0"),
        (["--threads", "-2"], "--threads is -2"),
        (["--batch", "many"], "a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    run: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(run), *options]) == 2
    complaint = capsys.readouterr().err
    assert said in complaint
    assert complaint.count("\n") == 1


def test_a_run_that_is_not_there_and_a_poor_token_are_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", str(tmp_path / "nothing"), "--port", "0"]) in (1, 2)
    assert main(["serve", str(run), str(run), "--port", "0"]) == 2
    assert "Two runs are called 'small'" in capsys.readouterr().err
    (tmp_path / "poor").write_text("abc\n")
    assert main(["serve", str(run), "--port", "0", "--token-file", str(tmp_path / "poor")]) == 2
    assert "The token has 3 characters" in capsys.readouterr().err


def test_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help"]) == 0
    text = capsys.readouterr().out
    for word in ("Examples:", "openai.OpenAI(", "/v1/completions", "--token-file", "--elsewhere"):
        assert word in text
