"""The engine of ablations: averages under word dropout, gradients by hand, stacks, and what a grid gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import UsageError
from inkling.studies.averaging import (
    MARKS,
    Bags,
    Cell,
    CellResult,
    GridConfig,
    Material,
    averages,
    bag_of_vectors,
    grid,
    thin_averages,
    train_grid,
)
from inkling.studies.stacks import ACTIVATIONS, Stack, first_weights
from inkling.text.vectors import load_vectors


def make_bags(generator: np.random.Generator, texts: int, words: int, longest: int = 12) -> Bags:
    lengths = generator.integers(0, longest + 1, texts)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    ids = generator.integers(0, words, offsets[-1]).astype(np.int32)
    return Bags(ids, offsets, generator.integers(0, 2, texts))


def make_material(seed: int = 0, texts: int = 300) -> Material:
    """Words 0–9 speak for class 1, words 10–19 for class 0, and a text holds more of its own class."""
    generator = np.random.default_rng(seed)
    parts = []
    for count in (texts, texts // 5, texts // 2):
        truth = generator.integers(0, 2, count)
        own = generator.random((count, 9)) < 0.6
        ids = (generator.integers(0, 10, (count, 9)) + 10 * (own ^ (truth[:, None] == 1))).astype(np.int32)
        parts.append(Bags(ids.reshape(-1), 9 * np.arange(count + 1), truth))
    vectors = generator.normal(0, 0.3, (20, 5)).astype(np.float32)
    return Material(vectors, *parts)


# ------------------------------------------------------------------------------------------------------- averages


@given(st.integers(0, 10**6), st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 0.99]), min_size=1, unique=True))
@settings(deadline=None, max_examples=40)
def test_an_average_under_dropout_is_that_of_the_words_left(seed: int, dropouts: list[float]) -> None:
    generator = np.random.default_rng(seed)
    bags = make_bags(generator, 17, 9)
    vectors = generator.normal(size=(9, 4))
    marks = generator.integers(0, MARKS, len(bags.ids), np.uint16)
    table = torch.from_numpy(vectors)
    found = thin_averages(bags, table, *averages(bags, table), sorted(dropouts), marks).numpy()
    for p, dropout in enumerate(sorted(dropouts)):
        for text in range(len(bags)):
            part = slice(bags.offsets[text], bags.offsets[text + 1])
            words, kept = bags.ids[part], marks[part] / MARKS >= round(dropout * MARKS) / MARKS
            left = words[kept] if kept.any() else words
            expected = vectors[left].mean(axis=0) if len(left) else np.zeros(4)
            np.testing.assert_allclose(found[p, text], expected, atol=1e-12)


def test_so_many_words_are_dropped_as_were_asked_for() -> None:
    generator = np.random.default_rng(0)
    bags = Bags(np.zeros(200_000, np.int32), np.array([0, 100_000, 200_000]), np.array([0, 1]))
    marks = generator.integers(0, MARKS, 200_000, np.uint16)
    for dropout in (0.1, 0.5):
        assert (marks < round(dropout * MARKS)).mean() == pytest.approx(dropout, abs=4 * np.sqrt(0.25 / 200_000))
    table = torch.ones(1, 1)
    found = thin_averages(bags, table, *averages(bags, table), [0.5], marks)
    assert found.flatten().tolist() == [1.0, 1.0]  # an average is renormalised, a sum would have halved


def test_words_of_texts_find_their_vectors(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 0\nfilm 2 0\nn't 3 0\n's 4 0\n. 5 0\nice-cream 6 0\nthe 9 9\n", encoding="utf-8")
    vectors = load_vectors(file, cache_dir=tmp_path)
    bags, empty = bag_of_vectors(
        [(["The film isn't it's zzz...", "", "unheard of"], np.array([1, 0, 1])), ([], np.zeros(0, np.int64))], vectors
    )
    assert [vectors.word(row) for row in bags.ids] == ["the", "film", "n't", "'s", "."]
    assert bags.offsets.tolist() == [0, 5, 5, 5]
    assert len(empty) == 0


# ------------------------------------------------------------------------------------------------- gradients by hand


def by_autograd(stack: Stack, names: Sequence[Sequence[str]], x: torch.Tensor, truth: torch.Tensor) -> float:
    """The sum of the mean losses of the networks, written as anybody would, and .grad in the parameters."""
    forms = {
        "relu": torch.relu,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "mish": torch.nn.functional.mish,
        "silu": torch.nn.functional.silu,
        "leaky_relu": torch.nn.functional.leaky_relu,
    }
    total = torch.zeros((), dtype=x.dtype)
    for i in range(stack.networks):
        h = x[i]
        for layer in range(stack.depth):
            h = forms[names[i][layer]](h @ stack.parameters[2 * layer][i] + stack.parameters[2 * layer + 1][i])
        scores = h @ stack.parameters[-2][i].t() + stack.parameters[-1][i, :, 0]
        total = total + torch.nn.functional.cross_entropy(scores, truth.argmax(0))
    if total.requires_grad:
        total.backward()  # type: ignore[no-untyped-call]
    return float(total.detach())


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_gradients_agree_with_autograd_and_with_central_differences(depth: int) -> None:
    generator = np.random.default_rng(depth)
    names = [tuple(np.roll(list(ACTIVATIONS), i)[:depth]) for i in range(6)]
    stack = Stack(names, list(range(6)), 4, 5, 3, 0.1, torch.float64)
    x = torch.from_numpy(generator.normal(0, 2, (6, 7, 4)))
    truth = torch.eye(3, dtype=torch.float64)[torch.from_numpy(generator.integers(0, 3, 7))].t()
    stack.backward(truth, *stack.forward(x))
    by_hand = [gradient.clone() for gradient in stack.gradients]

    plain = [parameter.detach().clone() for parameter in stack.parameters]
    stack.parameters = [parameter.clone().requires_grad_() for parameter in plain]
    by_autograd(stack, names, x, truth)
    for parameter, gradient in zip(stack.parameters, by_hand, strict=True):
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-9, atol=1e-11)

    stack.parameters = plain
    step = 1e-5
    for parameter, gradient in zip(plain, by_hand, strict=True):
        flat = parameter.view(-1)
        for place in generator.integers(0, len(flat), 5).tolist():
            kept = float(flat[place])
            flat[place] = kept + step
            above = by_autograd(stack, names, x, truth)
            flat[place] = kept - step
            below = by_autograd(stack, names, x, truth)
            flat[place] = kept
            assert float(gradient.view(-1)[place]) == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-7)


def test_mish_by_one_exponential_is_mish_far_out_too() -> None:
    z = torch.tensor([-200.0, -30.0, -1.0, 0.0, 1.0, 30.0, 200.0])
    expected = torch.nn.functional.mish(z.double()).float()
    torch.testing.assert_close(ACTIVATIONS["mish"].of(z), expected, rtol=1e-5, atol=1e-6)
    assert ACTIVATIONS["mish"].slope(z, z)[-2:].tolist() == pytest.approx([1, 1])


def test_steps_are_those_of_adam() -> None:
    generator = np.random.default_rng(3)
    stack = Stack([("tanh",)] * 2, [0, 1], 3, 4, 2, 0.01, torch.float64)
    value = stack.flat[0].numpy().copy()
    mean, square = np.zeros_like(value), np.zeros_like(value)
    for t in range(1, 5):
        x = torch.from_numpy(generator.normal(size=(2, 5, 3)))
        truth = torch.eye(2, dtype=torch.float64)[torch.from_numpy(generator.integers(0, 2, 5))].t()
        stack.step(x, truth)
        gradient = stack.flat[1].numpy()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        value -= 0.01 * mean / (1 - 0.9**t) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(stack.flat[0].numpy(), value, rtol=1e-9)


def test_networks_of_one_seed_begin_alike_whatever_their_depth() -> None:
    shallow = Stack([("relu",)], [5], 4, 4, 2, 0.1)
    deep = Stack([("relu", "relu")], [5], 4, 4, 2, 0.1)
    torch.testing.assert_close(shallow.parameters[0], deep.parameters[0])
    torch.testing.assert_close(shallow.parameters[-2], deep.parameters[-2])
    weights, _ = first_weights(5, 1, 100, 50)
    assert float(weights.abs().max()) <= 0.1
    assert float(weights.std()) == pytest.approx(0.1 / np.sqrt(3), rel=0.03)


def test_saturation_is_the_share_of_units_with_hardly_any_slope() -> None:
    stack = Stack([("sigmoid",), ("relu",)], [0, 0], 1, 2, 2, 0.1)
    stack.parameters[0][0] = torch.tensor([[10.0, 0.1]])
    stack.parameters[1].zero_()
    # σ'(10) and σ'(−10) are below 0.05; σ'(±0.1) and both units at 0 are not.
    assert stack.saturation(torch.tensor([[1.0], [-1.0], [0.0], [0.0]]), 0.05) == [0.25, None]


# ----------------------------------------------------------------------------------------------------------- grids


CONFIG = GridConfig(epochs=7, batch=32, rate=0.02)


def test_a_network_in_a_stack_trains_as_it_does_alone() -> None:
    cells = grid([0, 1, 2], ["relu", "sigmoid+mish"], [0.0, 0.3, 0.5], [6], ["v"], 2)
    material = {"v": make_material()}
    together = {r.cell: r for part in train_grid(cells, material, 2, CONFIG) for r in part}
    assert set(together) == set(cells)
    for cell in cells[::5]:
        [(alone,)] = train_grid([cell], material, 2, CONFIG)
        np.testing.assert_allclose(alone.test_accuracy, together[cell].test_accuracy, atol=1 / 150 + 1e-9)
        assert np.unpackbits(alone.right ^ together[cell].right).sum() <= 1


def test_networks_learn_and_the_last_predictions_are_the_last_accuracy() -> None:
    (results,) = train_grid(grid([1], ["mish"], [0.2], [8], ["v"], 1), {"v": make_material()}, 2, CONFIG)
    (found,) = results
    assert found.test_accuracy[-1] > 0.6
    assert np.unpackbits(found.right, count=150).mean() == pytest.approx(found.test_accuracy[-1])
    assert np.unpackbits(found.right_chosen, count=150).mean() == pytest.approx(found.chosen_accuracy)
    assert found.chosen_epoch < 7  # or the two would not be told apart
    assert len(found.test_accuracy) == len(found.held_out_accuracy) == 7


def test_groups_come_one_by_one_and_the_rest_does_not_depend_on_those_before() -> None:
    cells = grid([1], ["relu"], [0.0, 0.5], [6], ["v"], 3)
    material = {"v": make_material()}
    said: list[tuple[int, int]] = []
    groups = list(train_grid(cells, material, 2, CONFIG, lambda done, total: said.append((done, total))))
    assert [{r.cell.seed for r in part} for part in groups] == [{0}, {1}, {2}]
    assert said[0] == (2, 42)
    assert said[-1] == (42, 42)
    rest = list(train_grid([cell for cell in cells if cell.seed > 0], material, 2, CONFIG))
    for ours, theirs in zip(groups[1:], rest, strict=True):
        assert [r.test_accuracy for r in ours] == [r.test_accuracy for r in theirs]


def test_threads_change_no_digit_and_are_given_back() -> None:
    cells = grid([1, 2], ["relu", "tanh"], [0.0, 0.5], [6], ["v"], 1)
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            (results,) = train_grid(cells, {"v": make_material()}, 2, CONFIG)
            found.append([(r.cell, r.test_accuracy, r.right.tolist()) for r in results])
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1]


def test_standardised_inputs_do_not_depend_on_the_scale_of_the_vectors() -> None:
    material = make_material()
    larger = replace(material, vectors=8 * material.vectors + np.float32(1))
    config = replace(CONFIG, standardise=True)
    cells = grid([1], ["sigmoid"], [0.3], [6], ["v"], 1)
    ((first,),) = train_grid(cells, {"v": material}, 2, config)
    ((second,),) = train_grid(cells, {"v": larger}, 2, config)
    np.testing.assert_allclose(first.test_accuracy, second.test_accuracy, atol=1 / 150 + 1e-9)
    ((plain,),) = train_grid(cells, {"v": larger}, 2, CONFIG)
    assert not np.allclose(plain.test_accuracy, second.test_accuracy, atol=0.02)


def result(curve: Sequence[float], held_out: Sequence[float] = ()) -> CellResult:
    cell = Cell(1, "relu", 0.0, 5, "v", 0)
    return CellResult(cell, tuple(curve), tuple(held_out), np.zeros(1, np.uint8), np.zeros(1, np.uint8), None)


def test_fluctuation_is_the_noise_around_a_straight_course() -> None:
    assert result(np.linspace(0.5, 0.9, 20).tolist()).fluctuation == pytest.approx(0, abs=1e-12)
    noise = np.random.default_rng(0).normal(0, 0.004, 4000)
    assert result((0.8 + noise).tolist()).fluctuation == pytest.approx(0.4, rel=0.05)
    assert np.isnan(result([0.5] * 5).fluctuation)


def test_the_epoch_is_chosen_on_held_out_text_alone() -> None:
    found = result([0.9, 0.7, 0.8], [0.6, 0.7, 0.7])
    assert (found.chosen_epoch, found.chosen_accuracy) == (2, 0.7)


def test_mixed_activations_take_turns() -> None:
    assert Cell(3, "relu+sigmoid", 0.0, 5, "v", 0).layers == ("relu", "sigmoid", "relu")
    assert Cell(0, "relu", 0.0, 5, "v", 0).layers == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depths": [-1]}, "depth of -1"),
        ({"activations": ["relu+swish"]}, "'swish' is unknown"),
        ({"dropouts": [1.0]}, "dropout of 1"),
        ({"widths": [0]}, "width of 0"),
        ({"seeds": 0}, "0 seeds"),
        ({"depths": []}, "No depths"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(change: dict[str, object], words: str) -> None:
    given = {"depths": [1], "activations": ["relu"], "dropouts": [0.0], "widths": [5], "vectors": ["v"], "seeds": 1}
    with pytest.raises(UsageError, match=words):
        grid(**(given | change))  # type: ignore[arg-type]
