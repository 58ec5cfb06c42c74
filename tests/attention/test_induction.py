"""Two constructed heads against the plain rule of induction, on every short sequence and within the proven bound."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.attention.induction import BEGINNING, Induction, Verification, error_bound, induction_rule
from inkling.errors import UsageError


def test_the_rule_by_hand() -> None:
    assert induction_rule("abcab") == [{}, {}, {}, {"b": 1}, {"c": 1}]
    assert induction_rule("abaca") == [{}, {}, {"b": 1}, {}, {"b": 0.5, "c": 0.5}]
    assert induction_rule("aa") == [{}, {"a": 1}]
    assert induction_rule("aab")[1:] == [{"a": 1}, {}]
    assert induction_rule("") == []


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="abcd", min_size=1, max_size=12))
def test_two_heads_follow_the_rule(words: str) -> None:
    found = Induction(tuple("abcd"), 12, 60).run(words)
    for place, shares in enumerate(induction_rule(words)):
        expected = [shares.get(word, 0) for word in "abcd"]
        assert found.outputs[place + 1] == pytest.approx(expected, abs=1e-9)
        assert (found.predictions[place + 1] is None) == (not shares)
    assert found.outputs[0].tolist() == [0] * 4
    assert found.error <= found.bound


@pytest.mark.parametrize("sharpness", [0.1, 1, 3, 6, 10, 20, 45, 1e4, 1e8])
def test_the_proven_bound_holds_on_every_sequence_of_five_words(sharpness: float) -> None:
    model = Induction(("a", "b", "c"), 5, sharpness)
    for words in product("abc", repeat=5):
        found = model.run(words)
        assert (found.errors <= np.array(found.bounds) + 1e-12).all()


def test_the_bound_is_worth_something() -> None:
    assert error_bound(10, 60) == pytest.approx(10 * math.exp(-30), rel=1e-6)
    assert error_bound(10, 1e8) == 0
    assert error_bound(1000, 0.01) == 1
    found = Induction("ab", 6, 30).verify()
    assert found.bound / 3 < found.error <= found.bound


def test_layer_one_looks_back_by_one_and_layer_two_at_what_followed() -> None:
    found = Induction("abc", 5, 50).run("abcab")
    assert found.previous == pytest.approx(np.eye(6, k=-1) + np.diag([1.0, 0, 0, 0, 0, 0]), abs=1e-12)
    looks = [int(row.argmax()) for row in found.matches]
    assert looks == [0, 0, 0, 0, 2, 3]  # the second a looks at b, the second b at c, new words at the beginning
    assert not np.triu(found.matches, 1).any()
    assert found.predictions == (None, None, None, None, "b", "c")
    assert "the next word is 'c'" in found.sentence


def test_several_matches_share_equally() -> None:
    found = Induction("xab", 7, 60).run("xaxbxax")
    assert found.outputs[-1] == pytest.approx([0, 2 / 3, 1 / 3])
    assert found.matches[-1, [2, 4, 6]] == pytest.approx([1 / 3] * 3)


def test_words_can_be_longer_than_a_letter() -> None:
    found = Induction(("Mr", "Potter", "said"), 8, 50).run(["Mr", "Potter", "said", "Mr"])
    assert found.predictions[-1] == "Potter"
    assert found.words[0] == BEGINNING


def test_verification_tries_every_sequence_or_random_ones() -> None:
    model = Induction("ab", 8, 40)
    every = model.verify(7)
    assert (every.sequences, every.exhaustive, every.holds) == (128, True, True)
    some = Induction("abcdefgh", 10, 40).verify(samples=20)
    assert (some.sequences, some.exhaustive, some.holds) == (20, False, True)
    drawn = model.verify(3, generator=np.random.default_rng(1), samples=5)
    assert (drawn.sequences, drawn.exhaustive) == (5, False)
    assert len(drawn.worst) == 3


def test_a_broken_bound_would_be_said() -> None:
    broken = Verification(2, 4, True, 0.5, 0.1, ("a", "b"))
    assert not broken.holds
    assert "breaks the proven bound" in broken.sentence


@pytest.mark.parametrize(
    ("vocabulary", "length", "sharpness", "words"),
    [
        ((), 3, 1, "no words"),
        (5, 3, 1, "no words"),
        (("a", ""), 3, 1, "an empty one"),
        (b"ab", 3, 1, "each of them text"),
        (("a", "a"), 3, 1, "twice"),
        ((BEGINNING,), 3, 1, "twice or holds"),
        ("ab", 0, 1, "length of at least 1"),
        ("ab", 2.5, 1, "not a whole number"),
        ("ab", 5000, 1, "at most 1500"),
        ("ab", 3, 0, "above 0"),
        ("ab", 3, math.nan, "sharpness is nan"),
    ],
)
def test_a_model_that_makes_no_sense_is_one_sentence(vocabulary: Any, length: Any, sharpness: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        Induction(vocabulary, length, sharpness)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "0 words are given"),
        ("abab", "from 1 to 3"),
        ("az", "'z' is not in the vocabulary"),
        ([["a"]], "not in"),
        (3, "0 words"),
    ],
)
def test_words_that_cannot_be_run_are_one_sentence(words: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        Induction("ab", 3).run(words)
    assert said in str(caught.value)


def test_verification_needs_a_length_that_fits() -> None:
    for length, samples in ((0, 1), (4, 1), (2, 0)):
        with pytest.raises(UsageError):
            Induction("ab", 3).verify(length, samples=samples)


def test_traces_go_to_json_and_to_pages() -> None:
    model = Induction("ab", 4, 30)
    trace, verified = model.run("abab"), model.verify()
    again = json.loads(json.dumps(trace.to_json(), allow_nan=False))
    assert again["predictions"] == [None, None, None, "b", "a"]
    assert json.loads(json.dumps(verified.to_json()))["holds"] is True
    assert "Layer 1: the word before" in trace._repr_html_()
    assert "Induction against its rule" in verified._repr_html_()
    upper = trace.page().exhibits[1].maps[0].values  # type: ignore[union-attr]
    assert upper[0][1] is None  # no place looks ahead
