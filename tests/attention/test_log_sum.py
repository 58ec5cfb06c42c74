"""How likely a set of keys has less than a share of the weight: closed forms, other integrals, samples and laws."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.attention.arrays import Floats
from inkling.attention.head import softmax
from inkling.attention.log_sum import Law, LogSum, log_sum, probability_below, share_below
from inkling.attention.quadrature import normal_distribution

PHI = NormalDist().cdf


def expectation(law: Law, power: float) -> float:
    """E[e^{power·X}] from the density."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = np.diff(law.edges) / 2
    x = (law.edges[:-1] + half)[:, None] + half[:, None] * nodes
    return float(((law.density_at(x) * np.exp(power * x)) @ weights) @ half)


def pair_below(wide: tuple[float, float], thin: tuple[float, float], level: float) -> float:
    """P(e^A + e^B < e^level) as one integral over u, e^level − e^B = e^u, which is smooth."""
    u: Floats = level - 1e-4 * np.arange(1, 600_000, dtype=np.float64)
    share = np.exp(u - level)
    b = level + np.log1p(-share)
    density = np.exp(-0.5 * ((b - thin[0]) / thin[1]) ** 2) / (math.sqrt(2 * math.pi) * thin[1])
    return float((normal_distribution((u - wide[0]) / wide[1]) * density * share / (1 - share)).sum() * 1e-4)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
@pytest.mark.parametrize(
    ("means", "deviations"),
    [((1.0, 0.0), (2.0, 0.5)), ((3.0, -1.0), (0.001, 0.0)), ((0.0, 5.0), (30.0, 0.01)), ((1e4, 0.0), (7e3, 1.0))],
)
def test_of_two_keys_it_is_the_difference_of_two_normals(
    means: tuple[float, float], deviations: tuple[float, float], share: float
) -> None:
    logit = math.log(share / (1 - share))
    expected = PHI((logit - means[0] + means[1]) / math.hypot(*deviations))
    m, s = np.array(means), np.array(deviations)
    assert share_below(m, s, np.array([0]), share) == pytest.approx(expected, abs=1e-11)
    assert share_below(m, s, np.array([1]), 1 - share) == pytest.approx(1 - expected, abs=1e-11)


@pytest.mark.parametrize("keys", [2, 20, 1000])
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_one_noisy_key_against_certain_ones_is_phi(keys: int, noise: float) -> None:
    m, s = np.zeros(keys), np.zeros(keys)
    m[3 % keys], s[3 % keys] = 10, 10 * math.sqrt(noise)
    expected = PHI((math.log(keys - 1) / 10 - 1) / math.sqrt(noise))
    assert share_below(m, s, np.array([3 % keys]), 0.5) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("means", "deviations"),
    [
        (np.zeros(2), np.ones(2)),
        (np.zeros(19), np.full(19, 0.7)),
        (np.zeros(700), np.full(700, 0.3)),
        (np.array([0.0, 1.0, -2.0, 0.5]), np.array([0.5, 0.2, 1.2, 0.01])),
        (np.array([0.0, 0.0]), np.array([1e-5, 0.8])),
    ],
)
def test_sums_of_lognormals_have_the_moments_that_are_known(means: Floats, deviations: Floats) -> None:
    law = log_sum(means, deviations).noisy
    assert law is not None
    first = float(np.exp(means + deviations**2 / 2).sum())
    variance = float((np.exp(2 * means + deviations**2) * np.expm1(deviations**2)).sum())
    assert expectation(law, 0) == pytest.approx(1, abs=1e-10)
    assert expectation(law, 1) == pytest.approx(first, rel=1e-9)
    assert expectation(law, 2) == pytest.approx(first**2 + variance, rel=1e-7)


@pytest.mark.parametrize(
    ("wide", "thin", "level"),
    [
        ((10, 7), (10, 1.4), 9),
        ((10, 7), (10, 0.14), 10.5),
        ((10, 7), (10, 0.014), 10.01),
        ((-5, 1), (0, 0.01), 0.02),
        ((0, 100), (0, 1), 0.5),
        ((0, 1000), (0, 1), 0.5),
    ],
)
def test_an_almost_certain_score_beside_an_uncertain_one(
    wide: tuple[float, float], thin: tuple[float, float], level: float
) -> None:
    m, s = np.array([wide[0], thin[0], level]), np.array([wide[1], thin[1], 0.0])
    assert share_below(m, s, np.array([0, 1]), 0.5) == pytest.approx(pair_below(wide, thin, level), abs=1e-8)
    assert share_below(m, s, np.array([2]), 0.5) == pytest.approx(1 - pair_below(wide, thin, level), abs=1e-8)


