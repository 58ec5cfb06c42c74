"""Taking one part out of a sum, and averaging chosen values: against the formulas, and in words where neither goes."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.attention.construct import average, extract
from inkling.errors import InklingError, UsageError
from inkling.figures import Page, Table

Floats = NDArray[np.float64]


def bases(seed: int) -> tuple[Floats, Floats]:
    generator = np.random.default_rng(seed)
    d = int(generator.integers(2, 9))
    p = int(generator.integers(1, d))
    return generator.normal(size=(d, p)), generator.normal(size=(d, int(generator.integers(1, d - p + 1))))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6))
def test_the_part_in_span_a_comes_out_of_any_sum(seed: int) -> None:
    A, B = bases(seed)
    found = extract(A, B)
    generator = np.random.default_rng(seed + 1)
    v_a, v_b = A @ generator.normal(size=A.shape[1]), B @ generator.normal(size=B.shape[1])
    slack = 1e-13 * found.norm * (np.linalg.norm(v_a) + np.linalg.norm(v_b) + 1)
    assert np.abs(found.apply(v_a + v_b) - v_a).max() < slack
    assert np.abs(found.apply(np.array([v_a, v_b])) - [v_a, 0 * v_b]).max() < slack
    assert max(found.residual_a, found.residual_b) < 1e-13 * found.norm
    assert found.norm * math.sin(math.radians(found.angle)) == pytest.approx(1, rel=1e-6)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_it_is_the_textbook_s_d_s_inverse(seed: int) -> None:
    A, B = bases(seed)
    d, p, both = len(A), A.shape[1], A.shape[1] + B.shape[1]
    complement = np.linalg.svd(np.hstack([A, B]))[0][:, both:]
    S = np.hstack([A, B, complement])
    if np.linalg.cond(S) > 1e5:
        return
    textbook = S @ np.diag([1.0] * p + [0.0] * (d - p)) @ np.linalg.inv(S)
    found = extract(A, B)
    assert np.abs(found.M - textbook).max() < 1e-8
    assert found.condition == pytest.approx(np.linalg.cond(S), rel=1e-8)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6))
def test_of_orthonormal_bases_it_is_a_a_transposed(seed: int) -> None:
    A, B = bases(seed)
    basis = np.linalg.qr(np.hstack([A, B]))[0]
    A, B = basis[:, : A.shape[1]], basis[:, A.shape[1] :]
    found = extract(A, B)
    assert np.abs(found.M - A @ A.T).max() < 1e-13
    assert found.orthonormal
    assert found.angle == pytest.approx(90)
    assert found.norm == pytest.approx(1)
    assert found.condition == pytest.approx(1)
    assert found.notes == ()


def test_a_plane_with_axes_at_45_degrees_worked_by_hand() -> None:
    found = extract([[1.0], [0.0]], [[1.0], [1.0]])  # (x, y) = (x − y)(1, 0) + y(1, 1)
    assert pytest.approx(np.array([[1.0, -1.0], [0.0, 0.0]])) == found.M
    assert found.angle == pytest.approx(45)
    assert found.norm == pytest.approx(math.sqrt(2))
    assert not found.orthonormal
    assert "45 degrees" in found.sentence


def test_scaling_columns_changes_nothing_but_the_condition_number() -> None:
    A, B = bases(3)
    scaled = extract(1e60 * A, 1e-60 * B)
    assert pytest.approx(extract(A, B).M, abs=1e-9) == scaled.M
    assert scaled.condition > 1e100


def test_a_narrow_angle_is_said_to_amplify_noise() -> None:
    near = extract([[1.0], [0.0]], [[math.cos(1e-3)], [math.sin(1e-3)]])
    assert near.norm == pytest.approx(1000, rel=1e-5)
    assert "amplified up to 1e+03 times" in near.notes[0]
    assert near.notes[0] in near.summary()
    assert extract([[1.0], [0.0]], [[math.cos(0.02)], [math.sin(0.02)]]).notes == ()  # 50 times


@pytest.mark.parametrize(
    ("A", "B", "words"),
    [
        ([[1.0], [0.0]], [[2.0], [0.0]], "meet"),
        ([[1.0], [0.0]], [[1.0], [1e-12]], "angle between them is 5.7e-11 degrees"),
        (np.eye(3)[:, :2], np.eye(3)[:, 1:], "always meet in 3 dimensions (angle 0)"),
        ([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0]], np.eye(4)[:, 2:3], "columns of A are linearly dependent"),
        (np.eye(4)[:, 2:3], [[1.0, 2.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0]], "columns of B are linearly dependent"),
        ([[0.0], [0.0]], [[1.0], [0.0]], "Column 1 of A is zero"),
        ([[math.nan], [0.0]], [[1.0], [0.0]], "NaN"),
        ([[1.0], [0.0]], [[math.inf], [0.0]], "B holds NaN or an infinite number"),
        ([[1.0], [0.0]], [[1.0], [0.0], [0.0]], "2 numbers and those of B 3"),
        (np.zeros((3, 0)), [[1.0], [0.0], [0.0]], "A is empty"),
        ([1.0, 0.0], [[1.0], [0.0]], "shape (2,)"),
        ([[1.0], [0.0, 1.0]], [[1.0], [0.0]], "not rectangular"),
        ([["x"], ["y"]], [[1.0], [0.0]], "not real numbers"),
        ([[1e200], [0.0]], [[1.0], [0.0]], "scale it down"),
        (None, [[1.0], [0.0]], "A "),
    ],
)
def test_bases_that_cannot_be_used_are_refused_in_one_sentence(A: Any, B: Any, words: str) -> None:
    with pytest.raises(InklingError) as caught:
        extract(A, B)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_vector_of_another_size_is_refused() -> None:
    with pytest.raises(UsageError, match="3 numbers"):
        extract([[1.0], [0.0]], [[0.0], [1.0]]).apply([1.0, 2.0, 3.0])


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.floats(0, 30))
def test_weights_are_those_of_the_formula_for_independent_keys(seed: int, beta: float) -> None:
    generator = np.random.default_rng(seed)
    n = int(generator.integers(1, 9))
    k = int(generator.integers(1, n + 1))
    keys = generator.normal(size=(n, n + int(generator.integers(0, 4))))
    values = generator.normal(size=(n, 3))
    if np.linalg.cond(keys) > 1e4:
        return
    chosen = generator.choice(n, size=k, replace=False).tolist()
    found = average(keys, chosen, values=values, beta=beta)
    if k == n:
        assert found.weights == pytest.approx(np.full(n, 1 / n))
        assert found.leak == 0
        return
    total = k * math.exp(beta) + n - k
    for i in range(n):
        assert found.weights[i] == pytest.approx((math.exp(beta) if i in chosen else 1) / total, rel=1e-6)
    assert found.leak == pytest.approx((n - k) / total)
    others = np.delete(values, chosen, axis=0)
    mixed = (1 - found.leak) * values[chosen].mean(axis=0) + found.leak * others.mean(axis=0)
    assert found.output == pytest.approx(mixed, rel=1e-6, abs=1e-9)
    assert found.error <= found.bound + 1e-9


def test_two_of_n_orthonormal_keys_ask_for_their_sum() -> None:
    found = average(np.eye(20), [3, 7], beta=10)
    assert found.query == pytest.approx(10 * (np.eye(20)[3] + np.eye(20)[7]))
    t = math.exp(10)
    assert found.weight == pytest.approx(t / (2 * t + 18))
    assert found.output == pytest.approx(found.weights)  # without values c is the list of weights
    assert found.target[[3, 7]] == pytest.approx([0.5, 0.5])


def test_one_chosen_key_at_beta_1_is_the_eighth_of_a_copy_that_alignment_alone_gives() -> None:
    found = average(np.eye(20), [0], beta=1)
    assert found.weight == pytest.approx(math.e / (math.e + 19))
    assert found.weight == pytest.approx(0.125, abs=3e-4)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 40), st.integers(1, 39), st.floats(1e-12, 0.9))
def test_the_beta_for_an_error_leaks_just_that(n: int, k: int, error: float) -> None:
    k = min(k, n - 1)
    found = average(np.eye(n), range(k), error=error)
    if error < (n - k) / n:
        assert found.leak == pytest.approx(error, rel=1e-9)
        assert found.beta == pytest.approx(math.log((n - k) * (1 - error) / (k * error)), abs=1e-9)
    else:
        assert found.beta == 0
        assert found.leak <= error
        assert "β = 0 is enough" in found.notes[0]


def test_beta_of_ten_thousand_neither_overflows_nor_leaks() -> None:
    found = average(np.eye(5), [1, 2], beta=1e4)
    assert found.weights.tolist() == [0, 0.5, 0.5, 0, 0]
    assert found.leak == 0
    assert found.error == 0


def test_all_keys_chosen_get_equal_weights_even_if_they_are_equal_keys() -> None:
    found = average([[1.0, 2.0]] * 4, [0, 1, 2, 3], error=0.1)
    assert found.weights.tolist() == [0.25] * 4
    assert found.leak == found.error == found.bound == 0
    assert "nothing leaks" in found.sentence


def test_one_key_more_than_dimensions_still_works_for_softmax_sees_differences_only() -> None:
    keys = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])  # scores (1, 0, 0) are impossible, (0, −1, −1) are not
    found = average(keys, [0], beta=3)
    assert found.query == pytest.approx([-3, -3])
    assert found.weights[0] == pytest.approx(math.exp(3) / (math.exp(3) + 2))


def test_the_query_is_the_shortest_one() -> None:
    keys = np.random.default_rng(0).normal(size=(3, 6))
    query = average(keys, [1], beta=2).query
    assert np.linalg.norm(query - np.linalg.pinv(keys) @ (keys @ query)) < 1e-12


def test_keys_that_are_hard_to_tell_apart_are_noted() -> None:
    found = average([[1.0, 0.0], [1.0, 1e-4]], [0], beta=5)
    assert "times as long" in found.notes[0]
    assert found.weights[0] == pytest.approx(1 / (1 + math.exp(-5)))


def test_dependent_keys_are_named_with_what_the_nearest_query_misses() -> None:
    middle = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [7.0, 3.0]]
    with pytest.raises(InklingError, match=r"keys 0, 1 and 2 are linearly dependent .* misses by .* β"):
        average(middle, [2], beta=1)
    with pytest.raises(InklingError, match="Keys 0 and 2 are equal"):
        average([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0], beta=1)


@pytest.mark.parametrize(
    ("chosen", "options", "words"),
    [
        ([], {"beta": 1}, "No key is chosen"),
        ([3], {"beta": 1}, "Key 3 does not exist"),
        ([-1], {"beta": 1}, "Key -1 does not exist"),
        ([0.5], {"beta": 1}, "not a whole number"),
        ([0, 0], {"beta": 1}, "chosen twice"),
        (0, {"beta": 1}, "give a list"),
        ("0", {"beta": 1}, "give a list"),
        ([0], {"beta": -1}, "of at least 0"),
        ([0], {"beta": math.nan}, "beta is nan"),
        ([0], {"beta": "much"}, "beta is 'much'"),
        ([0], {"beta": None, "error": 0}, "error is 0"),
        ([0], {"error": 1}, "between 0 and 1"),
        ([0], {"error": math.nan}, "error is nan"),
        ([0], {}, "Neither beta nor error"),
        ([0], {"beta": 1, "error": 0.1}, "Both beta and error"),
        ([0], {"beta": 1, "values": [[1.0]]}, "1 values for 3 keys"),
        ([0], {"beta": 1, "values": [[1.0], [math.inf], [0.0]]}, "values holds NaN"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_in_one_sentence(chosen: Any, options: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        average(np.eye(3), chosen, **options)
    assert words in str(caught.value)


def test_keys_that_are_no_matrix_are_refused() -> None:
    for keys in ([], [1.0, 2.0], [[math.nan]], "keys", [[1j]]):
        with pytest.raises(UsageError, match="keys"):
            average(keys, [0], beta=1)


def test_results_go_to_json_and_to_pages() -> None:
    for found in (
        extract([[1.0], [0.0]], [[1.0], [1.0]]),
        average(np.eye(3), [0, 1], beta=2),
        average([[1.0]], [0], beta=0),
    ):
        again = json.loads(json.dumps(found.to_json(), allow_nan=False))
        assert again["sentence"] == found.sentence
        page = found.page()
        assert isinstance(page, Page)
        assert len(page.exhibits) >= 3
        assert found.summary().startswith(found.sentence)
        assert "<table" in found._repr_html_()


def test_the_page_of_very_many_keys_shows_the_chosen_and_says_what_it_leaves_out() -> None:
    table = average(np.eye(200), [150, 7], beta=4).page().exhibits[1]
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows if row[1]] == ["k8", "k151"]
    assert table.notes == ("160 more keys are not shown.",)
