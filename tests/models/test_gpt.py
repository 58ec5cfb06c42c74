"""The transformer: the plain form against the fused one, the law of its parts, and what a touch changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from inkling.errors import UsageError
from inkling.models.contracts import Attentive, Touch
from inkling.models.gpt import GPT, GPTConfig, forward, initial_parameters, rms_norm, rotary_turns, turned
from inkling.models.gpt_loss import IGNORED, Batch, GPTLoss, batch_of

KINDS = [
    GPTConfig(11, 16, 2, 2, mlp=0, context=12, query_key_norm=False, tied=False),
    GPTConfig(11, 16, 3, 4, mlp=20, context=12, query_key_norm=True, tied=True),
    GPTConfig(11, 12, 1, 3, mlp=8, context=12, query_key_norm=True, tied=False, rotary_base=100.0),
    GPTConfig(11, 16, 2, 4, mlp=12, context=12, key_value_heads=2, norm_epsilon=1e-3),
    GPTConfig(11, 16, 2, 2, mlp=12, context=12, activation="squared_relu", grams=2, gram_rows=23),
]


def model_of(config: GPTConfig, dtype: torch.dtype = torch.float64, seed: int = 0) -> GPT:
    generator = np.random.default_rng(seed)
    found = initial_parameters(config, generator)
    for value in found.values():  # gains of one would hide a forgotten gain
        value += torch.from_numpy(generator.normal(0, 0.1, value.shape))
    return GPT(config, {name: value.to(dtype) for name, value in found.items()})


def some_ids(texts: int = 3, times: int = 9, seed: int = 1) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 11, (texts, times)))


@pytest.mark.parametrize("config", KINDS)
@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_looking_sees_what_the_fast_way_computes(config: GPTConfig, dtype: torch.dtype, near: float) -> None:
    model, ids = model_of(config, dtype), some_ids()
    look = model.look(ids)
    fast = torch.log_softmax(forward(model.parameters, config, ids), dim=-1)
    torch.testing.assert_close(look.log_probs, fast, rtol=0, atol=near)
    torch.testing.assert_close(model.log_probs(ids), fast, rtol=0, atol=0)
    torch.testing.assert_close(torch.log_softmax(model.unembed(look.residual), -1), look.log_probs, rtol=0, atol=near)


def test_a_look_holds_what_the_contract_says() -> None:
    model: Attentive = model_of(KINDS[0])
    look = model.look(some_ids(3, 9))
    assert (model.layers, model.heads, len(look.scores)) == (2, 2, 2)
    assert look.scores[0].shape == look.weights[0].shape == (3, 2, 9, 9)
    assert look.outputs[0].shape == (3, 2, 9, 16)
    assert look.residual.shape == (3, 9, 16)
    assert look.log_probs.shape == (3, 9, 11)
    later = torch.ones(9, 9, dtype=torch.bool).triu(1)
    for scores, weights in zip(look.scores, look.weights, strict=True):
        assert bool((scores.isneginf() == later).all())
        torch.testing.assert_close(torch.softmax(scores, -1), weights)
        torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 9, dtype=torch.float64))


def test_without_a_gated_layer_embedding_and_heads_add_up_to_the_residual() -> None:
    model, ids = model_of(KINDS[0]), some_ids()
    look = model.look(ids)
    added = sum((outputs.sum(1) for outputs in look.outputs), model.parameters["embedding"][ids])
    torch.testing.assert_close(look.residual, added, rtol=0, atol=1e-12)


@pytest.mark.parametrize("config", KINDS)
def test_a_place_sees_nothing_that_comes_later(config: GPTConfig) -> None:
    model, ids = model_of(config), some_ids()
    changed = ids.clone()
    changed[:, 6:] = (changed[:, 6:] + 1) % 11
    before, after = model.log_probs(ids), model.log_probs(changed)
    torch.testing.assert_close(before[:, :6], after[:, :6], rtol=0, atol=1e-12)
    assert float((before[:, 6:] - after[:, 6:]).abs().max()) > 0.01


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_turned_queries_and_keys_know_only_their_distance(a: int, b: int, shift: int) -> None:
    config = GPTConfig(11, 16, 1, 2, context=64)
    generator = np.random.default_rng(a * 41 + b)
    q, k = (torch.from_numpy(generator.normal(size=8)).expand(64, 8) for _ in range(2))
    turns = rotary_turns(config, 64, torch.float64)
    products = turned(q, turns) @ turned(k, turns).T
    assert float(products[a, b]) == pytest.approx(float(products[a + shift, b + shift]), abs=1e-12)
    assert float(turned(q, turns)[a].norm()) == pytest.approx(float(q[0].norm()), rel=1e-12)


def test_the_first_pair_of_coordinates_turns_by_one_radian_a_place() -> None:
    cosine, sine = rotary_turns(GPTConfig(11, 16, 1, 2), 4, torch.float64)
    assert float(cosine[3, 0]) == pytest.approx(math.cos(3))
    assert float(sine[2, 3]) == pytest.approx(math.sin(2 * 10_000 ** (-6 / 8)))


def test_heads_that_share_keys_do_what_equal_keys_of_their_own_would_do() -> None:
    shared = model_of(GPTConfig(11, 16, 2, 4, mlp=12, context=12, key_value_heads=2))
    copied = {
        name: value.view(16, 2, 1, 4).expand(16, 2, 2, 4).reshape(16, 16) if name[-2:] in (".k", ".v") else value
        for name, value in shared.parameters.items()
    }
    own = GPT(GPTConfig(11, 16, 2, 4, mlp=12, context=12), copied)
    torch.testing.assert_close(shared.log_probs(some_ids()), own.log_probs(some_ids()), rtol=0, atol=1e-12)


def test_the_norm_makes_the_mean_square_one() -> None:
    x = torch.tensor([3.0, -4.0], dtype=torch.float64)
    expected = torch.tensor([3.0, -8.0], dtype=torch.float64) / math.sqrt(12.5)
    gain = torch.tensor([1.0, 2.0], dtype=torch.float64)
    torch.testing.assert_close(rms_norm(x, gain), expected, rtol=1e-6, atol=0)


def test_a_replaced_head_adds_the_vector_and_lower_layers_stay() -> None:
    model, ids = model_of(KINDS[1]), some_ids()
    plain = model.look(ids)
    vector = torch.arange(16, dtype=torch.float64) / 10
    touched = model.look(ids, Touch(replaced={(1, 2): vector}))
    assert bool((touched.outputs[1][:, 2] == vector).all())
    torch.testing.assert_close(touched.weights[1], plain.weights[1], rtol=0, atol=0)
    torch.testing.assert_close(touched.outputs[1][:, :2], plain.outputs[1][:, :2], rtol=0, atol=0)
    assert float((touched.weights[2] - plain.weights[2]).abs().max()) > 1e-3
    same = model.look(ids, Touch(replaced={(2, 0): plain.outputs[2][:, 0]}))  # its own output back in its place
    torch.testing.assert_close(same.log_probs, plain.log_probs, rtol=0, atol=0)


def test_noise_on_keys_touches_one_head_and_is_a_function_of_the_seed_and_the_text() -> None:
    model, ids = model_of(KINDS[1]), some_ids(4)
    plain, noisy = model.look(ids), model.look(ids, Touch(key_noise={(1, 0): 0.1}, seed=5))
    assert float((noisy.weights[1][:, 0] - plain.weights[1][:, 0]).abs().max()) > 1e-3
    torch.testing.assert_close(noisy.weights[1][:, 1:], plain.weights[1][:, 1:], rtol=0, atol=0)
    again = model.look(ids, Touch(key_noise={(1, 0): 0.1}, seed=5))
    other = model.look(ids, Touch(key_noise={(1, 0): 0.1}, seed=6))
    torch.testing.assert_close(again.log_probs, noisy.log_probs, rtol=0, atol=0)
    assert float((other.log_probs - noisy.log_probs).abs().max()) > 1e-4
    half = model.look(ids[2:], Touch(key_noise={(1, 0): 0.1}, seed=5, first_text=2))
    torch.testing.assert_close(half.log_probs, noisy.log_probs[2:], rtol=0, atol=1e-12)


def test_noise_has_the_deviation_that_was_asked_for() -> None:
    """A score moves by q·ε/√d, ε of deviation share × root-mean-square length of the keys along every direction."""
    config = GPTConfig(11, 8, 1, 1, mlp=0, context=400, query_key_norm=False)
    model = model_of(config)
    ids = torch.from_numpy(np.random.default_rng(3).integers(0, 11, (1, 400)))
    plain, noisy = model.look(ids), model.look(ids, Touch(key_noise={(0, 0): 0.2}))
    moved = (noisy.scores[0] - plain.scores[0])[0, 0, -1]  # of the last query, which sees all keys
    read = rms_norm(model.parameters["embedding"][ids[0]], model.parameters["layers.0.attention_norm"])
    q, k = read[-1] @ model.parameters["layers.0.q"], read @ model.parameters["layers.0.k"]
    expected = 0.2 * float(k.square().sum(-1).mean().sqrt()) * float(q.norm()) / math.sqrt(8)
    assert float(moved.std()) == pytest.approx(expected, rel=0.15)  # 400 draws: ± 3.5 %


@pytest.mark.parametrize("config", KINDS)
def test_the_gradient_is_that_of_central_differences(config: GPTConfig) -> None:
    parameters = model_of(config).tensors()
    loss = GPTLoss(config, parameters)
    batch = batch_of([row[:length].numpy() for row, length in zip(some_ids(), (9, 4, 7), strict=True)])
    nats, tokens = loss.gradient(batch, 0)
    assert tokens == 8 + 3 + 6
    generator = np.random.default_rng(2)
    directions = {name: torch.from_numpy(generator.normal(size=value.shape)) for name, value in parameters.items()}
    slopes = {}
    for name, value in parameters.items():  # before any is overwritten below
        assert value.grad is not None
        slopes[name] = float((value.grad * directions[name]).sum())
    for name, value in parameters.items():
        sides = []
        for step in (1e-6, -1e-6):
            moved = parameters | {name: value + step * directions[name]}
            sides.append(GPTLoss(config, moved).gradient(batch, 0)[0])
        assert slopes[name] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6, abs=1e-6), name
    assert nats > 0


def test_filling_up_changes_no_number() -> None:
    model, texts = model_of(KINDS[1]), [row[:length].numpy() for row, length in zip(some_ids(), (9, 4, 7), strict=True)]
    together = GPTLoss(model.config, model.tensors())
    nats, _ = together.gradient(batch_of(texts), 0)
    sums = {name: torch.zeros_like(value) for name, value in together.parameters.items()}
    alone = 0.0
    for text in texts:
        single = GPTLoss(model.config, {name: value.clone() for name, value in model.parameters.items()})
        alone += single.gradient(batch_of([text]), 0)[0]
        for name, value in single.parameters.items():
            assert value.grad is not None
            sums[name] += value.grad
    assert nats == pytest.approx(alone, rel=1e-12)
    for name, value in together.parameters.items():
        torch.testing.assert_close(value.grad, sums[name], rtol=1e-9, atol=1e-11)


def test_the_loss_is_the_nats_of_the_targets_that_count() -> None:
    model, ids = model_of(KINDS[0]), some_ids(2, 5)
    targets = ids[:, 1:].numpy().copy()
    targets[0, 1] = IGNORED
    nats, tokens = GPTLoss(model.config, model.tensors()).gradient(Batch(ids[:, :-1].numpy(), targets), 0)
    costs = -model.log_probs(ids).numpy()
    expected = sum(costs[b, t, ids[b, t + 1]] for b in range(2) for t in range(4) if (b, t) != (0, 1))
    assert tokens == 7
    assert nats == pytest.approx(float(expected), rel=1e-12)
    assert not any(value.requires_grad for value in model.tensors().values())


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"vocabulary": 1}, "vocabulary of a GPT is 1; give at least 2 tokens"),
        ({"layers": 0}, "layers of a GPT is 0"),
        ({"mlp": -1}, "or 0 for attention only"),
        ({"dimension": 30, "heads": 4}, "give a multiple of 8"),
        ({"rotary_base": 1.0}, "a number above 1"),
        ({"norm_epsilon": 0.0}, "a small number above 0"),
        ({"activation": "relu"}, "activation of a GPT is relu; give one of gated, squared_relu"),
        ({"grams": 4, "gram_rows": 8}, "grams of a GPT is 4; give 0 for none, or up to 3 tables"),
        ({"grams": 1}, "gram_rows of a GPT is 0; give the rows of each table"),
        ({"heads": 4, "key_value_heads": 3}, "which 4 heads cannot share evenly; give a divisor of 4"),
    ],
)
def test_sizes_that_cannot_be_are_refused(sizes: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        GPTConfig(**{"vocabulary": 11, **sizes})  # type: ignore[arg-type]


def test_what_the_model_cannot_read_is_refused() -> None:
    model = model_of(KINDS[0])
    for ids, touch, sentence in [
        (some_ids(1, 13), None, "has 13 tokens, but this model reads 12 at most"),
        (some_ids(1, 5) + 11, None, "but this model knows 0 to 10"),
        (some_ids(1, 5)[0], None, "texts × tokens"),
        (some_ids(1, 5).double(), None, "give whole numbers"),
        (some_ids(1, 5), Touch(key_noise={(2, 0): 0.1}), "There is no head 0 in layer 2"),
        (some_ids(1, 5), Touch(replaced={(0, 5): torch.zeros(16)}), "There is no head 5 in layer 0"),
    ]:
        with pytest.raises(UsageError, match=sentence):
            model.look(ids, touch)
    with pytest.raises(UsageError, match="Text 2 of the batch has fewer than 2 tokens"):
        batch_of([np.arange(3), np.arange(1)])
    with pytest.raises(UsageError, match="The batch has no texts"):
        batch_of([])
