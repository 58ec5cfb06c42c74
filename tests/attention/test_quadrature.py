"""Means, variances and products of the weights of noisy attention, against sums over grids, samples and laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.attention.arrays import Floats
from inkling.attention.head import softmax
from inkling.attention.quadrature import gauss_nodes, normal_distribution, weight_moments


def on_a_grid(means: Floats, deviations: Floats, step: float) -> tuple[Floats, Floats]:
    """E[αᵢ] and E[αᵢαₖ] by the trapezoid rule in as many dimensions as there are noisy keys."""
    z = np.arange(-9, 9 + step / 2, step)
    density = step * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    places = [z if deviation else np.zeros(1) for deviation in deviations]
    weights = [density if deviation else np.ones(1) for deviation in deviations]
    scores = np.stack(np.meshgrid(*places, indexing="ij"), -1).reshape(-1, len(means)) * deviations + means
    mass = np.prod(np.stack(np.meshgrid(*weights, indexing="ij"), -1).reshape(-1, len(means)), axis=1)
    alpha = softmax(scores)
    return mass @ alpha, (alpha * mass[:, None]).T @ alpha


@pytest.mark.parametrize(
    ("means", "deviations", "step"),
    [
        ([0.0, 0.0], [0.3, 0.0], 0.05),
        ([1.0, -2.0], [1.0, 2.5], 0.1),
        ([3.0, 0.0], [4.0, 0.2], 0.05),
        ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], 0.25),
        ([2.0, 0.0, -1.0], [0.5, 1.5, 0.0], 0.1),
        ([-4.0, 0.5, 1.0], [2.0, 0.05, 1.2], 0.2),
    ],
)
def test_two_and_three_keys_are_what_nested_sums_give(means: list[float], deviations: list[float], step: float) -> None:
    m, s = np.array(means), np.array(deviations)
    first, second = on_a_grid(m, s, step)
    found = weight_moments(m, s, products=True)
    assert found.products is not None
    np.testing.assert_allclose(found.means, first, atol=1e-10)
    np.testing.assert_allclose(found.products, second, atol=1e-10)
    np.testing.assert_allclose(found.variances, np.diag(second) - first**2, atol=1e-10)


def test_without_noise_it_is_softmax() -> None:
    scores = np.random.default_rng(0).normal(0, 5, 30)
    found = weight_moments(scores, np.zeros(30), products=True)
    assert found.products is not None
    np.testing.assert_allclose(found.means, softmax(scores), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found.products, np.outer(softmax(scores), softmax(scores)), atol=1e-13)
    assert not found.variances.any()


@pytest.mark.parametrize("deviation", [1e-4, 1e-3])
def test_a_little_noise_is_the_derivative_of_softmax(deviation: float) -> None:
    scores = np.array([1.0, 0.0, -1.0, 0.5])
    p = softmax(scores)
    slope = np.diag(p) - np.outer(p, p)
    found = weight_moments(scores, np.full(4, deviation))
    np.testing.assert_allclose(found.variances, (slope**2).sum(axis=1) * deviation**2, rtol=5 * deviation)


def test_it_agrees_with_samples() -> None:
    generator = np.random.default_rng(3)
    m, s = generator.normal(0, 2, 6), np.array([0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
    alpha = softmax(m + s * generator.normal(size=(100_000, 6)))
    found = weight_moments(m, s, products=True)
    assert found.products is not None
    assert (np.abs(alpha.mean(axis=0) - found.means) < 4 * np.sqrt(found.variances / len(alpha))).all()
    for i, k in itertools.combinations_with_replacement(range(6), 2):
        product = alpha[:, i] * alpha[:, k]
        assert abs(product.mean() - found.products[i, k]) < 4 * product.std() / math.sqrt(len(alpha))


@pytest.mark.parametrize("deviation", [0.1, 1.0, 30.0, 1e4, 1e8])
@pytest.mark.parametrize("keys", [1, 2, 1000, 100_000])
def test_equal_keys_share_equally(keys: int, deviation: float) -> None:
    found = weight_moments(np.full(keys, 5.0), np.full(keys, deviation))
    np.testing.assert_allclose(found.means, 1 / keys, rtol=1e-9)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 9), st.floats(-3, 4), st.floats(-4, 4))
def test_means_sum_to_one_and_rows_of_products_to_means(
    seed: int, keys: int, log_size: float, log_noise: float
) -> None:
    generator = np.random.default_rng(seed)
    m = generator.normal(0, 10**log_size, keys)
    s = np.abs(generator.normal(0, 10**log_noise, keys)) * (generator.random(keys) < 0.7)
    found = weight_moments(m, s, products=True)
    assert found.products is not None
    assert found.means.sum() == pytest.approx(1, abs=1e-10)
    np.testing.assert_allclose(found.products.sum(axis=1), found.means, atol=1e-10)
    assert (found.variances >= 0).all()
    order = generator.permutation(keys)
    moved = weight_moments(m[order] + 17.0, s[order])  # and a constant changes nothing
    np.testing.assert_allclose(moved.means, found.means[order], atol=1e-10)
    np.testing.assert_allclose(moved.variances, found.variances[order], atol=1e-10)


def test_scores_of_a_hundred_million_lose_nothing() -> None:
    for size in (1e4, 1e8):
        found = weight_moments(np.array([size, 0.0, 0.0, size]), np.array([0.7 * size, 0.0, 0.0, 0.0]))
        assert found.means == pytest.approx([0.5, 0, 0, 0.5], abs=1e-4 if size < 1e5 else 1e-7)
        assert found.means.sum() == pytest.approx(1, abs=1e-9)
        sure = weight_moments(np.array([size, size - 1, size]), np.zeros(3))
        assert sure.means == pytest.approx(softmax(np.array([1.0, 0.0, 1.0])), abs=1e-10)


def test_the_normal_distribution_has_both_tails() -> None:
    at = np.array([-30.0, -1.0, 0.0, 1.0, 30.0])
    expected = [math.erfc(-x / math.sqrt(2)) / 2 for x in at]
    assert normal_distribution(at) == pytest.approx(expected, rel=1e-13)


def test_gauss_nodes_integrate_over_the_whole_of_all_zones() -> None:
    nodes, weights = gauss_nodes([(-2.0, 5.0, math.inf), (0.0, 3.0, 0.7), (2.9, 8.0, 2.0)])
    assert weights.sum() == pytest.approx(10)
    assert np.cos(nodes) @ weights == pytest.approx(math.sin(8) + math.sin(2), abs=1e-13)
