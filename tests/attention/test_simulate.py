"""Samples: of the same law as keys that are drawn whole, the same for any number of threads, in bounded memory."""

from __future__ import annotations

import dataclasses
import json
import math
import tracemalloc

import numpy as np
import pytest

from inkling.attention import simulate as simulate_module
from inkling.attention.arrays import Floats
from inkling.attention.case import Case, build
from inkling.attention.exact import exact
from inkling.attention.head import softmax
from inkling.attention.simulate import LEAST_PARTS, Simulated, _Plan, chosen_keys, simulate

DRAWS = 40_000


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def draw_keys(case: Case, source: np.random.Generator, count: int) -> Floats:
    """The keys themselves, d numbers each: count×n×d."""
    d = case.dimension
    drawn = []
    for key, mean in enumerate(case.means):
        covariance = case.alpha[key] * np.eye(d) + case.noise[key] * np.outer(mean, mean) + case.extra.get(key, 0.0)
        drawn.append(source.multivariate_normal(mean, covariance, count, method="eigh"))
    return np.stack(drawn, axis=1)


def correlated_case() -> Case:
    source = generator(7)
    factor = source.normal(0, 0.5, (6, 2))
    return Case(
        means=source.normal(size=(4, 6)),
        queries=source.normal(size=(2, 6)),
        values=source.normal(size=(4, 3)),
        alpha=np.array([0.0, 0.1, 0.3, 0.0]),
        noise=np.array([0.5, 0.0, 0.2, 0.0]),
        extra={3: factor @ factor.T},
        combination=np.array([0.3, 1.5]),
        looks=((0, 1), (2,)),
    )


@pytest.mark.parametrize(
    "case",
    [
        correlated_case(),
        dataclasses.replace(correlated_case(), scaled=True),
        dataclasses.replace(correlated_case(), queries=np.tile(correlated_case().queries[:1], (2, 1))),
        build(6, 4.0, [(0,), (1,)], dimension=9, alpha=0.05, noise=0.5),
        build(6, 4.0, [(0,), (1,)], dimension=9, alpha=0.05, noise=0.5, coherence=0.6),
    ],
    ids=["correlated", "scaled", "equal heads", "independent", "coherent"],
)
def test_scores_alone_have_the_law_of_keys_that_are_drawn_whole(case: Case) -> None:
    keys = draw_keys(case, generator(1), DRAWS)
    weights = softmax(case.scale * np.einsum("cnd,hd->chn", keys, case.queries))  # draws×H×n
    mixed = np.einsum("chn,h->cn", weights, case.mixing)
    found = simulate(case, generator(2), 100_000)
    tolerance = 4.5 * math.sqrt(1 / DRAWS + 1 / found.samples)
    assert (np.abs(found.mean_weights - weights.mean(axis=0)) <= tolerance * weights.std(axis=0) + 1e-6).all()
    for key in case.named_keys:
        squares = (mixed[:, key] - mixed[:, key].mean()) ** 2
        difference = abs(found.coefficient_variance(key).value - squares.mean())
        assert difference <= tolerance * squares.std() + 1e-9
    for head, looks in enumerate(case.looks):
        P = float((weights[:, head, list(looks)].sum(axis=1) < 0.5).mean())
        assert abs(found.failure(head).value - P) < tolerance * math.sqrt(P * (1 - P)) + 1e-9
    all_fail = np.all([weights[:, h, list(looks)].sum(axis=1) < 0.5 for h, looks in enumerate(case.looks)], axis=0)
    assert abs(found.all_fail / found.samples - all_fail.mean()) <= tolerance * all_fail.std() + 1e-9
    outputs = mixed if case.values is None else mixed @ case.values
    assert (np.abs(found.mean_output()[0] - outputs.mean(axis=0)) <= tolerance * outputs.std(axis=0) + 1e-6).all()


def test_equal_heads_are_equal_in_every_sample() -> None:
    found = simulate(build(8, 6.0, [(0, 1), (0, 1)], alpha=0.1, noise=0.5), generator(), 20_000)
    np.testing.assert_allclose(found.kept_weights[:, 0], found.kept_weights[:, 1], atol=1e-5)


def arrays(found: Simulated) -> dict[str, object]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(found).items()
        if name != "case"
    }


def test_threads_change_nothing_and_seeds_everything() -> None:
    case = build(50, 5.0, [(0,), (1,)], alpha=0.1, noise=0.5)
    runs = [simulate(case, generator(3), 30_000, keep=1500, threads=threads) for threads in (1, 2, None)]
    assert len(runs[0].kept_weights) == 1500
    for other in runs[1:]:
        assert arrays(other) == arrays(runs[0])
    assert simulate(case, generator(4), 30_000).weight_sums.tolist() != runs[0].weight_sums.tolist()


