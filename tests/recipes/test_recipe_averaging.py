"""From texts in memory to a network: planted words are found, held-out texts choose and are not learned from."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.models.bags import collect
from inkling.models.dan import AveragingNetwork, DANConfig
from inkling.recipes import averaging as module
from inkling.recipes.averaging import (
    STRENGTHS,
    TRUSTS,
    Fitted,
    NetworkSettings,
    Prepared,
    ScoreSettings,
    choose_bits,
    file_table,
    fit_network,
    fit_scores,
    learn_table,
    prepare_network,
)
from inkling.text.grams import GramConfig, key_of
from inkling.text.vectors import WordVectors, load_vectors
from inkling.text.words import hash_word
from inkling.training.loop import TrainingState

PLANTED = ("great", "awful", "middling", "strange")
NEUTRAL = ("the", "film", "is", "a", "story", "of", "two", "people", "who", "meet", "in", "town")
SIZES = DANConfig(words=2, bits=16, distinct=True)


def planted(rows: int, classes: int = 2, seed: int = 0) -> tuple[list[str], NDArray[np.int64], NDArray[np.bool_]]:
    """Texts of neutral words with one planted word of their class; every fifth is held out."""
    generator = np.random.default_rng(seed)
    truth = np.arange(rows, dtype=np.int64) % classes
    texts = []
    for label in truth.tolist():
        words = generator.choice(NEUTRAL, size=8).tolist()
        words[int(generator.integers(8))] = PLANTED[label]
        texts.append(" ".join(words))
    return texts, truth, np.arange(rows) % 5 == 4


def labels(classes: int) -> tuple[str, ...]:
    return tuple(f"class {c}" for c in range(classes))


def fit(rows: int = 100, classes: int = 2, config: DANConfig = SIZES, **settings: Any) -> Fitted:
    texts, truth, held = planted(rows, classes)
    return fit_scores(texts, truth, labels(classes), held, config, ScoreSettings(**settings))


def vector_of(network: AveragingNetwork, word: str) -> NDArray[np.float32] | None:
    key = key_of(np.array([hash_word(word)], np.uint64), 1, network.config.bits)[0]
    (rows,) = np.nonzero(network.keys == key)
    return network.vectors[int(rows[0])].numpy() if len(rows) else None


# ------------------------------------------------------------------------------------------------ scores


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_planted_words_are_learned(classes: int) -> None:
    fitted = fit(40 * classes, classes)
    texts, truth, _ = planted(200, classes, seed=9)
    network = fitted.network
    assert network.predict(texts) == [f"class {label}" for label in truth.tolist()]
    for label in range(classes):
        vector = vector_of(network, PLANTED[label])
        assert vector is not None
        assert int(vector.argmax()) == label
        neutral = [vector_of(network, word) for word in NEUTRAL]
        assert vector[label] > 3 * max(abs(float(other[label])) for other in neutral if other is not None)
    assert fitted.choices[0].accuracy == 1.0


def test_held_out_texts_are_not_learned_from_before_they_have_chosen() -> None:
    texts, truth, held = planted(100)
    turned = np.where(held, 1 - truth, truth)  # held-out labels are wrong, and must not be noticed
    plain = ScoreSettings(strength=0.01, trust=1.0, refit=False)
    one, other = (fit_scores(texts, t, labels(2), held, SIZES, plain) for t in (truth, turned))
    assert torch.equal(one.network.vectors, other.network.vectors)
    assert torch.equal(one.network.layers["bias"], other.network.layers["bias"])
    assert one.held_out.argmax(axis=1).tolist() == truth[held].tolist()
    assert other.choices[0].accuracy == 0.0
    np.testing.assert_allclose(one.held_out, one.network.log_probs([texts[i] for i in np.flatnonzero(held)]), atol=1e-5)

    again = replace(plain, refit=True)
    one, other = (fit_scores(texts, t, labels(2), held, SIZES, again) for t in (truth, turned))
    assert not torch.equal(one.network.vectors, other.network.vectors)
    assert other.held_out.argmax(axis=1).tolist() == truth[held].tolist()  # what they got before


def test_words_of_held_out_texts_alone_have_no_vector() -> None:
    texts, truth, held = planted(60)
    texts = [f"{text} secret" if out else f"{text} public" for text, out in zip(texts, held, strict=True)]
    for refit in (False, True):
        network = fit_scores(texts, truth, labels(2), held, SIZES, ScoreSettings(refit=refit)).network
        assert vector_of(network, "secret") is None
        assert vector_of(network, "public") is not None


@pytest.mark.parametrize(
    ("settings", "tried"),
    [
        ({}, [(STRENGTHS[0], trust) for trust in TRUSTS]),
        ({"strength": 0.5}, [(0.5, trust) for trust in TRUSTS]),
        ({"trust": 2.0}, [(strength, 2.0) for strength in STRENGTHS]),
        ({"trust": 0.0}, [(strength, 0.0) for strength in STRENGTHS]),
        ({"strength": 0.5, "trust": 0.0}, [(0.5, 0.0)]),
    ],
)
def test_the_pair_with_the_fewest_nats_on_held_out_texts_is_chosen(
    settings: dict[str, Any], tried: list[tuple[float, float]]
) -> None:
    texts, truth, held = planted(60)
    generator = np.random.default_rng(1)
    noisy = np.where(generator.random(60) < 0.2, 1 - truth, truth)  # or all pairs would be perfect
    fitted = fit_scores(texts, noisy, labels(2), held, SIZES, ScoreSettings(refit=False, **settings))
    pairs = [(choice.strength, choice.trust) for choice in fitted.choices]
    assert pairs[: len(tried)] == tried
    if not settings:  # then more strength, with the best trust so far
        best = min(fitted.choices[: len(tried)], key=lambda choice: choice.nats)
        assert pairs[len(tried) :] == [(strength, best.trust) for strength in STRENGTHS[1:]]
    else:
        assert len(pairs) == len(tried)
    log_probs = fitted.held_out[np.arange(int(held.sum())), noisy[held]]
    assert -log_probs.mean() == pytest.approx(min(choice.nats for choice in fitted.choices), abs=1e-12)
    right = fitted.held_out.argmax(axis=1) == noisy[held]
    chosen = min(fitted.choices, key=lambda choice: choice.nats)
    assert chosen.accuracy == right.mean()
    assert fitted.steps == chosen.steps > 0


def test_without_held_out_texts_what_was_asked_for_is_fitted() -> None:
    texts, truth, _ = planted(40)
    nobody = np.zeros(40, np.bool_)
    for trust in (0.0, 2.0):
        fitted = fit_scores(texts, truth, labels(2), nobody, SIZES, ScoreSettings(strength=1e6, trust=trust))
        assert (fitted.network.temperature, fitted.choices, len(fitted.held_out)) == (1.0, (), 0)
        size = float(fitted.network.vectors.abs().max())
        assert (size > 0.1) if trust else (size < 1e-3)  # so strong a pull leaves `trust` times naive Bayes
    fitted = fit_scores(texts, truth, labels(2), nobody, SIZES, ScoreSettings())
    assert fitted.network.predict(texts) == [f"class {label}" for label in truth.tolist()]


def test_the_same_texts_give_the_same_bits() -> None:
    one, other = fit(classes=3), fit(classes=3)
    assert one.choices == other.choices
    assert one.network.temperature == other.network.temperature
    assert torch.equal(one.network.vectors, other.network.vectors)


def test_balanced_classes_give_a_rare_one_its_say() -> None:
    truth = (np.arange(100) % 20 == 0).astype(np.int64)
    texts = ["nothing to tell them apart"] * 100
    for balanced, share in ((False, 0.05), (True, 0.5)):
        settings = ScoreSettings(strength=0.1, trust=0.0, balanced=balanced)
        fitted = fit_scores(texts, truth, labels(2), np.zeros(100, np.bool_), SIZES, settings)
        assert float(fitted.network.log_probs([""]).exp()[0, 1]) == pytest.approx(share, abs=0.03)


def test_progress_is_told_to_the_end() -> None:
    texts, truth, held = planted(30)
    for settings in (ScoreSettings(), ScoreSettings(strength=1.0), ScoreSettings(strength=1.0, trust=1.0)):
        told: list[tuple[int, int, str]] = []
        fit_scores(texts, truth, labels(2), held, SIZES, settings, lambda *now, told=told: told.append(now))
        assert [done for done, _, _ in told] == list(range(len(told)))
        assert {total for _, total, _ in told} == {len(told) - 1}
        assert (told[0][2], told[-1][2]) == ("counting", "done")


# ------------------------------------------------------------------------------------------------ features


def test_bits_are_chosen_by_the_size_of_the_text() -> None:
    def bits(chars: int, **sizes: int) -> int:
        return choose_bits(["x" * (chars // 2)] * 2, DANConfig(**sizes))  # type: ignore[arg-type]

    assert bits(1000) == 16  # 200 words: never fewer than 16
    assert bits(1_000_000) == 20  # 200,000 words, 2¹⁸ of them with room
    assert bits(1_000_000, words=3) == 22  # 600,000 runs
    assert bits(1_000_000, low=3, high=5) == 24  # 3.2 million runs of characters and words
    assert bits(20_000_000, words=3) == 24  # never more
    assert choose_bits([], DANConfig()) == 16


def keys_of(texts: list[str], grams: GramConfig) -> list[int]:
    return [int(collect([text], grams).rows[0]) for text in texts]


def test_the_table_keeps_features_that_occur_in_enough_texts_and_the_most_frequent_of_them() -> None:
    grams = GramConfig(bits=20)
    found = collect(["a b c d", "a b c", "a b b b b", "a", "e e e e"], grams)
    a, b, c, d, e = keys_of(["a", "b", "c", "d", "e"], grams)
    assert learn_table(found, grams, 1, 100).keys.tolist() == sorted([a, b, c, d, e])
    assert learn_table(found, grams, 2, 100).keys.tolist() == sorted([a, b, c])  # texts count, not occurrences
    assert learn_table(found, grams, 0, 2).keys.tolist() == sorted([a, b])
    assert learn_table(found, grams, 4, 100).keys.tolist() == [a]
    with pytest.raises(InklingError, match="No feature occurs in 5 training texts; give more texts, or a smaller"):
        learn_table(found, grams, 5, 100)
    with pytest.raises(InklingError, match="The training texts hold no words; give texts with letters in them"):
        learn_table(collect(["", " "], grams), grams, 0, 100)


def test_in_large_data_rare_features_go_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    grams = GramConfig(bits=20)
    found = collect(["a b c", "a b", "a"], grams)  # six pairs
    kept = []
    for many, more in ((6, 100), (5, 100), (4, 5)):
        monkeypatch.setattr(module, "MANY_PAIRS", many)
        monkeypatch.setattr(module, "MORE_PAIRS", more)
        kept.append(len(learn_table(found, grams, 0, 100).keys))
    assert kept == [3, 2, 1]


def test_many_classes_leave_room_for_fewer_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SCORES", 24)
    assert len(fit(classes=2).network.keys) == 24  # one column
    assert len(fit(classes=3).network.keys) == 8
    assert len(fit(classes=4).network.keys) == 6
    assert vector_of(fit(classes=2).network, "great") is not None  # it stands in half of the texts


def small_vectors(folder: Path, lines: dict[str, list[float]]) -> WordVectors:
    path = folder / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in lines.items()), encoding="utf-8")
    return load_vectors(path, cache_dir=folder / "cache")


def test_the_words_of_a_file_are_its_first_and_those_that_occur(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_WORDS", 3)
    lines = {w: [float(i), -float(i)] for i, w in enumerate(["the", "The", "new york", "cat", "dog", "e-mail", "owl"])}
    lines.pop("new york")
    vectors = small_vectors(tmp_path, lines)
    grams = GramConfig(bits=24)
    table, matrix = file_table(vectors, grams, collect(["an owl and an e-mail"], grams))
    found = dict(zip(table.keys.tolist(), matrix.tolist(), strict=True))
    (the, cat, owl, dog) = keys_of(["the", "cat", "owl", "dog"], grams)
    # "The" is "the", and the first wins; dog is neither early nor in the text; e-mail is cut in three.
    assert found == {the: [0.0, 0.0], cat: [3.0, -3.0], owl: [6.0, -6.0]}
    assert dog not in found
    assert table.keys.tolist() == sorted(found)
    assert matrix.flags.writeable


def test_the_vectors_of_clitics_are_found(tmp_path: Path) -> None:
    vectors = small_vectors(tmp_path, {"do": [1.0], "n't": [2.0], "it": [3.0], "'s": [4.0], "'ll": [5.0], "'": [6.0]})
    grams = GramConfig(bits=24)
    table, matrix = file_table(vectors, grams, collect(["don't"], grams))
    for text, expected in (("don't", [1.0, 2.0]), ("it's", [3.0, 4.0]), ("it’ll", [3.0, 5.0]), ("'", [6.0])):
        assert sorted(matrix[table.bags([text], distinct=False).rows, 0].tolist()) == expected


# ------------------------------------------------------------------------------------------------ networks


NETWORK = DANConfig(words=1, bits=16, dimension=8, depth=1, width=6, activation="tanh")


def prepare(
    rows: int = 100, config: DANConfig = NETWORK, vectors: WordVectors | None = None, **settings: Any
) -> Prepared:
    texts, truth, held = planted(rows, 3)
    chosen = NetworkSettings(**{"epochs": 10, "batch": 32, "rate": 0.02, **settings})
    return prepare_network(texts, truth, labels(3), held, config, chosen, vectors)


def train(prepared: Prepared) -> tuple[Fitted, TrainingState]:
    state = TrainingState({})
    for now, _ in fit_network(prepared):
        state = now
    return prepared.finish(state.chosen(), state.step), state


def test_a_network_reaches_the_planted_solution() -> None:
    fitted, state = train(prepare(epochs=25))
    texts, truth, _ = planted(100, 3, seed=5)
    assert fitted.network.predict(texts) == [f"class {label}" for label in truth.tolist()]
    assert state.step == fitted.steps == 25 * 3  # 80 texts, 32 a step at most
    held_texts = [text for text, out in zip(*planted(100, 3)[::2], strict=True) if out]
    np.testing.assert_allclose(fitted.network.log_probs(held_texts).numpy(), fitted.held_out, atol=1e-5)


def test_every_epoch_reads_every_text_once_in_an_order_of_its_own() -> None:
    prepared = prepare(rows=73, batch=10)
    epochs = [[prepared.batches(epoch * 6 + i).tolist() for i in range(6)] for epoch in (0, 1)]
    for epoch in epochs:
        assert sorted(place for batch in epoch for place in batch) == list(range(59))
        assert max(map(len, epoch)) <= 10
    assert epochs[0] != epochs[1]
    assert epochs[0][2] == prepare(rows=73, batch=10).batches(2).tolist()
    assert len(prepare(rows=20, batch=1000).batches(0)) == 16


def test_the_seed_alone_decides() -> None:
    one, same, other = (train(prepare(word_dropout=0.3, seed=seed))[0].network for seed in (1, 1, 2))
    assert all(torch.equal(value, same.parameters()[name]) for name, value in one.parameters().items())
    assert not torch.equal(one.vectors, other.vectors)


def test_the_best_weights_on_held_out_texts_are_kept() -> None:
    prepared = prepare(epochs=8)
    prepared = replace(prepared, held_truth=(prepared.held_truth + 1) % 3)  # learning makes it worse on these
    judged: list[float] = []
    state = TrainingState({})
    for now, step in fit_network(prepared):
        state = now
        if step.held_out_nats is not None:
            judged.append(step.held_out_nats)
    assert len(judged) == 8
    assert judged[-1] > min(judged)
    nats, texts = prepared.validate(state.chosen())
    assert nats / texts == pytest.approx(min(judged), rel=1e-12)


def test_patience_stops_a_network() -> None:
    _, state = train(prepare(rate=3.0, epochs=50, patience=2))
    assert state.step < 50 * 3
    assert state.stale == 2


def test_vectors_of_a_file_stay_or_learn_as_told(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    words = [*PLANTED, *NEUTRAL, "unseen"]
    vectors = small_vectors(tmp_path, {word: generator.standard_normal(4).round(3).tolist() for word in words})
    config = replace(NETWORK, dimension=4, bits=24)
    fixed, learned = (prepare(config=config, vectors=vectors, learn_vectors=learns) for learns in (False, True))
    assert "vectors" not in fixed.objective.parameters
    for prepared, stays in ((fixed, True), (learned, False)):
        network = train(prepared)[0].network
        great, unseen = vector_of(network, "great"), vector_of(network, "unseen")
        assert great is not None
        assert unseen is not None
        assert np.array_equal(great, vectors.matrix[0]) is stays
        assert np.array_equal(unseen, vectors.matrix[-1])
        assert math.isfinite(network.temperature)


def test_balanced_networks_weigh_their_classes() -> None:
    assert prepare().objective.class_weights is None
    weights = prepare(rows=100, balanced=True).objective.class_weights
    assert weights is not None
    _, truth, held = planted(100, 3)
    counts = np.bincount(truth[~held])
    np.testing.assert_allclose(weights.numpy() * counts, 80 / 3, rtol=1e-6)


def test_a_network_without_held_out_texts_is_refused() -> None:
    texts, truth, held = planted(20)
    with pytest.raises(UsageError, match="A network needs held-out texts to know when to stop; give more texts"):
        prepare_network(texts, truth, labels(2), np.zeros_like(held), NETWORK, NetworkSettings())
