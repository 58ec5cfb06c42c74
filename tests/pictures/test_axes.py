"""Axes: round ticks, texts that tell neighbours apart, names that keep their distance."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.pictures.axes import cut, log_ticks, spread, text_width, thinned, tick_text, ticks


@settings(deadline=None)
@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(2, 10))
def test_ticks_are_round_inside_and_not_too_many(low: float, span: float, count: int) -> None:
    high = low + span
    if high - low < 1e-9 * abs(low):
        return
    found = ticks(low, high, count)
    assert 1 <= len(found) <= 2 * count + 2
    assert all(low - 1e-6 * span <= value <= high + 1e-6 * span for value in found)


def test_ticks_by_hand() -> None:
    assert ticks(0, 10, 5) == [0, 2, 4, 6, 8, 10]
    assert ticks(1, 3, 10, whole=True) == [1, 2, 3]
    assert log_ticks(0, 6, 8) == [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]
    assert log_ticks(0, 1, 8) == [1, 2, 5, 10]
    assert log_ticks(-20, 20, 5) == pytest.approx([10.0**k for k in range(-18, 19, 9)])


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0, 1, "0"),
        (1500, 500, "1,500"),
        (0.25, 0.05, "0.25"),
        (-3, 1, "−3"),
        (1e6, 1e6, "10⁶"),
        (2.5e-7, 5e-8, "2.5·10⁻⁷"),
    ],
)
def test_tick_texts(value: float, step: float, text: str) -> None:
    assert tick_text(value, step) == text


@settings(deadline=None)
@given(st.lists(st.floats(0, 100), max_size=6))
def test_labels_spread_keep_their_order_and_distance(wanted: list[float]) -> None:
    places = spread(wanted, 16, 0, 100)
    pairs = sorted(zip(wanted, places, strict=True))
    assert all(b[1] - a[1] >= 16 - 1e-6 for a, b in pairwise(pairs) if b[0] > a[0])
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in places)
    ordered = sorted(places)
    assert all(b - a >= 16 - 1e-6 for a, b in pairwise(ordered))


def test_labels_with_room_stay_where_they_are() -> None:
    assert spread([10, 90, 50], 16, 0, 100) == [10, 90, 50]
    assert spread([50, 50], 16, 0, 100) == [42, 58]


def test_names_that_fit_stand_upright_and_all_are_written() -> None:
    assert thinned(["one", "two"], 60) == (range(2), True)


def test_one_long_name_among_short_ones_is_cut_and_not_a_reason_to_turn_them_all() -> None:
    assert thinned(["a", "b", "a very long name indeed"], 80) == (range(3), True)
    assert thinned(["a rather long name", "another long name"], 80) == (range(2), False)


def test_of_numbers_those_are_written_that_the_step_divides() -> None:
    written, upright = thinned([str(k) for k in range(1, 101)], 4)
    assert upright
    assert [k + 1 for k in written] == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]


def test_words_that_stand_close_are_turned_and_thinned() -> None:
    assert thinned(["a longer word"] * 100, 6) == (range(0, 100, 5), False)


def test_a_cut_text_fits_and_says_that_there_was_more() -> None:
    assert cut("short", 100) == "short"
    long = cut("a name that goes on and on", 80)
    assert long.endswith("…")
    assert "a name that goes on".startswith(long[:-1])
    assert text_width(long) <= 80 + 11
    assert text_width("日本") > 2 * text_width("ab") * 0.8
