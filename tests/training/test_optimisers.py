"""Optimisers against what their authors wrote, done plainly, and against torch's own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from inkling.errors import UsageError
from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.training.optimisers import Group, assign, descend, orthogonal
from inkling.training.state import Parameters

GPT_GROUPS = (
    Group("layers.*", "muon", decay=0.1),
    Group("embedding", factor=0.1),
    Group("output", factor=0.2, decay=0.1),
    Group("*", factor=0.3, betas=(0.8, 0.95)),
)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def with_values(values: Tensor, rows: int, columns: int, seed: int) -> Tensor:
    """A random matrix (rows ≤ columns) with these singular values."""
    left = torch.linalg.qr(random(rows, rows, seed=seed))[0]
    right = torch.linalg.qr(random(columns, rows, seed=seed + 1))[0]
    return torch.as_tensor(left @ torch.diag(values) @ right.T)


def go(groups: tuple[Group, ...], parameters: Parameters, steps: int, rate: float) -> dict[str, Tensor]:
    """So many steps on gradients that are a function of the step and the parameter; gives back the moments."""
    moments: dict[str, Tensor] = {}
    for step in range(1, steps + 1):
        for number, value in enumerate(parameters.values()):
            value.grad = gradient(value, number, step)
        descend(groups, parameters, moments, rate, step)
    return moments


def gradient(value: Tensor, number: int, step: int) -> Tensor:
    return 0.1 * value.detach() + random(*value.shape, seed=100 * step + number).to(value.dtype)


# ----------------------------------------------------------------------------------------------- Newton and Schulz


def polynomial(values: Tensor) -> Tensor:
    """What five steps make of singular values: they go through this one by one."""
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    return values


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(0, 12))
def test_singular_vectors_stay_and_singular_values_go_through_the_polynomial(seed: int, rows: int, more: int) -> None:
    values = 10 ** (-2 * torch.rand(rows, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)))
    values /= values.norm()  # the length of the matrix is 1
    found = orthogonal(with_values(values, rows, rows + more, seed)[None])[0]
    torch.testing.assert_close(found, with_values(polynomial(values), rows, rows + more, seed), rtol=0, atol=1e-5)


def test_whatever_is_not_tiny_comes_out_near_one() -> None:
    values = torch.logspace(math.log10(0.0016), 0, 10_001, dtype=torch.float64)  # shares of the matrix's length
    assert polynomial(values).min() == pytest.approx(0.6818, abs=1e-4)
    assert polynomial(values).max() == pytest.approx(1.2024, abs=1e-4)
    matrix = with_values(torch.logspace(0, 2.5, 24, dtype=torch.float64), 24, 40, seed=5).float()
    found = torch.linalg.svdvals(orthogonal(matrix[None])[0])
    assert float(found.min()) >= 0.68
    assert float(found.max()) <= 1.21


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 10), st.integers(1, 10))
def test_turning_before_is_turning_after(seed: int, rows: int, columns: int) -> None:
    matrix = random(rows, columns, seed=seed)
    left = torch.linalg.qr(random(rows, rows, seed=seed + 1))[0]
    right = torch.linalg.qr(random(columns, columns, seed=seed + 2))[0]
    turned = orthogonal((left @ matrix @ right)[None])[0]
    torch.testing.assert_close(turned, left @ orthogonal(matrix[None])[0] @ right, rtol=0, atol=1e-9)


def test_an_upright_matrix_is_a_lying_one_seen_from_the_side() -> None:
    matrix = random(3, 7, 4)
    torch.testing.assert_close(orthogonal(matrix.mT), orthogonal(matrix).mT, rtol=0, atol=1e-12)


def test_many_at_once_are_one_by_one() -> None:
    matrices = random(6, 16, 24).float()
    together = orthogonal(matrices)
    for matrix, found in zip(matrices, together, strict=True):
        torch.testing.assert_close(found, orthogonal(matrix[None])[0], rtol=0, atol=1e-5)


def test_nothing_stays_nothing_and_length_does_not_matter() -> None:
    assert not orthogonal(torch.zeros(2, 3, 4)).any()
    matrix = random(1, 5, 8)
    torch.testing.assert_close(orthogonal(1000 * matrix), orthogonal(matrix), rtol=0, atol=1e-6)


def test_half_precision_is_worked_out_in_single() -> None:
    matrix = random(1, 8, 8)
    found = orthogonal(matrix.bfloat16())
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, orthogonal(matrix.bfloat16().float()).bfloat16())


# ----------------------------------------------------------------------------------------------- steps


def plainly(matrix: Tensor, number: int, steps: int, rate: float, decay: float) -> Tensor:
    """Muon for one matrix (inputs × outputs) as Jordan describes it: momentum, Nesterov's look ahead, N, one step."""
    inputs, outputs = matrix.shape
    momentum = torch.zeros_like(matrix)
    for step in range(1, steps + 1):
        g = gradient(matrix, number, step)
        momentum = 0.95 * momentum + g
        u = g + 0.95 * momentum
        x = u / u.norm()
        for _ in range(5):
            x = 3.4445 * x - 4.7750 * x @ x.T @ x + 2.0315 * x @ x.T @ x @ x.T @ x
        matrix = matrix - rate * decay * matrix - rate * max(1, outputs / inputs) ** 0.5 * x
    return matrix


def test_muon_does_what_its_author_wrote() -> None:
    shapes = {"square": (6, 6), "wide": (6, 10), "wide too": (6, 10), "tall": (10, 6), "row": (1, 4), "column": (4, 1)}
    parameters = {name: random(*shape, seed=n) for n, (name, shape) in enumerate(shapes.items())}
    expected = [plainly(value.clone(), n, 5, 0.03, 0.2) for n, value in enumerate(parameters.values())]
    go((Group("*", "muon", decay=0.2),), parameters, 5, 0.03)
    for (name, found), wanted in zip(parameters.items(), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6, msg=name)


