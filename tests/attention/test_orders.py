"""A head ordered in words is the design of the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from inkling.attention.design import design
from inkling.attention.orders import order, read_looks
from inkling.errors import UsageError


def test_an_order_is_the_design_of_what_its_words_say() -> None:
    found = order("d+b, a, c+b", "1=b-c, 2=b", beta=2.0, looks="1=3")
    inputs = [[0, 1, 0, 1], [1, 0, 0, 0], [0, 1, 1, 0]]  # over a, b, c, d
    plain = design(2 * np.eye(4), inputs, {0: [0, 1, -1, 0], 1: [0, 1, 0, 0]}, 4.0, "abcd", looks={0: (2,)})
    assert found.to_json()["V"] == plain.to_json()["V"]
    assert found.design.looks[0] == (2,)
    assert len(found.to_json()["identity"]) == 2
    assert found.page().exhibits[-1].title == "And with K = Q = V = I?"


def test_looks_of_tokens_without_a_wish_are_read_only_where_nobody_asks_for_wishes() -> None:
    assert read_looks("1=3, 2=1+3", 3) == {0: (2,), 1: (0, 2)}
    with pytest.raises(UsageError, match="token 2 looks, which has no wish"):
        read_looks("2=1", 3, {0})


def test_a_length_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="--beta is 0"):
        order("a, b", "1=b", beta=0.0)
