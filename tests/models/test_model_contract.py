"""One suite for every language model: what a score is, and that nothing changes it that should not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import inkling
from inkling.errors import InklingError
from inkling.models import bigram
from inkling.models.bigram import Bigram, BigramConfig, random_parameters, spectral_vectors
from inkling.models.contracts import LanguageModel, Scores, TokenScores
from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.models.gpt_layout import tensors_of
from inkling.models.gpt_model import Transformer
from inkling.models.gru import GRU, GRUConfig
from inkling.models.gru import random_parameters as random_gru
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.pairs import count_pairs
from inkling.models.spelling import Speller
from inkling.runs.loading import constant_files, dump_arrays
from inkling.runs.recording import dump
from inkling.runs.run import Checkpoint, Run
from inkling.text.grammar import grammar_text
from inkling.text.normalise import Chain
from inkling.text.tokenise import train_tokeniser
from inkling.text.tokens import Tokeniser

LINES = grammar_text(np.random.default_rng(7), 3000).splitlines(keepends=True)
LINES += ["Straße — naïve café, “quoted” 東京 🦑!\n", "\tTabs  and   runs of spaces \n", "\n"]
Model = Bigram | NGram | GRU | Transformer


def spelled(tokeniser: Tokeniser) -> Speller:
    return Speller.fit(tokeniser.encode(LINES).spellings, tokeniser)


def neural(vocabulary: int) -> Bigram:
    tokeniser = train_tokeniser("word", [LINES], vocabulary)
    counts = count_pairs([tokeniser.encode(LINES)], tokeniser.size, tokeniser.begin)
    sizes = BigramConfig(dimension=30, hidden=50)  # enough to add up that the order would show in the last bit
    vectors = spectral_vectors(counts, sizes.dimension)
    parameters = random_parameters(sizes, tokeniser.size, np.random.default_rng(0), vectors)
    return Bigram(sizes, parameters, tokeniser, Chain(), spelled(tokeniser))


def counted(kind: str, order: int, vocabulary: int | None = None, chain: str = "none") -> NGram:
    cleaner = Chain.parse(chain)
    lines = [cleaner(line) for line in LINES]
    tokeniser = train_tokeniser(kind, [lines], vocabulary)
    speller = Speller.fit(tokeniser.encode(lines).spellings, tokeniser)
    return NGram.fit([tokeniser.encode(lines)], tokeniser, NGramConfig(order), cleaner, speller)


def recurrent(kind: str, vocabulary: int | None = None, layers: int = 1) -> GRU:
    """Not trained, but far from even; in float64, where the order of additions shows only far behind the point."""
    tokeniser = train_tokeniser(kind, [LINES], vocabulary)
    config = GRUConfig(12, 16, layers, norm=layers > 1)
    parameters = random_gru(config, tokeniser.size, np.random.default_rng(3))
    return GRU(
        config, {n: 2 * v.double() for n, v in parameters.items()}, tokeniser, Chain(), spelled(tokeniser), workers=2
    )


def attending(kind: str, vocabulary: int, context: int, shared: int = 0, own: bool = False) -> Transformer:
    """Not trained, in float64, with a context that many texts go beyond; `own`: with what no other program has."""
    tokeniser = train_tokeniser(kind, [LINES], vocabulary)
    config = GPTConfig(tokeniser.size, 16, 2, 4, mlp=20, context=context, key_value_heads=shared)
    if own:
        config = replace(config, activation="squared_relu", grams=2, gram_rows=50)
    generator = np.random.default_rng(3)
    parameters = initial_parameters(config, generator)
    parameters |= {n: torch.from_numpy(generator.normal(size=parameters[n].shape)) for n in config.gram_names}
    doubled = {n: 2 * v.double() for n, v in parameters.items()}
    return Transformer(config, doubled, tokeniser, Chain(), spelled(tokeniser), workers=2)


MAKERS: dict[str, Callable[[], Model]] = {
    "bigram": lambda: neural(60),
    "bigram, large vocabulary": lambda: neural(200),
    "words, order 2": lambda: counted("word", 2, 80),
    "words, order 3": lambda: counted("word", 3, 80),
    "characters, order 4": lambda: counted("character", 4, 40),
    "bytes, order 3": lambda: counted("byte", 3),
    "bpe, order 2": lambda: counted("bpe", 2, 300),
    "recurrent, characters": lambda: recurrent("character", 40),
    "recurrent, words, two layers": lambda: recurrent("word", 80, 2),
    "transformer, characters": lambda: attending("character", 40, 13, shared=2),
    "transformer, bpe": lambda: attending("bpe", 300, 8),
    "transformer, hashed runs": lambda: attending("character", 40, 11, own=True),
}


@cache
def made(name: str) -> Model:
    return MAKERS[name]()


@pytest.fixture(params=list(MAKERS))
def model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Model:
    if request.param == "bigram, large vocabulary":
        monkeypatch.setattr(bigram, "TABLE_SIZE", 100)  # so that 200 words are many
        monkeypatch.setattr(bigram, "BLOCK_CELLS", 1500)
    return made(request.param)


ODD = [
    "",
    " ",
    "\n",
    "\x00",
    "🦑🦑",
    "é",
    "zzzyx qqqqw",
    "a\x00b\x00",
    "The baker",
    "東京 the 東京\n",
    "\r\n",
    "́",
    "\ufeff",
]
KINDS = st.sampled_from(
    [" ", "\n", "the", " the", "The baker", ".", "é", "🦑", "\x00", "qwx", "東", "\t", "\r", "e\u0301"]
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.lists(KINDS, max_size=12).map("".join),
)
laws = settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


def by_steps(model: LanguageModel[Any], text: str) -> NDArray[np.float64]:
    """What each token costs, from `begin` and `step` alone."""
    state, log_probs = model.begin()
    nats = []
    for token in model.tokeniser.encode([model.chain(text)]).ids.tolist():
        nats.append(-float(log_probs[token]))
        state, log_probs = model.step(state, token)
    return np.array(nats)


def same(a: TokenScores, b: TokenScores, model: Model) -> bool:
    """To the bit, but for models whose sums are rounded by the number of texts beside them."""
    rounded = isinstance(model, GRU | Transformer)
    if rounded and not np.allclose(a.nats, b.nats, rtol=0, atol=1e-9):
        return False
    exact = () if rounded else ("nats",)
    arrays = ("ids", "spelling_nats", "unknown", "byte_ends", *exact)
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays) and (
        (a.words, a.chars, a.bytes) == (b.words, b.chars, b.bytes)
    )


# ------------------------------------------------------------------------------------------------ the laws


@laws
@given(text=TEXTS)
def test_a_score_is_the_sum_of_steps(model: Model, text: str) -> None:
    scored = model.score([text])[0]
    assert scored.nats == pytest.approx(by_steps(model, text), abs=1e-9)
    assert (scored.nats >= -1e-12).all()
    assert np.isfinite(scored.nats).all()


def test_a_score_is_the_sum_of_steps_over_real_lines(model: Model) -> None:
    for line, scored in zip(LINES[:10] + LINES[-3:], model.score(LINES[:10] + LINES[-3:]), strict=True):
        assert scored.nats.sum() == pytest.approx(by_steps(model, line).sum(), rel=1e-12, abs=1e-9)


@laws
@given(text=TEXTS)
def test_what_may_come_next_always_sums_to_one(model: LanguageModel[Any], text: str) -> None:
    state, log_probs = model.begin()
    for token in [*model.tokeniser.encode([text]).ids.tolist()[:6], model.tokeniser.begin]:
        assert log_probs.shape == (model.tokeniser.size,)
        assert float(torch.logsumexp(log_probs.double(), 0)) == pytest.approx(0, abs=1e-12)
        state, log_probs = model.step(state, token)
    assert float(torch.logsumexp(log_probs.double(), 0)) == pytest.approx(0, abs=1e-12)


def test_a_step_leaves_the_state_before_it_as_it_was(model: LanguageModel[Any]) -> None:
    state, _ = model.begin()
    state, log_probs = model.step(state, 5)
    kept = log_probs.clone()
    for token in (1, 7, 3):
        model.step(state, token)
    assert torch.equal(model.step(model.begin()[0], 5)[1], kept)
    assert torch.equal(log_probs, kept)


def stepped_together(
    model: LanguageModel[Any], texts: list[str], steps: int = 5
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Log-probabilities (B×V) of texts driven side by side with `step_many`, and of each driven alone with `step`."""
    ids = [model.tokeniser.encode([model.chain(text)]).ids.tolist() + [model.tokeniser.begin] * steps for text in texts]
    together = [model.begin()[0] for _ in texts]
    alone = [model.begin()[0] for _ in texts]
    for place in range(steps):
        tokens = [row[place] for row in ids]
        together, found = model.step_many(together, tokens)
        each = [model.step(state, token) for state, token in zip(alone, tokens, strict=True)]
        alone = [state for state, _ in each]
        assert len(together) == len(texts)
        yield found, torch.stack([log_probs for _, log_probs in each])


