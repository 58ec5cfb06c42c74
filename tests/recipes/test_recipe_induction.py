"""The texts that repeat themselves, and the training on them. That it grows induction heads: tests/explain."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from inkling.errors import UsageError
from inkling.models.gpt import GPT, GPTConfig, initial_parameters
from inkling.recipes.induction import (
    BEGIN,
    LENGTH,
    LONGEST,
    SHORTEST,
    TOKENS,
    Repeats,
    cost_of_parts,
    repeats,
    repeats_batch,
    train_induction,
)
from inkling.training.loop import Step


def test_a_text_begins_then_repeats_a_stretch_of_different_tokens() -> None:
    found = repeats(np.random.default_rng(0), 200)
    assert found.ids.shape == (200, LENGTH)
    assert set(found.periods.tolist()) == set(range(SHORTEST, LONGEST + 1))  # 200 texts: no length is left out
    for ids, period in zip(found.ids.tolist(), found.periods.tolist(), strict=True):
        assert ids[0] == BEGIN
        assert len(set(ids[1 : 1 + period])) == period
        assert ids[1 + period :] == ids[1:-period]
    assert set(found.ids[:, 1:].ravel().tolist()) == set(range(TOKENS))


def test_random_and_certain_tokens_leave_out_the_beginning_and_the_surprise() -> None:
    found = Repeats(np.zeros((1, 9), np.int64), np.array([3]))
    assert np.flatnonzero(found.random[0]).tolist() == [1, 2, 3]
    assert np.flatnonzero(found.certain[0]).tolist() == [5, 6, 7, 8]


def test_a_batch_is_a_function_of_step_and_seed() -> None:
    first, again = repeats_batch(3, 1), repeats_batch(3, 1)
    assert (first.inputs == again.inputs).all()
    assert (first.inputs[:, 1:] == first.targets[:, :-1]).all()
    assert (repeats_batch(4, 1).inputs != first.inputs).any()
    assert (repeats_batch(3, 2).inputs != first.inputs).any()


def test_a_model_that_knows_nothing_pays_the_logarithm_of_the_vocabulary() -> None:
    config = GPTConfig(TOKENS + 1, 8, 1, 1, mlp=0, context=LENGTH)
    nothing = {
        name: torch.zeros_like(value) for name, value in initial_parameters(config, np.random.default_rng()).items()
    }
    texts = repeats(np.random.default_rng(0), 5)
    found = cost_of_parts(GPT(config, nothing), texts)
    assert found.random_nats == pytest.approx(math.log(TOKENS + 1), rel=1e-6)
    assert found.certain_nats == pytest.approx(math.log(TOKENS + 1), rel=1e-6)
    assert found.random_tokens == texts.periods.sum()
    assert found.certain_tokens == (LENGTH - 2 - texts.periods).sum()
    with pytest.raises(UsageError, match="no texts"):
        cost_of_parts(GPT(config, nothing), Repeats(texts.ids[:0], texts.periods[:0]))


def test_training_tells_its_steps_and_is_a_function_of_the_seed() -> None:
    seen: list[Step] = []
    first = train_induction(5, steps=3, progress=seen.append)
    again, other = train_induction(5, steps=3), train_induction(6, steps=3)
    assert [step.step for step in seen] == [1, 2, 3]
    assert seen[0].nats / seen[0].tokens == pytest.approx(math.log(TOKENS + 1), abs=0.6)  # a random start
    for name, value in first.parameters.items():
        assert bool((value == again.parameters[name]).all())
    assert bool((first.parameters["layers.0.q"] != other.parameters["layers.0.q"]).any())
    assert (first.layers, first.heads, first.config.mlp) == (2, 4, 0)
