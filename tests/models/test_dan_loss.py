"""What training brings down: values by loops, gradients by central differences, minima by what must hold there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from inkling.models import dan_loss as module
from inkling.models.bags import Bags
from inkling.models.dan import DANConfig, random_layers
from inkling.models.dan_loss import (
    BIAS_UNIT,
    NetworkLoss,
    Product,
    ScoreLoss,
    balanced_weights,
    drop_words,
)
from inkling.training.quasi_newton import minimise

Floats = NDArray[np.float64]

FEATURES = 7
TEXTS = 12


def draw_bags(seed: int, counts: bool, texts: int = TEXTS, features: int = FEATURES) -> Bags:
    """Random bags; the second text is empty."""
    generator = np.random.default_rng(seed)
    rows, times, offsets = list[int](), list[int](), [0]
    for text in range(texts):
        some = [] if text == 1 else sorted(generator.choice(features, size=generator.integers(1, 5), replace=False))
        rows += [int(row) for row in some]
        times += [int(generator.integers(1, 4)) if counts else 1 for _ in some]
        offsets.append(len(rows))
    return Bags(np.array(rows, np.int32), np.array(times, np.float32), np.array(offsets, np.int64))


def dense(bags: Bags, features: int = FEATURES) -> Floats:
    found = np.zeros((len(bags), features))
    for text in range(len(bags)):
        for pair in range(int(bags.offsets[text]), int(bags.offsets[text + 1])):
            found[text, bags.rows[pair]] += bags.counts[pair]
    return found


def differences(value: Callable[[Tensor], float], point: Tensor, step: float = 1e-5) -> Tensor:
    """The gradient of `value` at `point`, from values alone."""
    found = torch.zeros_like(point)
    for i in range(point.numel()):
        moved = torch.zeros_like(point).view(-1)
        moved[i] = step
        moved = moved.view_as(point)
        found.view(-1)[i] = (value(point + moved) - value(point - moved)) / (2 * step)
    return found


# ------------------------------------------------------------------------------------------------ the product


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("columns", [1, 3])
def test_the_product_is_that_with_the_dense_matrix_and_its_transpose(counts: bool, columns: int) -> None:
    bags = draw_bags(4, counts)
    product = Product(bags, FEATURES)
    assert product.plain is not counts
    generator = np.random.default_rng(0)
    scores, values = generator.standard_normal((FEATURES, columns)), generator.standard_normal((TEXTS, columns))
    forward, backward = product.forward(torch.from_numpy(scores)), product.backward(torch.from_numpy(values))
    np.testing.assert_allclose(forward.numpy(), dense(bags) @ scores, atol=1e-12)
    np.testing.assert_allclose(backward.numpy(), dense(bags).T @ values, atol=1e-12)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 100), st.booleans())
def test_forward_and_backward_are_adjoint(seed: int, counts: bool) -> None:
    product = Product(draw_bags(seed, counts), FEATURES + 2)  # the last two features occur nowhere
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(FEATURES + 2, 2, dtype=torch.float64, generator=generator)
    values = torch.randn(TEXTS, 2, dtype=torch.float64, generator=generator)
    one, other = (product.forward(scores) * values).sum(), (product.backward(values) * scores).sum()
    assert float(one) == pytest.approx(float(other), abs=1e-10)
    assert not product.backward(values)[-2:].any()


@pytest.mark.parametrize("counts", [False, True])
def test_a_large_product_is_sorted_in_halves_and_is_the_same(counts: bool) -> None:
    texts, features, each = 9000, 500, 8
    generator = np.random.default_rng(0)
    rows = np.sort(np.argsort(generator.random((texts, features)), axis=1)[:, :each], axis=1).astype(np.int32).ravel()
    times = (generator.integers(1, 4, len(rows)) if counts else np.ones(len(rows))).astype(np.float32)
    bags = Bags(rows, times, np.arange(texts + 1) * each)
    assert len(bags.rows) >= 1 << 16
    values = generator.standard_normal(texts)
    expected = np.bincount(rows, weights=times * np.repeat(values, each), minlength=features)
    found = Product(bags, features).backward(torch.from_numpy(values)[:, None])[:, 0]
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-9)


# ------------------------------------------------------------------------------------------------ scores


def score_loss(classes: int, *, counts: bool = False, strength: float = 0.3, trust: float = 0.5) -> ScoreLoss:
    generator = np.random.default_rng(classes)
    truth = generator.permutation(np.arange(TEXTS) % classes)
    weights = generator.choice([0.0, 0.5, 1.0, 2.0], size=TEXTS).astype(np.float32)
    return ScoreLoss(Product(draw_bags(2, counts), FEATURES), truth, classes, weights, strength, trust)


def scale_slowly(loss: ScoreLoss) -> Floats:
    """S with a column for each class, from counts in loops; k makes learned scores 1 in the mean square."""
    matrix, learned = dense(loss.product.bags), loss.weights > 0
    ratio = np.zeros((FEATURES, loss.classes))
    counts = np.ones((FEATURES, loss.classes))
    for text in np.flatnonzero(learned):
        counts[:, loss.truth[text]] += matrix[text]
    for c in range(loss.classes):
        others = sum((counts[:, other] for other in range(loss.classes) if other != c), np.zeros(FEATURES))
        ratio[:, c] = np.log((counts[:, c] / counts[:, c].sum()) / (others / others.sum()))
    means = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    return np.asarray(ratio / np.sqrt(np.mean((means @ ratio)[learned] ** 2)))


def value_slowly(loss: ScoreLoss, moved: Floats, bias: Floats) -> float:
    """J for u (features × classes) and a bias for each class."""
    matrix, scale = dense(loss.product.bags), scale_slowly(loss)
    total = 0.0
    for text in range(TEXTS):
        z = bias + (matrix[text] @ (scale * moved)) / max(1.0, matrix[text].sum())
        total += float(loss.weights[text]) * (math.log(sum(math.exp(value) for value in z)) - z[loss.truth[text]])
    return total + loss.strength / 2 * float(((moved - loss.trust) ** 2).sum())


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_value_is_that_of_the_formula(classes: int, counts: bool) -> None:
    loss = score_loss(classes, counts=counts)
    point = torch.randn(loss.start().shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    size = FEATURES * loss.columns
    moved, bias = point[:size].view(FEATURES, -1).numpy(), BIAS_UNIT * point[size:].numpy()
    if classes == 2:  # one column stands for two that are opposite
        moved, bias = np.repeat(moved, 2, axis=1), np.array([-bias[0] / 2, bias[0] / 2])
    assert loss(point)[0] == pytest.approx(value_slowly(loss, moved, bias), rel=1e-6)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_gradient_is_that_of_central_differences(classes: int, counts: bool) -> None:
    loss = score_loss(classes, counts=counts)
    point = torch.randn(loss.start().shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    gradient = loss(point)[1]
    assert gradient.dtype == torch.float64
    expected = differences(lambda moved: loss(moved)[0], point)
    assert float((gradient - expected).norm() / expected.norm()) < 1e-7


def minimum(loss: ScoreLoss, flat: float = 1e-5) -> Tensor:
    point = loss.start().double()
    for descent in minimise(loss, point, 300):
        point = descent.point
    assert float(loss(point)[1].norm()) < flat
    return point


def test_one_column_for_two_classes_finds_what_two_columns_find() -> None:
    one = score_loss(2)
    two = score_loss(2)
    two.columns = 2
    two.scale, two.penalty = two._scale(), two.strength
    assert torch.allclose(two.scale[:, 1:] * 2, one.scale)
    single, double = (torch.log_softmax(loss.both(loss.scores(minimum(loss))), dim=1) for loss in (one, two))
    torch.testing.assert_close(single, double, rtol=0, atol=1e-5)
    assert one(minimum(one))[0] == pytest.approx(two(minimum(two))[0], rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_pull_without_end_leaves_naive_bayes(classes: int) -> None:
    loss = score_loss(classes, strength=1e9, trust=0.7)
    parameters = loss.parameters(minimum(loss, flat=1e-3))
    naive = 0.7 * scale_slowly(loss)
    np.testing.assert_allclose(parameters["vectors"].numpy(), naive, rtol=1e-5, atol=1e-6)


def test_the_start_is_naive_bayes_and_no_bias() -> None:
    for classes in (2, 3):
        loss = score_loss(classes, trust=2.0)
        parameters = loss.parameters(loss.start())
        np.testing.assert_allclose(parameters["vectors"].numpy(), 2 * scale_slowly(loss), rtol=1e-5, atol=1e-6)
        assert parameters["bias"].tolist() == [0.0] * classes
        assert loss.start().dtype == torch.float32


@pytest.mark.parametrize("classes", [2, 3])
def test_the_parameters_give_the_scores(classes: int) -> None:
    loss = score_loss(classes, counts=True)
    point = torch.randn(loss.start().shape, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    parameters = loss.parameters(point)
    matrix = dense(loss.product.bags)
    by_hand = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1) @ parameters["vectors"].numpy()
    z = loss.both(loss.scores(point)).numpy()
    np.testing.assert_allclose(z, by_hand + parameters["bias"].numpy(), atol=1e-6)


def test_what_weighs_nothing_is_not_learned_from() -> None:
    loss = score_loss(3)
    held = int(np.flatnonzero(loss.weights == 0)[0])
    other = loss.truth.copy()
    other[held] = (other[held] + 1) % 3
    turned = ScoreLoss(loss.product, other, 3, loss.weights, loss.strength, loss.trust)
    point = torch.randn(loss.start().shape, generator=torch.Generator().manual_seed(2))
    assert loss(point)[0] == turned(point)[0]
    assert torch.equal(loss(point)[1], turned(point)[1])
    assert torch.equal(loss.scale, turned.scale)


def test_scores_far_from_zero_neither_overflow_nor_vanish() -> None:
    for classes in (2, 3):
        loss = score_loss(classes)
        value, gradient = loss(torch.full_like(loss.start(), 1e4))
        assert math.isfinite(value)
        assert torch.isfinite(gradient).all()


# ------------------------------------------------------------------------------------------------ networks


def network_loss(*, learns: bool = True, depth: int = 2, counts: bool = True, **changes: Any) -> NetworkLoss:
    config = DANConfig(dimension=4, depth=depth, width=3, activation="tanh")
    generator = np.random.default_rng(0)
    parameters = {name: value.double() for name, value in random_layers(config, 3, generator).items()}
    vectors = torch.from_numpy(generator.standard_normal((FEATURES, 4)))
    if learns:
        parameters["vectors"] = vectors.clone()
    truth = np.arange(TEXTS, dtype=np.int64) % 3
    return NetworkLoss(config, parameters, vectors, draw_bags(3, counts), truth, **changes)


def network_value(loss: NetworkLoss, parameters: dict[str, Tensor], batch: Sequence[int], bags: Bags) -> Tensor:
    """The objective in plain words: cross-entropy of each text times its weight, and half the squares of the layers."""
    vectors = parameters.get("vectors", loss.vectors)
    total = weight = torch.zeros((), dtype=torch.float64)
    for place, text in enumerate(batch):
        low, high = int(bags.offsets[place]), int(bags.offsets[place + 1])
        hidden = torch.zeros(vectors.shape[1], dtype=torch.float64)
        for pair in range(low, high):
            hidden = hidden + float(bags.counts[pair]) * vectors[int(bags.rows[pair])]
        hidden = hidden / max(1.0, float(bags.counts[low:high].sum()))
        for i in range(loss.config.depth):
            hidden = torch.tanh(hidden @ parameters[f"layers.{i}.W"] + parameters[f"layers.{i}.b"])
        z = hidden @ parameters["out.W"] + parameters["out.b"]
        label = int(loss.truth[text])
        each = 1.0 if loss.class_weights is None else float(loss.class_weights[label])
        total = total + each * (torch.logsumexp(z, 0) - z[label])
        weight = weight + each
    squares = torch.stack([(value**2).sum() for name, value in parameters.items() if name.endswith("W")])
    return total + loss.weight_decay / 2 * weight * squares.sum()


BATCH = np.array([5, 0, 1, 9, 0], np.int64)

LOSSES: list[dict[str, Any]] = [
    {},
    {"depth": 0},
    {"learns": False},
    {"class_weights": torch.tensor([0.5, 2.0, 1.0])},
    {"weight_decay": 0.3, "class_weights": torch.tensor([0.5, 2.0, 1.0])},
    {"weight_decay": 0.1, "word_dropout": 0.4},
    {"learns": False, "word_dropout": 0.4},
]


@pytest.mark.parametrize("options", LOSSES, ids=lambda options: ",".join(options) or "plain")
def test_the_gradient_of_a_network_is_that_of_its_formula(options: dict[str, Any]) -> None:
    loss = network_loss(seed=3, **options)
    nats, weight = loss.gradient(BATCH, step=4)
    bags = loss.bags.take(BATCH)
    if loss.word_dropout:
        bags = drop_words(bags, loss.word_dropout, np.random.default_rng((3, 4)))
    plain = {name: value.detach().clone().requires_grad_(True) for name, value in loss.parameters.items()}
    value = network_value(loss, plain, BATCH.tolist(), bags)
    value.backward()  # type: ignore[no-untyped-call]
    weights = np.ones(5) if loss.class_weights is None else loss.class_weights.numpy()[loss.truth[BATCH]]
    assert weight == pytest.approx(float(weights.sum()))
    without_pull = network_value(replace(loss, weight_decay=0.0), plain, BATCH.tolist(), bags)
    assert nats == pytest.approx(float(without_pull.detach()), rel=1e-9)
    for name, parameter in loss.parameters.items():
        assert parameter.grad is not None
        assert not parameter.requires_grad  # so that nobody downstream has to detach it
        torch.testing.assert_close(parameter.grad, plain[name].grad, rtol=0, atol=1e-10, msg=name)

        def moved(to: Tensor, name: str = name) -> float:
            with torch.no_grad():
                return float(network_value(loss, {**loss.parameters, name: to}, BATCH.tolist(), bags))

        expected = differences(moved, parameter.detach())
        torch.testing.assert_close(parameter.grad, expected, rtol=0, atol=1e-7, msg=name)


def test_means_of_fixed_vectors_are_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = network_loss(learns=False)
    monkeypatch.setattr(module, "average", lambda *_: pytest.fail("averaged again"))
    assert loss.gradient(BATCH, 0) == loss.gradient(BATCH, 7)


def test_dropout_depends_on_the_step_and_the_seed_alone() -> None:
    loss, same, other = (network_loss(word_dropout=0.5, seed=seed) for seed in (1, 1, 2))
    first = loss.gradient(BATCH, 0)
    loss.gradient(BATCH, 1)
    assert loss.gradient(BATCH, 0) == same.gradient(BATCH, 0) == first
    assert loss.gradient(BATCH, 1) != first
    assert other.gradient(BATCH, 0) != first


# ------------------------------------------------------------------------------------------------ leaving words out


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 100), st.floats(0.05, 0.95), st.booleans())
def test_no_more_is_left_than_was_there_and_never_nothing(seed: int, share: float, counts: bool) -> None:
    bags = draw_bags(seed, counts)
    left = drop_words(bags, share, np.random.default_rng(seed))
    assert np.array_equal(left.rows, bags.rows)
    assert np.array_equal(left.offsets, bags.offsets)
    assert ((left.counts >= 0) & (left.counts <= bags.counts) & (left.counts == np.floor(left.counts))).all()
    sums = left.sums(left.counts)
    assert ((sums > 0) == (bags.lengths > 0)).all()


def test_a_text_that_would_lose_everything_keeps_everything() -> None:
    bags = draw_bags(0, True)
    left = drop_words(bags, 1 - 1e-12, np.random.default_rng(0))
    assert np.array_equal(left.counts, bags.counts)


def test_every_occurrence_goes_alike_and_the_mean_stays_where_it_was() -> None:
    """With one text of counts 1, 1, 2 and 6: each count left is binomial, and the mean vector the same on average."""
    times = np.array([1, 1, 2, 6], np.float32)
    draws, share = 20_000, 0.3
    bags = Bags(np.tile(np.arange(4, dtype=np.int32), draws), np.tile(times, draws), np.arange(draws + 1) * 4)
    left = drop_words(bags, share, np.random.default_rng(0)).counts.reshape(draws, 4)
    lost = share ** times.sum()  # so rare that it does not show below
    assert lost < 1e-5
    for column, count in enumerate(times):
        expected, spread = 0.7 * count, math.sqrt(count * 0.7 * 0.3)
        assert left[:, column].mean() == pytest.approx(expected, abs=5 * spread / math.sqrt(draws))
        assert left[:, column].std() == pytest.approx(spread, rel=0.03)
    shares = left / left.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares.mean(axis=0), times / times.sum(), atol=0.005)


# ------------------------------------------------------------------------------------------------ weights, labels


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=50))
def test_balanced_classes_weigh_the_same_together(labels: list[int]) -> None:
    truth = np.array(labels, np.int64)
    weights = balanced_weights(truth, 5)[truth]
    assert float(weights.mean()) == pytest.approx(1, rel=1e-6)
    together = [float(weights[truth == c].sum()) for c in set(labels)]
    assert together == pytest.approx([len(labels) / len(together)] * len(together), rel=1e-5)