def test_samples_that_are_kept_are_the_first_ones() -> None:
    case = build(20, 5.0, [(0, 1)], alpha=0.1, noise=0.5)
    whole = simulate(case, generator(5), 30_000, keep=30_000)
    part = simulate(case, generator(5), 30_000, keep=7001)
    for name in ("kept_weights", "kept_coefficients", "kept_leads"):
        assert getattr(part, name).tolist() == getattr(whole, name)[:7001].tolist()
    assert part.weight_sums.tolist() == whole.weight_sums.tolist()
    mean = whole.kept_weights[:, 0, 0].astype(np.float64).mean()
    assert mean == pytest.approx(whole.mean_weight(0, 0).value, abs=1e-7)
    shares = whole.kept_weights[:, 0, 0] / whole.kept_weights[:, 0].sum(axis=1)
    np.testing.assert_allclose(1 / (1 + np.exp(-whole.kept_leads[:, 0].astype(np.float64))), shares, atol=1e-5)


def peak(case: Case, samples: int) -> int:
    tracemalloc.start()
    simulate(case, generator(), samples, keep=1000, threads=1)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_memory_does_not_grow_with_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate_module, "PART_NUMBERS", 1 << 15)
    case = build(128, 5.0, [(0,), (1,)], noise=0.5, alpha=0.1)
    few = LEAST_PARTS * (1 << 15) // (case.keys * case.heads)  # from here on parts are as large as they get
    peak(case, few)  # what is made once
    assert peak(case, 5 * few) < 1.3 * peak(case, few) < 10e6


@pytest.mark.parametrize(("beta", "dtype"), [(10.0, np.float32), (48.0, np.float32), (49.0, np.float64)])
def test_large_scores_are_drawn_in_double_precision(beta: float, dtype: type) -> None:
    """β + 6β√½ passes 256 between 48 and 49."""
    assert _Plan(build(5, beta, [(0,)], noise=0.5)).dtype == dtype


@pytest.mark.parametrize("beta", [48.0, 49.0, 1e4, -1e4, 1e8])
def test_large_scores_are_right(beta: float) -> None:
    case = build(20, beta, [(0,), (1,)], noise=0.5, alpha=0.01)
    known, found = exact(case), simulate(case, generator(6), 50_000)
    assert found.weight_sums.sum(axis=1) == pytest.approx(np.full(2, 50_000), rel=1e-6)
    for head, law in enumerate(known.heads):
        P = law.failure_probability
        assert abs(found.failure(head).value - P) < 4.5 * math.sqrt(P * (1 - P) / 50_000) + 1e-9
        errors = np.sqrt(law.weight_variances / 50_000)
        assert (np.abs(found.mean_weights[head] - law.mean_weights) <= 4.5 * errors + 1e-6).all()


@pytest.mark.parametrize("keys", [20, 1000, 5000])
def test_many_keys_without_noise_lose_no_digits(keys: int) -> None:
    """The sum of thousands of small numbers in single precision was off by a hundred thousandth."""
    means = np.zeros((keys, 1))
    means[0] = 1
    found = simulate(Case(means, np.array([[10.3]])), generator(), 64)
    expected = 1 / (1 + (keys - 1) * math.exp(-10.3))
    assert found.mean_weight(0, 0).value == pytest.approx(expected, rel=2e-6)
    assert found.mean_weight(0, 0).standard_error == 0


def test_estimates_are_those_of_plain_arithmetic() -> None:
    case = build(5, 3.0, [(0,), (1,)], noise=0.5, alpha=0.2)
    found = simulate(case, generator(9), 4000, keep=4000)
    weights = found.kept_weights.astype(np.float64)
    one, parts = weights[:, 0, 0], found.kept_coefficients.astype(np.float64)[:, 0]
    assert found.mean_weight(0, 0).value == pytest.approx(one.mean(), rel=1e-6)
    assert found.mean_weight(0, 0).standard_error == pytest.approx(one.std() / math.sqrt(4000), rel=1e-4)
    assert found.weight_variance(0, 0).value == pytest.approx(one.var(), rel=1e-6)
    spread = ((one - one.mean()) ** 2).std() / math.sqrt(4000)
    assert found.weight_variance(0, 0).standard_error == pytest.approx(spread, rel=1e-4)
    assert found.mean_coefficient(0).value == pytest.approx(parts.mean(), rel=1e-6)
    assert found.coefficient_variance(0).value == pytest.approx(parts.var(), rel=1e-5)
    assert found.failure(0).value == (one < 0.5).mean()
    assert found.quantile(0, 0, 0.25) == pytest.approx(np.quantile(one, 0.25))
    assert found.weight_below(0, 0, 0.5).value == (one <= 0.5).mean()
    assert json.loads(json.dumps(found.to_json()))["samples"] == 4000


def test_one_sample_is_enough_to_run() -> None:
    found = simulate(build(3, 2.0, [(0,)], noise=0.5), generator(), 1)
    assert found.weight_sums.sum() == pytest.approx(1)


def test_keys_are_chosen_as_often_as_their_weights_say() -> None:
    scores = np.array([2.0, 0.0, -1.0, 1.0])
    counts = chosen_keys(scores, generator(1), 100_000)
    p = softmax(scores)
    assert counts.sum() == 100_000
    assert (np.abs(counts / 100_000 - p) < 4 * np.sqrt(p * (1 - p) / 100_000)).all()