@laws
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_texts_stepped_together_expect_what_they_expect_alone(model: LanguageModel[Any], texts: list[str]) -> None:
    for together, alone in stepped_together(model, texts):
        assert together.shape == (len(texts), model.tokeniser.size)
        torch.testing.assert_close(together.double(), alone.double(), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in MAKERS if not name.startswith(("recurrent", "transf"))])
def test_counted_models_and_bigrams_step_together_to_the_bit(name: str) -> None:
    for together, alone in stepped_together(made(name), [*LINES[:6], LINES[0], "", "qwx"]):
        assert torch.equal(together, alone)


def test_many_steps_leave_the_states_before_them_as_they_were(model: LanguageModel[Any]) -> None:
    before = [model.step(model.begin()[0], token)[0] for token in (3, 5)]
    first = model.step_many(before, [1, 2])[1].clone()
    model.step_many(before, [4, 4])
    assert torch.equal(model.step_many(before, [1, 2])[1], first)


@pytest.mark.parametrize(
    ("name", "context"),
    [("bigram", "1 token"), ("words, order 2", "1 token"), ("characters, order 4", "3 tokens")],
)
def test_a_model_says_how_far_back_it_looks(name: str, context: str) -> None:
    assert made(name).context == context


def test_a_model_of_single_tokens_looks_back_at_none() -> None:
    assert counted("character", 1).context == "no tokens"


