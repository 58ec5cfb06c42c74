"""Evaluation: the figures of one model on one text, whatever the batches, with every byte of the original charged."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.measure.evaluation import BLOCK_BYTES, Evaluation, evaluate
from inkling.measure.tally import Tally
from inkling.models.baselines import Uniform
from inkling.models.bigram import Bigram, BigramConfig, random_parameters
from inkling.models.contracts import LanguageModel
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.spelling import Speller
from inkling.text.grammar import grammar_text
from inkling.text.normalise import Chain
from inkling.text.tokenise import ByteTokeniser, train_tokeniser

TRAIN = grammar_text(np.random.default_rng(1), 5000).splitlines(keepends=True)
TEST = grammar_text(np.random.default_rng(2), 4000).splitlines(keepends=True)


def fitted(chain: str = "none", words: int = 200) -> NGram:
    cleaner = Chain.parse(chain)
    lines = [cleaner(line) for line in TRAIN]
    tokeniser = train_tokeniser("word", [lines], words)
    speller = Speller.fit(tokeniser.encode(lines).spellings, tokeniser)
    return NGram.fit([tokeniser.encode(lines)], tokeniser, NGramConfig(2), cleaner, speller)


MODEL = fitted()


def judged(documents: list[list[str]], model: LanguageModel[Any] = MODEL, chain: Chain | None = None) -> Evaluation:
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
        "blocks",
        "kind",
        "context",
        "perplexity_per_token_charged",
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
    assert (found["kind"], found["context"]) == ("run", "1 token")
    assert found["perplexity_per_token"] < found["perplexity_per_token_charged"]  # there are unknown words
    assert found["perplexity_per_word"] == pytest.approx(2 ** found["bits_per_word"])


# ------------------------------------------------------------------------ nothing depends on batches, order or padding

BLOCK_TEXT = ["".join(TEST[i : i + 120]) for i in range(0, len(TEST), 120)] + TEST[:7]
WORDS = train_tokeniser("word", [TRAIN], 200)
MODELS: dict[str, LanguageModel[Any]] = {
    "ngram": MODEL,
    "bigram": Bigram(
        BigramConfig(4, 5),
        random_parameters(BigramConfig(4, 5), WORDS.size, np.random.default_rng(0)),
        WORDS,
        speller=Speller.fit(WORDS.encode(TRAIN).spellings, WORDS),
    ),
    "uniform": Uniform(ByteTokeniser()),
    "lower": fitted("lower"),
}


@settings(deadline=None, max_examples=15)
@given(st.sampled_from(sorted(MODELS)), st.integers(1, 20), st.randoms(use_true_random=False))
def test_neither_batches_nor_the_order_of_documents_nor_empty_ones_change_a_figure(
    name: str, size: int, chance: random.Random
) -> None:
    model = MODELS[name]
    whole = evaluate(model, [BLOCK_TEXT], model_name="m", text_name="t")
    mixed = [*BLOCK_TEXT, *[""] * size]
    chance.shuffle(mixed)
    parts = evaluate(model, [mixed[i : i + size] for i in range(0, len(mixed), size)], model_name="m", text_name="t")
    expected, found = whole.to_json(), parts.to_json()
    for key, value in expected.items():
        assert found[key] == (pytest.approx(value, rel=1e-9) if isinstance(value, float) else value), key
    assert parts.blocks.nats == pytest.approx(whole.blocks.nats, rel=1e-9)


# --------------------------------------------------------------------------------------------------------------- blocks


def test_blocks_are_equal_parts_of_each_document_and_cost_what_the_text_costs() -> None:
    found = judged([BLOCK_TEXT])
    sizes = [len(text.encode()) for text in BLOCK_TEXT]
    assert len(found.blocks.bytes) == sum(max(1, round(size / BLOCK_BYTES)) for size in sizes)
    assert found.blocks.bytes.sum() == pytest.approx(sum(sizes), rel=1e-12)
    assert found.blocks.nats.sum() == pytest.approx(found.tally.total_nats, rel=1e-12)


def test_every_model_and_every_normalisation_is_charged_on_the_same_blocks() -> None:
    plain = judged([BLOCK_TEXT])
    for chain in ("lower", "letters,spaces", "digits"):
        other = judged([BLOCK_TEXT], chain=Chain.parse(chain))
        np.testing.assert_array_equal(other.blocks.bytes, plain.blocks.bytes)
        assert other.blocks.nats.sum() == pytest.approx(other.tally.total_nats, rel=1e-12)


def test_what_a_normalisation_shortens_stays_in_its_block() -> None:
    # Two blocks of equal bytes; of the first hardly anything is left, so it costs hardly anything.
    marks, letters = "—" * 665 + "a\n", "b" * 1998 + "\n"
    found = evaluate(
        Uniform(ByteTokeniser()), [[marks + letters]], model_name="m", text_name="t", chain=Chain.parse("letters")
    )
    assert len(found.blocks.nats) == 2
    assert found.blocks.nats / math.log(256) == pytest.approx([2, 1999], abs=2)


def test_a_token_across_an_edge_is_charged_to_both_blocks_by_its_bytes() -> None:
    found = judged([["x" * (10 * BLOCK_BYTES - 1) + "\n"]])  # one unknown word of ten blocks
    assert found.blocks.nats[:-1] == pytest.approx(np.full(9, found.blocks.nats[0]))
    assert found.blocks.nats[0] == pytest.approx(found.tally.total_nats / 10, rel=0.01)


def test_a_lossless_normalisation_is_named_beside_the_model_and_a_lossy_one_where_the_row_stands() -> None:
    assert judged([TEST[:50]]).label == "model"
    assert judged([TEST[:50]], chain=Chain.parse("nfc")).label == "model [nfc]"
    assert judged([TEST[:50]], chain=Chain.parse("lower")).label == "model"


def test_the_same_chain_before_a_model_and_inside_it_counts_once() -> None:
    inside, both = judged([TEST], fitted("lower")), judged([TEST], fitted("lower"), Chain.parse("lower"))
    assert inside.normalisation == both.normalisation == "lower"
    assert inside == both


def test_progress_is_told_in_bytes() -> None:
    told: list[int] = []
    evaluate(MODEL, [TEST[:3], TEST[3:5]], model_name="m", text_name="t", on_bytes=told.append)
    sizes = [len("".join(part).encode()) for part in (TEST[:3], TEST[:5])]
    assert told == sizes
