"""One head by hand: scores, weights and outputs as their formulas say, safe where scores are huge."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.attention.head import Head, Look, Read, head, softmax
from inkling.errors import InklingError, UsageError

A, B, C = np.eye(3)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_attention_is_what_loops_give(seed: int) -> None:
    generator = np.random.default_rng(seed)
    k, q, v = generator.normal(size=(3, 4, 4))
    x = generator.normal(size=(5, 4))
    for causal in (False, True):
        weights, outputs = Head(k, q, v).attend(x, causal)
        for i in range(5):
            seen = range(i + 1) if causal else range(5)
            powers = {j: math.exp(float((k @ x[j]) @ (q @ x[i]))) for j in seen}
            total = sum(powers.values())
            assert weights[i] == pytest.approx([powers.get(j, 0) / total for j in range(5)])
            assert outputs[i] == pytest.approx(sum(powers[j] / total * (v @ x[j]) for j in seen))


def test_a_look_gives_its_score_and_a_read_its_gain_whatever_the_length_of_components() -> None:
    built = head(3, [Look(2 * A, 5 * B), (3 * C, 2 * A, -0.5)], [Read(5 * B, 3 * C, 4), (2 * A, 2 * A)], 7)
    scores = built.scores([2 * A, 5 * B, 3 * C])
    assert scores == pytest.approx(np.array([[0, 7, 0], [0, 0, 0], [-3.5, 0, 0]]))
    assert pytest.approx(12 * C) == built.V @ (5 * B)
    assert pytest.approx(2 * A) == built.V @ (2 * A)
    assert pytest.approx(0 * C) == built.V @ C
    assert built.K.tolist() == np.eye(3).tolist()


def test_scores_of_a_hundred_million_make_neither_overflow_nor_nan() -> None:
    assert softmax(np.array([[1e8, -1e8, 1e8], [-1e8, -1e8, -1e8]])) == pytest.approx(
        np.array([[0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]])
    )
    weights, outputs = head(3, [(A, B)], [(B, C)], 1e8).attend([A, B, C])
    assert weights[0].tolist() == [0, 1, 0]
    assert outputs[0] == pytest.approx(C)
    with pytest.raises(InklingError, match="too large"):
        Head(*[1e99 * np.eye(1)] * 3).attend([[1e99], [1e99]])


@pytest.mark.parametrize(
    ("d", "looks", "reads", "sharpness", "words"),
    [
        (3, [(A, A + B)], [], 1, "mutually orthogonal"),
        (3, [(A, 0 * A)], [], 1, "is zero"),
        (2, [(A, B)], [], 1, "the head was asked for 2"),
        (3, [(A,)], [], 1, "query, key, strength"),
        (3, [], [A], 1, "A component has shape ()"),
        (3, [], [3], 1, "source, target, gain"),
        (3, [(A, B, math.nan)], [], 1, "strength is nan"),
        (3, [(A, B)], [(A, B, "x")], 1, "gain is 'x'"),
        (3, [(A, B)], [], -1, "sharpness is -1"),
        (0, [], [], 1, "asked for 0"),
        ("3", [], [], 1, "not a whole number"),
    ],
)
def test_bad_building_blocks_are_one_sentence(d: Any, looks: Any, reads: Any, sharpness: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        head(d, looks, reads, sharpness)
    assert words in str(caught.value)


def test_inputs_of_another_size_are_refused() -> None:
    with pytest.raises(UsageError, match="expects 3"):
        head(3, [(A, B)], [], 1).attend([[1.0, 2.0]])


def test_a_head_goes_to_json_and_to_a_page() -> None:
    built = head(3, [(A, B)], [(B, C)], 2)
    assert json.loads(json.dumps(built.to_json()))["Q"][1] == [2, 0, 0]
    assert "<svg" in built._repr_html_()
