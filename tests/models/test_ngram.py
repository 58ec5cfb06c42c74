"""The count model: sums to one, agrees with a plain reading of the formula, and scores batches like single steps."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from inkling.errors import InklingError, UsageError
from inkling.models import ngram
from inkling.models.contracts import LanguageModel
from inkling.models.ngram import NGram, NGramConfig, discounts
from inkling.models.spelling import Speller
from inkling.text.grammar import grammar_bigram_counts, grammar_bigram_nats, grammar_entropy, grammar_text
from inkling.text.tokenise import train_tokeniser
from inkling.text.tokens import Encodings

Discount = Literal["modified", "single"]


class Letters:
    """One id a letter: 0 is the line end, then a, b, c …, and the last id is for everything else."""

    kind = "letters"
    begin = 0

    def __init__(self, letters: str) -> None:
        self.pieces: list[str] = ["\n", *letters, ""]
        self.size = len(self.pieces)
        self.unknown: int | None = self.size - 1

    @property
    def byte_lengths(self) -> NDArray[np.int64]:
        return np.array([len(piece.encode()) for piece in self.pieces], dtype=np.int64)

    def encode(self, texts: Sequence[str]) -> Encodings:
        place = {piece: token for token, piece in enumerate(self.pieces)}
        ids = [place.get(letter, self.size - 1) for text in texts for letter in text]
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        unknown = tuple(letter for text in texts for letter in text if letter not in place)
        return Encodings(np.array(ids, dtype=np.int32), offsets, unknown)

    def decode(self, ids: Sequence[int] | NDArray[np.int32], spellings: Sequence[str] = ()) -> str:
        return "".join(self.pieces[token] for token in ids)

    def piece(self, token: int) -> bytes:
        piece: str = self.pieces[token]
        return piece.encode()

    def to_json(self) -> str:
        return json.dumps(self.pieces)


class Closed(Letters):
    """The same without an unknown id."""

    def __init__(self, letters: str) -> None:
        super().__init__(letters)
        self.pieces = self.pieces[:-1]
        self.size = len(self.pieces)
        self.unknown = None


def fitted(texts: Sequence[str], order: int, discount: Discount = "modified", letters: str = "abc") -> NGram:
    tokeniser = Closed(letters)
    return NGram.fit([tokeniser.encode(texts)], tokeniser, NGramConfig(order, discount))


def by_formula(texts: Sequence[str], order: int, discount: Discount, letters: str, context: str) -> dict[str, float]:
    """Kneser-Ney read off the formula, with dictionaries, for one context."""
    alphabet = "\n" + letters
    occurrences = [
        Counter(
            padded[end - k : end]
            for text in texts
            for padded in ["\n" * (order - 1) + text]
            for end in range(order, len(padded) + 1)
        )
        for k in range(1, order + 1)
    ]
    adjusted: list[dict[str, int]] = []
    for k in range(1, order + 1):
        if k == order:
            adjusted.append(dict(occurrences[k - 1]))
        else:
            before = defaultdict(set)
            for gram in occurrences[k]:
                before[gram[1:]].add(gram[0])
            adjusted.append({gram: len(letters_before) for gram, letters_before in before.items()})

    def p(k: int, letter: str) -> float:
        if k == 0:
            return 1 / len(alphabet)
        start = context[len(context) - (k - 1) :]
        counts = adjusted[k - 1]
        total = sum(counts.get(start + other, 0) for other in alphabet)
        if total == 0:
            return p(k - 1, letter)
        taken = discounts(np.array(list(counts.values())), discount)
        freed = sum(taken[min(counts.get(start + other, 0), 3)] for other in alphabet)
        count = counts.get(start + letter, 0)
        return float((count - taken[min(count, 3)]) / total + freed / total * p(k - 1, letter))

    return {letter: p(order, letter) for letter in alphabet}


TEXTS = st.lists(st.text("abc\n", max_size=12), min_size=1, max_size=6).filter(any)


def test_a_bigram_worked_out_on_paper() -> None:
    # Two texts, "ab⏎" and "aa⏎"; V = 3. Bigrams: ⏎a twice; ab, b⏎, aa, a⏎ once. n₁ = 4, n₂ = 1, so D = 4/6 = 2/3.
    # Continuations: a after {⏎, a} = 2, b after {a} = 1, ⏎ after {b, a} = 2; n₁ = 1, n₂ = 2, so D = 1/5 and
    # λ = 3·(1/5)/5 = 3/25:  p(a) = (2 − 1/5)/5 + 3/25·1/3 = 2/5,  p(b) = (1 − 1/5)/5 + 1/25 = 1/5,  p(⏎) = 2/5.
    # After ⏎ (2): λ = (2/3)/2 = 1/3;  p(a) = (2 − 2/3)/2 + 1/3·2/5 = 4/5,  p(b) = 1/3·1/5 = 1/15,  p(⏎) = 2/15.
    # After a (3): λ = 3·(2/3)/3 = 2/3;  p(b) = (1/3)/3 + 2/3·1/5 = 11/45,  p(a) = p(⏎) = 1/9 + 2/3·2/5 = 17/45.
    # After b (1): λ = 2/3;  p(⏎) = 1/3 + 2/3·2/5 = 3/5,  p(a) = 4/15,  p(b) = 2/15.
    model = fitted(["ab\n", "aa\n"], order=2, discount="single", letters="ab")
    expected = {0: [2 / 15, 4 / 5, 1 / 15], 1: [17 / 45, 17 / 45, 11 / 45], 2: [3 / 5, 4 / 15, 2 / 15]}
    for token, chances in expected.items():
        _, log_probs = model.step((99,), token)
        np.testing.assert_allclose(log_probs.exp().numpy(), chances, rtol=1e-14)
    np.testing.assert_allclose(model.begin()[1].exp().numpy(), expected[0], rtol=1e-14)


def test_order_one_is_a_discounted_unigram() -> None:
    # "aab⏎" and V = 4: counts ⏎ 1, a 2, b 1, c 0. n₁ = 2, n₂ = 1, D = 1/2; λ = 3·(1/2)/4 = 3/8, shared by 4 tokens.
    model = fitted(["aab\n"], order=1, discount="single")
    state, log_probs = model.begin()
    assert state == ()
    np.testing.assert_allclose(log_probs.exp().numpy(), np.array([4, 12, 4, 0]) / 32 + 3 / 32, rtol=1e-14)


def test_discounts_follow_the_counts_of_counts() -> None:
    # n₁ … n₄ = 8, 4, 2, 1: D = 8/16; D(1) = 1 − 2·½·4/8, D(2) = 2 − 3·½·2/4, D(3+) = 3 − 4·½·1/2.
    counts = np.repeat([1, 2, 3, 4, 50, 0], [8, 4, 2, 1, 3, 7])
    assert discounts(counts, "single").tolist() == [0, 0.5, 0.5, 0.5]
    assert discounts(counts, "modified").tolist() == [0, 0.5, 1.25, 2.0]


def test_discounts_of_a_tiny_text_fall_back() -> None:
    assert discounts(np.array([1, 1, 2]), "modified").tolist() == [0, 0.5, 0.5, 0.5]
    assert discounts(np.array([1, 1, 1, 1, 2]), "modified").tolist() == pytest.approx([0, 2 / 3, 2 / 3, 2 / 3])
    assert discounts(np.array([7, 7]), "single").tolist() == [0, 0.5, 0.5, 0.5]
    # n₁ … n₄ = 1, 1, 9, 1 would take 2 − 3·⅓·9 < 0 from those counted twice.
    assert discounts(np.repeat([1, 2, 3, 4], [1, 1, 9, 1]), "modified").tolist() == pytest.approx([0, *[1 / 3] * 3])


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(1, 5), st.sampled_from(["modified", "single"]), st.text("abc\n", max_size=6))
def test_every_probability_is_that_of_the_formula(texts: list[str], order: int, discount: Discount, past: str) -> None:
    model = fitted(texts, order, discount)
    state, log_probs = model.begin()
    for token in model.tokeniser.encode([past]).ids:
        state, log_probs = model.step(state, int(token))
    context = ("\n" * order + past)[-(order - 1) :] if order > 1 else ""
    expected = by_formula(texts, order, discount, "abc", context)
    np.testing.assert_allclose(log_probs.exp().numpy(), list(expected.values()), rtol=1e-10)


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(1, 5), st.sampled_from(["modified", "single"]), st.text("abc\n", max_size=8))
def test_every_context_sums_to_one_and_leaves_nothing_out(
    texts: list[str], order: int, discount: Discount, past: str
) -> None:
    model = fitted(texts, order, discount)
    state, log_probs = model.begin()
    for token in [*model.tokeniser.encode([past]).ids, 0]:
        assert log_probs.dtype == torch.float64
        assert bool(torch.isfinite(log_probs).all())
        assert float(log_probs.exp().sum()) == pytest.approx(1, abs=1e-12)
        state, log_probs = model.step(state, int(token))


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.integers(1, 4), TEXTS)
def test_score_is_the_sum_of_steps(texts: list[str], order: int, new: list[str]) -> None:
    model = fitted(texts, order)
    scores = model.score(new)
    assert len(scores) == len(new)
    for one in scores:
        state, log_probs = model.begin()
        for token, nats in zip(one.ids.tolist(), one.nats.tolist(), strict=True):
            assert nats == pytest.approx(-float(log_probs[token]), rel=1e-13)
            state, log_probs = model.step(state, token)


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.integers(1, 4), TEXTS)
def test_neighbours_in_a_batch_change_nothing(texts: list[str], order: int, new: list[str]) -> None:
    model = fitted(texts, order)
    together = model.score(new)
    for text, one in zip(new, together, strict=True):
        assert one.nats.tolist() == model.score([text])[0].nats.tolist()


@settings(deadline=None, max_examples=40)
@given(TEXTS, st.integers(1, 4), st.integers(1, 9))
def test_counting_in_pieces_gives_the_same_model(texts: list[str], order: int, chunk_tokens: int) -> None:
    tokeniser = Closed("abc")
    whole = NGram.fit([tokeniser.encode(texts)], tokeniser, NGramConfig(order))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngram, "CHUNK_TOKENS", chunk_tokens)
        joined = NGram.fit((tokeniser.encode([text]) for text in texts), tokeniser, NGramConfig(order))
        cut = NGram.fit([tokeniser.encode(texts)], tokeniser, NGramConfig(order))
    for name, values in whole.tensors().items():
        assert np.array_equal(values, joined.tensors()[name]), name
        assert np.array_equal(values, cut.tensors()[name]), name


def test_a_large_batch_is_counted_in_pieces_of_whole_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram, "CHUNK_TOKENS", 4)
    tokeniser = Closed("abc")
    batches = [tokeniser.encode(texts) for texts in (["ab", "", "abcabc", "a"], ["b", "c", "aa"])]
    chunks = [(ids.tolist(), offsets.tolist()) for ids, offsets in ngram._chunks(batches)]
    assert chunks == [
        ([1, 2], [0, 2, 2]),
        ([1, 2, 3, 1, 2, 3], [0, 6]),
        ([1, 2, 3], [0, 1, 2, 3]),
        ([1, 1], [0, 2]),
    ]


def test_tokens_are_found_alike_in_a_small_and_a_large_range() -> None:
    keys = np.array([7, 3, 7, 0, 9, 3])
    for bound in (10, 10_000):
        found, places = ngram._unique(keys, bound)
        assert (found.tolist(), places.tolist()) == ([0, 3, 7, 9], [2, 1, 2, 0, 3, 1])


def test_tokens_do_not_cross_texts() -> None:
    model = fitted(["ab", "ca"] * 50, order=2)
    _, after_b = model.step((0,), 2)
    _, after_a = model.step((0,), 1)
    assert float(after_b.exp()[3]) < 0.5  # "b" is always last: nothing is known after it
    assert float(after_a.exp()[2]) > 0.9


def test_a_longer_context_is_used() -> None:
    lines = ["aab\n", "bac\n"] * 50  # what follows "a" depends on the letter before it
    cost = {order: fitted(lines, order).score(["aab\n", "bac\n"]).nats.sum() for order in (1, 2, 3)}
    assert cost[3] < cost[2] - 1 < cost[1] - 2


def test_continuations_not_frequency_decide_after_an_unknown_context() -> None:
    # "b" is the more frequent letter but follows only "a"; "c" is rarer but follows a, b, c and the line end.
    model = fitted(["ab\n"] * 30 + ["ac\n", "bcc\n", "cc\n"] * 3, order=2, letters="abcd")
    _, after_d = model.step((0,), 4)
    assert float(after_d[3]) > float(after_d[2])


def test_unknown_pieces_are_charged_their_spelling() -> None:
    tokeniser = Letters("ab")
    lines = ["abé\n", "abz\n", "ab\n"] * 5
    encoded = tokeniser.encode(lines)
    speller = Speller.fit(encoded.spellings)
    model = NGram.fit([encoded], tokeniser, NGramConfig(2), speller=speller)
    scores = model.score(["aéb\n", "zz"])
    assert scores.unknown.tolist() == [False, True, False, False, True, True]
    assert scores.spelling_nats.tolist() == [0, *speller.nats(["é"]), 0, 0, *speller.nats(["z", "z"])]
    assert scores.byte_lengths.tolist() == [1, 2, 1, 1, 1, 1]
    assert scores[0].byte_ends.tolist() == [1, 3, 4, 5]
    assert (scores.words.tolist(), scores.chars.tolist(), scores.bytes.tolist()) == ([1, 1], [4, 2], [5, 2])


def test_without_a_speller_unknown_pieces_are_refused_not_forgiven() -> None:
    tokeniser = Letters("ab")
    model = NGram.fit([tokeniser.encode(["ab\n"])], tokeniser, NGramConfig(2))
    assert np.isfinite(model.score(["ab"]).nats).all()
    with pytest.raises(InklingError, match=r"unknown pieces \(1, the first 'z'\).*no speller"):
        model.score(["az"])


@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_arrays_alone_bring_the_model_back(order: int) -> None:
    model = fitted(["abca\n", "cab\n", "ba"], order)
    again = NGram.from_tensors(model.config, model.tensors(), model.tokeniser)
    texts = ["abc\ncc", "", "bbb"]
    assert again.score(texts).nats.tolist() == model.score(texts).nats.tolist()
    assert {values.dtype.name for values in model.tensors().values()} <= {"int64", "float64"}


def test_arrays_of_another_model_are_refused() -> None:
    model = fitted(["abca\n", "cab\n"], 3)
    with pytest.raises(InklingError, match="order 2 needs"):
        NGram.from_tensors(NGramConfig(2), model.tensors(), model.tokeniser)
    with pytest.raises(InklingError, match="do not fit"):
        NGram.from_tensors(model.config, model.tensors(), Closed("ab"))
    tensors = {**model.tensors(), "keys.2": model.tensors()["keys.2"].astype(np.float32)}
    with pytest.raises(InklingError, match="damaged"):
        NGram.from_tensors(model.config, tensors, model.tokeniser)


def test_empty_texts_cost_nothing_and_empty_corpora_are_refused() -> None:
    model = fitted(["ab\n"], 3)
    assert len(model.score([])) == 0
    assert model.score(["", "a", ""]).offsets.tolist() == [0, 0, 1, 1]
    with pytest.raises(InklingError, match="no text"):
        NGram.fit([], model.tokeniser, NGramConfig(2))
    with pytest.raises(InklingError, match="no tokens"):
        fitted(["", ""], 2)


def test_a_config_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="order of an n-gram model is 0"):
        NGramConfig(order=0)
    with pytest.raises(UsageError, match='discount is "good"'):
        NGramConfig(discount="good")  # type: ignore[arg-type]


def test_the_model_is_a_language_model() -> None:
    model: LanguageModel[tuple[int, ...]] = fitted(["abc\n"], 3)
    state, _ = model.begin()
    assert state == (0, 0)
    assert model.step(state, 2)[0] == (0, 2)


def test_a_hundred_thousand_tokens_of_order_six_approach_their_source() -> None:
    # A Markov chain over 20 letters, each followed by one of three with chances ½, ¼, ¼: 1.5 bits a letter.
    rng = np.random.default_rng(5)
    followers = np.array([rng.permutation(20)[:3] for _ in range(20)])
    letter, ids = 0, np.zeros(120_000, dtype=np.int32)
    for i, choice in enumerate(rng.choice(3, size=len(ids), p=[0.5, 0.25, 0.25])):
        letter = ids[i] = followers[letter, choice]
    tokeniser = Closed("abcdefghijklmnopqrs")
    parts = [ids[start:end] for start, end in pairwise([0, 100_000, 120_000])]
    train, held_out = (Encodings(part, np.array([0, len(part)]), ()) for part in parts)
    for order in (2, 3, 6):
        bits = NGram.fit([train], tokeniser, NGramConfig(order)).score_ids(held_out.ids, held_out.offsets) / np.log(2)
        assert 1.5 - 4 * bits.std() / len(bits) ** 0.5 < bits.mean() < 1.5 + 0.02 * order


def test_a_bigram_of_a_known_grammar_approaches_the_best_bigram_from_above() -> None:
    # Exact on both sides: the expected cost of a model q is Σ E[count(u, v)] · −ln q(v | u), never below the entropy.
    text = grammar_text(np.random.default_rng(8), words=150_000)
    lines = text.splitlines(keepends=True)
    tokeniser = train_tokeniser("word", [lines])
    place = {tokeniser.piece(token).decode(): token for token in range(1, tokeniser.size)}
    pairs = grammar_bigram_counts()
    above: list[float] = []
    for part in (lines[:200], lines[:2000], lines):
        model = NGram.fit([tokeniser.encode(part)], tokeniser, NGramConfig(2))
        rows = {first: model.step((0,), place[first])[1].numpy() for first in {first for first, _ in pairs}}
        cost = -sum(count * rows[first][place[second]] for (first, second), count in pairs.items())
        above.append(float(cost) / sum(pairs.values()) - grammar_bigram_nats())
    assert above[0] > above[1] > above[2] > 0
    assert above[2] < 0.08  # 14,605 pairs to learn from 190,000 tokens


def test_longer_n_grams_come_nearer_to_the_entropy_of_the_grammar_than_any_bigram() -> None:
    text = grammar_text(np.random.default_rng(9), words=120_000)
    lines = text.splitlines(keepends=True)
    train, held_out = lines[:-2000], lines[-2000:]
    tokeniser = train_tokeniser("word", [train])
    speller = Speller.fit(tokeniser.encode(train).spellings, tokeniser)
    model = NGram.fit([tokeniser.encode(train)], tokeniser, NGramConfig(4), speller=speller)
    nats_per_token = float(model.score(held_out).nats.mean())
    assert grammar_entropy().nats_per_token < nats_per_token < grammar_bigram_nats() - 0.1