@laws
@given(texts=st.lists(TEXTS, max_size=6))
def test_texts_scored_together_cost_what_they_cost_alone(model: Model, texts: list[str]) -> None:
    together = model.score(texts)
    assert len(together) == len(texts)
    for text, scored in zip(texts, together, strict=True):
        assert same(scored, model.score([text])[0], model)


def test_many_texts_scored_together_cost_what_they_cost_alone(model: Model) -> None:
    together = model.score(LINES)
    every = 8 if isinstance(model, GRU | Transformer) else 1  # these take their time for a single text
    for line, scored in list(zip(LINES, together, strict=True))[::every]:
        assert same(scored, model.score([line])[0], model)


@laws
@given(texts=st.lists(TEXTS, max_size=6), seed=st.integers(0, 1000))
def test_the_order_of_texts_changes_nothing(model: Model, texts: list[str], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(texts)).tolist()
    before, after = model.score(texts), model.score([texts[i] for i in order])
    for place, i in enumerate(order):
        assert same(after[place], before[i], model)


@laws
@given(text=TEXTS)
def test_every_byte_is_charged_exactly_once(model: Model, text: str) -> None:
    scored = model.score([text])[0]
    content = text.encode()
    ends = scored.byte_ends
    assert (ends[-1] if len(ends) else 0) == len(content) == scored.bytes
    assert scored.words == len(text.split())
    assert scored.chars == len(text)
    # The pieces of the known tokens stand where they are said to; what is left are the spellings of the unknown.
    start = 0
    for token, end, unknown in zip(scored.ids.tolist(), ends.tolist(), scored.unknown.tolist(), strict=True):
        assert end > start
        if not unknown:
            assert content[start:end] == model.tokeniser.piece(token)
        start = end


@laws
@given(text=TEXTS)
def test_unknown_tokens_and_only_they_pay_for_their_spelling(model: Model, text: str) -> None:
    scored = model.score([text])[0]
    spellings = model.tokeniser.encode([text]).spellings
    assert int(scored.unknown.sum()) == len(spellings)
    assert (scored.spelling_nats[~scored.unknown] == 0).all()
    assert (scored.spelling_nats[scored.unknown] > 0).all()
    if spellings:
        assert isinstance(model.speller, Speller)
        assert scored.spelling_nats[scored.unknown].tolist() == model.speller.nats(spellings).tolist()


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_scored_in_full(model: Model, text: str) -> None:
    scored = model.score([text])[0]
    assert (len(scored.ids) > 0) == (text != "")
    assert scored.bytes == len(text.encode())
    assert np.isfinite(scored.nats.sum() + scored.spelling_nats.sum())
    if text:
        assert scored.nats.sum() > 0


def test_an_empty_text_costs_nothing_and_no_texts_are_no_scores(model: Model) -> None:
    empty = model.score(["", "a", ""])
    assert [len(one.ids) for one in empty][0::2] == [0, 0]
    assert empty.per_text(empty.nats)[0::2].tolist() == [0, 0]
    nothing = model.score([])
    assert (len(nothing), list(nothing), len(nothing.ids)) == (0, [], 0)


