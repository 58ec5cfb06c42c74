"""The neural bigram model: its loss over counts is the loss over every pair, and training finds what can be known."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from inkling.models import bigram, gradients
from inkling.models.bigram import Bigram, BigramConfig, ExactLoss, PlainLoss, random_parameters, spectral_vectors
from inkling.models.gradients import relative_error
from inkling.models.pairs import PairCounts, count_pairs
from inkling.text.grammar import PIECE, grammar_bigram_counts, grammar_bigram_nats, grammar_text
from inkling.text.tokenise import train_tokeniser
from inkling.text.tokens import Encodings
from inkling.training.loop import TrainingConfig, TrainingState, train

Array = NDArray[np.float64]
SIZE, DIMENSION, HIDDEN = 7, 3, 5
CLOSE = 1e-10  # relative, as promised


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small products gain nothing from a second thread, and lose much where the cores are busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def small_corpus(seed: int = 0, tokens: int = 60) -> tuple[NDArray[np.int64], NDArray[np.int64], PairCounts]:
    """Contexts and followers of every pair, and their counts. Token 6 never comes first, token 5 never at all."""
    generator = np.random.default_rng(seed)
    following = generator.choice([0, 1, 2, 3, 4, 6], tokens)
    contexts = np.append(0, following[:-1] % 5)
    counts = np.zeros(SIZE * SIZE)
    np.add.at(counts, contexts * SIZE + following, 1)
    keys = np.flatnonzero(counts)
    return contexts, following, PairCounts(SIZE, keys, counts[keys], np.zeros(SIZE), np.full(SIZE, 1 / SIZE))


def start(seed: int = 1) -> dict[str, Tensor]:
    parameters = random_parameters(BigramConfig(DIMENSION, HIDDEN), SIZE, np.random.default_rng(seed))
    return {name: value.double() for name, value in parameters.items()}


def moved(exact: ExactLoss, seed: int = 2) -> dict[str, Tensor]:
    """Somewhere else than the start point."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: value + 0.3 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
        for name, value in exact.parameters.items()
    }


def over_every_pair(
    plain: dict[str, Tensor], contexts: NDArray[np.int64], following: NDArray[np.int64]
) -> tuple[float, dict[str, Array]]:
    """The loss and its gradients, one row for each pair of the corpus, by the layers of gradients.py."""
    p = {name: value.numpy() for name, value in plain.items()}
    x, back_x = gradients.embedding(p["vectors"], contexts)
    nats, backprop = gradients.network(x, p["W1"], p["b1"], p["W2"], p["b2"], np.eye(SIZE)[following])
    d_x, d_W1, d_b1, d_W2, d_b2 = backprop()
    return nats, {"vectors": back_x(d_x), "W1": d_W1, "b1": d_b1, "W2": d_W2, "b2": d_b2}


def in_round_coordinates(exact: ExactLoss, found: dict[str, Array]) -> dict[str, Array]:
    """Gradients of the plain parameters turned into those of the round ones, by the chain rule through `plain`.

    W₂ = T W₂', b₂ = b₂' − c T W₂' and, with fixed vectors, W₁ = R W₁', b₁ = b₁' − m R W₁'.
    """
    T, c = exact.whitening.numpy(), exact.centre.numpy()
    R, m = exact.rounding.numpy(), exact.mean.numpy()
    turned = {"b1": found["b1"], "b2": found["b2"], "W2": T.T @ (found["W2"] - np.outer(c, found["b2"]))}
    if exact.learn_vectors:
        return {**turned, "W1": found["W1"], "vectors": found["vectors"]}
    return {**turned, "W1": R.T @ (found["W1"] - np.outer(m, found["b1"]))}


def by_autograd(exact: ExactLoss, parameters: dict[str, Tensor], target: Array) -> tuple[float, dict[str, Tensor]]:
    """−Σ C ln p written down in round coordinates, with all V×V targets in full, and differentiated by torch."""
    p = {name: value.clone().requires_grad_() for name, value in parameters.items()}
    inputs = p.get("vectors", exact._inputs)
    features = (torch.sigmoid(inputs @ p["W1"] + p["b1"]) - exact.centre) @ exact.whitening
    log_probs = torch.log_softmax(features @ p["W2"] + p["b2"], dim=1)
    nats = -(torch.from_numpy(target) * log_probs).sum()
    torch.autograd.backward(nats)
    return nats.item(), {name: value.grad for name, value in p.items() if value.grad is not None}


