"""Evaluation: the figures of one model on one text, whatever the batches, with every byte of the original charged."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from inkling.measure.evaluation import BLOCK_BYTES, Evaluation, evaluate, evaluation_table
from inkling.measure.intervals import Interval
from inkling.measure.tally import Tally
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.spelling import Speller
from inkling.text.grammar import grammar_text
from inkling.text.normalise import Chain
from inkling.text.tokenise import train_tokeniser

TRAIN = grammar_text(np.random.default_rng(1), 5000).splitlines(keepends=True)
TEST = grammar_text(np.random.default_rng(2), 4000).splitlines(keepends=True)


def fitted(chain: str = "none", words: int = 200) -> NGram:
    cleaner = Chain.parse(chain)
    lines = [cleaner(line) for line in TRAIN]
    tokeniser = train_tokeniser("word", [lines], words)
    speller = Speller.fit(tokeniser.encode(lines).spellings, tokeniser)
    return NGram.fit([tokeniser.encode(lines)], tokeniser, NGramConfig(2), cleaner, speller)


MODEL = fitted()


def judged(documents: list[list[str]], model: NGram = MODEL, chain: Chain | None = None) -> Evaluation:
    return evaluate(model, documents, model_name="model", text_name="text", chain=chain)


def test_the_interval_contains_the_value_and_the_value_is_that_of_the_sums() -> None:
    found = judged([TEST])
    scores = MODEL.score(TEST)
    nats = float(scores.nats.sum() + scores.spelling_nats.sum())
    size = sum(len(line.encode()) for line in TEST)
    assert found.bits_per_byte.value == pytest.approx(nats / math.log(2) / size, rel=1e-12)
    assert found.bits_per_byte.value == pytest.approx(found.tally.bits("byte"), rel=1e-12)
    assert found.bits_per_byte.low < found.bits_per_byte.value < found.bits_per_byte.high
    assert found.bits_per_byte.high - found.bits_per_byte.low < 0.2 * found.bits_per_byte.value
    assert (found.tally.bytes, found.tally.tokens) == (size, len(scores.ids))
    assert not found.lossy


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_batches_change_no_sum(size: int) -> None:
    whole = judged([TEST])
    parts = judged([TEST[i : i + size] for i in range(0, len(TEST), size)])
    assert parts.tally.nats == pytest.approx(whole.tally.nats, rel=1e-12)
    for name in ("tokens", "unknown", "words", "chars", "bytes"):
        assert getattr(parts.tally, name) == getattr(whole.tally, name)
    assert parts.bits_per_byte.value == pytest.approx(whole.bits_per_byte.value, rel=1e-12)


def test_bytes_are_those_of_the_original_where_a_normalisation_removes_some() -> None:
    text = ["The baker — the COOK — bakes 12 loaves.\n"] * 200
    found = judged([text], chain=Chain.parse("lower,letters"))
    size = sum(len(line.encode()) for line in text)
    assert found.tally.bytes == size
    assert found.tally.chars == sum(map(len, text))
    assert found.bits_per_byte.value == pytest.approx(found.tally.bits("byte"), rel=1e-12)
    assert found.lossy
    assert found.normalisation == "lower,letters"


def test_a_text_of_which_nothing_is_left_still_has_its_bytes() -> None:
    found = judged([["—————"] * 3, TEST[:50]], chain=Chain.parse("letters"))
    assert found.tally.bytes == 45 + sum(len(line.encode()) for line in TEST[:50])
    assert found.bits_per_byte.value == pytest.approx(found.tally.bits("byte"), rel=1e-12)


def test_the_normalisation_of_the_model_is_named_and_makes_the_figures_lossy() -> None:
    found = judged([TEST[:50]], fitted("lower"))
    assert (found.normalisation, found.lossy) == ("lower", True)


def test_one_enormous_word_makes_no_nonsense_of_the_interval() -> None:
    found = judged([["x" * (10 * BLOCK_BYTES) + "\n"]])
    assert math.isfinite(found.bits_per_byte.low)
    assert found.bits_per_byte.low <= found.bits_per_byte.value <= found.bits_per_byte.high


def test_a_short_text_has_figures_but_no_interval_and_an_empty_one_neither() -> None:
    short = judged([["The baker bakes.\n"]])
    assert short.bits_per_byte.value > 0
    assert math.isnan(short.bits_per_byte.low)
    for nothing in (judged([]), judged([[]]), judged([[""]])):
        assert math.isnan(nothing.bits_per_byte.value)
        assert nothing.tally == Tally()


def test_the_same_seed_gives_the_same_interval() -> None:
    assert judged([TEST]) == judged([TEST])


def test_a_model_that_knows_fewer_words_is_not_better_per_byte() -> None:
    few, many = judged([TEST], fitted(words=20)), judged([TEST], fitted(words=400))
    assert few.tally.perplexity() < many.tally.perplexity()
    assert few.bits_per_byte.low > many.bits_per_byte.high


def test_json_holds_each_figure_once_under_its_unit() -> None:
    found = judged([TEST]).to_json()
    assert set(found) == {
        "model",
        "text",
        "normalisation",
        "lossy",
        "bits_per_byte",
        "low",
        "high",
        "level",
        "perplexity_per_token",
        "perplexity_per_word",
        "perplexity_per_character",
        "bits_per_token",
        "bits_per_word",
        "bits_per_character",
        "unknown_share",
        "nats",
        "spelling_nats",
        "tokens",
        "unknown",
        "words",
        "chars",
        "bytes",
    }
    assert json.loads(json.dumps(found)) == found
    assert found["perplexity_per_word"] == pytest.approx(2 ** found["bits_per_word"])


def test_the_table_is_sorted_best_first_within_each_text_and_says_what_compares() -> None:
    def row(model: str, text: str, bits: float, lossy: bool = False) -> Evaluation:
        tally = Tally(nats=1.0, tokens=1, words=1, chars=1, bytes=1)
        return Evaluation(model, text, "none", tally, Interval(bits, bits, bits), lossy)

    table = evaluation_table([row("b", "two", 2.0), row("a", "one", 3.0), row("c", "two", 1.0, lossy=True)])
    assert [(cells[0], cells[1]) for cells in table.rows] == [("one", "a"), ("two", "c"), ("two", "b")]
    assert table.rows[1][2] == "none (lossy)"
    assert any("Bits per byte" in note for note in table.notes)
    assert any(note.startswith("lossy") for note in table.notes)
    assert all(len(cells) == len(table.columns) for cells in table.rows)
