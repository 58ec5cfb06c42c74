"""Layers by hand: the check passes, and notices when any single derivative is off by one part in a hundred thousand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.models import gradients
from inkling.models.gradients import (
    ACTIVATIONS,
    Check,
    central_differences,
    check,
    cross_entropy,
    embedding,
    leaky_relu,
    logistic,
    mish,
    network,
    relative_error,
    relu,
    silu,
)

SLIP = 1 + 1e-5
DERIVATIVES = [
    *(("affine", i, name) for i, name in enumerate(("d_x", "d_W", "d_b"))),
    ("embedding", 0, "d_table"),
    *((activation, 0, "d_x") for activation in ACTIVATIONS),
    ("cross_entropy", 0, "d_logits"),
    *(("network", i, name) for i, name in enumerate(("d_x", "d_W1", "d_b1", "d_W2", "d_b2"))),
]
# What a wrong derivative of a layer does to the gradients of the network built from it.
THROUGH_NETWORK = {
    ("affine", 0): {"d_x", "d_W1", "d_b1"},  # d_h of the second layer reaches everything before it
    ("affine", 1): {"d_W1", "d_W2"},
    ("affine", 2): {"d_b1", "d_b2"},
    ("sigmoid", 0): {"d_x", "d_W1", "d_b1"},
    ("cross_entropy", 0): {"d_x", "d_W1", "d_b1", "d_W2", "d_b2"},
}


def spoil(layer: str, output: int, factor: float = SLIP) -> Callable[..., Any]:
    """The layer with its `output`-th gradient multiplied by `factor`."""
    right: Callable[..., Any] = getattr(gradients, layer)

    def wrong(*arguments: Any) -> tuple[Any, Callable[..., Any]]:
        y, backprop = right(*arguments)

        def spoiled(*d_y: Any) -> Any:
            found = backprop(*d_y)
            if isinstance(found, tuple):
                return tuple(g * factor if i == output else g for i, g in enumerate(found))
            return found * factor

        return y, spoiled

    return wrong


def failures(seed: int = 0) -> list[Check]:
    return [one for one in check(np.random.default_rng(seed)) if not one.passes]


@pytest.mark.parametrize("seed", range(5))
def test_every_gradient_agrees_with_differences_and_with_autograd(seed: int) -> None:
    checks = check(np.random.default_rng(seed))
    assert {(c.layer, c.gradient) for c in checks} == {(layer, name) for layer, _, name in DERIVATIVES}
    assert failures(seed) == []
    assert max(c.differences for c in checks) <= 1e-7
    assert max(c.autograd for c in checks) <= 1e-12


@pytest.mark.parametrize(("layer", "output", "name"), DERIVATIVES)
def test_one_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch, layer: str, output: int, name: str) -> None:
    monkeypatch.setattr(gradients, layer, spoil(layer, output))
    found = failures()
    assert [c.gradient for c in found if c.layer == layer] == [name]
    assert {c.gradient for c in found if c.layer == "network" and layer != "network"} == THROUGH_NETWORK.get(
        (layer, output), set()
    )
    assert {c.layer for c in found} <= {layer, "network"}


@pytest.mark.parametrize(("layer", "output", "name"), DERIVATIVES)
def test_a_slip_in_a_single_entry_is_found(monkeypatch: pytest.MonkeyPatch, layer: str, output: int, name: str) -> None:
    right = getattr(gradients, layer)

    def wrong(*arguments: Any) -> tuple[Any, Callable[..., Any]]:
        y, backprop = right(*arguments)

        def spoiled(*d_y: Any) -> Any:
            found = backprop(*d_y)
            gradient = (found[output] if isinstance(found, tuple) else found).copy()
            gradient[np.unravel_index(np.abs(gradient).argmax(), gradient.shape)] *= 1 + 1e-4
            if isinstance(found, tuple):
                return tuple(gradient if i == output else g for i, g in enumerate(found))
            return gradient

        return y, spoiled

    monkeypatch.setattr(gradients, layer, wrong)
    assert (layer, name) in {(c.layer, c.gradient) for c in failures()}


@pytest.mark.parametrize("factor", [float("nan"), 0.0, -1.0])
def test_a_derivative_that_is_no_number_or_of_the_wrong_sign_is_found(
    monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    monkeypatch.setattr(gradients, "sigmoid", spoil("sigmoid", 0, factor))
    assert "sigmoid" in {c.layer for c in failures()}


# ------------------------------------------------------------------------------------------------ the loss


def test_cross_entropy_of_certain_and_impossible_targets_at_ten_thousand() -> None:
    # ln Σ exp θ = 1e4 + ln(1 + e^−20000) = 1e4 in float64, so J = 1e4 − θ_target.
    logits = np.array([[1e4, -1e4]])
    assert cross_entropy(logits, np.array([[1.0, 0.0]]))[0] == 0.0
    assert cross_entropy(logits, np.array([[0.0, 1.0]]))[0] == 20_000.0
    assert cross_entropy(logits, np.array([[0.75, 0.25]]))[0] == 5_000.0
    assert cross_entropy(logits, np.array([[0.0, 1.0]]))[1]().tolist() == [[1.0, -1.0]]


def test_cross_entropy_of_equal_logits_is_the_logarithm_of_their_number() -> None:
    for level in (1e4, -1e4, 0.0):
        nats, backprop = cross_entropy(np.full((1, 8), level), np.eye(8)[:1])
        assert nats == np.log(8)
        assert backprop()[0] == pytest.approx([1 / 8 - 1] + [1 / 8] * 7, abs=1e-15)


def test_cross_entropy_by_hand_for_small_logits() -> None:
    # θ = (ln 1, ln 2, ln 5): softmax = (1, 2, 5)/8. A target of weight 3 on the last: 3 ln(8/5).
    logits = np.log([[1.0, 2.0, 5.0]])
    nats, backprop = cross_entropy(logits, np.array([[0.0, 0.0, 3.0]]))
    assert nats == pytest.approx(3 * np.log(8 / 5), rel=1e-15)
    assert backprop()[0] == pytest.approx([3 / 8, 6 / 8, 15 / 8 - 3], rel=1e-15)


def test_cross_entropy_is_a_sum_over_rows_not_a_mean() -> None:
    logits, targets = np.array([[0.0, 1.0, -2.0]]), np.array([[0.2, 0.3, 0.5]])
    once, back_once = cross_entropy(logits, targets)
    thrice, back_thrice = cross_entropy(np.repeat(logits, 3, 0), np.repeat(targets, 3, 0))
    assert thrice == pytest.approx(3 * once, rel=1e-15)
    assert np.array_equal(back_thrice(), np.repeat(back_once(), 3, 0))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([0.1, 10.0, 1e4]))
def test_rows_of_cross_entropy_know_nothing_of_each_other(seed: int, rows: int, scale: float) -> None:
    generator = np.random.default_rng(seed)
    logits, targets = generator.uniform(-scale, scale, (rows, 5)), generator.dirichlet(np.ones(5), rows)
    nats, backprop = cross_entropy(logits, targets)
    alone = [cross_entropy(logits[i : i + 1], targets[i : i + 1]) for i in range(rows)]
    assert nats == pytest.approx(sum(one for one, _ in alone), rel=1e-14)
    assert np.array_equal(backprop(), np.concatenate([back() for _, back in alone]))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.floats(-1e4, 1e4))
def test_adding_the_same_to_every_logit_changes_nothing(seed: int, shift: float) -> None:
    generator = np.random.default_rng(seed)
    logits, targets = generator.normal(0, 2, (2, 4)), generator.dirichlet(np.ones(4), 2)
    assert cross_entropy(logits + shift, targets)[0] == pytest.approx(cross_entropy(logits, targets)[0], rel=1e-10)


def test_the_network_adds_up_over_rows() -> None:
    generator = np.random.default_rng(4)
    x, W1, b1 = generator.normal(size=(3, 2)), generator.normal(size=(2, 4)), generator.normal(size=4)
    W2, b2, y = generator.normal(size=(4, 5)), generator.normal(size=5), generator.dirichlet(np.ones(5), 3)
    nats, backprop = network(x, W1, b1, W2, b2, y)
    parts = [network(x[i : i + 1], W1, b1, W2, b2, y[i : i + 1]) for i in range(3)]
    assert nats == pytest.approx(sum(part for part, _ in parts), rel=1e-14)
    for i, whole in enumerate(backprop()[1:], start=1):
        assert whole == pytest.approx(sum(back()[i] for _, back in parts), rel=1e-12)


# ------------------------------------------------------------------------------------------------ single layers


def test_activations_at_points_worked_out_by_hand() -> None:
    x = np.array([-2.0, 0.0, 3.0])
    assert relu(x)[0].tolist() == [0.0, 0.0, 3.0]
    assert relu(x)[1](np.ones(3)).tolist() == [0.0, 0.0, 1.0]
    assert leaky_relu(x)[0].tolist() == [-0.02, 0.0, 3.0]
    assert leaky_relu(x)[1](np.ones(3)).tolist() == [0.01, 0.01, 1.0]
    assert logistic(np.log([3.0, 1.0, 1 / 3])) == pytest.approx([0.75, 0.5, 0.25], rel=1e-15)
    assert silu(np.log([3.0]))[0] == pytest.approx(0.75 * np.log(3), rel=1e-15)
    # s(ln 3) = ln 4 and tanh(ln 4) = (16 − 1)/(16 + 1).
    assert mish(np.log([3.0]))[0] == pytest.approx(15 / 17 * np.log(3), rel=1e-14)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "relu", "leaky_relu", "silu", "mish"])
def test_no_activation_overflows(name: str) -> None:
    y, backprop = getattr(gradients, name)(np.array([-1e4, -745.0, 745.0, 1e4]))
    assert np.isfinite(y).all()
    assert np.isfinite(backprop(np.ones(4))).all()


def test_an_id_that_occurs_twice_gathers_both_gradients() -> None:
    y, backprop = embedding(np.arange(6.0).reshape(3, 2), np.array([2, 0, 2]))
    assert y.tolist() == [[4.0, 5.0], [0.0, 1.0], [4.0, 5.0]]
    assert backprop(np.array([[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]])).tolist() == [[3.0, 4.0], [0.0, 0.0], [11.0, 22.0]]


def test_central_differences_are_exact_for_a_parabola() -> None:
    x = np.array([[1.0, -2.0], [0.5, 3.0]])
    assert central_differences(lambda v: float((v**2).sum()), x) == pytest.approx(2 * x, abs=1e-9)


def test_the_relative_error_of_nothing_and_of_nonsense() -> None:
    assert relative_error(np.zeros(3), np.zeros(3)) == 0.0
    assert relative_error(np.array([3.0, 4.0]), np.zeros(2)) == 1.0
    assert relative_error(np.array([np.nan]), np.ones(1)) == float("inf")