def test_a_step_of_muon_is_longer_where_a_layer_widens_and_only_there() -> None:
    # All singular values of a multiple of an orthogonal matrix with n rows are 1/√n of its length: one value comes out.
    for inputs, outputs, longer in ((4, 16, 2.0), (16, 4, 1.0), (8, 8, 1.0)):
        value = torch.zeros(inputs, outputs, dtype=torch.float64)
        value.grad = torch.linalg.qr(random(max(value.shape), max(value.shape)))[0][:inputs, :outputs]
        descend((Group("*", "muon"),), {"w": value}, {}, 0.1, 1)
        size = float(polynomial(torch.tensor(1 / math.sqrt(min(inputs, outputs)), dtype=torch.float64)))
        torch.testing.assert_close(value, -0.1 * longer * size * value.grad, rtol=0, atol=1e-6)


def test_adam_with_decay_is_that_of_torch() -> None:
    shapes = ((5, 3), (7,), (2, 3, 4))
    ours = {str(n): random(*shape, seed=n).float() for n, shape in enumerate(shapes)}
    theirs = [torch.nn.Parameter(value.clone()) for value in ours.values()]
    group = Group("*", factor=0.5, decay=0.3, betas=(0.85, 0.97), epsilon=1e-6)
    optimiser = torch.optim.AdamW(theirs, lr=0.02, betas=(0.85, 0.97), eps=1e-6, weight_decay=0.3)
    moments: dict[str, Tensor] = {}
    for step in range(1, 13):
        for number, (mine, other) in enumerate(zip(ours.values(), theirs, strict=True)):
            mine.grad = gradient(mine, number, step)
            other.grad = mine.grad.clone()
        descend((group,), ours, moments, 0.04, step)
        optimiser.step()
    for mine, other in zip(ours.values(), theirs, strict=True):
        torch.testing.assert_close(mine, other.detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "muon"])
def test_decay_alone_shrinks_by_rate_times_factor_times_decay(optimiser: Any) -> None:
    value = random(3, 4)
    expected = value * (1 - 0.1 * 0.5 * 0.2) ** 3
    for step in (1, 2, 3):
        value.grad = torch.zeros(3, 4, dtype=torch.float64)
        descend((Group("*", optimiser, factor=0.5, decay=0.2),), {"w": value}, {}, 0.1, step)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "muon"])
def test_each_group_has_its_own_rate_and_one_of_zero_stands_still(optimiser: Any) -> None:
    values = {name: torch.zeros(3, 3, dtype=torch.float64) for name in ("slow", "fast", "still")}
    for value in values.values():
        value.grad = random(3, 3)
    groups = tuple(Group(name, optimiser, factor=f) for name, f in (("slow", 0.5), ("fast", 2.0), ("still", 0.0)))
    descend(groups, values, {}, 0.1, 1)
    assert values["slow"].abs().sum() > 0
    torch.testing.assert_close(values["fast"], 4 * values["slow"], rtol=1e-12, atol=0)
    assert not values["still"].any()


def test_only_moments_are_kept_between_steps_and_each_under_its_parameters_name() -> None:
    parameters = {"a.w": random(3, 4), "a.b": random(4), "c": random(2)}
    groups = (Group("a.*", "muon"), Group("c", "sgd"), Group("*"))
    moments = go(groups, parameters, 1, 0.1)
    assert {name: tuple(value.shape) for name, value in moments.items()} == {
        "a.w.momentum": (3, 4),
        "a.b.mean": (4,),
        "a.b.square": (4,),
    }


# ----------------------------------------------------------------------------------------------- groups


def test_the_matrices_of_a_gpt_go_to_muon_and_its_vectors_on_to_the_next_group() -> None:
    config = GPTConfig(50, 16, layers=2, heads=2, mlp=24, context=8, tied=False)
    parameters = initial_parameters(config, np.random.default_rng(0))
    matrices, embedding, output, rest = assign(GPT_GROUPS, parameters)
    assert matrices == [f"layers.{n}.{name}" for n in (0, 1) for name in ("q", "k", "v", "o", "gate", "up", "down")]
    assert (embedding, output) == (["embedding"], ["output"])
    norms = ("attention_norm", "q_norm", "k_norm", "mlp_norm")
    assert rest == [*(f"layers.{n}.{name}" for n in (0, 1) for name in norms), "norm"]


def test_the_first_group_that_fits_takes_a_parameter() -> None:
    parameters = {"b": torch.zeros(1), "a": torch.zeros(1)}
    assert assign((Group("a"), Group("*")), parameters) == [["a"], ["b"]]


def test_a_parameter_of_no_group_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"the parameter norm \(of shape 3\).*Group\('\*'\) at the end"):
        assign((Group("*", "muon"),), {"w": torch.zeros(2, 2), "norm": torch.zeros(3)})


@pytest.mark.parametrize("groups", [(Group("embeding"), Group("*")), (Group("*"), Group("w"))])
def test_a_group_that_takes_nothing_is_refused(groups: tuple[Group, ...]) -> None:
    with pytest.raises(UsageError, match=r"group '(embeding|w)' of adam takes none of the parameters w, embedding;"):
        assign(groups, {"w": torch.zeros(2), "embedding": torch.zeros(2)})


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": ""},
        {"optimiser": "lion"},
        {"factor": -1.0},
        {"factor": math.nan},
        {"decay": -0.1},
        {"betas": (0.9, 1.0)},
        {"betas": (0.9,)},
        {"epsilon": 0.0},
        {"momentum": 1.0},
    ],
)
def test_a_group_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} of the group"):
        Group(**({"names": "w"} | wrong))
