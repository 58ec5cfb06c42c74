"""Span corruption: what is cut out stands at the end, and nothing is lost."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inkling.errors import UsageError
from inkling.text.spans import LEAST, corrupted, restored, truncated

MARK = 99
TEXTS = st.lists(st.integers(0, 50), max_size=60).map(lambda ids: np.array(ids, np.int64))
SEEDS = st.integers(0, 1 << 32)


@given(TEXTS, SEEDS)
def test_a_corrupted_text_can_be_restored(ids: np.ndarray, seed: int) -> None:
    np.testing.assert_array_equal(restored(corrupted(ids, MARK, np.random.default_rng(seed)), MARK), ids)


@given(TEXTS.filter(lambda ids: len(ids) >= LEAST), SEEDS)
def test_two_marks_are_added_and_a_span_is_moved_from_within(ids: np.ndarray, seed: int) -> None:
    found = corrupted(ids, MARK, np.random.default_rng(seed))
    assert len(found) == len(ids) + 2
    first, second = np.flatnonzero(found == MARK)
    assert first >= 1  # something before the span
    assert second - first >= 2  # and after it
    assert 1 <= len(found) - second - 1 <= max(1, round(len(ids) / 2) - 1)


def test_a_short_text_stays_as_it_is() -> None:
    short = np.arange(LEAST - 1)
    np.testing.assert_array_equal(corrupted(short, MARK, np.random.default_rng(0)), short)


def test_a_quarter_is_cut_out_on_average() -> None:
    generator = np.random.default_rng(0)
    ids = np.arange(40)
    spans = [len(ids) + 1 - np.flatnonzero(corrupted(ids, MARK, generator) == MARK)[1] for _ in range(4000)]
    assert np.mean(spans) == pytest.approx(10, abs=4 * np.std(spans) / np.sqrt(len(spans)))  # 1 … 19, evenly


def test_the_same_generator_gives_the_same_spans() -> None:
    ids = np.arange(30)
    first, second = (corrupted(ids, MARK, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@given(TEXTS, SEEDS, st.integers(LEAST, 40))
def test_a_truncated_text_is_a_beginning_of_it(ids: np.ndarray, seed: int, longest: int) -> None:
    found = truncated(ids, np.random.default_rng(seed), longest)
    assert min(len(ids), LEAST) <= len(found) <= longest
    np.testing.assert_array_equal(found, ids[: len(found)])


def test_too_short_a_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="3 tokens at most; give at least 4"):
        truncated(np.arange(9), np.random.default_rng(0), 3)