def written_out(counts: PairCounts) -> Array:
    table = np.zeros((counts.size, counts.size))
    table.reshape(-1)[counts.keys] = counts.values
    return np.asarray(table + np.outer(counts.spread, counts.base))


# ------------------------------------------------------------------------------------------------ the exact loss


@pytest.mark.parametrize("learn_vectors", [True, False])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_loss_and_gradients_are_those_of_a_pass_over_every_pair(learn_vectors: bool, seed: int) -> None:
    contexts, following, counts = small_corpus(seed)
    exact = ExactLoss(counts, start(seed), learn_vectors=learn_vectors)
    parameters = moved(exact, seed)
    nats, found = exact.loss(parameters, counts)
    expected_nats, expected = over_every_pair(exact.plain(parameters), contexts, following)
    assert nats == pytest.approx(expected_nats, rel=CLOSE)
    turned = in_round_coordinates(exact, expected)
    assert set(found) == set(turned) == set(exact.parameters)
    for name in found:
        assert relative_error(found[name].numpy(), turned[name]) <= CLOSE, name


@pytest.mark.parametrize("learn_vectors", [True, False])
@pytest.mark.parametrize("discount", [0.0, 0.4, 1.0])
def test_softened_counts_give_the_loss_and_gradients_of_the_full_table(learn_vectors: bool, discount: float) -> None:
    _, _, counts = small_corpus()
    softened = counts.discounted(discount)
    exact = ExactLoss(counts, start(), learn_vectors=learn_vectors)
    parameters = moved(exact)
    nats, found = exact.loss(parameters, softened)
    expected_nats, expected = by_autograd(exact, parameters, written_out(softened))
    assert nats == pytest.approx(expected_nats, rel=CLOSE)
    assert set(found) == set(expected)
    for name in found:
        assert relative_error(found[name].numpy(), expected[name].numpy()) <= CLOSE, name
    plain = {name: value.numpy() for name, value in exact.plain(parameters).items()}
    by_layers, _ = gradients.network(
        plain["vectors"], plain["W1"], plain["b1"], plain["W2"], plain["b2"], written_out(softened)
    )
    assert nats == pytest.approx(by_layers, rel=CLOSE)


@pytest.mark.parametrize("learn_vectors", [True, False])
def test_rare_contexts_that_take_turns_come_to_the_same_in_the_mean(learn_vectors: bool) -> None:
    _, _, counts = small_corpus()
    counts = counts.discounted(0.4)
    exact = ExactLoss(counts, start(), learn_vectors=learn_vectors)
    parameters = moved(exact)
    nats, found = exact.loss(parameters, counts)
    turns = [exact.loss(parameters, turn) for turn in counts.turns(3, covered=0.3)]
    assert len({turn[0] for turn in turns}) == 3
    assert sum(turn[0] for turn in turns) / 3 == pytest.approx(nats, rel=CLOSE)
    for name in found:
        mean = torch.stack([turn[1][name] for turn in turns]).mean(0)
        assert relative_error(found[name].numpy(), mean.numpy()) <= CLOSE, name


def test_the_loss_alone_is_the_loss_beside_its_gradient() -> None:
    _, _, counts = small_corpus()
    exact = ExactLoss(counts, start())
    for judged in (counts, counts.discounted(0.4), small_corpus(9)[2]):
        assert exact.nats(moved(exact), judged) == exact.loss(moved(exact), judged)[0]


@pytest.mark.parametrize("cells", [1, SIZE, 3 * SIZE + 1])
@pytest.mark.parametrize("discount", [0.0, 0.4])
def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch, cells: int, discount: float) -> None:
    _, _, counts = small_corpus()
    counts = counts.discounted(discount)
    exact = ExactLoss(counts, start(), dropout=0.3)
    parameters = moved(exact)
    nats, found = exact.loss(parameters, counts, dropout_step=4)
    monkeypatch.setattr(bigram, "BLOCK_CELLS", cells)
    in_blocks_nats, in_blocks = exact.loss(parameters, counts, dropout_step=4)
    assert in_blocks_nats == pytest.approx(nats, rel=1e-13)
    for name in found:
        assert relative_error(found[name].numpy(), in_blocks[name].numpy()) <= 1e-13, name