@pytest.mark.parametrize("alpha", [1e-4, 1e-7, 1e-8, 1e-10, 1e-14, 1e-16, 1e-20])
def test_vanishing_noise_tends_to_none(alpha: float) -> None:
    """Each of these was once an error or a hang: eighteen almost certain scores beside one uncertain and one not."""
    m, s = np.zeros(20), np.full(20, 3 * math.sqrt(2 * alpha))
    m[:2], s[0] = 2.5, 3.0
    sure = np.where(np.arange(20) == 0, s, 0.0)
    limit = share_below(m, sure, np.array([0, 1]), 0.5)
    assert limit == pytest.approx(PHI((math.log(18 - math.exp(2.5)) - 2.5) / 3), abs=1e-12)
    assert share_below(m, s, np.array([0, 1]), 0.5) == pytest.approx(
        limit, abs=max(1e-9 if alpha > 1e-17 else 1e-3, 30 * alpha)
    )


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_it_agrees_with_samples(share: float) -> None:
    generator = np.random.default_rng(8)
    m, s = generator.normal(0, 1.5, 9), np.array([0.0, 0.0, 0.1, 0.1, 1.0, 1.0, 1.0, 3.0, 6.0])
    alpha = softmax(m + s * generator.normal(size=(100_000, 9)))
    for chosen in ([7], [4, 8], [0, 1, 2, 5, 6]):
        known = share_below(m, s, np.array(chosen), share)
        drawn = float((alpha[:, chosen].sum(axis=1) < share).mean())
        assert abs(drawn - known) < 4 * math.sqrt(known * (1 - known) / len(alpha))


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6), st.integers(2, 7), st.floats(-2, 4), st.floats(-3, 3))
def test_it_is_a_distribution_function_that_does_not_see_order_or_a_constant(
    seed: int, keys: int, log_size: float, log_noise: float
) -> None:
    generator = np.random.default_rng(seed)
    m = generator.normal(0, 10**log_size, keys)
    s = np.abs(generator.normal(0, 10**log_noise, keys)) * (generator.random(keys) < 0.7)
    s[0] += 10**log_noise
    chosen = np.arange(int(generator.integers(1, keys)))
    shares = (0.02, 0.5, 0.9)
    found = [share_below(m, s, chosen, share) for share in (-1.0, 0.0, *shares, 1.0, 2.0)]
    assert found[:2] == [0, 0]
    assert found[-2:] == [1, 1]
    assert all(low <= high + 1e-10 for low, high in itertools.pairwise(found))
    rest = np.arange(len(chosen), keys)
    for share, each in zip(shares, found[2:-2], strict=True):
        assert share_below(m, s, rest, 1 - share) == pytest.approx(1 - each, abs=1e-9)
    order = generator.permutation(keys)
    moved = share_below(m[order] - 3.0, s[order], np.flatnonzero(np.isin(order, chosen)), 0.5)
    assert moved == pytest.approx(found[3], abs=1e-9)


def test_below_means_below_where_nothing_is_uncertain() -> None:
    assert share_below(np.zeros(2), np.zeros(2), np.array([0]), 0.5) == 0
    assert share_below(np.zeros(4), np.zeros(4), np.array([1, 3]), 0.5) == 0
    assert share_below(np.zeros(4), np.zeros(4), np.array([1, 3]), 0.5001) == 1
    assert share_below(np.zeros(3), np.zeros(3), np.array([0]), 0.5) == 1
    assert share_below(np.array([1.0]), np.array([5.0]), np.array([0]), 0.999) == 0  # the only key has all of it
    assert probability_below(LogSum(1.0), LogSum(1.0)) == 0
    assert probability_below(LogSum(1.0), LogSum(1.0), 1e-9) == 1


@pytest.mark.parametrize("size", [1e4, 1e8])
def test_huge_scores_are_safe(size: float) -> None:
    m, s = size * np.array([1.0, 0.0, 0.0, 1.0]), size * np.array([0.7, 0.0, 1e-3, 0.0])
    assert share_below(m, s, np.array([0]), 0.5) == pytest.approx(0.5, abs=1e-9)
    assert share_below(m, s, np.array([0, 2]), 0.5) == pytest.approx(0.5, abs=1e-9)
    assert share_below(m, s, np.array([1]), 0.5) == pytest.approx(1, abs=1e-12)
