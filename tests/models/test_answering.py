"""Answers behind a prompt: the probabilities of whole answers by hand, greedy and beam, alone and together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from inkling.errors import InklingError, UsageError
from inkling.models import answering
from inkling.models.answering import Answer, AnsweringConfig, answer_questions
from inkling.models.contracts import Scores
from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.models.gpt_model import Transformer
from inkling.models.ngram import NGram, NGramConfig
from inkling.text.normalise import Chain
from inkling.text.questions import MARK, example
from inkling.text.tokenise import UNKNOWN, ByteTokeniser, CharacterTokeniser, WordTokeniser, train_tokeniser
from inkling.text.tokens import Tokeniser
from inkling.text.world import biographies

LETTERS = CharacterTokeniser((UNKNOWN, "\n", MARK, "a", "b", "?"))


class Told:
    """Says of each answer begun so far what comes next with which probability; the rest goes to the unknown token."""

    context = "the answer"

    def __init__(
        self, nexts: Mapping[str, Mapping[str, float]], tokeniser: Tokeniser = LETTERS, chain: Chain | None = None
    ) -> None:
        self.nexts, self.tokeniser, self.chain = nexts, tokeniser, chain or Chain()
        self.calls: list[int] = []

    def _log_probs(self, state: str) -> Tensor:
        behind = state.rpartition(MARK)[2] if MARK in state else ""
        told = dict(self.nexts.get(behind, {"\n": 1.0}))
        row = torch.full((self.tokeniser.size,), -math.inf, dtype=torch.float64)
        for token in range(1, self.tokeniser.size):
            if p := told.get(self.tokeniser.piece(token).decode(), 0.0):
                row[token] = math.log(p)
        row[0] = math.log(max(1e-300, 1 - sum(told.values())))
        return row

    def begin(self) -> tuple[str, Tensor]:
        return "\n", self._log_probs("\n")

    def step(self, state: str, token: int) -> tuple[str, Tensor]:
        after = state + self.tokeniser.piece(token).decode()
        return after, self._log_probs(after)

    def step_many(self, states: Sequence[str], tokens: Sequence[int]) -> tuple[list[str], Tensor]:
        self.calls.append(len(states))
        steps = [self.step(state, token) for state, token in zip(states, tokens, strict=True)]
        return [state for state, _ in steps], torch.stack([row for _, row in steps])

    def score(self, texts: Sequence[str]) -> Scores:
        raise NotImplementedError


# a (.4) goes on to aa, ab or ends; b (.35) always ends: greedy follows a, and the likeliest whole answer is b.
GARDEN = {"": {"a": 0.4, "b": 0.35, "\n": 0.25}, "a": {"\n": 0.5, "a": 0.3, "b": 0.2}}


def answered(model: Any, *questions: str, **options: Any) -> list[Answer]:
    return list(answer_questions(model, questions or ("a?",), AnsweringConfig(**options)))


def test_greedy_takes_the_likeliest_token_each_time_and_multiplies_with_the_end() -> None:
    [found] = answered(Told(GARDEN))
    assert found.text == "a"
    assert found.confidence == pytest.approx(0.4 * 0.5)
    assert found.others == ()


def test_a_beam_finds_the_likelier_answer_that_greedy_passes_by_and_names_the_runners_up() -> None:
    [found] = answered(Told(GARDEN), beam=3)
    assert found.text == "b"
    assert found.confidence == pytest.approx(0.35)
    assert [text for text, _ in found.others] == ["", "a"]
    assert [math.exp(value) for _, value in found.others] == pytest.approx([0.25, 0.2])


def test_of_a_beam_of_two_the_two_likeliest_are_followed() -> None:
    [found] = answered(Told(GARDEN), beam=2)
    assert [found.text, found.others[0][0]] == ["b", "a"]


def test_a_wide_beam_finds_the_likeliest_of_all_answers() -> None:
    generator = np.random.default_rng(4)
    nexts = {}
    for length in range(4):
        for letters in product("ab", repeat=length):
            shares = generator.dirichlet([0.6, 0.6, 0.6]) if length < 3 else np.array([0.0, 0.0, 1.0])
            nexts["".join(letters)] = dict(zip(("a", "b", "\n"), shares.tolist(), strict=True))
    every = {}
    for text in nexts:
        chances = [nexts[text[:i]][text[i]] for i in range(len(text))] + [nexts[text]["\n"]]
        every[text] = math.prod(chances)
    assert sum(every.values()) == pytest.approx(1)
    ranked = sorted(every.items(), key=lambda pair: -pair[1])[:8]
    [found] = answered(Told(nexts), beam=16)
    assert found.text == ranked[0][0]
    assert [text for text, _ in found.others[:7]] == [text for text, _ in ranked[1:]]
    assert [math.exp(value) for _, value in found.others[:7]] == pytest.approx([p for _, p in ranked[1:]])


def test_unfinished_answers_that_cannot_rise_again_are_not_followed() -> None:
    model = Told({"": {"\n": 0.7, "a": 0.3}, "a": {"a": 1.0}, "aa": {"a": 1.0}})
    [found] = answered(model, beam=1)
    assert found.text == ""
    assert found.confidence == pytest.approx(0.7)
    assert model.calls == [1, 1, 1]  # "a", "?" and the mark, and nothing behind it


def test_ways_of_cutting_one_answer_are_added_up() -> None:
    words = WordTokeniser((UNKNOWN, "\n", MARK, "a", "b", "ab", "?"), r"[\s\S]")
    nexts = {"": {"a": 0.4, "ab": 0.35, "b": 0.25}, "a": {"b": 0.5, "\n": 0.5}}
    [found] = answered(Told(nexts, words), beam=4)
    assert found.text == "ab"
    assert found.confidence == pytest.approx(0.35 + 0.4 * 0.5)
    assert [text for text, _ in found.others] == ["b", "a"]


def test_an_answer_that_does_not_end_is_cut_off_and_believed_in_no_way() -> None:
    endless = {"a" * n: {"a": 1.0} for n in range(50)}
    [found] = answered(Told(endless), tokens=7)
    assert (found.text, found.ended, found.confidence) == ("a" * 7, False, 0.0)
    assert found.log_prob == pytest.approx(0)


def test_the_unknown_token_is_never_said() -> None:
    [found] = answered(Told({"": {"a": 0.1}, "a": {"\n": 1.0}}))  # the unknown token has .9
    assert found.text == "a"
    assert found.confidence == pytest.approx(0.1)
    with pytest.raises(InklingError, match="no probability to any token"):
        answered(Told({"": {}}))


def test_an_answer_that_ends_within_a_token_ends_there_and_spaces_are_dropped() -> None:
    words = WordTokeniser((UNKNOWN, "\n", MARK, " a", ".\n", "?"), r"[\s\S]")
    [found] = answered(Told({"": {" a": 1.0}, " a": {".\n": 0.5, "\n": 0.4}}, words), "??", beam=2)
    assert (found.text, found.others[0][0]) == ("a.", "a")


# ------------------------------------------------------------------------------------------- together


LEARNED = [(f"{i:06d}?", place) for i, (_, place) in enumerate(biographies(np.random.default_rng(5), 60).pairs_train)]


@pytest.fixture(scope="module")
def letters() -> NGram:
    lines = [example(question, answer) for question, answer in LEARNED] * 4  # once is not believed
    tokeniser = train_tokeniser("character", [lines])
    return NGram.fit([tokeniser.encode(lines)], tokeniser, NGramConfig(10))


@pytest.fixture(scope="module")
def transformer() -> Transformer:
    config = GPTConfig(256, 16, 2, 2, mlp=16, context=24)
    drawn = initial_parameters(config, np.random.default_rng(0))
    return Transformer(config, {name: 3 * value for name, value in drawn.items()}, ByteTokeniser())


QUESTIONS = [f"Where was {name} born?" for name in ("Ada", "Bruno Wolfberg", "Clara Oak", "Emil", "Ada")]


@pytest.mark.parametrize("beam", [1, 3])
def test_questions_answered_together_are_answered_as_alone(
    letters: NGram, transformer: Transformer, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for model in (letters, transformer):
        together = answered(model, *QUESTIONS, beam=beam, tokens=5)
        alone = [answered(model, question, beam=beam, tokens=5)[0] for question in QUESTIONS]
        monkeypatch.setattr(answering, "ROWS_AT_ONCE", 2)
        monkeypatch.setattr(answering, "SORTED_TOGETHER", 3)
        parts = answered(model, *QUESTIONS, beam=beam, tokens=5)
        monkeypatch.undo()
        for one, *others in zip(together, alone, parts, strict=True):
            for other in others:
                assert (one.text, one.ended) == (other.text, other.ended)
                assert one.log_prob == pytest.approx(other.log_prob, abs=1e-5)


def test_prompts_read_at_once_are_answered_as_those_read_token_by_token(
    transformer: Transformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = answered(transformer, *QUESTIONS, tokens=5)
    monkeypatch.setattr(answering, "Reader", str)  # which no model is
    stepped = answered(transformer, *QUESTIONS, tokens=5)
    assert [one.text for one in at_once] == [one.text for one in stepped]
    assert [one.log_prob for one in at_once] == pytest.approx([one.log_prob for one in stepped], abs=1e-5)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_confidence_is_what_score_charges_for_the_answer_and_its_end(letters: NGram, beam: int) -> None:
    question = "000003?"
    [found] = answered(letters, question, beam=beam)
    nats = letters.score([example(question, found.text)])[0].nats
    assert -found.log_prob == pytest.approx(nats[len(question) + 1 :].sum())
    assert found.ended


def test_learned_pairs_are_answered(letters: NGram) -> None:
    found = answered(letters, *(question for question, _ in LEARNED))
    assert [one.text for one in found] == [answer for _, answer in LEARNED]


def test_nothing_asked_is_nothing_answered(letters: NGram) -> None:
    assert list(answer_questions(letters, [])) == []


# ------------------------------------------------------------------------------------------- refused


def test_a_model_that_cannot_see_the_mark_is_refused() -> None:
    with pytest.raises(InklingError, match="has no token for the mark between question and answer"):
        answered(Told(GARDEN, CharacterTokeniser((UNKNOWN, "\n", "a"))))
    with pytest.raises(InklingError, match="normalisation 'letters', which removes the mark"):
        answered(Told(GARDEN, chain=Chain.parse("letters")))


def test_a_mark_that_a_tokeniser_keeps_with_what_stands_before_it_is_seen_too() -> None:
    words = WordTokeniser((UNKNOWN, "\n", "?" + MARK, "a", "b"), r"\?\x1a|[\s\S]")
    [found] = answered(Told(GARDEN, words))
    assert found.text == "a"


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="width of 0; give a whole number from 1 to 64"):
        AnsweringConfig(beam=0)
    with pytest.raises(UsageError, match="at most 0 tokens"):
        AnsweringConfig(tokens=0)