def test_gradients_with_dropout_agree_with_central_differences() -> None:
    _, _, counts = small_corpus()
    counts = counts.discounted(0.4)
    exact = ExactLoss(counts, start(), dropout=0.4, seed=3)
    parameters = moved(exact)
    _, found = exact.loss(parameters, counts, dropout_step=7)

    def at(name: str) -> Callable[[Array], float]:
        return lambda value: exact.loss({**parameters, name: torch.from_numpy(value)}, counts, 7)[0]

    for name, value in parameters.items():
        differences = gradients.central_differences(at(name), value.numpy())
        assert relative_error(found[name].numpy(), differences) <= 1e-7, name


def test_what_is_dropped_depends_on_seed_and_step_alone() -> None:
    _, _, counts = small_corpus()

    def nats(seed: int, step: int, before: int = 0) -> float:
        exact = ExactLoss(counts, start(), dropout=0.5, seed=seed)
        for earlier in range(before):
            exact.gradient(counts, earlier)
        torch.rand(before)  # the global generator plays no part
        return exact.gradient(counts, step)[0]

    assert nats(seed=1, step=5) == nats(seed=1, step=5, before=3)
    assert len({nats(seed, step) for seed in range(3) for step in range(3)}) == 9


def test_without_dropout_every_step_has_the_same_loss_and_with_it_none_is_judged_by() -> None:
    _, _, counts = small_corpus()
    plain = ExactLoss(counts, start())
    assert plain.gradient(counts, 0) == plain.gradient(counts, 9) == (plain.loss(plain.parameters, counts)[0], 60.0)
    dropped = ExactLoss(counts, start(), dropout=0.5)
    assert dropped.loss(dropped.parameters, counts)[0] == plain.loss(plain.parameters, counts)[0]
    assert dropped.gradient(counts, 0)[0] != plain.gradient(counts, 0)[0]


def test_rare_contexts_lose_features_at_the_rate_asked_for_and_common_ones_less() -> None:
    # The gradient of W₂ from one pair (i, j) is f (p − y)ᵀ, zero in the rows of the features that i has lost.
    size, hidden, steps, rate = 4, 50, 40, 0.4
    seen = np.array([0.0, 1.0, 1000.0, 9000.0])
    keys = np.arange(size) * size
    corpus = PairCounts(size, keys, seen, np.zeros(size), np.full(size, 1 / size))
    exact = ExactLoss(corpus, random_parameters(BigramConfig(4, hidden), size, np.random.default_rng(0)), dropout=rate)
    flat = {**exact.parameters, "W2": torch.zeros(hidden, size), "b2": torch.zeros(size)}  # p = ¼, so p − y is not 0
    for context, expected in enumerate([rate, rate / 1.001, rate / 2, rate / 10]):
        once = PairCounts(size, keys[context : context + 1], np.ones(1), np.zeros(size), np.full(size, 1 / size))
        rows = [exact.loss(flat, once, step)[1]["W2"].abs().sum(1) for step in range(steps)]
        share = float((torch.stack(rows) == 0).double().mean())
        assert abs(share - expected) < 4 * (expected * (1 - expected) / (steps * hidden)) ** 0.5, context


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.booleans())
def test_plain_and_round_coordinates_are_the_same_model(seed: int, learn_vectors: bool) -> None:
    _, _, counts = small_corpus(seed)
    exact = ExactLoss(counts, start(seed), learn_vectors=learn_vectors)
    parameters = moved(exact, seed)
    plain = exact.plain(parameters)
    assert {name: tuple(value.shape) for name, value in plain.items()} == {
        "vectors": (SIZE, DIMENSION),
        "W1": (DIMENSION, HIDDEN),
        "b1": (HIDDEN,),
        "W2": (HIDDEN, SIZE),
        "b2": (SIZE,),
    }
    log_probs = Bigram(BigramConfig(DIMENSION, HIDDEN), plain, Numbers()).log_probs(torch.arange(SIZE)).numpy()
    assert exact.loss(parameters, counts)[0] == pytest.approx(-float((log_probs * written_out(counts)).sum()), rel=1e-9)
    if not learn_vectors:
        assert plain["vectors"].numpy() == pytest.approx(start(seed)["vectors"].numpy(), abs=1e-9)


def test_the_plain_parameters_are_copies_that_training_does_not_touch() -> None:
    _, _, counts = small_corpus()
    exact = ExactLoss(counts, start())
    before = exact.plain(exact.parameters)
    kept = {name: value.clone() for name, value in before.items()}
    list(train(exact, lambda step: counts, TrainingConfig(steps=3), TrainingState(exact.parameters)))
    for name in ("vectors", "W2", "b2"):
        assert torch.equal(before[name], kept[name]), name


