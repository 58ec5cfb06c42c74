"""`inkling surprise` as a user types it: a table, a page, JSON, colours on a terminal, two runs side by side."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from driver import Cli

import inkling
from inkling.cli.app import main
from inkling.text.grammar import grammar_text

TEXT = "The baker saw the café.\nA Xqzzv <b>slept</b> near the door.\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab")
    novel = folder / "novel.txt"
    novel.write_text(grammar_text(np.random.default_rng(11), 3000), encoding="utf-8")
    train = ["train", "ngram", str(novel)]
    assert main([*train, "--vocabulary", "200", "--out", str(folder / "words")]) == 0
    assert main([*train, "--tokens", "character", "--order", "5", "--out", str(folder / "letters")]) == 0
    assert main([*train, "--vocabulary", "200", "--normalise", "lower", "--out", str(folder / "lower")]) == 0
    (folder / "text.txt").write_text(TEXT, encoding="utf-8")
    (folder / "rows.csv").write_text('id,review\n1,"The baker saw"\n2,"the door"\n', encoding="utf-8")
    (folder / "empty.txt").write_text("", encoding="utf-8")
    return folder


@pytest.fixture
def cli(lab: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(lab)
    return Cli(capsys, "surprise")


def test_elsewhere_than_on_a_terminal_the_most_surprising_places_are_listed(cli: Cli) -> None:
    out = cli("words", "text.txt")
    lines = out.splitlines()
    assert lines[0] == "The most surprising places"
    assert "«" in lines[3]
    assert "yes" in lines[3]  # nothing costs more than a word that has to be spelled
    assert "words on text.txt:" in out
    assert "\x1b" not in out
    assert cli.notes == ""


def test_json_has_every_token_with_its_bytes(cli: Cli) -> None:
    found = cli.json("words", "text.txt")
    raw = TEXT.encode()
    assert [token["text"] for token in found["tokens"]] == [
        raw[token["start"] : token["end"]].decode() for token in found["tokens"]
    ]
    assert "".join(token["text"] for token in found["tokens"]) == TEXT
    assert {token["text"] for token in found["tokens"] if token["unknown"]} >= {" Xqzzv", " café"}
    scores = inkling.load("words").score([TEXT])
    whole = float((scores.nats + scores.spelling_nats).sum()) / np.log(2)
    assert sum(token["bits"] for token in found["tokens"]) == pytest.approx(whole, abs=1e-4)
    assert found["total_bits"] == pytest.approx(whole)
    assert found["bits_per_byte"] == pytest.approx(whole / len(raw))


def test_a_page_is_written_beside_a_summary(cli: Cli, tmp_path: Path) -> None:
    out = cli("words", "text.txt", "--html", str(tmp_path / "page.html"))
    assert out.startswith("words on text.txt: ")
    assert out.count("\n") == 1
    assert cli.notes == f"Wrote {tmp_path / 'page.html'}.\n"
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;" in re.sub(r"</?(span|b)[^>]*>", "", page)
    assert "What surprises words in text.txt" in page


def test_normalised_text_is_what_the_model_saw(cli: Cli) -> None:
    found = cli.json("lower", "text.txt", "--normalise", "ascii")
    assert found["normalisation"] == "ascii,lower"
    assert "".join(token["text"] for token in found["tokens"]) == TEXT.replace("é", "e").lower()
    assert (found["bytes"], found["original_bytes"]) == (len(TEXT), len(TEXT) + 1)


def test_two_runs_of_different_tokens_are_compared_word_by_word(cli: Cli) -> None:
    found = cli.json("words", "text.txt", "--against", "letters")
    first, second = cli.json("words", "text.txt"), cli.json("letters", "text.txt")
    assert found["unit"] == "word"
    assert [unit["text"].strip() for unit in found["units"]][:5] == ["The", "baker", "saw", "the", "café."]
    for rows in (found["units"], found["lines"]):
        assert sum(unit["first_bits"] for unit in rows) == pytest.approx(first["total_bits"], abs=1e-3)
        assert sum(unit["second_bits"] for unit in rows) == pytest.approx(second["total_bits"], abs=1e-3)
    assert len(found["lines"]) == 2
    assert found["saved_bits"] == pytest.approx(second["total_bits"] - first["total_bits"])
    out = cli("words", "text.txt", "--against", "letters")
    assert "Words where words knows more than letters" in out
    assert "Words where letters knows more than words" in out
    assert "bits saved in all" in out.splitlines()[-1]


def test_runs_that_normalise_differently_are_compared_line_by_line(cli: Cli, tmp_path: Path) -> None:
    found = cli.json("words", "text.txt", "--against", "lower", "--html", str(tmp_path / "page.html"))
    assert found["unit"] == "line"
    assert [unit["text"] for unit in found["units"]] == TEXT.splitlines(keepends=True)
    assert "lines are compared" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_rows_of_a_table_are_texts_of_their_own(cli: Cli) -> None:
    found = cli.json("letters", "rows.csv", "--text-column", "review")
    assert found["document_ends"] == [len("The baker saw"), len("The baker sawthe door")]


@pytest.mark.slow
def test_text_from_a_pipe_is_read(lab: Path) -> None:
    command = [sys.executable, "-m", "inkling", "surprise", "letters", "-", "--json"]
    ended = subprocess.run(command, input=TEXT, cwd=lab, capture_output=True, text=True, check=True, encoding="utf-8")
    found = json.loads(ended.stdout)
    assert found["text"] == "standard input"
    assert found["original_bytes"] == len(TEXT.encode())


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("words", "empty.txt"), 1, "empty.txt is empty"),
        (("words", "missing.txt"), 1, "missing.txt"),
        (("nowhere", "text.txt"), 1, "nowhere is not a run"),
        (("words", "text.txt", "--against", "nowhere"), 1, "nowhere is not a run"),
        (("words", "text.txt", "--normalise", "lowr"), 2, "lowr"),
        (("words", "text.txt", "--html", "no/such/page.html"), 1, "cannot be written to no/such/page.html"),
    ],
)
def test_a_mistake_is_one_sentence(cli: Cli, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    cli(*arguments, code=code)
    assert sentence in cli.notes
    assert cli.notes.count("\n") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_fake_terminal(monkeypatch: pytest.MonkeyPatch, no_color: str, *arguments: str) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    out = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        assert main(["surprise", *arguments]) == 0
    return out.getvalue()


def test_on_a_terminal_the_text_itself_is_coloured(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_fake_terminal(monkeypatch, "", "words", "text.txt")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("↵", "")
    assert plain.startswith(TEXT)
    assert "\x1b[1;38;5;203m Xqzzv\x1b[0m" in shown
    assert "words on text.txt:" in plain
    assert "Surprise in bits:" in cli.capsys.readouterr().err


def test_on_a_terminal_two_runs_are_coloured_and_listed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_fake_terminal(monkeypatch, "", "words", "text.txt", "--against", "letters")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("↵", "")
    assert plain.startswith(TEXT)
    assert "Words where letters knows more than words" in plain
    assert cli.capsys.readouterr().err.count("saves, in bits:") == 2


def test_a_terminal_that_wants_no_colours_gets_the_table(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_fake_terminal(monkeypatch, "1", "words", "text.txt")
    assert shown.startswith("The most surprising places")
    assert "\x1b" not in shown
