"""Sums and what is made of them: the base does not matter, parts add up, and every byte is charged."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.measure.tally import Tally, tally, total
from inkling.models.bigram import Bigram, BigramConfig
from inkling.models.spelling import Speller
from inkling.text.tokenise import ByteTokeniser, train_tokeniser
from inkling.text.tokens import Tokeniser

COSTS = st.floats(0, 1e4)
COUNTS = st.integers(0, 10**6)
TALLIES = st.builds(Tally, COSTS, COSTS, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)


def uniform(tokeniser: Tokeniser, speller: Speller | None = None) -> Bigram:
    """All weights zero: every token has the chance 1/V, whatever came before."""
    size = tokeniser.size
    shapes = {"vectors": (size, 1), "W1": (1, 1), "b1": (1,), "W2": (1, size), "b2": (size,)}
    parameters = {name: torch.zeros(shape) for name, shape in shapes.items()}
    return Bigram(BigramConfig(1, 1), parameters, tokeniser, speller=speller)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=50), st.sampled_from(["token", "word", "char", "byte"]))
def test_perplexity_is_the_same_in_every_base(chances: list[float], per: str) -> None:
    n = len(chances)
    found = Tally(nats=-sum(map(math.log, chances)), tokens=n, words=n, chars=n, bytes=n)
    by_bits = 2 ** (-sum(map(math.log2, chances)) / n)
    for base in (math.e, 2.0, 10.0):
        assert found.perplexity(per, base) == pytest.approx(by_bits, rel=1e-12)
    assert 2 ** found.bits(per) == pytest.approx(by_bits, rel=1e-12)


def test_perplexity_by_hand() -> None:
    # Chances ½, ¼, ⅛: 6 bits for 3 tokens, so 2² = 4 a token.
    found = Tally(nats=math.log(64), tokens=3, words=2, chars=6, bytes=12)
    assert found.perplexity() == pytest.approx(4)
    assert found.perplexity("word") == pytest.approx(8)
    assert found.bits("char") == pytest.approx(1)
    assert found.bits() == pytest.approx(0.5)


def test_spelling_is_forgiven_per_token_and_charged_everywhere_else() -> None:
    found = Tally(nats=math.log(4), spelling_nats=math.log(64), tokens=2, unknown=1, words=2, chars=4, bytes=8)
    assert found.bits("token") == pytest.approx(1)
    assert found.perplexity("token") == pytest.approx(2)
    assert found.bits("byte") == pytest.approx(1)
    assert found.bits("char") == pytest.approx(2)
    assert found.bits("word") == pytest.approx(4)
    assert found.perplexity("word") == pytest.approx(16)
    assert found.total_nats == pytest.approx(math.log(256))
    assert found.unknown_share == 0.5


@settings(deadline=None, max_examples=100)
@given(TALLIES, TALLIES, TALLIES)
def test_tallies_add_up_in_any_grouping(a: Tally, b: Tally, c: Tally) -> None:
    left, right = (a + b) + c, a + (b + c)
    assert left.nats == pytest.approx(right.nats, rel=1e-12)
    assert left.spelling_nats == pytest.approx(right.spelling_nats, rel=1e-12)
    for name in ("tokens", "unknown", "words", "chars", "bytes"):
        assert getattr(left, name) == getattr(right, name) == sum(getattr(one, name) for one in (a, b, c))
    assert total([a, b, c]) == left
    assert a + Tally() == Tally() + a == a


def test_a_tally_of_parts_is_not_a_mean_of_means() -> None:
    short, long = Tally(nats=8.0, tokens=1), Tally(nats=9.0, tokens=9)
    assert math.log((short + long).perplexity()) == pytest.approx(1.7)


def test_nothing_has_no_perplexity_and_too_much_is_infinite() -> None:
    assert math.isnan(Tally().perplexity())
    assert math.isnan(Tally().bits())
    assert math.isnan(Tally().unknown_share)
    assert total([]) == Tally()
    assert Tally(nats=1e6, tokens=1).perplexity() == math.inf


def test_a_uniform_model_scores_exactly_the_bits_of_its_vocabulary() -> None:
    found = tally(uniform(ByteTokeniser()).score(["any text at all, ünïcode 🦑 too\n", "", "x"]))
    assert found.bits("token") == found.bits("byte") == 8.0
    assert found.perplexity(base=2) == 256.0
    assert found.perplexity() == pytest.approx(256, rel=1e-13)


@pytest.mark.parametrize("size", [2, 3, 7, 50])
def test_a_uniform_model_scores_log_v_for_any_vocabulary(size: int) -> None:
    words = [" ".join(f"w{i}" for i in range(80)) + "\n"]
    tokeniser = train_tokeniser("word", [words], size)
    speller = Speller.fit(tokeniser.encode(words).spellings, tokeniser)
    found = tally(uniform(tokeniser, speller).score(words))
    assert tokeniser.size == size
    assert found.bits("token") == pytest.approx(math.log2(size), rel=1e-14)


def test_a_tally_counts_what_was_scored() -> None:
    lines = ["one two\n", "one é\n"]
    tokeniser = train_tokeniser("word", [lines], 3)  # the unknown, "\n" and "one"
    speller = Speller.fit(tokeniser.encode(lines).spellings, tokeniser)
    scores = uniform(tokeniser, speller).score(lines)
    found = tally(scores)
    assert (found.tokens, found.unknown, found.words, found.chars, found.bytes) == (6, 2, 4, 14, 15)
    assert found.nats == pytest.approx(6 * math.log(3), rel=1e-14)
    assert found.spelling_nats == pytest.approx(float(speller.nats([" two", " é"]).sum()), rel=1e-14)
    assert found.bits("byte") == pytest.approx((found.nats + found.spelling_nats) / math.log(2) / 15, rel=1e-14)


def test_a_small_vocabulary_wins_per_token_but_not_per_byte() -> None:
    words = np.random.default_rng(0).choice(["apple", "river", "stone", "cloud"], 400)
    text = [" ".join(words) + "\n"]
    figures = {}
    for size in (2, 10):
        tokeniser = train_tokeniser("word", [text], size)
        speller = Speller.fit(tokeniser.encode(text).spellings, tokeniser)
        figures[size] = tally(uniform(tokeniser, speller).score(text))
    assert figures[2].perplexity() < figures[10].perplexity()
    assert figures[2].bits("byte") > figures[10].bits("byte")
