"""Pair counts: every token of every text is counted once, after the token before it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.models import pairs
from inkling.models.pairs import PairCounts, contexts_of, count_pairs, pair_keys
from inkling.text.tokens import Encodings

SIZE = 5
TEXTS = st.lists(st.lists(st.integers(0, SIZE - 1), max_size=12), max_size=6)


def laid(texts: list[list[int]]) -> Encodings:
    ids = np.array([token for text in texts for token in text], np.int32)
    return Encodings(ids, np.cumsum([0, *map(len, texts)], dtype=np.int64), ())


def dense(counts: PairCounts) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """C' written out in full, by the formula of the module."""
    table = np.zeros((counts.size, counts.size))
    table.reshape(-1)[counts.keys] = counts.values
    return np.asarray(table + np.outer(counts.spread, counts.base))


def by_hand(texts: list[list[int]], begin: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    table = np.zeros((SIZE, SIZE))
    for text in texts:
        before = begin
        for token in text:
            table[before, token] += 1
            before = token
    return table


def test_the_first_token_of_each_text_follows_the_begin_token() -> None:
    encodings = laid([[1, 2], [], [3], []])
    assert contexts_of(encodings, begin=4).tolist() == [4, 1, 4]
    assert pair_keys(encodings, SIZE, begin=4).tolist() == [4 * 5 + 1, 1 * 5 + 2, 4 * 5 + 3]
    assert contexts_of(laid([]), begin=4).tolist() == contexts_of(laid([[], []]), begin=4).tolist() == []


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(0, SIZE - 1))
def test_counts_are_those_of_a_plain_loop_in_a_table_or_sorted(texts: list[list[int]], begin: int) -> None:
    expected = by_hand(texts, begin)
    counted = count_pairs([laid(texts)], SIZE, begin)
    assert np.array_equal(dense(counted), expected)
    cells, pairs.DENSE_CELLS = pairs.DENSE_CELLS, 0
    try:
        by_sorting = count_pairs([laid([text]) for text in texts], SIZE, begin)
    finally:
        pairs.DENSE_CELLS = cells
    assert np.array_equal(by_sorting.keys, counted.keys)
    assert np.array_equal(by_sorting.values, counted.values)
    assert counted.row_totals.tolist() == expected.sum(1).tolist()
    assert counted.column_totals.tolist() == expected.sum(0).tolist()
    assert counted.tokens == sum(map(len, texts))


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.floats(0, 1))
def test_a_discount_moves_counts_within_a_row_and_keeps_its_total(texts: list[list[int]], discount: float) -> None:
    counts = count_pairs([laid(texts)], SIZE, 0)
    softened = counts.discounted(discount)
    assert softened.row_totals == pytest.approx(counts.row_totals, rel=1e-12)
    assert softened.tokens == pytest.approx(counts.tokens, rel=1e-12)
    assert dense(softened).sum(1) == pytest.approx(counts.row_totals, rel=1e-12)
    assert dense(softened).sum(0) == pytest.approx(softened.column_totals, rel=1e-12)
    assert (dense(softened) >= 0).all()


def test_what_is_taken_goes_to_tokens_that_follow_many_different_ones() -> None:
    # Pairs: 0→1 three times, 0→2 once, 1→2 once. Token 2 follows two contexts, token 1 one, token 0 none.
    counts = PairCounts(3, np.array([1, 2, 5]), np.array([3.0, 1.0, 1.0]), np.zeros(3), np.full(3, 1 / 3))
    softened = counts.discounted(0.5)
    base = np.array([0.001, 1.001, 2.001]) / 3.003
    assert softened.base == pytest.approx(base, rel=1e-15)
    expected = [[1.0 * base[0], 2.5 + base[1], 0.5 + base[2]], 0.5 * base + [0, 0, 0.5], [0, 0, 0]]
    assert dense(softened) == pytest.approx(np.array(expected), rel=1e-15)


def test_no_discount_changes_no_count() -> None:
    counts = count_pairs([laid([[1, 2, 2, 3]])], SIZE, 0)
    assert np.array_equal(dense(counts.discounted(0.0)), dense(counts))


@pytest.mark.parametrize("discount", [-0.1, 1.1, float("nan")])
def test_a_discount_outside_zero_to_one_is_refused(discount: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        count_pairs([laid([[1]])], SIZE, 0).discounted(discount)


def test_the_pairs_of_each_context_that_has_any_are_found() -> None:
    counts = count_pairs([laid([[1, 2, 2, 3, 1, 2]])], SIZE, 0)
    assert counts.keys.tolist() == [1, 7, 12, 13, 16]
    assert counts.contexts.tolist() == [0, 1, 2, 3]
    assert counts.starts.tolist() == [0, 1, 2, 4, 5]
    nothing = count_pairs([], SIZE, 0)
    assert (nothing.contexts.tolist(), nothing.starts.tolist(), nothing.tokens) == ([], [0], 0.0)


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(1, 5), st.floats(0, 1), st.sampled_from([0.0, 0.4]))
def test_the_mean_of_all_turns_is_the_whole(
    texts: list[list[int]], turns: int, covered: float, discount: float
) -> None:
    counts = count_pairs([laid(texts)], SIZE, 0).discounted(discount)
    found = counts.turns(turns, covered)
    assert len(found) == turns
    assert sum(dense(one) for one in found) / turns == pytest.approx(dense(counts), abs=1e-12)
    assert sum(one.tokens for one in found) / turns == pytest.approx(counts.tokens, abs=1e-12)
    for one in found:
        assert one.row_totals == pytest.approx(dense(one).sum(1), abs=1e-12)
        assert (np.diff(one.keys) > 0).all()


def test_common_contexts_are_in_every_turn_and_rare_ones_in_one() -> None:
    # Context 1 predicts 90 of 100 tokens, contexts 0, 2, 3 and 4 a few each.
    values = np.array([4.0, 90.0, 3.0, 2.0, 1.0])
    counts = PairCounts(SIZE, np.arange(SIZE) * SIZE, values, np.zeros(SIZE), np.full(SIZE, 1 / SIZE))
    found = counts.turns(2, covered=0.9)
    assert [one.row_totals.tolist() for one in found] == [[0, 90, 6, 0, 2], [8, 90, 0, 4, 0]]
    assert [one.contexts.tolist() for one in found] == [[1, 2, 4], [0, 1, 3]]
