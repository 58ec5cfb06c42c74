"""`inkling train gpt` as a user types it, alone and under torchrun."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inkling.cli.app import main
from inkling.models.gpt_loss import Batch, GPTLoss
from inkling.recipes.documents import WAYS
from inkling.text.grammar import grammar_text

SIZES = ("--layers", "2", "--width", "32", "--heads", "2", "--mlp", "48", "--context", "16", "--batch", "5")
SMALL = ("--steps", "12", *SIZES, "--precision", "float32")


@pytest.fixture
def novel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "novel.txt"
    path.write_text(grammar_text(np.random.default_rng(5), 1500), encoding="utf-8")
    return path


def test_a_run_is_made_measured_scored_and_sampled(novel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "gpt", "novel.txt", *SMALL, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["run"] == "runs/gpt-novel"
    assert (summary["kind"], summary["steps"], summary["width"]) == ("gpt", 12, 32)
    assert main(["score", "runs/gpt-novel", "novel.txt"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(row["bytes"] for row in rows) == len(novel.read_bytes())
    assert main(["sample", "runs/gpt-novel", "--tokens", "30", "--seed", "4"]) == 0
    first = capsys.readouterr().out
    assert main(["sample", "runs/gpt-novel", "--tokens", "30", "--seed", "4"]) == 0
    assert capsys.readouterr().out == first
    assert main(["evaluate", "runs/gpt-novel", "--on", "novel.txt", "--json"]) == 0
    (row,) = [row for row in json.loads(capsys.readouterr().out)["rows"] if row["model"] == "gpt-novel"]
    assert row["bytes"] == len(novel.read_bytes())


def test_ctrl_c_keeps_what_was_learned_and_resume_goes_on(
    novel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "gpt", "novel.txt", *SMALL, "--out", "whole"]) == 0
    gradient = GPTLoss.gradient

    def interrupted(self: GPTLoss, batch: Batch, step: int) -> tuple[float, float]:
        if step == 7:
            raise KeyboardInterrupt
        return gradient(self, batch, step)

    with monkeypatch.context() as patch:
        patch.setattr(GPTLoss, "gradient", interrupted)
        assert main(["train", "gpt", "novel.txt", *SMALL, "--out", "cut"]) == 130
    assert "Stopped; what was learned is kept. Go on with: inkling resume cut" in capsys.readouterr().err
    assert main(["resume", "cut"]) == 0
    assert Path("cut/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--minutes", "0"), "--minutes is 0; give a number above 0, or leave it out."),
        (("--dropout", "-0.1"), "--dropout is -0.1; give 0 or more."),
        (("--decay", "-1"), "--decay is -1; give 0 or more."),
        (("--tokens", "letter"), "--tokens is letter; give one of character, byte, bpe, word."),
        (
            ("--objective", "fame"),
            f"--objective has the part 'fame'; give one of {', '.join(WAYS)}, such as recall=3.",
        ),
        (("--width", "30"), "dimension of a GPT is 30, which 2 heads cannot share in pairs of coordinates; give a "
                            "multiple of 4."),
        (("--key-value-heads", "3"), "key_value_heads of a GPT is 3, which 2 heads cannot share evenly; give a divisor "
                                     "of 2, or 0 for one a head."),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence(
    novel: Path, options: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "gpt", "novel.txt", *SMALL, *options]) == 2
    assert capsys.readouterr().err == f"inkling: {sentence}\n"
    assert not Path("runs").exists()


def test_a_tiny_text_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tiny.txt"
    path.write_text("ab\ncd\n", encoding="utf-8")
    command = ["train", "gpt", str(path), "--minutes", "0.01", "--precision", "float32", "--json"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["held_out_tokens"] == 3
    assert np.isfinite(summary["held_out_nats_per_token"])


def test_only_models_that_can_are_trained_in_several_processes(
    novel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"WORLD_SIZE": "2", "RANK": "0"}.items():
        monkeypatch.setenv(name, value)
    assert main(["train", "bigram", "novel.txt"]) == 2
    assert "This model is trained in one process, but there are 2; leave out torchrun." in capsys.readouterr().err
    monkeypatch.setenv("RANK", "1")
    assert main(["train", "bigram", "novel.txt"]) == 2
    assert capsys.readouterr().err == ""  # the first one has said it


# ------------------------------------------------------------------------------------------ torchrun


def torchrun(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Two processes of one core each."""
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "inkling", *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, notes = process.communicate(timeout=120)
    return process.returncode, out, notes


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_two_processes_are_one(novel: Path) -> None:
    """Five texts a step, which two cannot share evenly, then ten of half the length: to 10⁻⁵ in float32."""
    assert main(["train", "gpt", "novel.txt", *SMALL, "--short-share", "0.5", "--out", "one"]) == 0
    code, out, notes = ended(torchrun(novel.parent, "train", "gpt", "novel.txt", *SMALL,
                                      "--short-share", "0.5", "--out", "two", "--json"))  # fmt: skip
    assert code == 0, notes
    assert json.loads(out)["run"] == "two"  # and nothing besides: the other one is silent
    one, two = metrics(Path("one")), metrics(Path("two"))
    assert [row["tokens"] for row in two] == [row["tokens"] for row in one] == [80.0] * 12
    for alone, shared in zip(one, two, strict=True):
        assert shared["nats"] == pytest.approx(alone["nats"], rel=1e-5)
        if "held_out_nats_per_token" in alone:
            assert shared["held_out_nats_per_token"] == pytest.approx(alone["held_out_nats_per_token"], rel=1e-5)
    assert json.loads(Path("two/run.json").read_text("utf-8"))["processes"] == 2


@pytest.mark.slow
def test_two_processes_sized_by_the_clock_agree(novel: Path) -> None:
    """The first one measures the time, and the other hears what it decided."""
    options = ("--minutes", "0.02", *SIZES, "--precision", "float32", "--json")
    code, out, notes = ended(torchrun(novel.parent, "train", "gpt", "novel.txt", *options))
    assert code == 0, notes
    assert json.loads(out)["run"] == "runs/gpt-novel"
    assert len(metrics(Path("runs/gpt-novel"))) >= 2


@pytest.mark.slow
def test_ctrl_c_stops_both_and_both_go_on_to_the_same_bits(novel: Path) -> None:
    options = ("--steps", "200", *SIZES, "--precision", "float32", "--dropout", "0.1")
    assert ended(torchrun(novel.parent, "train", "gpt", "novel.txt", *options, "--out", "whole"))[0] == 0
    process = torchrun(novel.parent, "train", "gpt", "novel.txt", *options, "--out", "cut")
    log = novel.parent / "cut" / "metrics.jsonl"
    while process.poll() is None and not (log.exists() and log.stat().st_size > 2000):
        os.sched_yield()
    os.killpg(process.pid, signal.SIGINT)
    code, _, notes = ended(process)
    assert code != 0
    assert "Stopped; what was learned is kept. Go on with: inkling resume cut" in notes
    code, out, notes = ended(torchrun(novel.parent, "resume", "cut", "--json"))
    assert code == 0, notes
    assert json.loads(out)["steps"] == 200
    assert Path("cut/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


@pytest.mark.slow
def test_a_mistake_ends_both_and_is_said_once(novel: Path) -> None:
    code, _, notes = ended(torchrun(novel.parent, "train", "gpt", "absent.txt", *SMALL))
    assert code != 0
    assert notes.count("inkling: ") == 1
    assert not (novel.parent / "runs").exists()
