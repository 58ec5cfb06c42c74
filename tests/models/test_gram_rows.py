"""Rows of hashed runs of tokens are those of the written formula, at once or one by one."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.models.gpt import GPT, GPTConfig, initial_parameters
from inkling.models.grams import gram_rows_at, gram_rows_of


def config_of(rows: int = 1000, vocabulary: int = 50) -> GPTConfig:
    return GPTConfig(vocabulary, 8, 1, 1, mlp=0, grams=3, gram_rows=rows)


def row_in_whole_numbers(tokens: list[int], rows: int) -> int:
    """The formula with Python's numbers, which do not wrap around by themselves."""
    code = 0
    for token in tokens:
        code = code * 1_000_003 + token + 1
    mixed = code * -7_046_029_254_386_353_131 % 2**64
    return (mixed >> 33) % 2**31 % rows


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 4), st.integers(1, 2**31 - 1), st.integers(2, 2**20), st.integers(0, 2**30))
def test_every_place_has_the_row_of_the_tokens_that_end_there(n: int, rows: int, vocabulary: int, seed: int) -> None:
    config = config_of(rows, vocabulary)
    ids = np.random.default_rng(seed).integers(0, vocabulary, (3, 6))
    found = gram_rows_of(ids, n, config)
    assert found.shape == (3, 6)
    for text, row in zip(ids.tolist(), found.tolist(), strict=True):
        padded = [vocabulary] * (n - 1) + text
        assert row == [row_in_whole_numbers(padded[t : t + n], rows) for t in range(6)]
    assert torch.equal(gram_rows_of(torch.from_numpy(ids), n, config), torch.from_numpy(found))
    places = np.array([0, 5, 2])
    assert gram_rows_at(ids, places, n, config).tolist() == found[np.arange(3), places].tolist()


def test_what_comes_later_is_not_read() -> None:
    ids = np.random.default_rng(0).integers(0, 50, (2, 9))
    changed = ids.copy()
    changed[:, 5:] = 10**9  # not even a token
    assert gram_rows_at(changed, np.array([4, 3]), 3, config_of()).tolist() == [
        gram_rows_of(ids, 3, config_of())[0, 4],
        gram_rows_of(ids, 3, config_of())[1, 3],
    ]


def test_runs_spread_over_the_rows() -> None:
    """All 2500 runs of two of 50 tokens in 4096 rows: at least as many rows as balls thrown at random would hit."""
    first, second = np.divmod(np.arange(2500), 50)
    rows = gram_rows_of(np.stack([first, second], axis=1), 2, config_of(4096))[:, 1]
    expected = 4096 * (1 - (1 - 1 / 4096) ** 2500)
    assert len(set(rows.tolist())) > expected - 4 * 22  # a deviation is 22 rows


def test_a_table_starts_silent_and_then_speaks_where_its_run_ends() -> None:
    config = config_of()
    parameters = initial_parameters(config, np.random.default_rng(0))
    assert parameters["grams.4"].shape == (1000, 8)
    assert not any(parameters[name].any() for name in ("grams.2", "grams.3", "grams.4"))
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    before = GPT(config, parameters).log_probs(ids)
    parameters["grams.3"][gram_rows_of(ids, 3, config)[0, 3]] = 1.0
    after = GPT(config, parameters).log_probs(ids)
    assert torch.equal(before[:, :3], after[:, :3])
    assert float((before[:, 3] - after[:, 3]).abs().max()) > 0.01
