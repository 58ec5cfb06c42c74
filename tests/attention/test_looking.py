"""Queries with a margin: found where any exist, refused only with a proof."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.attention.looking import level_with, margin, pairs, separating_query

Floats = NDArray[np.float64]


def check(inputs: Floats, looks: dict[int, tuple[int, ...]], scoring: Floats) -> None:
    scores = inputs @ scoring @ inputs.T  # key in rows, query in columns
    for i, seen in looks.items():
        others = [j for j in range(len(inputs)) if j not in seen]
        level = scores[list(seen), i]
        assert np.ptp(level) <= 1e-9 * max(1.0, np.abs(level).max())
        if others:
            assert level.min() - scores[others, i].max() >= 1 - 1e-8


@st.composite
def cases(draw: st.DrawFn) -> tuple[Floats, dict[int, tuple[int, ...]]]:
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    tokens, m = int(generator.integers(2, 6)), int(generator.integers(1, 5))
    inputs = generator.integers(-1, 3, size=(tokens, m)).astype(float)
    who = generator.choice(tokens, size=int(generator.integers(1, tokens + 1)), replace=False).tolist()
    size = int(generator.integers(1, min(tokens, 3) + 1))
    return inputs, {i: tuple(sorted(generator.choice(tokens, size=size, replace=False).tolist())) for i in who}


@settings(deadline=None, max_examples=100)
@given(cases())
def test_what_is_found_keeps_its_margin(case: tuple[Floats, dict[int, tuple[int, ...]]]) -> None:
    inputs, looks = case
    for scoring in (margin(inputs, looks), pairs(inputs, looks)):
        if scoring is not None:
            check(inputs, looks, scoring)
    if pairs(inputs, looks) is not None:
        assert margin(inputs, looks) is not None


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6))
def test_looks_that_some_q_brings_about_are_always_found(seed: int) -> None:
    generator = np.random.default_rng(seed)
    tokens, m = int(generator.integers(2, 7)), int(generator.integers(1, 5))
    inputs = generator.integers(-2, 3, size=(tokens, m)).astype(float)
    scores = inputs @ generator.integers(-2, 3, size=(m, m)).astype(float) @ inputs.T
    looks = {i: tuple(np.flatnonzero(scores[:, i] == scores[:, i].max()).tolist()) for i in range(tokens)}
    scoring = margin(inputs, looks)
    assert scoring is not None
    check(inputs, looks, scoring)


def test_a_corner_can_be_looked_at_alone_and_a_mixture_cannot() -> None:
    inputs = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.2]])
    assert separating_query(inputs, (0,)) is not None
    assert separating_query(inputs, (2,)) is None
    assert separating_query(inputs, (0, 1)) is None  # their middle ranks with them
    assert level_with(inputs, (0, 1)) == (0, 1, 2)
    query = separating_query(inputs, (0, 1, 2))
    assert query is not None
    assert inputs @ query == pytest.approx([1 / 0.6] * 3 + [0.4 / 0.6])  # the shortest: 1 more than token 4


def test_equal_inputs_rank_alike() -> None:
    inputs = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert level_with(inputs, (0,)) == (0, 2)
    assert separating_query(inputs, (0,)) is None
    assert margin(inputs, {0: (1,), 2: (0, 2)}) is None
    assert margin(inputs, {0: (1,), 2: (1,)}) is not None


def test_queries_of_tokens_that_depend_on_each_other_do_so_too() -> None:
    inputs = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert margin(inputs, {0: (0,), 1: (0,), 2: (1,)}) is None  # the third asks what the first two ask together
    assert margin(inputs, {0: (0,), 1: (1,), 2: (2,)}) is not None


def test_a_pair_takes_the_component_that_the_fewest_tokens_have() -> None:
    d_b, a, c_b = [0.0, 1, 0, 1], [1.0, 0, 0, 0], [0.0, 1, 1, 0]
    scoring = pairs(np.array([d_b, a, c_b]), {0: (2,), 1: (0,)})
    assert scoring is not None
    assert np.argwhere(scoring).tolist() == [[2, 3], [3, 0]]  # d asks for c, a asks for d
    assert scoring[2, 3] == scoring[3, 0] == 1
