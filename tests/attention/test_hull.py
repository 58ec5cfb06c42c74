"""Nearest points of hulls with their certificates, and what attention cannot say while V = I."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.attention.head import Head
from inkling.attention.hull import identity_verdict, nearest_point
from inkling.errors import UsageError

Floats = NDArray[np.float64]
A, B, C, D = np.eye(4)


@st.composite
def hulls(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Small whole numbers make ties, repeats and points on edges; normal ones do not."""
    generator = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = int(generator.integers(1, 20)), int(generator.integers(1, 6))
    if draw(st.booleans()):
        return generator.integers(-2, 3, size=(n, d)).astype(float), generator.integers(-2, 3, size=d).astype(float)
    return generator.normal(size=(n, d)), generator.normal(size=d) * generator.choice([0.1, 1, 5])


@settings(deadline=None, max_examples=150)
@given(hulls())
def test_the_certificate_always_holds(hull: tuple[Floats, Floats]) -> None:
    points, target = hull
    found = nearest_point(points, target)
    assert (found.weights >= 0).all()
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights @ points == pytest.approx(found.point, abs=1e-12)
    if found.inside:
        assert np.abs(found.point - target).max() <= 1e-6
    else:
        r = found.point - target
        assert ((points - target) @ r >= (1 - 1e-6) * found.distance**2).all()
        assert found.proven == pytest.approx(found.distance, rel=1e-6)


@settings(deadline=None, max_examples=50)
@given(hulls())
def test_a_mixture_of_the_points_is_inside(hull: tuple[Floats, Floats]) -> None:
    points, _ = hull
    weights = np.random.default_rng(len(points)).dirichlet(np.ones(len(points)))
    assert nearest_point(points, weights @ points).inside


def test_corners_edges_and_faces_by_hand() -> None:
    triangle = [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]
    assert nearest_point(triangle, [2.0, 2.0]).point == pytest.approx([1, 1])
    assert nearest_point(triangle, [-1.0, -3.0]).point == pytest.approx([0, 0])
    assert nearest_point(triangle, [1.0, -3.0]).weights == pytest.approx([0.5, 0.5, 0])
    assert nearest_point(triangle, [0.5, 0.5]).inside
    assert nearest_point([[3.0, 4.0]] * 5, [0.0, 0.0]).distance == pytest.approx(5)
    assert nearest_point([[1.0]], [1.0]).inside


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0, 100.0])
def test_three_plain_inputs_give_their_own_token_and_never_u_b(beta: float) -> None:
    found = identity_verdict(beta * np.array([D + B, A, C + B]), beta * B, 1)
    weight = 1 / (1 + 2 * math.exp(-(beta**2)))
    assert found.weights == pytest.approx([weight * math.exp(-(beta**2)), weight, weight * math.exp(-(beta**2))])
    assert found.limit.tolist() == (beta * A).tolist()
    # |mixture − u_b|² = β²(2λ₂² + λ₁² + λ₃²), least at λ = (0.4, 0.2, 0.4): 0.4 β²
    assert found.nearest.weights == pytest.approx([0.4, 0.2, 0.4])
    assert found.nearest.distance == pytest.approx(beta * math.sqrt(0.4))
    assert found.margins == pytest.approx([0.4 * beta**2] * 3)
    assert not found.possible
    assert found.certified
    assert "no K and Q can give the wish at x2" in found.sentence


@pytest.mark.parametrize(("extra", "logits"), [(D, (1, 2, 0)), (C, (0, 2, 1))])
def test_adding_u_d_or_u_c_to_the_second_input_does_not_help(extra: Floats, logits: tuple[int, ...]) -> None:
    beta = 1.3
    found = identity_verdict(beta * np.array([D + B, A + extra, C + B]), beta * B, 1)
    powers = np.exp(beta**2 * np.array(logits))  # e^{β²}, e^{2β²}, 1 or 1, e^{2β²}, e^{β²}
    assert found.weights == pytest.approx(powers / powers.sum())
    assert found.limit == pytest.approx(beta * (A + extra))
    # 2λ₂² + (1 − s)² + s² with s = λ₁ + λ₂ is least at λ₂ = 0, s = ½
    assert found.nearest.distance == pytest.approx(beta * math.sqrt(0.5))
    assert found.nearest.weights == pytest.approx([0.5, 0, 0.5], abs=1e-9)
    assert found.certified


def test_a_wish_inside_the_hull_is_not_ruled_out_and_the_limit_averages_ties() -> None:
    inputs = np.array([[2.0, 1.0], [2.0, -1.0], [0.0, 0.0]])
    found = identity_verdict(inputs, [1.0, 0.0], 2)  # a zero query: all scores tie
    assert found.possible
    assert not found.certified
    assert found.limit == pytest.approx([4 / 3, 0])
    found = identity_verdict([[2.0, 0.0], [2.0, 0.0], [1.0, 0.0]], [2.0, 0.0], 2, names=("p", "q", "r"))
    assert found.limit_weights.tolist() == [0.5, 0.5, 0]
    assert found.limit_error == 0
    assert found.error == pytest.approx(1 / (1 + 2 * math.e))  # scores 2, 2, 1
    assert "mean of p and q" in found.sentence


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6))
def test_no_k_and_q_come_nearer_than_the_certificate_says(seed: int) -> None:
    generator = np.random.default_rng(seed)
    inputs, wish = generator.normal(size=(4, 3)), 3 * generator.normal(size=3)
    found = identity_verdict(inputs, wish, 0)
    for scale in (0.1, 1.0, 10.0, 1e4):
        k, q = scale * generator.normal(size=(2, 3, 3))
        output = Head(k, q, np.eye(3)).attend(inputs)[1][0]
        assert np.linalg.norm(output - wish) >= found.nearest.proven - 1e-9


@pytest.mark.parametrize(
    ("inputs", "wish", "token", "words"),
    [
        ([[1.0, 0.0]], [1.0], 0, "2 numbers each and the wish has 1"),
        ([[1.0]], [1.0], 1, "Token 1 does not exist"),
        ([[1.0]], [math.nan], 0, "wish holds NaN"),
        ([], [1.0], 0, "inputs is empty"),
        ([[1.0]], [[1.0]], 0, "shape (1, 1)"),
        ([[1.0]], [1.0], "0", "not a whole number"),
    ],
)
def test_bad_input_is_one_sentence(inputs: Any, wish: Any, token: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        identity_verdict(inputs, wish, token)
    assert words in str(caught.value)


def test_points_and_target_of_different_sizes_and_names_too_few_are_refused() -> None:
    with pytest.raises(UsageError, match="give equally many"):
        nearest_point([[1.0]], [1.0, 2.0])
    with pytest.raises(UsageError, match="1 names for 2 tokens"):
        identity_verdict([[1.0], [2.0]], [1.0], 0, names=("x",))


def test_the_verdict_goes_to_json_and_to_a_page() -> None:
    found = identity_verdict(2 * np.array([D + B, A, C + B]), 2 * B, 1)
    again = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert again["certified"] is True
    assert again["margins"] == pytest.approx([1.6] * 3)
    assert found.page().title == "What attention can give while V = I"
    assert found.summary() == found.sentence
    assert "Token by token" in found._repr_html_()
