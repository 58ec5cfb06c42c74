"""Typing errors: as many as asked for, of four kinds, and never in a line end."""

from __future__ import annotations

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import UsageError
from inkling.text.noise import add_typos

TEXT = "".join(string.ascii_lowercase[i % 26] for i in range(4000))


def typed(text: str, share: float, seed: int = 0) -> str:
    return add_typos(text, share, np.random.default_rng(seed))


def test_no_errors_change_nothing_and_a_share_outside_0_to_1_is_refused() -> None:
    assert typed(TEXT, 0.0) == TEXT
    assert typed("", 0.5) == ""
    for wrong in (-0.1, 1.1, float("nan")):
        with pytest.raises(UsageError, match=r"from 0 to 1"):
            typed(TEXT, wrong)


def test_the_same_generator_gives_the_same_errors_and_another_gives_others() -> None:
    assert typed(TEXT, 0.05, 1) == typed(TEXT, 0.05, 1)
    assert typed(TEXT, 0.05, 1) != typed(TEXT, 0.05, 2)


def test_one_error_is_one_of_the_four_kinds_and_all_four_come() -> None:
    text = "abcdefgh"
    seen = set()
    for seed in range(200):
        wrong = typed(text, 1 / 8, seed)
        dropped = {text[:i] + text[i + 1 :] for i in range(8)}
        doubled = {text[:i] + text[i] + text[i:] for i in range(8)}
        swapped = {text[:i] + text[i + 1] + text[i] + text[i + 2 :] for i in range(7)}
        substituted = {text[:i] + c + text[i + 1 :] for i in range(8) for c in string.ascii_lowercase} - {text}
        kinds = [
            name for name, made in zip("dDws", (dropped, doubled, swapped, substituted), strict=True) if wrong in made
        ]
        assert len(kinds) == 1
        seen.add(kinds[0])
    assert seen == set("dDws")


def test_five_percent_of_4000_characters_are_200_errors_a_quarter_of_them_of_each_kind() -> None:
    # No two neighbours are alike here, so every error can be seen: of 200, about 50 drop and 50 or more double.
    lengths = [len(typed(TEXT, 0.05, seed)) - len(TEXT) for seed in range(30)]
    assert abs(float(np.mean(lengths))) < 8  # dropped and doubled balance, but for swaps between two errors
    kept = [sum(a == b for a, b in zip(typed(TEXT[:2000], 0.05, seed)[:20], TEXT[:20], strict=True)) for seed in (0, 1)]
    assert min(kept) >= 10
    all_wrong = typed("x" * 4000, 1.0)
    assert 900 <= sum(c != "x" for c in all_wrong) <= 1100  # substituted: a quarter
    assert 4800 <= len(all_wrong) <= 5200  # a quarter is gone, half is doubled (no swap is possible): 4000 · 5/4


def test_a_capital_is_replaced_by_a_capital_and_never_by_itself() -> None:
    wrong = typed("Q" * 2000, 1.0)
    assert wrong.isupper()
    substituted = [c for c in wrong if c != "Q"]
    assert 400 <= len(substituted) <= 600


@settings(deadline=None, max_examples=60)
@given(st.text(alphabet="ab \nÄ\r", max_size=60), st.floats(0, 1), st.integers(0, 1000))
def test_line_ends_stay_where_they_are_between_lines(text: str, share: float, seed: int) -> None:
    wrong = typed(text, share, seed)
    assert [c for c in wrong if c in "\r\n"] == [c for c in text if c in "\r\n"]
    for old, new in zip(text.split("\n"), wrong.split("\n"), strict=True):
        assert len(new) <= 2 * len(old)
        if not old.strip("\r"):
            assert new == old
