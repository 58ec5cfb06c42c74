"""Bootstrap intervals: seeded, around the value, and right as often as they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.measure.intervals import bootstrap_ratio


def test_the_value_is_a_ratio_of_sums() -> None:
    found = bootstrap_ratio(np.array([1.0, 8.0]), np.array([1.0, 2.0]), np.random.default_rng(0))
    assert found.value == 3.0  # 9/3, not the mean of 1 and 4
    assert found.level == 0.95


def test_blocks_that_agree_leave_no_doubt() -> None:
    sizes = np.array([1.0, 5.0, 2.0, 4.0])
    found = bootstrap_ratio(2.5 * sizes, sizes, np.random.default_rng(0))
    assert [found.value, found.low, found.high] == pytest.approx([2.5, 2.5, 2.5])


def test_the_interval_of_a_fair_coin_is_that_of_the_binomial() -> None:
    # 400 blocks, half of them 1: resampled means are Binomial(400, ½)/400, whose 2.5 % points are 0.45 and 0.55.
    found = bootstrap_ratio(np.tile([0.0, 1.0], 200), np.ones(400), np.random.default_rng(0), resamples=20_000)
    assert found.value == 0.5
    assert found.low == pytest.approx(0.45, abs=0.0051)
    assert found.high == pytest.approx(0.55, abs=0.0051)


def test_a_wider_level_gives_a_wider_interval() -> None:
    generator = np.random.default_rng(3)
    numerators, sizes = generator.exponential(1, 60), generator.uniform(0.5, 1.5, 60)
    widths = []
    for level in (0.5, 0.8, 0.95, 0.99):
        found = bootstrap_ratio(numerators, sizes, np.random.default_rng(0), level=level)
        assert found.level == level
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**31), st.integers(5, 60))
def test_the_same_generator_gives_the_same_interval_around_the_value(seed: int, blocks: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = generator.uniform(500, 2000, blocks)
    numerators = sizes * generator.normal(2, 0.3, blocks)
    first = bootstrap_ratio(numerators, sizes, np.random.default_rng(1), resamples=500)
    assert first == bootstrap_ratio(numerators, sizes, np.random.default_rng(1), resamples=500)
    assert first.low <= first.value <= first.high


def test_one_block_or_none_is_too_little_to_say() -> None:
    alone = bootstrap_ratio(np.array([6.0]), np.array([2.0]), np.random.default_rng(0))
    assert alone.value == 3.0
    assert math.isnan(alone.low)
    assert math.isnan(alone.high)
    nothing = bootstrap_ratio(np.zeros(0), np.zeros(0), np.random.default_rng(0))
    assert math.isnan(nothing.value)


def test_empty_blocks_change_nothing() -> None:
    numerators, sizes = np.array([3.0, 5.0, 4.0]), np.array([1.0, 2.0, 1.5])
    expected = bootstrap_ratio(numerators, sizes, np.random.default_rng(0))
    padded = [np.concatenate([[0.0], values, np.zeros(50)]) for values in (numerators, sizes)]
    assert bootstrap_ratio(padded[0], padded[1], np.random.default_rng(0)) == expected
    alone = bootstrap_ratio(np.array([0.0, 6.0]), np.array([0.0, 2.0]), np.random.default_rng(0))
    assert (alone.value, math.isnan(alone.low)) == (3.0, True)


def test_many_blocks_are_drawn_in_parts_of_bounded_memory() -> None:
    blocks = 100_000
    found = bootstrap_ratio(np.tile([0.0, 1.0], blocks // 2), np.ones(blocks), np.random.default_rng(0), resamples=50)
    assert found.value == 0.5
    assert 0.49 < found.low < 0.5 < found.high < 0.51


def test_nineteen_in_twenty_intervals_hold_the_truth() -> None:
    # Blocks of uneven size whose cost per byte is skewed around 2, and the truth is 2. Of 300 intervals at 95 %, all
    # but 15 ± 4 should hold it; a bootstrap of 50 blocks falls a little short. 90 to 98 % is what is promised.
    generator = np.random.default_rng(11)
    held = 0
    for _ in range(300):
        sizes = generator.uniform(500, 2500, 50)
        numerators = sizes * generator.gamma(16, 2 / 16, 50)
        found = bootstrap_ratio(numerators, sizes, generator, resamples=400)
        held += found.low <= 2 <= found.high
    assert 0.90 <= held / 300 <= 0.98
