"""What is known without drawing: closed forms, bounds that are never broken, and numbers that were published."""

from __future__ import annotations

import json
import math
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.attention.case import Case, build
from inkling.attention.exact import LogitNormal, exact, failure_formula, logistic, margin_bound
from inkling.attention.head import softmax
from inkling.attention.log_sum import share_below

PHI = NormalDist().cdf


# ------------------------------------------------------------------------------------------------ without noise


@pytest.mark.parametrize("keys", [2, 3, 20, 1000])
@pytest.mark.parametrize("beta", [0.0, 1.0, 10.0, -3.0])
def test_copying_and_averaging_have_the_weights_of_their_formulas(keys: int, beta: float) -> None:
    t = math.exp(beta)
    copy = exact(build(keys, beta, [(0,)])).heads[0]
    assert copy.mean_weights[0] == pytest.approx(t / (t + keys - 1), rel=1e-10)
    assert copy.weights_at_means[-1] == pytest.approx(1 / (t + keys - 1), rel=1e-12)
    assert copy.bound == pytest.approx(copy.weights_at_means[0], rel=1e-12)  # the others are equal: the bound is met
    assert not copy.weight_variances.any()
    average = exact(build(keys, beta, [(0, 1)])).heads[0]
    assert average.mean_weights[:2] == pytest.approx(np.full(2, t / (2 * t + keys - 2)), rel=1e-10)


def test_alignment_alone_gives_an_eighth_among_twenty() -> None:
    found = exact(build(20, 1.0, [(4,)])).heads[0]
    assert found.mean_weights[4] == pytest.approx(math.e / (math.e + 19))
    assert f"{found.mean_weights[4]:.1%}" == "12.5%"


def test_a_weight_of_exactly_one_half_is_no_failure() -> None:
    assert exact(build(2, 0.0, [(0,)])).heads[0].failure_probability == 0
    assert exact(build(4, 0.0, [(0, 1)])).heads[0].failure_probability == 0
    assert exact(build(3, 0.0, [(0,)])).heads[0].failure_probability == 1
    assert exact(build(1, 5.0, [(0,)])).heads[0].failure_probability == 0


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.integers(2, 60), st.floats(-2, 4.5), st.integers(1, 60))
def test_the_bound_of_a_margin_is_never_broken(seed: int, keys: int, log_size: float, wanted: int) -> None:
    wanted = min(wanted, keys - 1)
    generator = np.random.default_rng(seed)
    scores = generator.normal(0, 10**log_size, keys)
    if seed % 2:
        scores = np.sort(scores)[::-1]
    margin = float(scores[:wanted].min() - scores[wanted:].max())
    assert softmax(scores)[:wanted].sum() >= margin_bound(keys, margin, wanted) * (1 - 1e-12)


def test_the_bound_at_its_ends() -> None:
    assert margin_bound(5, math.inf, 5) == 1
    assert margin_bound(5, 1e6) == 1
    assert margin_bound(5, -1e6) == 0
    assert margin_bound(5, -1e6, 5) == 1
    assert margin_bound(20, 0.0) == pytest.approx(1 / 20)


# ------------------------------------------------------------------------------------------------ failure


@pytest.mark.parametrize("keys", [2, 20, 1000])
@pytest.mark.parametrize("beta", [0.5, 10.0, 1e4, -10.0, 0.0])
@pytest.mark.parametrize("noise", [0.5, 0.02, 0.0])
def test_the_formula_of_failure_is_the_integral(keys: int, beta: float, noise: float) -> None:
    case = build(keys, beta, [(0,), (1,)], noise=noise)
    assert failure_formula(keys, beta, noise) == pytest.approx(exact(case).heads[0].failure_probability, abs=1e-10)


