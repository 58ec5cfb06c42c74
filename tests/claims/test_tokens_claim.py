"""B2: characters against words, measured part by part."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from inkling.claims import tokens
from inkling.claims.ledger import Context, LedgerRow, run, select
from inkling.claims.rows import CLAIMS
from inkling.claims.tokens import Budget, Part, Sample
from inkling.figures import Table
from inkling.recipes.gru import GRURecipe, prepare
from inkling.text.grammar import grammar_text

TINY = Budget(hidden=16, bytes_read=30_000, held_out_bytes=16_500)


@pytest.fixture(scope="module")
def row() -> LedgerRow:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "WITHOUT_DATA", TINY)
        (found,) = run(select(CLAIMS, ["B2"]), Context())
    return found


@pytest.mark.slow
def test_it_runs_without_data_on_generated_text(row: LedgerRow) -> None:
    assert row.verdict in ("holds", "holds if", "corrected")
    assert all(math.isfinite(value) for value in row.figures.values())
    trials, parts = row.exhibits
    assert isinstance(trials, Table)
    assert isinstance(parts, Table)
    assert [cells[:2] for cells in trials.rows] == [
        (sample, kind) for sample in ("generated English", "agglutinative") for kind in tokens.KINDS
    ]
    assert len(parts.rows) == 8


@pytest.mark.slow
def test_what_needs_no_training_comes_out_as_it_must(row: LedgerRow) -> None:
    figures = row.figures
    english, rich = "generated_english", "agglutinative"
    assert figures[f"{english}_byte_vocabulary"] == figures[f"{rich}_byte_vocabulary"] == 256
    assert figures[f"{english}_character_tokens_per_byte"] == 1  # ASCII
    assert figures[f"{rich}_byte_tokens_per_byte"] == 1
    assert figures[f"{rich}_character_tokens_per_byte"] < 1  # ö and ü are two bytes
    assert figures[f"{rich}_word_clean_unknown_share"] > 0.1
    assert figures[f"{rich}_bpe_clean_unknown_share"] == 0
    assert figures[f"{english}_word_typos_unknown_share"] > figures[f"{english}_word_clean_unknown_share"] + 0.05
    for kind in tokens.KINDS:
        assert figures[f"{english}_{kind}_typos_bits_per_byte"] > figures[f"{english}_{kind}_clean_bits_per_byte"]
        assert 0 < figures[f"{english}_{kind}_related_closer_share"] <= 1
    held = {str(cells[0]): cells[1] for cells in row.exhibits[1].rows} if isinstance(row.exhibits[1], Table) else {}
    assert held["smaller vocabulary"] == held["longer sequences"] == held["no unknown words"] == "held"


@pytest.mark.slow
def test_parameters_are_those_of_the_formula(row: LedgerRow) -> None:
    # Embedding V·D, input D·3H, state H·3H, biases 3H and H, output H·V and V.
    size, dimension, hidden = 256, 16, TINY.hidden
    cell = dimension * 3 * hidden + hidden * 3 * hidden + 3 * hidden + hidden
    assert row.figures["agglutinative_byte_parameters"] == size * dimension + cell + hidden * size + size


def test_the_verdict_follows_from_the_parts() -> None:
    def concluded(*answers: bool | None) -> str:
        return tokens.conclude([Part("", answer, "") for answer in answers])

    assert concluded(True, True) == "holds"
    assert concluded(True, None) == "holds if"
    assert concluded(True, None, False) == "corrected"
    assert concluded(False, False) == concluded(None, False) == "fails"


def test_a_part_holds_only_if_all_texts_and_models_say_so() -> None:
    assert tokens._all_of([True, True]) is True
    assert tokens._all_of([False, False]) is False
    assert tokens._all_of([True, False]) is None
    assert tokens._all_of([True, None]) is None
    assert tokens._all_of([]) is None
    assert tokens._of_rates("slower", {"a": 0.5, "b": 0.8}).holds is True
    assert tokens._of_rates("slower", {"a": 2.0}).holds is False
    assert tokens._of_rates("slower", {"a": 0.95}).holds is None


def test_closeness_is_a_half_by_chance_and_one_where_each_is_nearest_to_its_own() -> None:
    generator = np.random.default_rng(0)
    first = generator.normal(size=(200, 20))
    assert tokens.closeness(first, first + 0.01 * generator.normal(size=first.shape)).value == 1.0
    chance = tokens.closeness(first, generator.normal(size=first.shape))
    assert chance.low < 0.5 < chance.high
    same = tokens.closeness(first, np.ones_like(first))
    assert same.value == pytest.approx(0.5)  # all alike: every comparison is a tie
    assert math.isnan(tokens.closeness(first[:1], first[:1]).value)


def test_related_words_are_those_found_with_and_without_an_s() -> None:
    text = " king kings king's kings the thes" * 4 + " king kings kings-man" * 4 + " Lords lord"
    assert tokens.inflected_pairs(text) == [("king", "kings"), ("the", "thes")]


def test_held_out_text_is_the_last_tenth_of_the_lines() -> None:
    text = "".join(f"line {i}\n" for i in range(100))
    sample = tokens.running_text("numbers", text, Budget(hidden=8, bytes_read=100, held_out_bytes=24))
    assert sample.train.endswith("line 89\n")
    assert sample.held_out == "line 90\nline 91\nline 92\n"
    assert sample.texts[tokens.CLEAN] == sample.held_out
    assert sample.texts[tokens.NOISY] != sample.held_out


def test_with_a_folder_of_data_the_texts_are_those_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "tinyshakespeare").mkdir()
    text = grammar_text(np.random.default_rng(3), 400)
    (tmp_path / "tinyshakespeare" / "input.txt").write_text(text, encoding="utf-8")
    found = tokens.samples(Context(data=tmp_path), TINY)
    assert [sample.name for sample in found] == ["Shakespeare", "agglutinative"]
    assert isinstance(found[0], Sample)
    assert text.startswith(found[0].train)


def test_a_model_starts_from_the_frequencies_of_its_tokens(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("aab\n" * 100, encoding="utf-8")
    prepared = prepare(GRURecipe(files=(str(file),), hidden=8, steps=1, dropout=0.0))
    bias = prepared.objective.parameters["bias"].numpy()
    chances = dict(zip("?\nab", np.exp(bias)[[0, *(prepared.material.tokeniser.encode(["\nab"]).ids)]], strict=True))
    assert chances["a"] == pytest.approx(0.5, abs=0.01)
    assert chances["b"] == pytest.approx(0.25, abs=0.01)
    assert chances["?"] < 0.001
