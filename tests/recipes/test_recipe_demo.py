"""The demo, on less text than people get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from inkling.cli.app import main
from inkling.errors import InklingError
from inkling.recipes import demo
from inkling.text.grammar import grammar_bigram_nats, grammar_entropy


@pytest.fixture(autouse=True)
def little_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "GENERATED_WORDS", 20_000)
    monkeypatch.setattr(demo, "BIGRAM_MINUTES", 0.05)
    monkeypatch.setattr(demo, "GRU_MINUTES", 0.05)


def test_the_demo_measures_three_models_and_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["real"] is False
    models = {row["model"]: row for row in found["rows"]}
    assert {"word-bigram", "word-counts", "character-gru", "character 6-gram", "uniform bytes"} <= set(models)
    truth = grammar_entropy()
    best_bigram = grammar_bigram_nats() * truth.bits_per_byte / truth.nats_per_token
    for name in ("word-bigram", "word-counts", "character 6-gram"):  # on 2,000 words: a tenth of slack for luck
        assert truth.bits_per_byte * 0.9 < models[name]["bits_per_byte"] < 2.0
    assert truth.bits_per_byte < models["character-gru"]["bits_per_byte"] < 4.5  # three seconds of learning
    assert models["uniform bytes"]["bits_per_byte"] == pytest.approx(8, abs=1e-12)
    assert models["word-bigram"]["bits_per_byte"] > best_bigram * 0.9
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "the truth (entropy of the grammar)" in page
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_without_an_index_the_demo_says_so_in_one_line_and_generates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*arguments: Any, **options: Any) -> Path:
        raise InklingError("The package index cannot be reached; check your network.")

    monkeypatch.setattr(demo, "get_data", unreachable)
    assert main(["demo", "--real", "--out", str(tmp_path / "demo"), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["real"] is False
    assert captured.err.count("Real text is out of reach") == 1


def test_a_folder_that_exists_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