def test_words_nobody_has_seen_are_paid_for_letter_by_letter(model: Model) -> None:
    text = "Xqzzv Wqqrk."
    scored = model.score([text])[0]
    total = float(scored.nats.sum() + scored.spelling_nats.sum())
    # Twelve letters in an order that English hardly knows cannot be had for less than a bit each.
    assert total > 12 * math.log(2)
    longer = model.score([text.replace("Xqzzv", "Xqzzvqqzzvqqzzv")])[0]
    assert float(longer.nats.sum() + longer.spelling_nats.sum()) > total + 5


def test_a_lone_surrogate_is_refused_in_a_sentence(model: Model) -> None:
    with pytest.raises(InklingError):
        model.score(["a\ud800b"])


# ------------------------------------------------------------------------------------------------ to disk and back


def saved(model: Model, folder: Path, *, finished: bool = True) -> Path:
    kind = {Bigram: "bigram", NGram: "ngram", GRU: "gru", Transformer: "gpt"}[type(model)]
    if isinstance(model, Transformer):
        weights = dump(tensors_of(model.config, model.tensors()))
    else:
        weights = dump_arrays(model.tensors()) if isinstance(model, NGram) else dump(model.tensors())
    assert isinstance(model.speller, Speller)
    run = Run.create(
        folder / "run",
        info={"kind": kind, "recipe": {}, "normalise": str(model.chain), "seed": 0, "threads": 1, "data": {}},
        constant=constant_files(kind, asdict(model.config), model.tokeniser, model.speller),
        checkpoint=Checkpoint(0, weights, dump_arrays({}), {"step": 0}),
    )
    if finished:
        run.finish(model=weights, card="", summary={})
    return run.path


@pytest.mark.parametrize("finished", [True, False])
def test_a_model_from_disk_scores_the_same_to_the_bit(model: Model, tmp_path: Path, finished: bool) -> None:
    texts = [*ODD, *LINES[:20]]
    if isinstance(model, Transformer):  # which other programs open in single precision
        single = {name: value.float() for name, value in model.tensors().items()}
        model = Transformer(model.config, single, model.tokeniser, model.chain, model.speller)
    expected = model.score(texts)
    loaded = inkling.load(saved(model, tmp_path, finished=finished))
    found = loaded.score(texts)
    for name in ("ids", "nats", "spelling_nats", "unknown", "byte_lengths", "offsets", "words", "chars", "bytes"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert torch.equal(loaded.begin()[1], model.begin()[1])
    assert loaded.config == model.config


def test_the_normalisation_is_applied_to_what_is_scored_and_comes_back_from_disk(tmp_path: Path) -> None:
    model = counted("word", 2, 80, chain="lower")
    assert model.score(["THE BAKER"]).nats.tolist() == model.score(["the baker"]).nats.tolist()
    loaded = inkling.load(saved(model, tmp_path))
    assert loaded.chain == model.chain == Chain.parse("lower")
    assert loaded.score(["THE BAKER"]).nats.tolist() == model.score(["the baker"]).nats.tolist()


def test_sizes_are_of_the_original_text_where_normalisation_shortens_it() -> None:
    model = counted("word", 2, 80, chain="ascii")
    scored = model.score(["café 🦑"])[0]
    assert (scored.bytes, scored.chars, scored.words) == (10, 6, 2)


def test_unknown_words_are_refused_not_forgiven_without_a_speller() -> None:
    full = neural(60)
    model = Bigram(full.config, full.parameters, full.tokeniser)
    assert model.score(["The"]).unknown.tolist() == [False]
    with pytest.raises(InklingError, match=r"unknown pieces \(2, the first 'Xq'\).*no speller"):
        model.score(["Xq Zv"])


# ------------------------------------------------------------------------------------------------ the sequence


@pytest.fixture
def three() -> Scores:
    return made("words, order 2").score(["The baker.", "", "A cook\n"])


def test_scores_are_a_sequence_of_texts(three: Scores) -> None:
    each: Iterator[TokenScores] = iter(three)
    assert [len(one.ids) for one in each] == [3, 0, 3]
    assert same(three[-1], three[2], made("bigram"))
    assert [len(one.ids) for one in three[1:]] == [0, 3]
    for index in (3, -4):
        with pytest.raises(IndexError):
            three[index]


def test_sums_per_text_are_those_of_each_text(three: Scores) -> None:
    assert three.per_text(three.nats).tolist() == [float(np.add.reduce(one.nats)) for one in three]
    assert three.per_text(three.unknown).tolist() == [float(one.unknown.sum()) for one in three]
