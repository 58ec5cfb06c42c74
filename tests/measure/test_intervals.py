"""Intervals and p-values over blocks: seeded, around the value, and right as often as they say."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.measure.intervals import (
    LEAST_BLOCKS,
    judge_means,
    judge_ratios,
    ratio_interval,
    student_p,
    student_quantile,
)

Floats = NDArray[np.float64]


def test_the_value_is_a_ratio_of_sums() -> None:
    found = ratio_interval(np.array([1.0, 8.0] * 5), np.array([1.0, 2.0] * 5))
    assert found.value == 3.0  # 9/3, not the mean of 1 and 4
    assert found.level == 0.95


def test_blocks_that_agree_leave_no_doubt() -> None:
    sizes = np.array([1.0, 5.0, 2.0, 4.0] * 3)
    found = ratio_interval(2.5 * sizes, sizes)
    assert [found.value, found.low, found.high] == pytest.approx([2.5, 2.5, 2.5])


@pytest.mark.parametrize(
    ("level", "degrees", "t"), [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 7, 2.365), (0.99, 31, 2.744)]
)
def test_student_is_that_of_the_printed_tables(level: float, degrees: int, t: float) -> None:
    assert student_quantile(level, degrees) == pytest.approx(t, abs=6e-4)
    assert student_p(np.array([t, -t]), degrees) == pytest.approx([1 - level] * 2, rel=1e-3)


def test_with_normal_blocks_the_interval_is_about_that_of_student() -> None:
    points = np.random.default_rng(2).standard_normal((1, 30))
    low, high, _ = judge_means(points, np.random.default_rng(0), 9999, 0.95)
    reach = 2.045 * points.std(ddof=1) / 30**0.5
    assert (high[0] - low[0]) / 2 == pytest.approx(reach, rel=0.1)
    assert (high[0] - low[0]) / 2 >= reach * 0.999  # never narrower than Student's


def test_a_wider_level_gives_a_wider_interval() -> None:
    generator = np.random.default_rng(3)
    numerators, sizes = generator.exponential(1, 60), generator.uniform(0.5, 1.5, 60)
    widths = []
    for level in (0.5, 0.8, 0.95, 0.99):
        found = ratio_interval(numerators, sizes, level=level)
        assert found.level == level
        widths.append(found.high - found.low)
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.integers(LEAST_BLOCKS, 60))
def test_the_same_seed_gives_the_same_interval_around_the_value(seed: int, blocks: int) -> None:
    generator = np.random.default_rng(seed)
    sizes = generator.uniform(500, 2000, blocks)
    numerators = sizes * generator.normal(2, 0.3, blocks)
    first = ratio_interval(numerators, sizes, seed=1)
    assert first == ratio_interval(numerators, sizes, seed=1)
    assert first.low <= first.value <= first.high


@pytest.mark.parametrize("blocks", [0, 1, LEAST_BLOCKS - 1])
def test_a_few_blocks_are_too_little_to_say(blocks: int) -> None:
    found = ratio_interval(np.full(blocks, 6.0), np.full(blocks, 2.0))
    assert math.isnan(found.value) if not blocks else found.value == 3.0
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_empty_blocks_change_nothing() -> None:
    generator = np.random.default_rng(5)
    numerators, sizes = generator.exponential(1, 12), generator.uniform(1, 2, 12)
    padded = [np.concatenate([[0.0], values, np.zeros(50)]) for values in (numerators, sizes)]
    assert ratio_interval(padded[0], padded[1]) == ratio_interval(numerators, sizes)


def test_neighbours_that_resemble_each_other_widen_the_interval() -> None:
    generator = np.random.default_rng(7)
    fresh = generator.standard_normal(400)
    alike = np.repeat(generator.standard_normal(40), 10)  # ten neighbours each: forty facts, not four hundred
    ones = np.ones(400)
    widths = [(found := ratio_interval(values, ones)).high - found.low for values in (fresh, alike)]
    assert widths[1] > 2 * widths[0]


# --------------------------------------------------------------------------------- how often equals are called unequal

SHAPES: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "two models of one kind": lambda g, shape: g.gamma(4, 1, shape) - g.gamma(4, 1, shape),
    "heavy tails": lambda g, shape: g.standard_t(3, shape),
    "skewed": lambda g, shape: g.exponential(1, shape) - 1,
}


@pytest.mark.parametrize("blocks", [10, 20, 50, 200])
@pytest.mark.parametrize("shape", SHAPES)
def test_equal_models_are_called_different_in_at_most_six_of_a_hundred_texts(shape: str, blocks: int) -> None:
    # 10,000 texts on which the truth is "no difference". The error of a share of 5 % is 0.2 %.
    generator = np.random.default_rng(blocks)
    differences = SHAPES[shape](generator, (10_000, blocks))
    found = judge_ratios(differences, np.full(blocks, 2000.0), generator, resamples=599)
    called = float((found.p_values <= 0.05).mean())
    assert 0.01 <= called <= 0.06
    missed = ((found.low > 0) | (found.high < 0)).mean()  # the interval says the same as the p-value, or nearly
    assert missed == pytest.approx(called, abs=0.005)


def test_where_neighbours_resemble_each_other_a_text_of_a_megabyte_is_judged_as_well() -> None:
    # 0.35 between neighbours, fading over some ten blocks, as measured on real text; blocks taken as independent
    # find a difference in a third of these texts.
    generator = np.random.default_rng(1)
    slow = np.zeros((3000, 700))
    shocks = generator.standard_normal(slow.shape)
    for i in range(1, 700):
        slow[:, i] = 0.8 * slow[:, i - 1] + 0.6 * shocks[:, i]
    differences = np.sqrt(0.45) * slow[:, 100:] + np.sqrt(0.55) * generator.standard_normal((3000, 600))
    found = judge_ratios(differences, np.ones(600), generator, resamples=599)
    assert float((found.p_values <= 0.05).mean()) <= 0.065
    alone = differences.mean(axis=1) / differences.std(axis=1) * 600**0.5
    assert float((np.abs(alone) > 1.96).mean()) > 0.25


@pytest.mark.parametrize(("blocks", "least"), [(10, 0.6), (20, 0.9), (200, 0.9)])
def test_a_true_difference_is_found(blocks: int, least: float) -> None:
    # The mean stands 4 standard errors from zero (3 with 10 blocks).
    generator = np.random.default_rng(blocks)
    away = (3 if blocks == 10 else 4) / blocks**0.5
    differences = generator.standard_normal((2000, blocks)) + away
    found = judge_ratios(differences, np.ones(blocks), generator, resamples=599)
    assert float((found.p_values <= 0.05).mean()) >= least
    assert float((found.low > 0).mean()) >= least - 0.05
