"""Products of the weights of two heads that share noise, against three other ways to know them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from inkling.attention.case import build
from inkling.attention.even_table import EvenTable
from inkling.attention.exact import exact
from inkling.attention.quadrature import weight_moments
from inkling.attention.simulate import simulate
from inkling.attention.two_heads import weight_products


def correlated(seed: int, keys: int, size: float, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Means (2×n), and factors (n×2×rank) of the covariance of each key's two scores."""
    generator = np.random.default_rng(seed)
    return generator.normal(0, 2, (2, keys)), generator.normal(0, size, (keys, 2, rank))


def test_of_independent_heads_it_is_the_product_of_means() -> None:
    generator = np.random.default_rng(1)
    means, deviations = generator.normal(0, 2, (2, 4)), generator.uniform(0, 3, (2, 4))
    covariances = np.stack([np.diag(column**2) for column in deviations.T])
    expected = np.prod([weight_moments(m, s).means for m, s in zip(means, deviations, strict=True)], axis=0)
    np.testing.assert_allclose(weight_products(means, covariances, range(4)), expected, atol=1e-11)


def test_of_equal_heads_it_is_the_second_moment() -> None:
    generator = np.random.default_rng(2)
    means, deviations = generator.normal(0, 2, 4), generator.uniform(0.1, 3, 4)
    covariances = np.stack([np.full((2, 2), deviation**2) for deviation in deviations])
    moments = weight_moments(means, deviations)
    found = weight_products(np.stack([means, means]), covariances, range(4))
    np.testing.assert_allclose(found, moments.variances + moments.means**2, atol=1e-11)


@pytest.mark.parametrize(("keys", "size", "rank"), [(2, 0.5, 2), (3, 1.0, 2), (4, 4.0, 1)])
def test_it_agrees_with_drawing_the_scores(keys: int, size: float, rank: int) -> None:
    means, factors = correlated(3, keys, size, rank)
    found = weight_products(means, np.einsum("ihr,igr->ihg", factors, factors), [0, 1])
    drawn = np.random.default_rng(4).normal(size=(100_000, keys, rank))
    scores = np.einsum("nir,ihr->nhi", drawn, factors) + means
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    weights /= weights.sum(axis=2, keepdims=True)
    products = weights[:, 0, :2] * weights[:, 1, :2]
    errors = products.std(axis=0) / math.sqrt(len(products))
    assert np.abs((products.mean(axis=0) - found) / errors).max() < 4


def test_two_keys_have_a_one_dimensional_form() -> None:
    """α = σ(d₁) and σ(d₂) with (d₁, d₂) normal: a plain double sum over two normal variables."""
    means, factors = correlated(5, 2, 0.7, 2)
    covariances = np.einsum("ihr,igr->ihg", factors, factors)
    difference, joint = means[:, 0] - means[:, 1], covariances.sum(axis=0)
    z = np.arange(-9, 9.01, 0.05)
    weights = 0.05 * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    factor = np.linalg.cholesky(joint)
    first = difference[0] + factor[0, 0] * z[:, None]
    second = difference[1] + factor[1, 0] * z[:, None] + factor[1, 1] * z
    product = 1 / (1 + np.exp(-first)) / (1 + np.exp(-second))
    assert weight_products(means, covariances, [0])[0] == pytest.approx(float(weights @ product @ weights), abs=1e-9)


def test_the_output_of_heads_that_share_noise_has_an_exact_variance() -> None:
    case = build(8, 6.0, [(0,), (1,)], dimension=16, alpha=0.05, noise=0.5, coherence=0.4)
    assert not case.heads_are_independent
    known, drawn = exact(case), simulate(case, np.random.default_rng(0), 100_000)
    for key in (0, 1):
        figure = drawn.coefficient_variance(key)
        assert abs(known.coefficient_variances[key] - figure.value) < 4 * figure.standard_error
    assert np.isnan(known.coefficient_variances[2:]).all()


def test_scores_that_are_too_wide_are_left_to_simulation() -> None:
    covariances = np.stack([50.0**2 * np.array([[1, 0.5], [0.5, 1]])] * 2)
    assert np.isnan(weight_products(np.zeros((2, 2)), covariances, [0])).all()


def test_a_table_is_read_between_its_points() -> None:
    points = np.linspace(0, 3, 61)
    table = EvenTable(0.0, 0.05, np.sin(points), 0.0, float(np.sin(3.0)))
    inside = np.linspace(0.3, 2.7, 77)
    np.testing.assert_allclose(table.at(inside), np.sin(inside), atol=1e-12)
    np.testing.assert_array_equal(table.at(np.array([-1.0, 9.0])), [0.0, np.sin(3.0)])
    assert table.high == pytest.approx(3.0)
