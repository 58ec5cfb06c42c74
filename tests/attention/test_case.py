"""A case: what scores it makes, which keys can be moved, which means can be had, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.attention.arrays import Floats
from inkling.attention.case import Case, build, coherent, orthonormal
from inkling.attention.exact import exact
from inkling.attention.laboratory import Setting, experiment
from inkling.attention.simulate import simulate
from inkling.errors import InklingError, UsageError

EYE = np.eye(3)


def random_case(seed: int, keys: int = 4, dimension: int = 5, heads: int = 2, size: float = 1.0) -> Case:
    generator = np.random.default_rng(seed)
    factor = generator.normal(0, 0.4, (dimension, 2))
    return Case(
        means=generator.normal(size=(keys, dimension)),
        queries=size * generator.normal(size=(heads, dimension)),
        values=generator.normal(size=(keys, 3)),
        alpha=generator.uniform(0, 0.3, keys),
        noise=generator.uniform(0, 0.5, keys),
        extra={1: factor @ factor.T},
        combination=generator.normal(size=heads),
    )


# ------------------------------------------------------------------------------------------------ scores


def test_score_means_and_covariances_are_those_of_keys_that_are_drawn() -> None:
    case = random_case(2)
    generator = np.random.default_rng(0)
    N = 100_000
    for key in range(case.keys):
        d = case.dimension
        covariance = case.alpha[key] * np.eye(d) + case.noise[key] * np.outer(case.means[key], case.means[key])
        covariance += case.extra.get(key, 0.0)
        scores = generator.multivariate_normal(case.means[key], covariance, N) @ case.queries.T
        C = case.score_covariances[key]
        errors = np.sqrt((C**2 + np.outer(np.diag(C), np.diag(C))) / N)
        assert (np.abs(np.cov(scores.T) - C) < 4.5 * errors).all()
        assert (np.abs(scores.mean(axis=0) - case.score_means[:, key]) < 4.5 * np.sqrt(np.diag(C) / N)).all()


def test_the_variances_of_e6() -> None:
    beta, alpha = 10.0, 0.01
    case = build(20, beta, [(0, 1)], alpha=alpha, noise=0.5, dimension=30)
    variances = case.score_deviations[0] ** 2
    assert variances[0] == pytest.approx(beta**2 * (2 * alpha + 0.5))
    assert variances[1:] == pytest.approx(np.full(19, 2 * alpha * beta**2))
    assert case.score_means[0] == pytest.approx([beta, beta] + [0] * 18)


def test_scaled_with_beta_times_root_d_is_unscaled() -> None:
    plain = build(6, 3.0, [(0, 1), (2,)], dimension=9, alpha=0.2, noise=0.5)
    scaled = build(6, 9.0, [(0, 1), (2,)], dimension=9, alpha=0.2, noise=0.5, scaled=True)
    np.testing.assert_allclose(scaled.score_means, plain.score_means)
    np.testing.assert_allclose(scaled.score_covariances, plain.score_covariances, atol=1e-14)


def test_looks_are_what_scores_highest_unless_told() -> None:
    case = Case(np.eye(3), np.array([[0.0, 2, 0], [1, 0, 3]]))
    assert case.looks == ((1,), (2,))
    assert case.mixing.tolist() == [0.5, 0.5]
    assert case.named_keys == (1, 2)


def test_heads_are_independent_when_no_noise_is_shared() -> None:
    assert build(5, 2.0, [(0,), (1,)], alpha=0.1, noise=0.5).heads_are_independent
    assert not build(5, 2.0, [(0, 1), (1,)], alpha=0.1).heads_are_independent
    same = build(5, 2.0, [(0, 1), (0, 1)], noise=0.5)
    assert same.heads_are_equal
    assert not same.heads_are_independent


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 10**6))
def test_moving_keys_moves_what_is_known_of_them(seed: int) -> None:
    case = random_case(seed, heads=1)
    order = [int(i) for i in np.random.default_rng(seed).permutation(case.keys)]
    first, moved = exact(case), exact(case.permuted(order))
    np.testing.assert_allclose(moved.mean_coefficients, first.mean_coefficients[order], atol=1e-10)
    np.testing.assert_allclose(moved.coefficient_variances, first.coefficient_variances[order], atol=1e-10)
    np.testing.assert_allclose(moved.mean_output, first.mean_output, atol=1e-10)
    assert moved.heads[0].failure_probability == pytest.approx(first.heads[0].failure_probability, abs=1e-9)
    assert [order[key] for key in moved.heads[0].looks] == list(first.heads[0].looks)


def test_a_case_keeps_its_numbers_when_the_callers_change() -> None:
    means = np.eye(2)
    case = Case(means, np.ones((1, 2)))
    means[0, 0] = 100
    assert case.score_means.tolist() == [[1, 1]]


# ------------------------------------------------------------------------------------------------ means


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(0, 12), st.floats(0, 0.99))
def test_coherence_is_the_one_asked_for(seed: int, keys: int, more: int, coherence: float) -> None:
    found = coherent(keys, keys + more, coherence, np.random.default_rng(seed))
    cosines = np.abs(found @ found.T)
    assert np.diag(cosines) == pytest.approx(np.ones(keys))
    np.fill_diagonal(cosines, 0)
    assert float(cosines.max()) == pytest.approx(coherence, abs=1e-9)


def test_a_single_key_has_any_coherence() -> None:
    assert np.linalg.norm(coherent(1, 4, 0.5, np.random.default_rng(0))) == pytest.approx(1)


def test_more_keys_than_dimensions_can_be_had_but_not_as_far_apart_as_wished() -> None:
    found = coherent(10, 3, 0.999, np.random.default_rng(0))
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(10))
    with pytest.raises(UsageError, match="10 random keys in 3 dimensions have"):
        coherent(10, 3, 0.1, np.random.default_rng(0))
    assert orthonormal(3, 5).tolist() == np.eye(3, 5).tolist()


# ------------------------------------------------------------------------------------------------ refusals


def plain(**changes: Any) -> Case:
    return Case(**({"means": EYE, "queries": EYE[:1]} | changes))


def built(keys: Any = 5, beta: Any = 10.0, looks: Any = ((0, 1),), **changes: Any) -> Case:
    return build(keys, beta, looks, **changes)


def wrong(matrix: Any) -> Any:
    return lambda: plain(extra={1: np.array(matrix)})


NAN_ROW: Floats = np.array([[1.0, math.nan, 0.0]])


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: built(0), ["keys is 0", "1 to 100,000"]),
        (lambda: built(-3), ["keys is -3"]),
        (lambda: built(2.5), ["keys is 2.5", "whole number"]),
        (lambda: built("3"), ["keys is '3'"]),
        (lambda: built(True), ["keys is True"]),
        (lambda: built(200_000), ["keys is 200000"]),
        (lambda: built(8000), ["8000 keys of 8000 dimensions", "fewer"]),
        (lambda: built(dimension=0), ["dimensions is 0"]),
        (lambda: built(dimension=-1), ["dimensions is -1"]),
        (lambda: built(dimension=7.5), ["dimensions is 7.5"]),
        (lambda: built(dimension=3), ["5 orthonormal keys need 5 dimensions and there are 3"]),
        (lambda: built(beta=math.inf), ["β is inf"]),
        (lambda: built(beta=math.nan), ["β is nan"]),
        (lambda: built(beta=1e9), ["β is 1e+09", "1e+08"]),
        (lambda: built(beta="ten"), ["β is 'ten'"]),
        (lambda: built(beta=None), ["β is of type NoneType"]),
        (lambda: built(alpha=-0.1), ["alpha is -0.1", "at least 0"]),
        (lambda: built(noise=-2), ["noise is -2", "at least 0"]),
        (lambda: built(noise=math.nan), ["noise is nan"]),
        (lambda: built(noise="much"), ["noise is 'much'"]),
        (lambda: built(alpha=math.inf), ["alpha is inf"]),
        (lambda: built(alpha=1e9), ["beyond 1e+08"]),
        (lambda: built(beta=1e8, alpha=1e6), ["Scores reach", "smaller β"]),
        (lambda: built(looks=[]), ["0 heads"]),
        (lambda: built(looks=[()]), ["no key"]),
        (lambda: built(looks=[(0, 5)]), ["Key 6 is named and there are 5"]),
        (lambda: built(looks=[(-1,)]), ["Key 0 is named and there are 5"]),
        (lambda: built(looks=[(1, 1)]), ["Key 2 is named twice"]),
        (lambda: built(looks=[(0.5,)]), ["Key 0.5 is named"]),
        (lambda: built(coherence=1.0), ["coherence is 1.0", "not including, 1"]),
        (lambda: built(coherence=-0.1), ["coherence is -0.1"]),
        (lambda: built(coherence=math.nan), ["coherence is nan"]),
        (lambda: built(coherence=0.01, dimension=2), ["coherence is 0.01", "5 random keys in 2 dimensions"]),
        (lambda: plain(means=[]), ["key means is empty"]),
        (lambda: plain(means=[[1, 2], [3]]), ["key means is not rectangular"]),
        (lambda: plain(means=[1.0, 2.0]), ["key means has shape (2,)"]),
        (lambda: plain(means=[["a"]]), ["key means holds", "not real"]),
        (lambda: plain(queries=NAN_ROW), ["queries holds NaN"]),
        (lambda: plain(queries=[[1.0, 2.0]]), ["Queries have 2 dimensions and keys 3"]),
        (lambda: plain(values=[[1.0]]), ["3 keys and 1 values"]),
        (lambda: plain(alpha=[0.1, 0.2]), ["3 keys and 2 variances (alpha)"]),
        (lambda: plain(noise=[0.1, -0.2, 0]), ["variance (noise) is -0.2"]),
        (lambda: plain(noise=[0.1, math.nan, 0]), ["variances (noise) holds NaN"]),
        (lambda: plain(combination=[0.5, 0.5]), ["There are 1 heads"]),
        (lambda: plain(looks=((0,), (1,))), ["1 heads and 2 sets"]),
        (lambda: plain(looks=((3,),)), ["Key 4 is named and there are 3"]),
        (lambda: plain(extra={7: EYE}), ["Key 8 is named and there are 3"]),
        (wrong([[1.0, 0.0], [0.0, 1.0]]), ["covariance of key 2 is 2×2", "3×3"]),
        (wrong([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]]), ["key 2 is not symmetric"]),
        (wrong([[1.0, 2.0, 0], [2, 1, 0], [0, 0, 1]]), ["key 2 is not positive semidefinite", "-1"]),
        (wrong([[math.inf, 0, 0], [0, 1, 0], [0, 0, 1]]), ["covariance of key 2 holds NaN or an infinite"]),
        (lambda: Setting("average", a=2, b=2).case(), ["both key 3"]),
        (lambda: Setting("heads", keys=1).case(), ["There is 1 key"]),
        (lambda: Setting("noise", b=20).case(), ["Key 21 is named and there are 20"]),
        (lambda: Setting("copy", a=-1).case(), ["Key 0 is named"]),
        (lambda: Setting("copy", seed=-1).case(), ["seed is -1"]),
        (lambda: experiment(Setting("copy"), 0), ["samples is 0"]),
        (lambda: simulate(plain(), np.random.default_rng(0), -5), ["samples is -5"]),
        (lambda: simulate(plain(), np.random.default_rng(0), 2.5), ["samples is 2.5"]),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_one_sentence_that_names_it(act: Any, words: list[str]) -> None:
    with pytest.raises(InklingError) as caught:
        act()
    said = str(caught.value)
    assert all(word in said for word in words), said
    assert said.endswith(".")
    assert "\n" not in said
    assert ". " not in said  # one sentence
