"""`inkling sample` as a user types it: streamed or together, ended by stop strings, coloured only on a terminal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driver import Cli, on_a_terminal

from inkling.cli.app import main
from inkling.cli.sample import LONG, SHORT
from inkling.report.surprise import shaded_token
from inkling.text.grammar import grammar_text


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two count models of a small language: one of words, one of characters."""
    folder = tmp_path_factory.mktemp("lab")
    text = folder / "novel.txt"
    text.write_text(grammar_text(np.random.default_rng(11), 3000), encoding="utf-8")
    assert main(["train", "ngram", str(text), "--vocabulary", "200", "--out", str(folder / "words")]) == 0
    characters = ["--tokens", "character", "--order", "5"]
    assert main(["train", "ngram", str(text), *characters, "--out", str(folder / "letters")]) == 0
    return folder


@pytest.fixture
def cli(lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(lab)
    return Cli(capsys, "sample")


def test_without_a_number_words_are_few_and_characters_many(cli: Cli) -> None:
    assert cli.json("words")[0]["tokens"] == SHORT
    assert cli.json("letters")[0]["tokens"] == LONG
    assert cli.json("letters", "--tokens", "7")[0]["tokens"] == 7


def test_samples_drawn_together_are_those_drawn_alone(cli: Cli) -> None:
    several = cli.json("letters", "--count", "3", "--tokens", "40")
    out = cli("letters", "--count", "3", "--tokens", "40")
    assert out == "\n".join(f"--- {i} of 3 ---\n{one['text']}\n" for i, one in enumerate(several, 1))
    assert cli("letters", "--tokens", "40") == several[0]["text"] + "\n"
    assert len({one["text"] for one in several}) == 3
    assert cli.notes == ""


def test_a_sample_ends_before_a_stop_string(cli: Cli) -> None:
    whole = cli.json("letters", "--seed", "3")[0]["text"]
    [found] = cli.json("letters", "--seed", "3", "--stop", "\\n", "--stop", "Zebra")
    assert found["text"] == whole.partition("\n")[0]
    assert found["stopped_by"] == "\n"
    assert found["tokens"] == len(found["text"])
    assert cli("letters", "--seed", "3", "--stop", "\\n") == found["text"] + "\n"
    words = cli.json("words", "--stop", ".", "--prompt", "The baker")[0]
    assert words["text"].startswith("The baker")
    assert "." not in words["text"]


def test_the_cuts_reach_the_sampler(cli: Cli) -> None:
    greedy = cli("letters", "--temperature", "0", "--tokens", "30")
    assert cli("letters", "--min-p", "1", "--tokens", "30", "--seed", "9") == greedy
    assert cli("letters", "--top-k", "1", "--tokens", "30", "--seed", "9") == greedy
    assert cli("letters", "--top-p", "0.0001", "--tokens", "30", "--seed", "9") == greedy
    assert cli("letters", "--temperature", "0", "--tokens", "30", "--repetition-penalty", "1000000") != greedy


def test_characters_that_the_model_does_not_know_are_continued(cli: Cli) -> None:
    assert cli("letters", "--prompt", "東京 é", "--tokens", "5").startswith("東京 é")
    assert cli("words", "--prompt", "Xqzzv", "--tokens", "5").startswith("Xqzzv")


def test_json_gives_each_token_with_its_bits_and_rank_when_asked(cli: Cli) -> None:
    [found] = cli.json("letters", "--tokens", "20", "--show-probabilities", "--prompt", "The")
    assert "The" + "".join(token["text"] for token in found["drawn"]) == found["text"]
    assert sum(token["bits"] for token in found["drawn"]) * np.log(2) == pytest.approx(found["nats"])
    assert min(token["rank"] for token in found["drawn"]) == 1
    assert "drawn" not in cli.json("letters", "--tokens", "2")[0]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--min-p", "2"), "min-p 2: give 0 ≤ min-p ≤ 1"),
        (("--repetition-penalty", "0.5"), "repetition penalty 0.5: give at least 1"),
        (("--stop", ""), "an empty stop string"),
    ],
)
def test_settings_that_make_no_sense_are_one_sentence(cli: Cli, arguments: tuple[str, ...], sentence: str) -> None:
    assert cli("letters", *arguments, code=2) == ""
    assert sentence in cli.notes
    assert cli.notes.count("\n") == 1


def test_without_a_terminal_probabilities_are_not_coloured(cli: Cli) -> None:
    plain = cli("letters", "--tokens", "50")
    assert cli("letters", "--tokens", "50", "--show-probabilities") == plain
    assert cli.notes == ""


@pytest.mark.slow
def test_on_a_terminal_each_token_is_coloured_by_its_surprise(cli: Cli, lab: Path) -> None:
    arguments = ("letters", "--tokens", "60", "--seed", "2", "--show-probabilities")
    drawn = cli.json(*arguments)[0]["drawn"]
    shown = on_a_terminal(lab, "sample", *arguments)
    legend, _, text = shown.partition("\n")
    assert "Surprise in bits:" in legend
    assert text == "".join(shaded_token(token["text"], token["bits"]) for token in drawn) + "\n"
    assert "\x1b[" in text