def test_failure_is_as_published() -> None:
    assert failure_formula(20, 10, 0.5) == pytest.approx(PHI(math.sqrt(2) * (math.log(19) / 10 - 1)), abs=1e-15)
    assert f"{failure_formula(20, 10, 0.5):.1%}" == "15.9%"
    assert f"{failure_formula(20, 1e8, 0.5):.1%}" == f"{PHI(-math.sqrt(2)):.1%}" == "7.9%"
    assert failure_formula(1, 10, 0.5) == 0


def test_with_noise_everywhere_two_keys_still_have_a_closed_form() -> None:
    beta, alpha, noise = 4.0, 0.3, 0.5
    found = exact(build(2, beta, [(0,), (1,)], alpha=alpha, noise=noise))
    deviation = beta * math.sqrt(2 * alpha + noise)
    assert found.heads[0].failure_probability == pytest.approx(PHI(-beta / deviation), abs=1e-11)
    assert found.heads[1].failure_probability == pytest.approx(PHI(-1 / math.sqrt(2 * alpha)), abs=1e-11)


def test_with_noise_everywhere_failure_agrees_with_keys_that_are_drawn() -> None:
    n, d, beta, alpha, noise, N = 5, 6, 4.0, 0.1, 0.5, 50_000
    generator = np.random.default_rng(1)
    keys = np.eye(n, d) + math.sqrt(alpha) * generator.normal(size=(N, n, d))
    keys[:, 0, 0] += math.sqrt(noise) * generator.normal(size=N)
    weights = softmax(beta * keys[:, :, 0])
    known = exact(build(n, beta, [(0,)], dimension=d, alpha=alpha, noise=noise)).heads[0]
    P = known.failure_probability
    assert abs((weights[:, 0] < 0.5).mean() - P) < 4 * math.sqrt(P * (1 - P) / N)
    errors = np.sqrt(known.weight_variances / N)
    assert (np.abs(weights.mean(axis=0) - known.mean_weights) < 4 * errors).all()


def test_quantiles_undo_the_distribution() -> None:
    case = build(6, 3.0, [(0, 1)], alpha=0.05, noise=0.5)
    law = exact(case).heads[0]
    for p in (0.05, 0.5, 0.95):
        below = share_below(law.score_means, law.score_deviations, np.array([0, 1]), law.quantile(p))
        assert below == pytest.approx(p, abs=1e-8)
    sure = exact(build(6, 3.0, [(0,)])).heads[0]
    assert sure.quantile(0.3) == sure.weights_at_means[0]


# ------------------------------------------------------------------------------------------------ pairs and outputs


def test_the_share_of_one_of_two_is_logit_normal() -> None:
    pair = exact(build(20, 10.0, [(0, 1)], alpha=0.01, noise=0.5)).heads[0].pair
    assert pair is not None
    assert pair.mean == pytest.approx(0)
    assert pair.deviation == pytest.approx(10 * math.sqrt(4 * 0.01 + 0.5))
    for p in (0.01, 0.3, 0.5, 0.99):
        assert pair.below(pair.quantile(p)) == pytest.approx(p, abs=1e-9)
    assert [pair.below(x) for x in (-1.0, 0.0, 1.0, 2.0)] == [0, 0, 1, 1]
    step = LogitNormal(1.0, 0.0)
    assert (step.below(logistic(0.999)), step.below(logistic(1.001))) == (0, 1)
    assert logistic(-1e9) == pytest.approx(0, abs=1e-300)
    assert logistic(1e9) == 1


def test_the_mean_and_variance_of_a_logit_normal_share_are_those_of_a_sum_over_a_grid() -> None:
    found = exact(build(2, 3.0, [(0, 1)], alpha=0.02, noise=0.5))
    pair = found.heads[0].pair
    assert pair is not None
    z = np.arange(-9, 9, 0.05)
    mass = 0.05 * np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
    share = 1 / (1 + np.exp(-pair.mean - pair.deviation * z))
    assert found.mean_coefficients[0] == pytest.approx(mass @ share, abs=1e-10)
    assert found.coefficient_variances[0] == pytest.approx(mass @ share**2 - (mass @ share) ** 2, abs=1e-10)


