"""The count model from a file of text: one pass, a complete run, every kind of token."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inkling
from inkling.configuration import from_record
from inkling.errors import InklingError, UsageError
from inkling.measure.tally import tally
from inkling.models.ngram import NGram
from inkling.recipes.data import LanguageText
from inkling.recipes.ngram import NGramRecipe, fit_ngram, train_ngram
from inkling.runs.run import Run
from inkling.text.grammar import grammar_text

LINES = grammar_text(np.random.default_rng(5), 3000).splitlines(keepends=True)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("".join(LINES))
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"order": 3, "vocabulary": 50},
        {"order": 4, "tokens": "character"},
        {"order": 3, "tokens": "byte"},
        {"order": 2, "tokens": "bpe", "vocabulary": 300},
        {"order": 1, "discounts": "single"},
    ],
    ids=str,
)
def test_a_run_loads_alone_and_its_figures_are_those_of_the_held_out_lines(
    text: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    recipe = NGramRecipe(files=(str(text),), **options)
    run = train_ngram(recipe, tmp_path / "run")
    text.unlink()
    assert run.finished
    assert from_record(NGramRecipe, Run.open(run.path).info["recipe"], "run.json") == recipe
    model = inkling.load(run.path)
    assert isinstance(model, NGram)
    assert model.config.order == recipe.order
    found = tally(model.score(["".join(LINES[round(len(LINES) * 0.9) :])]))
    summary = run.info["summary"]
    assert summary["held_out_tokens"] == found.tokens
    assert summary["held_out_nats_per_token"] == pytest.approx(found.nats / found.tokens, rel=1e-12)
    assert summary["held_out_perplexity"] == pytest.approx(math.exp(found.nats / found.tokens), rel=1e-12)
    assert summary["held_out_bits_per_byte"] == pytest.approx(found.bits("byte"), rel=1e-12)
    assert summary["vocabulary"] == model.tokeniser.size
    assert str(summary["held_out_tokens"])[-3:] in (run.path / "README.md").read_text()


def test_contexts_cross_the_line_ends_of_running_text_but_not_the_rows_of_a_table(tmp_path: Path) -> None:
    # After "a", a line end, what comes next is b in one file; in a table each row stands alone.
    running, table = tmp_path / "t.txt", tmp_path / "t.csv"
    running.write_text("a\nb\n" * 100)
    table.write_text("text\n" + "a\nb\n" * 100)
    first = fit_ngram(NGramRecipe(files=(str(running),), order=3), LanguageText(NGramRecipe(files=(str(running),))))
    after = first.score(["a\nb\n"])[0]
    assert after.nats[2] < 0.1  # b after (a, line end) is nearly certain
    rows = fit_ngram(NGramRecipe(files=(str(table),), order=3), LanguageText(NGramRecipe(files=(str(table),))))
    # Every tenth row, always a b, is held out: 80 of 180 rows are left.
    assert math.exp(-rows.score(["b"]).nats[0]) == pytest.approx(80 / 180, abs=0.01)


def test_a_model_that_knows_every_byte_needs_no_speller(text: Path, tmp_path: Path) -> None:
    run = train_ngram(NGramRecipe(files=(str(text),), tokens="byte"), tmp_path / "run")
    assert not (run.path / "speller.safetensors").exists()
    assert len(inkling.load(run.path).score(["\x00🦑"]).ids) == 5


def test_a_run_stopped_before_its_end_loads_all_the_same(text: Path, tmp_path: Path) -> None:
    run = train_ngram(NGramRecipe(files=(str(text),), vocabulary=50), tmp_path / "run")
    expected = inkling.load(run.path).score(LINES[:5])
    for name in ("manifest.json", "model.safetensors", "README.md"):
        (run.path / name).unlink()
    assert np.array_equal(inkling.load(run.path).score(LINES[:5]).nats, expected.nats)


def test_a_damaged_run_is_not_loaded(text: Path, tmp_path: Path) -> None:
    run = train_ngram(NGramRecipe(files=(str(text),), vocabulary=50), tmp_path / "run")
    weights = run.path / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(bytes(content))
    with pytest.raises(InklingError, match=r"damaged: model\.safetensors"):
        inkling.load(run.path)


def test_a_model_of_an_unknown_kind_is_refused(text: Path, tmp_path: Path) -> None:
    run = train_ngram(NGramRecipe(files=(str(text),), vocabulary=50), tmp_path / "run")
    (run.path / "manifest.json").unlink()
    run.update(kind="oracle")
    with pytest.raises(InklingError, match="'oracle'"):
        inkling.load(run.path)


def test_what_cannot_be_counted_is_refused(text: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(UsageError, match="exists already"):
        train_ngram(NGramRecipe(files=(str(text),)), tmp_path / "run")
    for wrong, option in (({"order": 0}, "--order"), ({"tokens": "verse"}, "--tokens"), ({"vocabulary": 1}, "--voc")):
        with pytest.raises(UsageError, match=option):
            NGramRecipe(files=(str(text),), **wrong)
    text.write_text("\n \n\n")
    with pytest.raises(InklingError, match="nothing but white space"):
        train_ngram(NGramRecipe(files=(str(text),)), tmp_path / "other")
    assert not (tmp_path / "other").exists()
