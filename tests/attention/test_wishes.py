"""Tokens and wishes as people write them."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.attention.wishes import parse_sum, parse_tokens, parse_wishes, spell_sum
from inkling.errors import UsageError


def test_tokens_are_sums_of_components_and_names_are_sorted() -> None:
    names, inputs = parse_tokens("d+b, a, c+b")
    assert names == ("a", "b", "c", "d")
    assert inputs.tolist() == [[0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b", {"b": 1}),
        ("2b", {"b": 2}),
        (" 0.5b - c ", {"b": 0.5, "c": -1}),
        ("−2*b+.25 c1", {"b": -2, "c1": 0.25}),
        ("b+b", {"b": 2}),
        ("0", {}),
        ("größe+x_2", {"größe": 1, "x_2": 1}),
    ],
)
def test_coefficients_stand_before_components(text: str, expected: dict[str, float]) -> None:
    assert parse_sum(text, "It") == expected


def test_wishes_count_tokens_from_1_in_text_and_from_0_in_python() -> None:
    wishes = parse_wishes("1=b-c, 2=b", ("a", "b", "c", "d"), tokens=3)
    assert {token: wish.tolist() for token, wish in wishes.items()} == {0: [0, 1, -1, 0], 1: [0, 1, 0, 0]}
    assert parse_wishes("3=0", ("a",))[2].tolist() == [0]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-400, 400), min_size=3, max_size=3))
def test_spelling_and_reading_are_inverse(quarters: list[int]) -> None:
    numbers = np.array(quarters) / 4
    assert parse_wishes("1=" + spell_sum(numbers, ("x", "y", "z")), ("x", "y", "z"))[0] == pytest.approx(
        numbers, rel=1e-3
    )


@pytest.mark.parametrize(
    "text", ["", "  ", ",", "a,", "a,,b", "a++b", "a b", "+", "2", "a+", "a*b", "a/b", "(a)", "0+0", "a=b"]
)
def test_tokens_that_cannot_be_read_are_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"such as"):
        parse_tokens(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "No wishes are given"),
        ("b", "names no token"),
        ("x=b", "names no token"),
        ("-1=b", "names no token"),
        ("1=", "wish of token 1 is empty"),
        ("1=e", "No token has the component 'e'; known are a and b"),
        ("0=b", "There is no token 0; tokens are counted from 1 to 3"),
        ("4=b", "There is no token 4"),
        ("1=a, 1=b", "two wishes"),
        ("1=a=b", "sum of components"),
        ("1=a,", "names no token"),
        ("99999999999999=a", "names no token"),
    ],
)
def test_wishes_that_cannot_be_read_are_one_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_wishes(text, ("a", "b"), tokens=3)
    assert words in str(caught.value)


@settings(deadline=None, max_examples=100)
@given(st.text(alphabet="ab12.,+-=* 0e", max_size=20))
def test_no_text_makes_any_other_error(text: str) -> None:
    for parse in (parse_tokens, lambda given: parse_wishes(given, ("a", "b"))):
        with suppress(UsageError):
            parse(text)
