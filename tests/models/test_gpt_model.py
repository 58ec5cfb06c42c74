"""The transformer over a tokeniser: kept keys against the plain form, windows, branching, and writing."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from inkling.errors import UsageError
from inkling.models import gpt_cache, gpt_fused, gpt_model
from inkling.models.contracts import Attentive, LanguageModel, Reader, Touch
from inkling.models.gpt import GPT, GPTConfig, initial_parameters
from inkling.models.gpt_cache import State
from inkling.models.gpt_fused import FEW
from inkling.models.gpt_model import Transformer
from inkling.models.sampling import SamplingConfig, sample, sample_many
from inkling.text.normalise import Chain
from inkling.text.tokenise import train_tokeniser

LINES = ["The quick brown fox\n", "jumps over the lazy dog, and so on.\n"]
TOKENISER = train_tokeniser("character", [LINES])
V = TOKENISER.size
SMALL = GPTConfig(V, 16, 2, 4, mlp=20, context=9)
KINDS = [
    SMALL,
    replace(SMALL, key_value_heads=2, norm_epsilon=1e-3, context=8),
    replace(SMALL, query_key_norm=False, tied=False, rotary_base=100.0),
    replace(SMALL, mlp=0, key_value_heads=1, context=2),
    replace(SMALL, activation="squared_relu", grams=2, gram_rows=50),
]


def model_of(config: GPTConfig = SMALL, dtype: torch.dtype = torch.float64, **options: Any) -> Transformer:
    generator = np.random.default_rng(0)
    found = initial_parameters(config, generator)
    for value in found.values():  # gains of one would hide a forgotten gain
        value += torch.from_numpy(generator.normal(0, 0.1, value.shape))
    return Transformer(config, {name: 1.5 * value.to(dtype) for name, value in found.items()}, TOKENISER, **options)


def some_ids(length: int, seed: int = 1) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, V, length)


def plainly(model: GPT, ids: NDArray[np.int64]) -> Tensor:
    """Log-probabilities of what comes after `ids`, by the definition: the last window, read by the plain form."""
    text = [TOKENISER.begin, *ids.tolist()]
    most = model.config.context
    stride = most - most // 2
    first = max(0, math.ceil((len(ids) - most + 1) / stride)) * stride
    return model.look(torch.tensor([text[first:]])).log_probs[0, -1]


def plain_nats(model: GPT, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.array([-float(plainly(model, ids[:place])[token]) for place, token in enumerate(ids)])


def stepped(model: Transformer, ids: NDArray[np.int64]) -> NDArray[np.float64]:
    state, log_probs = model.begin()
    nats = []
    for token in ids.tolist():
        nats.append(-float(log_probs[token]))
        state, log_probs = model.step(state, token)
    return np.array(nats)


def after(model: Transformer, ids: NDArray[np.int64]) -> tuple[State, Tensor]:
    state, log_probs = model.begin()
    for token in ids.tolist():
        state, log_probs = model.step(state, token)
    return state, log_probs


# ------------------------------------------------------------------------------------------------ scores and steps


@pytest.mark.parametrize("config", KINDS)
@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-4), (torch.float64, 1e-11)])
def test_scores_and_steps_are_those_of_the_plain_form(config: GPTConfig, dtype: torch.dtype, near: float) -> None:
    model, ids = model_of(config, dtype), some_ids(40)
    expected = plain_nats(model, ids)
    assert model.score_ids(ids, np.array([0, 40])) == pytest.approx(expected, rel=0, abs=near)
    assert stepped(model, ids) == pytest.approx(expected, rel=0, abs=near)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 45), max_size=6), st.sampled_from(KINDS), st.sampled_from([1, 20, 4096]))
def test_texts_of_any_lengths_side_by_side(lengths: list[int], config: GPTConfig, at_once: int) -> None:
    model = model_of(config, workers=1)
    offsets = np.append(0, np.cumsum(lengths)).astype(np.int64)
    ids = some_ids(int(offsets[-1]), seed=len(lengths))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpt_model, "READ_AT_ONCE", at_once)
        patch.setattr(gpt_model, "LOGITS_AT_ONCE", at_once)
        together = model.score_ids(ids, offsets)
    for start, stop in pairwise(offsets.tolist()):
        alone = model.score_ids(ids[start:stop], np.array([0, stop - start]))
        assert together[start:stop] == pytest.approx(alone, rel=0, abs=1e-10)


def test_what_was_long_ago_is_forgotten_and_what_was_lately_is_not() -> None:
    model, ids = model_of(), some_ids(30)  # a context of 9: the last token is predicted from place 25 on
    changed = {place: ids.copy() for place in (10, 27)}
    for place, copy in changed.items():
        copy[place] = (copy[place] + 1) % V
    last = {place: model.score_ids(copy, np.array([0, 30]))[-1] for place, copy in changed.items()}
    expected = model.score_ids(ids, np.array([0, 30]))[-1]
    assert last[10] == pytest.approx(expected, abs=1e-12)
    assert abs(last[27] - expected) > 1e-3


def test_the_context_is_told_in_words() -> None:
    assert model_of().context == "the whole text up to 9 tokens; beyond, the 5 to 9 tokens before"


def test_a_text_costs_what_its_normalised_letters_cost() -> None:
    model = model_of(chain=Chain.parse("lower"))
    ids = TOKENISER.encode(["the fox\n"]).ids.astype(np.int64)
    scored = model.score(["THE FOX\n", ""])
    assert scored[0].nats == pytest.approx(plain_nats(model, ids), abs=1e-11)
    assert len(scored[1].ids) == 0


def test_the_contracts_are_met() -> None:
    attentive: Attentive = model_of()
    language_model: LanguageModel[State] = model_of()
    assert (attentive.layers, attentive.heads) == (2, 4)
    assert language_model.tokeniser is TOKENISER
    ids = torch.from_numpy(some_ids(9)[None])
    look = attentive.look(ids, Touch(replaced={(0, 1): torch.zeros(16, dtype=torch.float64)}))
    assert float(look.outputs[0][:, 1].abs().max()) == 0
    torch.testing.assert_close(torch.log_softmax(attentive.unembed(look.residual), -1), look.log_probs)
    assert model_of().tensors().keys() == initial_parameters(SMALL, np.random.default_rng(0)).keys()


def test_a_tokeniser_of_another_model_is_refused() -> None:
    config = replace(SMALL, vocabulary=V + 1)
    with pytest.raises(UsageError, match=f"knows {V + 1} tokens and its tokeniser {V}; give the tokeniser"):
        Transformer(config, initial_parameters(config, np.random.default_rng(0)), TOKENISER)


# ------------------------------------------------------------------------------------------------ states


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, V - 1)), min_size=1, max_size=40), st.sampled_from(KINDS))
def test_any_state_can_be_gone_on_from_at_any_time(moves: list[tuple[int, int]], config: GPTConfig) -> None:
    """A tree of texts: each move goes on from some state that there is; at the end every state is as it should be."""
    model = model_of(config)
    tree = [(model.begin()[0], np.zeros(0, np.int64))]
    for number, token in moves:
        state, text = tree[number % len(tree)]
        tree.append((model.step(state, token)[0], np.append(text, token)))
    for state, text in tree[:: max(1, len(tree) // 5)]:
        found = model.step(state, 3)[1]
        torch.testing.assert_close(found, plainly(model, np.append(text, 3)), rtol=0, atol=1e-11)


@pytest.mark.parametrize("config", KINDS)
@pytest.mark.parametrize("lengths", [(0, 3, 7, 12), (5, 0, 1, 12, 2, 9, 3, 8, 3)], ids=["few", "many"])
def test_texts_of_different_lengths_step_together(config: GPTConfig, lengths: tuple[int, ...]) -> None:
    model = model_of(config)
    assert (len(lengths) < FEW) == (len(lengths) == 4)  # they are multiplied in another way
    texts = [some_ids(length, seed=length) for length in lengths]
    states: Any = [after(model, text)[0] for text in texts]
    for token in range(14):  # beyond the context, which each reaches at its own time
        states, log_probs = model.step_many(states, [token] * len(lengths))
        texts = [np.append(text, token) for text in texts]
        expected = torch.stack([plainly(model, text) for text in texts])
        torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-11)


def test_states_in_another_order_or_fewer_or_twice_are_copied() -> None:
    model = model_of()
    states, _ = model.step_many([model.begin()[0]] * 3, [1, 2, 3])
    for chosen in ([2, 0, 1], [0, 2], [1, 1, 1]):
        tokens = [7 + i for i in chosen]
        found = model.step_many([states[i] for i in chosen], tokens)[1]
        expected = torch.stack([plainly(model, np.array([1 + i, 7 + i])) for i in chosen])
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
    assert model.step_many([], [])[1].shape == (0, V)


@pytest.mark.parametrize("config", KINDS)
@pytest.mark.parametrize("at_once", [1, 4096])
def test_reading_at_once_is_reading_token_by_token(config: GPTConfig, at_once: int) -> None:
    model = model_of(config)
    texts = [some_ids(length, seed=length) for length in (0, 1, 7, 8, 9, 12, 13, 14, 31)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpt_cache, "READ_AT_ONCE", at_once)
        states, log_probs = model.read([text.tolist() for text in texts])
    assert [state.length for state in states] == [after(model, text)[0].length for text in texts]
    torch.testing.assert_close(log_probs, torch.stack([plainly(model, text) for text in texts]), rtol=0, atol=1e-11)
    for token in range(12):
        states, log_probs = model.step_many(states, [token] * len(texts))
        texts = [np.append(text, token) for text in texts]
        expected = torch.stack([plainly(model, text) for text in texts])
        torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-11)
    assert model.read([])[1].shape == (0, V)


def test_a_prompt_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, lengths = model_of(), list[list[int]]()
    read = model.read

    def watched(texts: list[list[int]]) -> tuple[list[State], Tensor]:
        lengths.append([len(text) for text in texts])
        return read(texts)

    monkeypatch.setattr(model, "read", watched)
    assert isinstance(model, Reader)
    assert len(list(sample(model, SamplingConfig(tokens=3), np.random.default_rng(0), "The fox"))) == 3
    assert lengths == [[7]]


def test_texts_that_go_on_together_are_not_copied_until_there_is_no_room() -> None:
    model = model_of(replace(SMALL, context=100))
    states: Any = [model.begin()[0]] * 4
    caches: list[Any] = []
    for token in range(99):
        states, _ = model.step_many(states, [token % V] * 4)
        if not caches or states[0].cache is not caches[-1]:
            caches.append(states[0].cache)
    assert [cache.room for cache in caches] == [gpt_cache.FIRST_ROOM, 100]


def test_threads_that_go_on_from_one_state_do_not_disturb_each_other() -> None:
    model = model_of(replace(SMALL, context=40))
    state, _ = after(model, some_ids(5))

    def go_on(seed: int) -> NDArray[np.float64]:
        here, nats = state, []
        for token in some_ids(20, seed).tolist():
            here, log_probs = model.step(here, token)
            nats.append(-float(log_probs[3]))
        return np.array(nats)

    alone = [go_on(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for found, expected in zip(pool.map(go_on, range(8)), alone, strict=True):
            assert found == pytest.approx(expected, abs=1e-12)


def test_log_probabilities_are_the_callers_own() -> None:
    model = model_of()
    _, first = model.begin()
    first += 1
    assert float(torch.logsumexp(model.begin()[1], 0)) == pytest.approx(0, abs=1e-12)


# ------------------------------------------------------------------------------------------------ compiled steps


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    if gpt_fused._checked_library(kept=False) is None:
        pytest.skip("there is no C compiler")
    monkeypatch.setattr(gpt_fused, "PATIENCE", 0)


def is_compiled(model: Transformer) -> bool:
    return model._fused._steps is not None


@pytest.mark.parametrize("config", KINDS)
@pytest.mark.usefixtures("at_once")
def test_compiled_steps_are_those_of_the_plain_form(config: GPTConfig) -> None:
    model, ids = model_of(config, torch.float32), some_ids(40)
    assert stepped(model, ids) == pytest.approx(plain_nats(model, ids), rel=0, abs=1e-4)
    assert is_compiled(model)


@pytest.mark.usefixtures("at_once")
def test_a_text_is_to_the_bit_what_it_is_alone_whoever_is_beside_it_and_however_many_threads_work() -> None:
    config = GPTConfig(V, 48, 2, 4, mlp=40, context=30)
    model, alone = (model_of(config, torch.float32, workers=workers) for workers in (3, 1))
    states: Any = [model.begin()[0]] * 29  # shared among threads as 10, 10 and 9: tiles of 8, and single rows
    tokens = np.random.default_rng(2).integers(0, V, (12, 29))
    for row in tokens:
        states, log_probs = model.step_many(states, row.tolist())
    for text in (0, 9, 10, 28):
        state, _ = alone.begin()
        for token in tokens[:, text].tolist():
            state, found = alone.step(state, token)
        assert torch.equal(found, log_probs[text])
    assert is_compiled(model)


@pytest.mark.usefixtures("at_once")
def test_attention_so_sharp_that_exponentials_leave_float32_stays_finite() -> None:
    model = model_of(SMALL, torch.float32)
    for name, value in model.parameters.items():
        if name.endswith("q_norm"):
            value *= 1000
    ids = some_ids(20)
    assert stepped(model, ids) == pytest.approx(plain_nats(model, ids), rel=0, abs=1e-2)
    assert is_compiled(model)


def test_nothing_is_compiled_for_a_few_tokens_or_for_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(gpt_fused, "_checked_library", lambda kept: asked.append(kept))
    monkeypatch.setattr(gpt_fused, "PATIENCE", 10)
    ids = some_ids(40)
    expected = stepped(model_of(SMALL, torch.float64), ids)
    assert asked == []
    model = model_of(SMALL, torch.float32)
    stepped(model, ids[:9])
    assert asked == [True]  # one that is there already would have been taken
    assert stepped(model, ids) == pytest.approx(expected, rel=0, abs=1e-4)
    assert asked == [True, False]  # compiling was tried once, and not again when it failed


def test_a_library_that_gives_other_numbers_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        def panel(self) -> int:
            return 32

        def scratch(self, sizes: int) -> int:
            return 1

        def step(self, *given: Any) -> None:
            pass

    monkeypatch.setattr(gpt_fused, "open_library", lambda kept: Wrong())
    assert gpt_fused._checked_library.__wrapped__(True) is None


# ------------------------------------------------------------------------------------------------ writing


def test_samples_are_a_function_of_the_generator() -> None:
    model, config = model_of(dtype=torch.float32), SamplingConfig(tokens=30)
    first, again, other = (
        [drawn.token for drawn in sample(model, config, np.random.default_rng(seed), "The ")] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first) == 30


def test_a_sample_among_others_is_the_sample_alone_and_costs_what_its_score_says() -> None:
    model, config = model_of(), SamplingConfig(tokens=25, temperature=0.9, stop=("zz", "q"))
    prompts = ["The", "", "the lazy dog, and", "The", "so"]
    many = list(sample_many(model, config, 5, prompts))
    assert len({len(one.tokens) for one in many}) > 1  # some were stopped, so that the others went on without them
    for number, one in enumerate(many):
        alone = list(sample(model, config, np.random.default_rng((5, number)), prompts[number]))
        assert [drawn.token for drawn in alone] == [drawn.token for drawn in one.tokens]
    whole = list(sample_many(model, replace(config, stop=()), 5, prompts))
    for one in whole:
        ids = [*TOKENISER.encode([one.prompt]).ids.tolist(), *(drawn.token for drawn in one.tokens)]
        nats = model.score_ids(np.array(ids), np.array([0, len(ids)]))
        assert [drawn.nats for drawn in one.tokens] == pytest.approx(nats[len(one.prompt) :], abs=1e-10)
