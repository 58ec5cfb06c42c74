"""The deep averaging network: the mean of vectors and the layers after it, each against a plain loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import InklingError, UsageError
from inkling.models import dan as module
from inkling.models.bags import Bags, collect
from inkling.models.dan import AveragingNetwork, DANConfig, average, random_layers, read_average
from inkling.runs.loading import dump_arrays

Floats = NDArray[np.float64]

WORDS = ["good", "bad", "not", "film", "a", "!", "don't", "wonderful", "plot"]
TEXTS = ["good film !", "a bad, bad film", "", "not good", "completely unseen words", "don't plot a wonderful film"]
LABELS = ("neg", "neutral", "pos")

# By hand, so that a function of another name or slope is noticed.
FORMULAS: dict[str, Callable[[float], float]] = {
    "relu": lambda x: max(0.0, x),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": lambda x: 1 - 2 / (math.exp(2 * x) + 1),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "silu": lambda x: x / (1 + math.exp(-x)),
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
}


def network(temperature: float = 1.0, seed: int = 0, **sizes: Any) -> AveragingNetwork:
    """One that knows the features of `WORDS`, with random weights in double precision."""
    config = DANConfig(bits=20, **sizes)
    generator = np.random.default_rng(seed)
    keys = np.unique(collect([" ".join(WORDS)], config.grams).rows)
    columns = config.dimension or len(LABELS)
    parameters = {name: value.double() for name, value in random_layers(config, len(LABELS), generator).items()}
    for name in parameters:
        if name.endswith(("b", "bias")):
            parameters[name] = torch.from_numpy(generator.standard_normal(len(parameters[name])))
    parameters["vectors"] = torch.from_numpy(generator.standard_normal((len(keys), columns)))
    return AveragingNetwork(config, LABELS, keys, parameters, temperature)


def mean_slowly(bags: Bags, vectors: Tensor) -> Floats:
    found = np.zeros((len(bags), vectors.shape[1]))
    for i in range(len(bags)):
        total = 0.0
        for pair in range(int(bags.offsets[i]), int(bags.offsets[i + 1])):
            found[i] += float(bags.counts[pair]) * vectors[int(bags.rows[pair])].double().numpy()
            total += float(bags.counts[pair])
        if total:
            found[i] /= total
    return found


def scores_slowly(averages: Floats, model: AveragingNetwork) -> Floats:
    """z of each text, unit after unit."""
    layers = {name: value.double().numpy() for name, value in model.layers.items()}
    if not model.config.dimension:
        return np.asarray(averages + layers["bias"])
    rows = []
    for row in averages.tolist():
        hidden = row
        for i, name in enumerate(model.config.activations[: model.config.depth]):
            weights, bias = layers[f"layers.{i}.W"], layers[f"layers.{i}.b"]
            hidden = [
                FORMULAS[name](sum(h * weights[k, j] for k, h in enumerate(hidden)) + bias[j]) for j in range(len(bias))
            ]
        out = layers["out.W"]
        rows.append([sum(h * out[k, c] for k, h in enumerate(hidden)) + b for c, b in enumerate(layers["out.b"])])
    return np.array(rows)


def log_probs_slowly(model: AveragingNetwork, texts: Sequence[str]) -> Floats:
    z = scores_slowly(mean_slowly(model.bags(texts), model.vectors), model) / model.temperature
    return np.array([[value - math.log(sum(math.exp(other) for other in row)) for value in row] for row in z.tolist()])


SIZES: list[dict[str, Any]] = [
    {},
    {"words": 3, "distinct": True},
    {"dimension": 4},
    {"dimension": 4, "words": 2, "low": 2, "high": 3},
    *({"dimension": 4, "depth": 1, "width": 3, "activation": name} for name in FORMULAS),
    {"dimension": 3, "depth": 3, "width": 5, "activation": "relu,tanh, leaky-relu"},
    {"dimension": 4, "depth": 2, "width": 3, "activation": "mish", "distinct": True},
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_it_says_what_a_plain_loop_says(sizes: dict[str, Any]) -> None:
    model = network(temperature=1.7, **sizes)
    found = model.log_probs(TEXTS)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.numpy(), log_probs_slowly(model, TEXTS), rtol=0, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES[:5], ids=str)
def test_it_keeps_the_contract_of_a_classifier(sizes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(**sizes)
    whole = model.log_probs(TEXTS)
    assert whole.shape == (len(TEXTS), len(LABELS))
    np.testing.assert_allclose(whole.exp().sum(dim=1).numpy(), 1, rtol=0, atol=1e-12)
    assert (whole <= 0).all()
    alone = torch.cat([model.log_probs([text]) for text in TEXTS])
    np.testing.assert_allclose(alone.numpy(), whole.numpy(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.log_probs(TEXTS[::-1]).numpy()[::-1], whole.numpy(), rtol=0, atol=1e-9)
    monkeypatch.setattr(module, "PREDICTED_CHARS", 10)
    np.testing.assert_allclose(model.log_probs(TEXTS).numpy(), whole.numpy(), rtol=0, atol=1e-9)
    assert model.log_probs([]).shape == (0, len(LABELS))
    assert model.predict(TEXTS) == [LABELS[i] for i in whole.numpy().argmax(axis=1)]
    assert model.predict([]) == []


@pytest.mark.parametrize("sizes", SIZES[:4], ids=str)
def test_what_is_saved_comes_back_to_the_bit(sizes: dict[str, Any]) -> None:
    from safetensors.numpy import load

    model = network(temperature=0.8125, **sizes)
    arrays = load(dump_arrays(model.arrays()))
    again = AveragingNetwork.from_arrays(DANConfig(**asdict(model.config)), list(model.labels), arrays)
    assert again.labels == model.labels
    assert again.temperature == model.temperature
    assert again.keys.dtype == np.int32
    assert again.keys.tolist() == model.keys.tolist()
    assert again.parameters().keys() == model.parameters().keys()
    assert torch.equal(again.log_probs(TEXTS), model.log_probs(TEXTS))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.dictionaries(st.integers(0, 5), st.integers(1, 9), max_size=5), max_size=6), st.booleans())
def test_the_average_is_the_sum_by_hand(texts: list[dict[int, int]], single: bool) -> None:
    vectors = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 3)))
    vectors = vectors.float() if single else vectors
    rows = [row for text in texts for row in sorted(text)]
    counts = [text[row] for text in texts for row in sorted(text)]
    offsets = np.cumsum([0, *map(len, texts)])
    bags = Bags(np.array(rows, np.int32), np.array(counts, np.float32), offsets.astype(np.int64))
    found = average(bags, vectors)
    assert found.dtype == vectors.dtype
    np.testing.assert_allclose(found.numpy(), mean_slowly(bags, vectors), rtol=0, atol=1e-6 if single else 1e-14)


def test_a_word_counts_as_often_as_it_occurs_unless_distinct() -> None:
    often, once = network(dimension=2), network(dimension=2, distinct=True)
    texts = ["good good good bad", "good bad"]
    first, second = average(often.bags(texts), often.vectors).numpy()
    good, bad = (average(often.bags([word]), often.vectors).numpy()[0] for word in ("good", "bad"))
    np.testing.assert_allclose(first, (3 * good + bad) / 4)
    np.testing.assert_allclose(second, (good + bad) / 2)
    first, second = average(once.bags(texts), once.vectors).numpy()
    np.testing.assert_allclose(first, (good + bad) / 2)
    np.testing.assert_allclose(second, (good + bad) / 2)


def test_without_dimension_a_score_is_a_mean_of_class_scores_and_a_bias() -> None:
    model = network(temperature=2.0)
    rows = [int(np.flatnonzero(model.keys == key)[0]) for key in collect(["not", "film"], model.config.grams).rows]
    z = (model.vectors[rows[0]] + model.vectors[rows[1]]) / 2 + model.layers["bias"]
    torch.testing.assert_close(model.log_probs(["not film"])[0], torch.log_softmax(z / 2.0, dim=0))


@pytest.mark.parametrize("text", ["", "   ", "words it never saw", "<br />"])
def test_a_text_without_known_words_gets_the_bias(text: str) -> None:
    scores = network()
    torch.testing.assert_close(scores.log_probs([text])[0], torch.log_softmax(scores.layers["bias"], dim=0))
    shallow = network(dimension=4)
    torch.testing.assert_close(shallow.log_probs([text])[0], torch.log_softmax(shallow.layers["out.b"], dim=0))
    deep = network(dimension=4, depth=1, width=3, activation="tanh")
    z = torch.tanh(deep.layers["layers.0.b"]) @ deep.layers["out.W"] + deep.layers["out.b"]
    torch.testing.assert_close(deep.log_probs([text])[0], torch.log_softmax(z, dim=0))


@settings(deadline=None, max_examples=25)
@given(st.floats(0.05, 20), st.integers(0, 50))
def test_the_temperature_changes_no_verdict(temperature: float, seed: int) -> None:
    cold, warm = network(seed=seed, dimension=3), network(temperature=temperature, seed=seed, dimension=3)
    assert cold.predict(TEXTS) == warm.predict(TEXTS)
    sure, unsure = cold.log_probs(TEXTS).max(dim=1).values, warm.log_probs(TEXTS).max(dim=1).values
    assert ((unsure <= sure + 1e-12) if temperature >= 1 else (unsure >= sure - 1e-12)).all()


def test_single_precision_says_the_same_to_six_digits() -> None:
    double = network(dimension=8, depth=2, width=6)
    single = AveragingNetwork(
        double.config, double.labels, double.keys, {n: v.float() for n, v in double.parameters().items()}
    )
    assert single.vectors.dtype == torch.float32
    assert single.double().vectors.dtype == torch.float64
    np.testing.assert_allclose(single.log_probs(TEXTS), double.log_probs(TEXTS), rtol=0, atol=1e-5)
    np.testing.assert_allclose(single.double().log_probs(TEXTS), double.log_probs(TEXTS), rtol=0, atol=1e-5)


def test_layers_start_at_a_size_that_keeps_signals_alive() -> None:
    config = DANConfig(dimension=400, depth=2, width=300)
    layers = random_layers(config, 4, np.random.default_rng(0))
    assert {name: tuple(value.shape) for name, value in layers.items()} == {
        "layers.0.W": (400, 300),
        "layers.0.b": (300,),
        "layers.1.W": (300, 300),
        "layers.1.b": (300,),
        "out.W": (300, 4),
        "out.b": (4,),
    }
    assert float(layers["layers.0.W"].std()) == pytest.approx(math.sqrt(2 / 400), rel=0.02)
    assert float(layers["layers.1.W"].std()) == pytest.approx(math.sqrt(2 / 300), rel=0.02)
    assert float(layers["out.W"].std()) == pytest.approx(math.sqrt(1 / 300), rel=0.1)
    assert not any(value.any() for name, value in layers.items() if name.endswith(".b"))
    assert random_layers(DANConfig(), 3, np.random.default_rng(0)).keys() == {"bias"}
    again = random_layers(config, 4, np.random.default_rng(0))
    assert all(torch.equal(value, again[name]) for name, value in layers.items())


def test_reading_an_average_is_differentiable() -> None:
    """Explanations follow the gradient through the layers."""
    model = network(dimension=3, depth=2, width=4, activation="silu,mish")
    averages = torch.randn(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_(True)
    assert torch.autograd.gradcheck(lambda a: read_average(a, model.layers, model.config), (averages,))


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"dimension": -1}, "A network of dimension -1, depth 0 and width 100 was asked for; give a dimension from 0"),
        ({"dimension": 5, "depth": 65}, "depth 65 and width 100 was asked for"),
        ({"dimension": 5, "depth": 1, "width": 0}, "width 0 was asked for"),
        ({"depth": 2}, r"Hidden layers \(--depth 2\) need vectors to read; give --dimension, such as 100."),
        ({"activation": "gelu"}, "The activation 'gelu' is unknown; give one of relu, sigmoid, tanh, mish, silu"),
        ({"dimension": 5, "depth": 2, "activation": "relu,"}, "The activation '' is unknown"),
        (
            {"dimension": 5, "depth": 3, "activation": "relu,tanh"},
            "2 activations were given for 3 hidden layers; give one, or one for each layer.",
        ),
        ({"words": 9}, "Runs of 9 words were asked for; give a number from 1 to 8."),
    ],
)
def test_sizes_that_make_no_network_are_refused(sizes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        DANConfig(**sizes).grams  # noqa: B018


def test_features_and_vectors_must_be_as_many() -> None:
    model = network()
    with pytest.raises(InklingError, match=f"has {len(model.keys) - 1} features and {len(model.keys)} vectors; train"):
        AveragingNetwork(model.config, LABELS, model.keys[1:], model.parameters())