def test_features_are_round_at_the_start() -> None:
    _, _, counts = small_corpus(tokens=5000)
    exact = ExactLoss(counts, start())
    weight = torch.from_numpy(counts.row_totals / counts.tokens)
    inputs = exact.parameters["vectors"]
    assert (weight @ inputs).numpy() == pytest.approx(np.zeros(DIMENSION), abs=1e-12)
    covariance = (inputs * weight[:, None]).T @ inputs
    # The ridge of a thousandth of the mean variance keeps every direction at or below one.
    assert torch.linalg.eigvalsh(covariance).numpy() == pytest.approx(np.ones(DIMENSION), abs=0.05)


# ------------------------------------------------------------------------------------------------ known entropy


TRAIN = grammar_text(np.random.default_rng(1), 120_000).splitlines(keepends=True)
TEST = grammar_text(np.random.default_rng(2), 40_000).splitlines(keepends=True)


def best_bigram_nats(lines: list[str]) -> Array:
    """What each sentence costs the best bigram model there is, whose chances are those of the grammar."""
    counts = grammar_bigram_counts()
    before: dict[str, float] = defaultdict(float)
    for (first, _), expected in counts.items():
        before[first] += expected
    costs = []
    for line in lines:
        pieces = ["\n", *PIECE.findall(line)]
        costs.append(-sum(log(counts[a, b] / before[a]) for a, b in pairwise(pieces)))
    return np.array(costs)


def test_training_on_the_grammar_comes_down_to_its_bigram_entropy_and_not_below() -> None:
    tokeniser = train_tokeniser("word", [TRAIN])
    counts = count_pairs([tokeniser.encode(TRAIN)], tokeniser.size, tokeniser.begin)
    held_out = count_pairs([tokeniser.encode(TEST)], tokeniser.size, tokeniser.begin)
    vectors = spectral_vectors(counts, 30)
    sizes = BigramConfig(vectors.shape[1], 60)
    exact = ExactLoss(counts, random_parameters(sizes, tokeniser.size, np.random.default_rng(0), vectors))

    unigram = counts.column_totals[counts.column_totals > 0] / counts.tokens
    unigram_nats = -float((unigram * np.log(unigram)).sum())
    start_nats = exact.loss(exact.parameters, counts)[0] / counts.tokens
    assert grammar_bigram_nats() < start_nats < unigram_nats < log(tokeniser.size)

    state, softened = TrainingState(exact.parameters), counts.discounted(0.4)
    config = TrainingConfig(steps=80, rate=0.02)
    list(train(exact, lambda step: softened, config, state, lambda p: (exact.loss(p, held_out)[0], held_out.tokens)))
    model = Bigram(sizes, exact.plain(state.chosen()), tokeniser)
    scores = model.score(TEST)
    assert scores.nats.sum() / len(scores.ids) == pytest.approx(state.best_nats, rel=1e-5)

    # Beside the best bigram on the same sentences, so that the luck of the text cancels.
    excess = scores.per_text(scores.nats) - best_bigram_nats(TEST)
    error = float(excess.std(ddof=1)) * len(excess) ** 0.5 / len(scores.ids)
    per_token = float(excess.sum()) / len(scores.ids)
    # A table of the K pairs that occur, fitted freely to N tokens, pays K/2N more than the truth (Wilks).
    price = len(counts.keys) / (2 * counts.tokens)
    assert -3 * error < per_token < 3 * price
    assert abs(best_bigram_nats(TEST).sum() / len(scores.ids) - grammar_bigram_nats()) < 0.03


# ------------------------------------------------------------------------------------------------ the model


class Numbers:
    """Text is digits; id 0 ends a line."""

    kind, size, unknown, begin = "digits", SIZE, None, 0

    @property
    def byte_lengths(self) -> NDArray[np.int64]:
        return np.ones(SIZE, np.int64)

    def encode(self, texts: object) -> Encodings:
        listed = [str(text) for text in texts]  # type: ignore[attr-defined]
        ids = np.array([int(digit) for text in listed for digit in text], np.int32)
        return Encodings(ids, np.cumsum([0, *map(len, listed)], dtype=np.int64), ())

    def decode(self, ids: object, spellings: object = ()) -> str:
        return "".join(map(str, ids))  # type: ignore[call-overload]

    def piece(self, token: int) -> bytes:
        return str(token).encode()

    def to_json(self) -> str:
        return "{}"


