"""The forward pass of training gives the numbers of the plain one, and so do its gradients by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from inkling.models.gpt import GPTConfig, forward, initial_parameters
from inkling.models.gpt_loss import Batch, GPTLoss
from inkling.models.gpt_training import dropping, fits, training_logits, zero_start

SIZES = GPTConfig(11, 16, 2, 2, mlp=12, context=16, tied=False, rotary_base=50.0)


def parameters(config: GPTConfig) -> dict[str, Tensor]:
    """In double precision, with gains that are not 1."""
    generator = np.random.default_rng(3)
    drawn = initial_parameters(config, generator)
    return {name: p.double() + 0.2 * torch.from_numpy(generator.normal(size=p.shape)) for name, p in drawn.items()}


@pytest.mark.parametrize("tied", [False, True])
def test_logits_and_gradients_are_those_of_the_plain_form(tied: bool) -> None:
    config = GPTConfig(11, 16, 2, 2, mlp=12, context=16, tied=tied, rotary_base=50.0)
    live = {name: p.requires_grad_() for name, p in parameters(config).items()}
    ids, targets = torch.arange(39).view(3, 13) * 7 % 11, torch.arange(39) * 5 % 11
    plain, fast = forward(live, config, ids).flatten(0, 1), training_logits(live, config, ids)
    torch.testing.assert_close(fast, plain, atol=1e-12, rtol=0)
    for expected, found in zip(
        *(
            torch.autograd.grad(functional.cross_entropy(logits, targets), list(live.values()))
            for logits in (plain, fast)
        ),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_it_is_made_for_the_usual_sizes_only() -> None:
    assert fits(SIZES)
    assert not fits(GPTConfig(11, 16, 2, 2, mlp=0))
    assert not fits(GPTConfig(11, 16, 2, 2, mlp=12, query_key_norm=False))
    assert not fits(GPTConfig(11, 16, 2, 2, mlp=12, key_value_heads=1))


def test_what_is_dropped_is_decided_by_seed_and_step() -> None:
    ids = np.arange(26).reshape(2, 13) % 11
    batch = Batch(ids[:, :-1], ids[:, 1:])

    def nats(seed: int, step: int, dropout: float = 0.3) -> float:
        return GPTLoss(SIZES, parameters(SIZES), dropout, seed).gradient(batch, step)[0]

    assert nats(0, 4) == nats(0, 4)
    assert len({nats(0, 4), nats(0, 5), nats(1, 4), nats(0, 4, dropout=0.0)}) == 4


def test_dropping_keeps_the_mean() -> None:
    drop = dropping(0.25, 1)
    assert drop is not None
    found = drop(torch.ones(100_000))
    assert sorted(set(found.tolist())) == pytest.approx([0, 4 / 3])
    assert float(found.mean()) == pytest.approx(1, abs=4 * np.sqrt(1 / 3 / 100_000))
    assert dropping(0.0, 1) is None


def test_at_a_zero_start_every_token_is_as_likely() -> None:
    config = SIZES
    quiet = zero_start(initial_parameters(config, np.random.default_rng(0)))
    logits = training_logits(quiet, config, torch.arange(8).view(1, 8))
    assert not logits.any()
    assert quiet["layers.0.q"].any()
