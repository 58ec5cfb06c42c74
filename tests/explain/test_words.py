"""Words left out: equal to reading the text again without them, whatever the network."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.explain.words import (
    Explanation,
    effects_of,
    explain,
    find_sentences,
    gradient_times_input,
    integrated_gradients,
    log_odds,
)
from inkling.models.bags import Bags, bag, collect
from inkling.models.dan import AveragingNetwork, DANConfig, average, random_layers, read_average
from inkling.text.grams import grams_of
from inkling.text.words import Words, find_words

WORDS = ["good", "bad", "not", "film", "the", "very", "don't", "it's", "plot", "!", "dull", "fine", "."]
CONFIGS = (
    DANConfig(words=3, distinct=True),
    DANConfig(words=2, low=2, high=4, distinct=True),
    DANConfig(words=1, dimension=6, depth=2, width=5, activation="tanh"),
    DANConfig(words=3, low=3, high=3, dimension=4, depth=1, width=3, activation="mish", distinct=True),
    DANConfig(words=2, dimension=3),
    DANConfig(words=1, dimension=8, depth=2, width=16, activation="relu"),
)
LABELS = ("no", "perhaps", "yes")


def network(config: DANConfig, texts: list[str], seed: int = 0, labels: tuple[str, ...] = LABELS) -> AveragingNetwork:
    """With random vectors for three quarters of the features of `texts`: some are unknown."""
    generator = np.random.default_rng(seed)
    keys = np.unique(collect(texts, config.grams).rows)
    keys = keys[generator.random(len(keys)) < 0.75]
    size = config.dimension or len(labels)
    parameters = {"vectors": torch.from_numpy(generator.normal(size=(len(keys), size)).astype(np.float32))}
    layers = random_layers(config, len(labels), generator)
    for name, value in layers.items():
        if name.endswith(".b"):  # kinks away from zero
            value += torch.from_numpy(generator.normal(0, 0.3, value.shape).astype(np.float32))
    parameters |= layers
    return AveragingNetwork(config, labels, keys, parameters, temperature=1.7)


def read_without(model: AveragingNetwork, text: str, first: int, last: int) -> NDArray[np.float64]:
    """The log-odds of a text whose words from `first` to before `last` are not read, all done anew."""
    words = find_words([text])
    kept = np.ones(len(words.hashes), np.bool_)
    kept[first:last] = False
    rest = Words(words.hashes[kept], words.starts[kept], words.ends[kept], np.array([0, int(kept.sum())]))
    bags: Bags = model.table.keep(bag(grams_of([text], rest, model.config.grams)), model.config.distinct)
    double = model.double()
    return np.asarray(log_odds(double.read(average(bags, double.vectors)))[0].numpy())


def check(model: AveragingNetwork, found: Explanation) -> None:
    whole = read_without(model, found.text, 0, 0)
    for place in range(len(found.starts)):
        without = read_without(model, found.text, place, place + 1)
        np.testing.assert_allclose(found.effects[place], whole - without, atol=1e-9)
    for place, (first, last) in enumerate(found.sentences.tolist()):
        np.testing.assert_allclose(
            found.sentence_effects[place], whole - read_without(model, found.text, first, last), atol=1e-9
        )


texts_of_words = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=0, max_size=12).map(" ".join), min_size=1, max_size=4
)


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
@given(texts=texts_of_words, seed=st.integers(0, 5))
@settings(deadline=None, max_examples=15)
def test_leaving_a_word_or_sentence_out_equals_reading_the_text_without_it(
    config: DANConfig, texts: list[str], seed: int
) -> None:
    model = network(config, [*texts, "good bad not film the very plot"], seed)
    for found in explain(model, texts):
        check(model, found)


@given(texts=texts_of_words, data=st.data())
@settings(deadline=None, max_examples=25)
def test_any_span_of_words_may_be_left_out(texts: list[str], data: st.DataObject) -> None:
    model = network(CONFIGS[0], [*texts, "the plot"])
    lengths = find_words(texts).lengths
    spans = []
    for length in lengths.tolist():
        first = data.draw(st.integers(0, length))
        spans.append(np.array([[first, data.draw(st.integers(first, length))]], np.int64))
    for text, span, effect in zip(texts, spans, effects_of(model, texts, spans), strict=True):
        first, last = span[0].tolist()
        np.testing.assert_allclose(
            effect[0], read_without(model, text, 0, 0) - read_without(model, text, first, last), atol=1e-9
        )


def test_a_word_that_stands_twice_still_counts_after_one_of_them_has_gone() -> None:
    texts = ["good film good"]
    model = network(DANConfig(words=1, distinct=True), [*texts, "x"], seed=3)
    model = AveragingNetwork(model.config, LABELS, np.unique(collect(texts, model.config.grams).rows), {
        "vectors": torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), "bias": torch.zeros(3)
    })  # fmt: skip
    found = explain(model, texts)[0]
    assert np.abs(found.effects[0]).max() == 0.0  # the other "good" is still there
    assert np.abs(found.effects[1]).max() > 0.1


def test_the_verdict_is_that_of_the_model() -> None:
    texts = ["good film .", "bad bad plot", ""]
    model = network(CONFIGS[2], texts)
    found = explain(model, texts)
    np.testing.assert_allclose(
        np.stack([e.log_probs for e in found]), model.double().log_probs(texts).numpy(), atol=1e-6
    )
    assert [LABELS[e.verdict] for e in found] == model.predict(texts)
    assert found[2].effects.shape == (0, 3)
    assert found[0].word(1) == "film"


def test_many_blocks_of_texts_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["good film . the plot", "not very dull !", "it's fine", "don't"] * 3
    model = network(CONFIGS[0], texts)
    whole = explain(model, texts)
    monkeypatch.setattr("inkling.explain.words.EXPLAINED_CHARS", 10)
    for one, other in zip(whole, explain(model, texts), strict=True):
        assert one.text == other.text
        np.testing.assert_array_equal(one.effects, other.effects)


def test_sentences_end_at_their_marks() -> None:
    text = "Mr. Smith came. Why?! He left<br />A new line\nand one more"
    words = find_words([text])
    spans = find_sentences(text, words.starts, words.ends)
    sentences = [text[words.starts[a] : words.ends[b - 1]] for a, b in spans.tolist()]
    assert sentences == ["Mr.", "Smith came.", "Why?!", "He left", "A new line", "and one more"]
    assert find_sentences("", np.zeros(0, np.int64), np.zeros(0, np.int64)).shape == (0, 2)


def test_log_odds_stay_exact_where_a_probability_is_nearly_one() -> None:
    log_probs = torch.log_softmax(torch.tensor([[40.0, 0.0, 1.0]], dtype=torch.float64), dim=1)
    expected = 40.0 - float(torch.logsumexp(torch.tensor([0.0, 1.0], dtype=torch.float64), 0))
    assert float(log_odds(log_probs)[0, 0]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("config", CONFIGS)
def test_integrated_gradients_add_up_to_what_the_text_changed(config: DANConfig) -> None:
    texts = ["good film . the plot was very very dull", "not bad !", ""]
    model = network(config, texts, seed=1)
    layers = model.double_layers()
    found = explain(model, texts)
    empty = log_odds(layers.read(torch.zeros(1, model.vectors.shape[1], dtype=torch.float64)))[0]
    for one, parts in zip(found, integrated_gradients(model, texts, steps=400), strict=True):
        odds = log_odds(torch.from_numpy(one.log_probs)[None])[0, one.verdict]
        assert float(parts.sum()) == pytest.approx(float(odds - empty[one.verdict]), abs=2e-3)


def test_both_gradients_agree_where_the_scores_are_a_straight_line() -> None:
    texts = ["good film", "not a bad plot"]
    model = network(DANConfig(words=2, distinct=True), texts, labels=("no", "yes"))
    for slope, path in zip(gradient_times_input(model, texts), integrated_gradients(model, texts), strict=True):
        np.testing.assert_allclose(slope, path, atol=1e-12)


@pytest.mark.peer
def test_captum_integrates_to_the_same_parts() -> None:
    """Captum walks the path over the vectors of the words; so do we, through their mean."""
    captum = pytest.importorskip("captum.attr")
    texts = ["good film the plot very dull fine not bad"]
    model = network(DANConfig(words=1, dimension=6, depth=2, width=5, activation="tanh"), [*texts, "x"], seed=4)
    layers = model.double_layers()
    words = find_words(texts)
    rows = model.table.rows[grams_of(texts, words, model.config.grams).runs[0]]
    known = np.flatnonzero(rows >= 0)
    vectors = model.vectors[torch.from_numpy(rows[known].astype(np.int64))].double()[None]
    verdict = int(model.log_probs(texts)[0].argmax())

    def odds(inputs: torch.Tensor) -> torch.Tensor:
        return log_odds(layers.read(inputs.mean(dim=1)))

    parts = captum.IntegratedGradients(odds).attribute(vectors, target=verdict, n_steps=50, method="gausslegendre")
    mine = integrated_gradients(model, texts, steps=50)[0]
    np.testing.assert_allclose(mine[known], parts.sum(dim=2)[0].detach().numpy(), atol=1e-6)
    assert np.abs(mine[np.setdiff1d(np.arange(len(rows)), known)]).max(initial=0.0) == 0.0


@pytest.mark.parametrize("config", CONFIGS)
def test_the_parts_of_the_words_add_up_to_the_scores(config: DANConfig) -> None:
    texts = ["good film . the plot was very very dull", "not bad !", ""]
    model = network(config, texts, seed=2)
    double = model.double()
    empty = torch.zeros(1, model.vectors.shape[1], dtype=torch.float64)
    nothing = read_average(empty, double.layers, config)[0].numpy() / model.temperature
    for text, found in zip(texts, explain(model, texts), strict=True):
        scores = read_average(average(model.bags([text]), double.vectors), double.layers, config)[0].numpy()
        np.testing.assert_allclose(found.parts.sum(axis=0), scores / model.temperature - nothing, atol=1e-6)


def test_of_a_word_that_stands_twice_each_place_has_half_the_part() -> None:
    config = DANConfig(words=1, distinct=True)
    keys = np.unique(collect(["good film"], config.grams).rows)
    vectors = torch.tensor([[1.0, 0.0], [0.0, 3.0]])
    model = AveragingNetwork(config, ("no", "yes"), keys, {"vectors": vectors, "bias": torch.zeros(2)}, 2.0)
    found = explain(model, ["good film good"])[0]
    twice, once = found.parts[[0, 2]], found.parts[1]
    np.testing.assert_allclose(twice[0], twice[1])
    np.testing.assert_allclose(sorted([*(2 * twice[0]).tolist(), *once.tolist()]), [0.0, 0.0, 0.25, 0.75])
