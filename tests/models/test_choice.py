"""Choosing for many rows at once, and from many tokens: the same tokens as one by one, ranking everything."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.models import choice
from inkling.models.choice import Chooser, SamplingConfig, choose

CONFIGS = [
    SamplingConfig(),
    SamplingConfig(temperature=0.6),
    SamplingConfig(temperature=0),
    SamplingConfig(top_k=3),
    SamplingConfig(top_k=700, min_p=0.001),
    SamplingConfig(top_p=0.9),
    SamplingConfig(top_p=0.999),
    SamplingConfig(min_p=0.05),
    SamplingConfig(temperature=1.7, top_k=50, top_p=0.8, min_p=0.01, repetition_penalty=1.5),
    SamplingConfig(temperature=float("inf")),
    SamplingConfig(temperature=float("inf"), top_p=0.5),
]


def some_rows(count: int, size: int, seed: int = 0) -> Any:
    """Log-probabilities with equals and impossible ones among them."""
    random = np.random.default_rng(seed)
    values = np.round(random.dirichlet(np.full(size, 0.1), count), 7)
    with np.errstate(divide="ignore"):
        return np.log(values)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(2, 60), st.lists(st.sampled_from(CONFIGS), min_size=1, max_size=12))
def test_a_row_is_chosen_for_as_if_it_were_alone(seed: int, size: int, configs: list[SamplingConfig]) -> None:
    rows = np.maximum(some_rows(len(configs), size, seed), -40)
    recent = [[i % size, (i + 1) % size] for i in range(len(configs))]
    generators = [np.random.default_rng((seed, i)) for i in range(len(configs))]
    together = Chooser(configs, generators, 0).choose(rows, recent)
    for i, config in enumerate(configs):
        assert choose(rows[i], config, np.random.default_rng((seed, i)), 0, recent[i]) == together[i]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_ranking_only_the_likeliest_changes_no_choice(
    config: SamplingConfig, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = some_rows(40, 3000, seed)
    found = []
    for wide, first in ((1024, 128), (1024, 2), (10**6, 128)):
        monkeypatch.setattr(choice, "WIDE", wide)
        monkeypatch.setattr(choice, "RANKED_FIRST", first)
        generators = [np.random.default_rng((seed, i)) for i in range(len(rows))]
        found.append(Chooser([config] * len(rows), generators, 7).choose(rows, [[1, 2]] * len(rows)).tolist())
    assert found[0] == found[1] == found[2]


def test_a_row_without_any_chance_is_marked_and_leaves_the_others() -> None:
    rows = np.log(np.array([[0.5, 0.5], [1.0, 1e-300], [0.5, 0.5]]))
    rows[1] = [0.0, -np.inf]
    generators = [np.random.default_rng(i) for i in range(3)]
    assert Chooser([SamplingConfig()] * 3, generators, never=0).choose(rows, [[]] * 3).tolist() == [1, -1, 1]