def test_two_heads_in_the_limit_have_the_published_mean_and_variance() -> None:
    P = PHI(-math.sqrt(2))
    found = exact(build(20, 1e6, [(0,), (1,)], noise=0.5))
    assert found.mean_coefficients[0] == pytest.approx((1 - P) / 2, abs=1e-5)
    assert found.coefficient_variances[0] == pytest.approx(P * (1 - P) / 4, abs=1e-5)
    assert (round(found.mean_coefficients[0], 3), round(found.coefficient_variances[0], 3)) == (0.461, 0.018)
    single = exact(build(20, 1e6, [(0, 1)], noise=0.5))
    assert single.mean_coefficients[0] == pytest.approx(0.5, abs=1e-5)
    assert single.coefficient_variances[0] == pytest.approx(0.25, abs=1e-4)


def test_the_same_query_twice_changes_nothing() -> None:
    one, two = (exact(build(10, 5.0, looks, alpha=0.02, noise=0.5)) for looks in ([(0, 1)], [(0, 1)] * 2))
    np.testing.assert_allclose(two.coefficient_variances, one.coefficient_variances, atol=1e-14)
    np.testing.assert_allclose(two.mean_coefficients, one.mean_coefficients, atol=1e-14)


def test_values_are_mixed_by_mean_coefficients() -> None:
    values = np.random.default_rng(0).normal(size=(5, 3))
    case = build(5, 2.0, [(0,), (1,)], noise=0.5, values=values)
    found = exact(case)
    np.testing.assert_allclose(found.mean_output, found.mean_coefficients @ values, atol=1e-14)
    assert found.mean_coefficients.sum() == pytest.approx(1, abs=1e-11)


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 10**6), st.floats(-20, 20))
def test_what_all_keys_have_in_common_changes_nothing(seed: int, common: float) -> None:
    generator = np.random.default_rng(seed)
    means, query = generator.normal(size=(4, 3)), generator.normal(size=(1, 3))
    factor = generator.normal(0, 0.7, (3, 3))
    plain = exact(Case(means, query, extra={0: factor @ factor.T}))
    wider = np.pad(factor @ factor.T, (0, 1))  # no noise along what is added
    longer = Case(np.column_stack([means, np.full(4, common)]), np.array([[*query[0], 3.0]]), extra={0: wider})
    found = exact(longer)
    assert longer.score_means[0] == pytest.approx((means @ query[0]) + 3 * common)
    np.testing.assert_allclose(found.mean_coefficients, plain.mean_coefficients, atol=1e-10)
    np.testing.assert_allclose(found.coefficient_variances, plain.coefficient_variances, atol=1e-10)
    assert found.heads[0].failure_probability == pytest.approx(plain.heads[0].failure_probability, abs=1e-10)


@pytest.mark.parametrize("beta", [1e4, -1e4, 1e8])
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_a_huge_beta_is_safe(beta: float, noise: float, alpha: float) -> None:
    for looks in ([(0, 1)], [(0,), (1,)]):
        found = exact(build(20, beta, looks, alpha=alpha, noise=noise))
        assert np.isfinite(found.mean_coefficients).all()
        assert np.isfinite(found.coefficient_variances).all()
        assert found.mean_coefficients.sum() == pytest.approx(1, abs=1e-9)
        for law in found.heads:
            assert 0 <= law.failure_probability <= 1
            assert law.weights_at_means.sum() == pytest.approx(1, abs=1e-12)


def test_json_has_every_head() -> None:
    found = json.loads(json.dumps(exact(build(3, 2.0, [(0,), (1,)], noise=0.5)).to_json()))
    assert [head["looks"] for head in found["heads"]] == [[0], [1]]
    assert sum(found["mean_coefficients"]) == pytest.approx(1)