def test_probabilities_by_hand() -> None:
    # One hidden unit at σ(0) = ½: θ = ½W₂ + b₂ = ln(1, 2, 3, 4, 1, 1, 4), sum 16, whatever came before.
    parameters = {
        "vectors": torch.zeros(SIZE, 1),
        "W1": torch.ones(1, 1),
        "b1": torch.zeros(1),
        "W2": 2 * torch.tensor([[1.0, 2, 3, 4, 1, 1, 4]]).double().log(),
        "b2": torch.zeros(SIZE),
    }
    model = Bigram(BigramConfig(1, 1), parameters, Numbers())
    assert model.begin()[1].exp().tolist() == pytest.approx([1 / 16, 2 / 16, 3 / 16, 4 / 16, 1 / 16, 1 / 16, 4 / 16])
    assert model.score(["13"])[0].nats.tolist() == pytest.approx([log(8), log(4)], rel=1e-14)


def test_the_context_is_the_token_before_and_a_line_end_before_the_first() -> None:
    model = Bigram(BigramConfig(DIMENSION, HIDDEN), start(), Numbers())
    table = model.log_probs(torch.arange(SIZE)).numpy()
    assert model.score(["415", "2"]).nats == pytest.approx(-table[[0, 4, 1, 0], [4, 1, 5, 2]], rel=1e-14)
    state, log_probs = model.step(3, 6)
    assert state == 6
    assert log_probs.numpy() == pytest.approx(table[6], rel=1e-14)


def test_the_sampled_loss_is_the_network_over_the_batch_and_leaves_vectors_alone() -> None:
    parameters = start()
    objective = PlainLoss(parameters)
    contexts, following = np.array([1, 1, 4]), np.array([2, 2, 0])
    nats, tokens = objective.gradient((contexts, following), 0)
    expected_nats, expected = over_every_pair(parameters, contexts, following)
    assert nats == pytest.approx(expected_nats, rel=1e-14)
    assert tokens == 3.0
    assert set(objective.parameters) == {"W1", "b1", "W2", "b2"}
    for name, parameter in objective.parameters.items():
        assert parameter.grad is not None
        assert relative_error(parameter.grad.numpy(), expected[name]) <= 1e-14, name
    plain = objective.plain(objective.parameters)
    assert torch.equal(plain["vectors"], parameters["vectors"])
    assert set(plain) == {"vectors", "W1", "b1", "W2", "b2"}


def test_the_plain_start_is_glorots() -> None:
    parameters = random_parameters(BigramConfig(30, 50), 100, np.random.default_rng(0))
    for name, limit in (("W1", (6 / 80) ** 0.5), ("W2", (6 / 150) ** 0.5)):
        largest = float(parameters[name].abs().max())
        assert 0.98 * limit < largest <= limit * (1 + 1e-6)
    assert not parameters["b1"].any()
    assert not parameters["b2"].any()
    again = random_parameters(BigramConfig(30, 50), 100, np.random.default_rng(0))
    assert all(torch.equal(parameters[name], again[name]) for name in parameters)
    given_vectors = np.ones((100, 30), np.float32)
    assert torch.equal(
        random_parameters(BigramConfig(30, 50), 100, np.random.default_rng(0), given_vectors)["vectors"],
        torch.ones(100, 30),
    )


def test_vectors_from_counts_put_contexts_with_the_same_followers_together() -> None:
    # Tokens 0 and 1 are followed by 4 and 5, tokens 2 and 3 by 6: the same two ways to go on.
    pairs = [(0, 4), (0, 5), (1, 4), (1, 5), (2, 6), (3, 6)]
    keys = np.sort([a * SIZE + b for a, b in pairs])
    counts = PairCounts(SIZE, keys, np.full(6, 10.0), np.zeros(SIZE), np.full(SIZE, 1 / SIZE))
    vectors = spectral_vectors(counts, 2)
    assert vectors.shape == (SIZE, 2)
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-4)
    assert vectors[2] == pytest.approx(vectors[3], abs=1e-4)
    assert abs(vectors[0] @ vectors[2]) < 1e-3 * np.linalg.norm(vectors[0]) * np.linalg.norm(vectors[2])
    assert np.array_equal(vectors, spectral_vectors(counts, 2))
    assert spectral_vectors(counts, 100).shape == (SIZE, SIZE)
