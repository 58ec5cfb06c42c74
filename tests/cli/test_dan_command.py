"""`inkling train dan` as a user types it."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from driver import Cli, on_a_terminal
from reviews import PLAIN, reviews, write_csv

from inkling.cli.app import main
from inkling.models.dan import read_average

NETWORK = ("--dimension", "5", "--depth", "1", "--width", "4", "--epochs", "3", "--batch", "30", "--rate", "0.02")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INKLING_CACHE", str(tmp_path / "cache"))
    write_csv(tmp_path / "reviews.csv", reviews(1, 120))
    return tmp_path


@pytest.fixture
def train(folder: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys, "train", "dan")


def test_one_command_makes_a_classifier(train: Cli) -> None:
    summary = train.json("reviews.csv")
    assert (summary["run"], summary["kind"], summary["classes"]) == ("runs/dan-reviews", "dan", 2)
    assert (summary["train_texts"], summary["held_out_texts"]) == (108, 12)
    assert summary["held_out_accuracy_low"] <= summary["held_out_accuracy"] <= summary["held_out_accuracy_high"]
    assert summary == {
        "run": "runs/dan-reviews",
        "kind": "dan",
        **json.loads(Path("runs/dan-reviews/run.json").read_text("utf-8"))["summary"],
    }
    assert "the text is column 'text'" in train.notes
    assert train.json("reviews.csv")["run"] == "runs/dan-reviews-2"  # the first is left alone
    shown = train("reviews.csv", "--out", "third")
    assert "held out accuracy" in shown
    assert "Next: inkling errors third --on TEST" in shown


def test_its_help_shows_examples_and_defaults(train: Cli) -> None:
    shown = train("--help")
    assert "inkling train dan reviews.csv --preset published --vectors glove.6B.50d.txt" in shown
    for option in ("--words", "--characters", "--vectors", "--depth", "--activation", "--class-weights", "--refit"):
        assert option in shown


def test_options_reach_the_network(train: Cli) -> None:
    options = (
        "--activation",
        "leaky-relu",
        "--words",
        "2",
        "--characters",
        "2-3",
        "--weight-decay",
        "0",
        "--seed",
        "5",
    )
    train("reviews.csv", *NETWORK, *options, "--out", "net")
    sizes = json.loads(Path("net/config.json").read_text("utf-8"))["sizes"]
    assert (sizes["dimension"], sizes["depth"], sizes["width"], sizes["activation"]) == (5, 1, 4, "leaky-relu")
    assert (sizes["words"], sizes["low"], sizes["high"]) == (2, 2, 3)
    Path("told.toml").write_text('words = 1\nclass-weights = "balanced"\n', encoding="utf-8")
    train("reviews.csv", "--config", "told.toml", "--no-refit", "--trust", "0", "--out", "scores")
    info = json.loads(Path("scores/run.json").read_text("utf-8"))
    assert (info["recipe"]["words"], info["recipe"]["class_weights"], info["recipe"]["refit"]) == (1, "balanced", False)
    assert info["summary"]["trust"] == 0


def test_the_published_network_reads_a_file_of_vectors(train: Cli) -> None:
    generator = np.random.default_rng(0)
    lines = [f"{word} {' '.join(map(str, generator.standard_normal(3).round(3)))}\n" for word in PLAIN]
    Path("vectors.txt").write_text("".join(lines), encoding="utf-8")
    summary = train.json("reviews.csv", "--preset", "published", "--vectors", "vectors.txt", "--epochs", "2")
    assert summary["features"] == len(PLAIN)
    assert summary["parameters"] == 3 * len(PLAIN) + (3 * 100 + 100) + (100 * 100 + 100) + (100 * 2 + 2)


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        (
            "text,label\n" + "fine,pos\nfair,pos\n" * 9,
            (),
            "All 18 rows of bad.csv have the label 'pos': a classifier needs",
        ),
        ("text,label\nfine,pos\n", (), "bad.csv has one row that can be used (bad.csv row 1): a classifier needs some"),
        ("text,label\n", (), "bad.csv"),
        (
            "text,one,two\nfine,5,a\n",
            (),
            "bad.csv has no column that looks like a label: there are 'text', 'one', 'two'",
        ),
        (
            "text,label\nfine,5\n",
            ("--label-column", "no"),
            "bad.csv has no column 'no': there are 'text', 'label'; give",
        ),
        (
            "text,label\n" + "?,a\n!,b\n...,a\n--,b\n" * 9,
            ("--min-count", "99"),
            "No feature occurs in 99 training texts",
        ),
        (None, (), "bad.csv does not exist"),
    ],
)
def test_data_that_cannot_be_learned_from_are_answered_in_one_sentence(
    content: str | None, options: tuple[str, ...], sentence: str, train: Cli
) -> None:
    if content is not None:
        Path("bad.csv").write_text(content, encoding="utf-8")
    assert train("bad.csv", *options, code=1) == ""
    said = train.notes.splitlines()[-1]
    assert said.startswith(f"inkling: {sentence}")
    assert said.endswith((".", "?"))
    assert "Traceback" not in train.notes
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--activation", "gelu"), "--activation is gelu; give one of relu, sigmoid, tanh, mish, silu, leaky_relu."),
        (("--preset", "worst"), "--preset is worst; give best or published."),
        (("--word-dropout", "1"), "--word-dropout is 1.0; give a share from 0 to below 1."),
        (("--characters", "9-3"), "--characters is 9-3; give lengths of runs from 1 to 12, such as 3-5."),
        (("--words", "two"), "--words is 'two'; give a whole number; see `inkling train dan --help`."),
        (("--strength", "0"), "--strength is 0; give a number above 0, or leave it out."),
        (("--minutes", "0"), "--minutes is 0; give a number above 0, or leave it out."),
        (("--min-count", "0"), "--min-count is 0; give a number above 0, or leave it out."),
        (
            ("--preset", "published"),
            "The published network averages word vectors from a file; give --vectors FILE, or --vectors data:glove-50d "
            "after `inkling data get glove-50d`.",
        ),
        (("--out", "cache"), "cache exists already; name another with --out, or remove it with `inkling runs rm`."),
    ],
)
def test_a_request_that_makes_no_sense_is_one_sentence(options: tuple[str, ...], sentence: str, train: Cli) -> None:
    Path("cache").mkdir()
    assert train("reviews.csv", *options, code=2) == ""
    assert train.notes == f"inkling: {sentence}\n"
    assert not Path("runs").exists()


def test_a_finished_run_is_not_resumed(train: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    train("reviews.csv", "--out", "done")
    resume = Cli(capsys, "resume")
    assert resume("done", code=1) == ""
    assert resume.notes == "inkling: done is finished; there is nothing to resume, so train anew for a longer run.\n"


@pytest.mark.parametrize("when", [1, 7])
def test_ctrl_c_keeps_what_was_learned_and_resume_goes_on(
    when: int, train: Cli, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    train("reviews.csv", *NETWORK, "--out", "whole")
    calls = itertools.count(1)

    def interrupted(*given: Any) -> torch.Tensor:
        if next(calls) == when:
            raise KeyboardInterrupt
        return read_average(*given)

    with monkeypatch.context() as patch:
        patch.setattr("inkling.models.dan_loss.read_average", interrupted)
        train("reviews.csv", *NETWORK, "--out", "cut", code=130)
    assert "Stopped; what was learned is kept. Go on with: inkling resume cut" in train.notes
    assert json.loads(Path("cut/run.json").read_text("utf-8"))["state"] == "interrupted"
    assert main(["resume", "cut", "--json"]) == 0
    assert Path("cut/model.safetensors").read_bytes() == Path("whole/model.safetensors").read_bytes()


@pytest.mark.slow
def test_on_a_terminal_it_ends_with_its_figures(folder: Path) -> None:
    shown = on_a_terminal(folder, "train", "dan", "reviews.csv", "--out", "shown")
    assert "held out accuracy" in shown
    assert "Traceback" not in shown
    assert (folder / "shown" / "manifest.json").exists()


def test_the_classes_of_held_out_rows_are_shown_and_their_mistakes_on_a_page(train: Cli) -> None:
    write_csv(Path("many.csv"), reviews(2, 400))
    shown = train("many.csv", "--errors", "mistakes.html")
    assert "Classes of the held-out rows" in shown
    page = Path("mistakes.html").read_text("utf-8")
    assert "its held-out rows" in page
    held = json.loads(Path("runs/dan-many/run.json").read_text("utf-8"))["summary"]
    wrong = round((1 - held["held_out_accuracy"]) * held["held_out_texts"])
    assert (f"wrong on {wrong} of the {held['held_out_texts']} texts" in page) == (wrong > 0)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (("--word-dropout", "0.3"), "--word-dropout is for networks"),
        (("--activation", "tanh"), "--activation is for networks"),
        (("--minutes", "1"), "--minutes is for networks"),
        (("--fixed-vectors",), "--fixed-vectors is for networks"),
        (("--depth", "1", "--trust", "1"), "--trust is for scores"),
        (("--dimension", "5", "--no-refit"), "--no-refit is for scores"),
        (("--depth", "1", "--fixed-vectors"), "--fixed-vectors needs vectors"),
    ],
)
def test_an_option_without_use_is_refused(train: Cli, options: tuple[str, ...], wanted: str) -> None:
    train("reviews.csv", *options, code=2)
    assert wanted in train.notes


def test_a_header_with_unknown_names_is_not_made_a_class(train: Cli) -> None:
    kinds = [("good film", "support"), ("bad plot", "sales")] * 10
    rows = "".join(f"{text} number{i},{label}\n" for i, (text, label) in enumerate(kinds))
    Path("plain.csv").write_text("Feedback,Department\n" + rows, encoding="utf-8")
    train("plain.csv", code=1)
    assert "looks like a header" in train.notes
    assert "'Department'" in train.notes
    assert train.json("plain.csv", "--header")["classes"] == 2
    assert train.json("plain.csv", "--no-header")["classes"] == 3
