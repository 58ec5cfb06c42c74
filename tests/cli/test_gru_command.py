"""`inkling train gru` as a user types it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inkling.cli.app import main
from inkling.models.gru_loss import GRULoss
from inkling.text.grammar import grammar_text

SMALL = ("--steps", "12", "--hidden", "16", "--batch", "4", "--chunk", "12")


@pytest.fixture
def novel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "novel.txt"
    path.write_text(grammar_text(np.random.default_rng(5), 1500), encoding="utf-8")
    return path


def test_a_run_is_made_measured_scored_and_sampled(novel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "gru", "novel.txt", *SMALL, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["run"] == "runs/gru-novel"
    assert (summary["kind"], summary["steps"], summary["hidden"]) == ("gru", 12, 16)
    assert main(["score", "runs/gru-novel", "novel.txt"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == len(novel.read_text("utf-8").splitlines())
    assert sum(row["bytes"] for row in rows) == len(novel.read_bytes())
    assert main(["sample", "runs/gru-novel", "--tokens", "30", "--seed", "4"]) == 0
    first = capsys.readouterr().out
    assert main(["sample", "runs/gru-novel", "--tokens", "30", "--seed", "4"]) == 0
    assert capsys.readouterr().out == first
    assert main(["evaluate", "runs/gru-novel", "--on", "novel.txt", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = [row for row in found["rows"] if row["model"] == "gru-novel"]
    assert row["bytes"] == len(novel.read_bytes())
    assert row["context"].startswith("the whole text")
    assert any("does not beat" in sentence for sentence in found["sentences"])  # twelve steps are not enough


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_learned_and_resume_goes_on(
    novel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "gru", "novel.txt", *SMALL, "--out", "whole"]) == 0
    gradient = GRULoss.gradient

    def interrupted(self: GRULoss, batch: Any, step: int) -> tuple[float, float]:
        found = gradient(self, batch, step)
        if step == 7:
            raise KeyboardInterrupt  # after the carried state of the next step was written
        return found

    with monkeypatch.context() as patch:
        patch.setattr(GRULoss, "gradient", interrupted)
        assert main(["train", "gru", "novel.txt", *SMALL, "--out", "cut"]) == 130
    assert "Stopped; what was learned is kept. Go on with: inkling resume cut" in capsys.readouterr().err
    assert json.loads((Path("cut") / "run.json").read_text("utf-8"))["state"] == "interrupted"
    assert main(["resume", "cut"]) == 0
    assert Path("cut/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--minutes", "0"), "--minutes is 0; give a number above 0, or leave it out."),
        (("--layers", "7"), "--layers is 7; give 1, 2 or 3."),
        (("--dropout", "-0.1"), "--dropout is -0.1; give 0 or more."),
        (("--dropout", "1.5"), "--dropout is 1.5; give a share from 0 to below 1."),
        (("--tokens", "letter"), "--tokens is letter; give one of character, byte, bpe, word."),
        (("--tied", "--dimension", "3"), "--tied needs --dimension equal to --hidden, but they are 3 and 16."),
    ],
)
def test_a_mistake_is_one_sentence(
    novel: Path, options: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "gru", "novel.txt", *SMALL, *options]) == 2
    assert capsys.readouterr().err == f"inkling: {sentence}\n"
    assert not Path("runs").exists()


def test_a_tiny_text_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tiny.txt"
    path.write_text("ab\ncd\n", encoding="utf-8")
    assert main(["train", "gru", str(path), "--minutes", "0.01", "--out", str(tmp_path / "run"), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["held_out_tokens"] == 3
    assert np.isfinite(summary["held_out_nats_per_token"])


@pytest.mark.slow
def test_on_a_terminal_it_shows_bits_time_left_and_a_line_now_and_then(novel: Path) -> None:
    """A real terminal, through a pseudo-terminal, with the pause between samples taken out."""
    code = (
        "import sys; from inkling.recipes import streamed; streamed.WATCH_SECONDS = 0.0\n"
        "from inkling.report import terminal; terminal.QUIET_SECONDS = 1e-9\n"
        "from inkling.cli.app import main; sys.exit(main(sys.argv[1:]))"
    )
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", code, "train", "gru", "novel.txt", *SMALL, "--out", "shown"]
    environment = {**os.environ, "COLUMNS": "150", "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
            if not part:
                break
            shown += part
        assert process.wait() == 0
    os.close(leader)
    text = shown.decode("utf-8", "replace")
    assert "bits/char" in text
    assert "held out" in text
    assert "steps/s" in text
    assert "0:00:0" in text
    assert text.count("writes: ") >= 3
