"""Training by hand gives the numbers of the plain form, whoever does the parts and however texts are shared out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from inkling.errors import InklingError, UsageError
from inkling.models import gpt_training
from inkling.models.gpt import GPTConfig, forward, initial_parameters
from inkling.models.gpt_loss import IGNORED, Batch, GPTLoss, batch_of
from inkling.models.gpt_training import PLACES_AT_ONCE, runs_of, share_rows, zero_start
from inkling.models.kernels import load
from inkling.training.loop import TrainingConfig, train
from inkling.training.optimisers import Group, descend
from inkling.training.state import TrainingState

SIZES = GPTConfig(11, 16, 2, 2, mlp=12, context=16, tied=False, rotary_base=50.0)
KINDS = {
    "usual": SIZES,
    "tied": replace(SIZES, tied=True),
    "shared keys": replace(SIZES, heads=4, key_value_heads=2, norm_epsilon=1e-3),
    "one key for all, no norm of it": replace(SIZES, heads=4, key_value_heads=1, query_key_norm=False),
    "squared": replace(SIZES, activation="squared_relu", mlp=21),
    "runs of tokens": replace(SIZES, grams=3, gram_rows=17),
    "all of it": replace(SIZES, activation="squared_relu", grams=1, gram_rows=5, tied=True, key_value_heads=1),
}
every_kind = pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())


def parameters(config: GPTConfig, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """With gains that are not 1 and tables that are not 0."""
    generator = np.random.default_rng(3)
    drawn = initial_parameters(config, generator)
    return {
        name: (p.double() + 0.2 * torch.from_numpy(generator.normal(size=p.shape))).to(dtype)
        for name, p in drawn.items()
    }


def ragged() -> Batch:
    """Seven texts of 2 to 16 tokens, one of them with nothing to predict and others with gaps."""
    generator = np.random.default_rng(8)
    batch = batch_of([generator.integers(0, 11, size) for size in (9, 16, 2, 5, 16, 11, 7)])
    batch.targets[3] = IGNORED
    batch.targets[1, :4] = batch.targets[5, 6] = IGNORED
    return batch


def plain_gradient(config: GPTConfig, batch: Batch) -> tuple[float, dict[str, Tensor]]:
    """In double precision, by autograd."""
    live = {name: p.requires_grad_() for name, p in parameters(config).items()}
    logits, targets = forward(live, config, torch.from_numpy(batch.inputs)), torch.from_numpy(batch.targets)
    nats = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum")
    return float(nats.detach()), dict(zip(live, torch.autograd.grad(nats, list(live.values())), strict=True))


def gradient(loss: GPTLoss, batch: Batch, step: int = 0) -> tuple[float, dict[str, Tensor]]:
    nats, _ = loss.gradient(batch, step)
    return nats, {name: p.grad.clone() for name, p in loss.parameters.items() if p.grad is not None}


def furthest(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    """Over all parameters, relative to the largest number of each."""
    assert found.keys() == expected.keys()
    return max(float((found[name] - value).abs().max() / value.abs().max()) for name, value in expected.items())


@every_kind
@pytest.mark.parametrize("workers", [1, 3])
def test_the_gradient_is_that_of_autograd_through_the_plain_form(
    config: GPTConfig, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpt_training, "PLACES_AT_ONCE", 30)  # several runs for each worker
    expected = plain_gradient(config, ragged())
    loss = GPTLoss(config, parameters(config), workers=workers)
    assert not loss.kernels.compiled
    nats, found = gradient(loss, ragged())
    assert nats == pytest.approx(expected[0], rel=1e-13)
    assert furthest(found, expected[1]) < 1e-12
    assert loss.gradient(ragged(), 1) == (nats, float((ragged().targets != IGNORED).sum()))


@every_kind
@pytest.mark.parametrize("switch", ["on", "off"])
def test_single_precision_comes_as_near_with_and_without_kernels(
    config: GPTConfig, switch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INKLING_KERNELS", switch)
    loss = GPTLoss(config, parameters(config, torch.float32), workers=2)
    assert loss.kernels.compiled == (switch == "on" and load().compiled)
    expected = plain_gradient(config, ragged())
    nats, found = gradient(loss, ragged())
    assert nats == pytest.approx(expected[0], rel=1e-6)
    assert furthest(found, expected[1]) < 3e-5  # what each part rounds grows through the layers


def test_any_number_of_workers_leaves_out_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(workers: int, at_once: int = PLACES_AT_ONCE) -> tuple[float, dict[str, Tensor]]:
        monkeypatch.setattr(gpt_training, "PLACES_AT_ONCE", at_once)
        return gradient(GPTLoss(SIZES, parameters(SIZES), dropout=0.3, workers=workers), ragged(), 4)

    alone, others = found(1), [found(3), found(2, 20), found(20)]
    for nats, gradients in others:
        assert nats == pytest.approx(alone[0], rel=1e-13)
        assert furthest(gradients, alone[1]) < 1e-12
    again = found(3)
    assert again[0] == others[0][0]
    assert all(torch.equal(again[1][name], value) for name, value in others[0][1].items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_dropped_is_decided_by_seed_and_step(dtype: torch.dtype) -> None:
    def nats(seed: int, step: int, dropout: float = 0.3) -> float:
        return GPTLoss(SIZES, parameters(SIZES, dtype), dropout, seed).gradient(ragged(), step)[0]

    assert nats(0, 4) == nats(0, 4)
    assert len({nats(0, 4), nats(0, 5), nats(1, 4), nats(0, 4, dropout=0.0)}) == 4


def test_with_dropout_the_gradient_is_that_of_what_is_left() -> None:
    loss = GPTLoss(SIZES, parameters(SIZES), dropout=0.4, workers=2)
    _, found = gradient(loss, ragged(), 2)
    for name, place in (("layers.0.q", 37), ("layers.1.down", 5), ("embedding", 20), ("layers.0.mlp_norm", 3)):
        values = loss.parameters[name].view(-1)
        middle, sides = float(values[place]), []
        for step in (1e-5, -1e-5):
            values[place] = middle + step
            sides.append(loss.gradient(ragged(), 2)[0])
        values[place] = middle
        assert float(found[name].view(-1)[place]) == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-6, abs=1e-8)


def test_texts_without_a_target_cost_nothing() -> None:
    empty = Batch(np.zeros((2, 5), np.int64), np.full((2, 5), IGNORED))
    loss = GPTLoss(SIZES, parameters(SIZES), workers=2)
    assert loss.gradient(empty, 0) == (0, 0)
    assert not any(p.grad.any() for p in loss.parameters.values() if p.grad is not None)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 40), max_size=30), st.integers(1, 5))
def test_each_text_is_given_to_one_worker_and_shares_are_alike(lengths: list[int], workers: int) -> None:
    sizes = np.array(lengths, np.int64)
    shares = share_rows(sizes, workers)
    assert sorted(np.concatenate(shares).tolist()) == np.flatnonzero(sizes).tolist()
    totals = [int(sizes[rows].sum()) for rows in shares]
    assert max(totals) - min(totals) <= 2 * max(lengths, default=0)
    for rows in shares:
        assert (np.diff(sizes[rows]) <= 0).all()
        assert [row for run in runs_of(sizes[rows]) for row in rows[run].tolist()] == rows.tolist()


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_weight_that_is_no_number_stops_training(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INKLING_KERNELS", switch)
    for name in ("embedding", "layers.0.q", "layers.0.k_norm", "layers.1.gate", "layers.1.down", "output"):
        for wrong in (float("nan"), float("inf")):
            broken = parameters(SIZES, torch.float32)
            broken[name].view(-1)[0] = wrong
            state = TrainingState(broken)
            with pytest.raises(InklingError, match="no longer a number"):
                next(train(GPTLoss(SIZES, broken), lambda step: ragged(), TrainingConfig(steps=1), state))


def steps_of(precision: gpt_training.Precision, steps: int = 40) -> list[float]:
    """Losses while learning to say 3x + 1 after x."""
    loss = GPTLoss(SIZES, zero_start(initial_parameters(SIZES, np.random.default_rng(0))), precision=precision)
    inputs = np.random.default_rng(1).integers(0, 11, (8, 16))
    batch, moments, found = Batch(inputs, (3 * inputs + 1) % 11), dict[str, Tensor](), []
    for step in range(steps):
        nats, tokens = loss.gradient(batch, step)
        for p in loss.parameters.values():
            assert p.dtype == torch.float32
            assert p.grad is not None
            p.grad.div_(tokens)
        descend((Group("layers.*", "muon", 0.5), Group("*")), loss.parameters, moments, 0.03, step + 1)
        found.append(nats / tokens)
    return found


def test_training_in_bfloat16_goes_the_way_of_single_precision() -> None:
    single, half = (np.array(steps_of(precision)) for precision in ("float32", "bfloat16"))
    assert single[0] == pytest.approx(np.log(11))
    assert single[-1] < 0.1
    assert np.abs(half - single).max() < 0.03
    assert (half != single)[1:].all()


@pytest.mark.parametrize(
    "options", [{"workers": 0}, {"precision": "float16"}, {"dropout": 1.0}, {"dropout": -0.1}], ids=str
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"^{next(iter(options))} of a transformer's training is"):
        GPTLoss(SIZES, parameters(SIZES), **options)  # type: ignore[arg-type]


def test_texts_longer_than_the_context_train_and_unknown_tokens_do_not() -> None:
    short = replace(SIZES, context=6)
    loss = GPTLoss(short, parameters(short, torch.float32))
    assert gradient(loss, ragged())[0] == pytest.approx(plain_gradient(SIZES, ragged())[0], rel=1e-6)
    for place, sentence in ((0, "The inputs of a batch go from 0 to 11"), (1, "The targets of a batch go from -2 to ")):
        batch = ragged()
        (batch.inputs, batch.targets)[place][4, 2] = (11, -2)[place]
        with pytest.raises(UsageError, match=f"{sentence}.*but this model knows 0 to 10"):
            loss.gradient(batch, 0)


def test_attention_alone_has_no_dropout() -> None:
    config = GPTConfig(11, 16, 2, 2, mlp=0)
    with pytest.raises(UsageError, match="0 without mlp"):
        GPTLoss(config, parameters(config), dropout=0.1)


def test_at_a_zero_start_every_token_is_as_likely() -> None:
    quiet = zero_start(initial_parameters(SIZES, np.random.default_rng(0)))
    nats, tokens = GPTLoss(SIZES, quiet).gradient(ragged(), 0)
    assert nats == pytest.approx(tokens * np.log(11), rel=1e-6)
    assert quiet["layers.0.q"].any()
