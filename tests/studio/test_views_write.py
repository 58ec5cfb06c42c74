"""Drafts and branches equal what `sample_many` draws, which is what `inkling sample` prints."""

from __future__ import annotations

import shlex
from functools import cache

import numpy as np
import pytest

from inkling.errors import UsageError
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.sampling import sample_many
from inkling.studio.views_write import OTHERS, Draft, Pen, Settings, usual_tokens
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

LINES = grammar_text(np.random.default_rng(7), 900).splitlines(keepends=True) + ["Straße 東京 🦑!\n"] * 40


@cache
def counted(kind: str) -> NGram:
    tokeniser = train_tokeniser(kind, [LINES], 60 if kind == "word" else None)
    return NGram.fit([tokeniser.encode(LINES)], tokeniser, NGramConfig(3))


def written(draft: Draft, seconds: float = 60.0) -> Draft:
    pen = Pen(draft)
    while not pen.ended:
        draft.add(pen.write(seconds))
    draft.add([], last=True)
    return draft


@pytest.mark.parametrize("kind", ["word", "character", "byte"])
def test_a_draft_is_what_the_command_line_writes(kind: str) -> None:
    model = counted(kind)
    settings = Settings(0.9, 20, 0.95, 0.01, 1.2, 200, 5, "winter\n\\n\\n")
    draft = written(Draft(1, "run", "The baker", settings, model))
    [wanted] = sample_many(model, settings.config(), 5, ["The baker"])
    assert draft.text == "The baker" + wanted.text
    assert draft.stopped == wanted.stopped
    assert sum(stretch.bits for stretch in draft.stretches) * np.log(2) == pytest.approx(wanted.nats)


def test_it_does_not_matter_how_often_one_looks() -> None:
    settings = Settings(tokens=60, seed=2)
    at_once = written(Draft(1, "run", "", settings, counted("byte")))
    bit_by_bit = written(Draft(2, "run", "", settings, counted("byte")), seconds=1e-9)
    assert bit_by_bit.stretches == at_once.stretches
    assert max(stretch.tokens for stretch in at_once.stretches) > 1, "some characters are of several bytes"


def test_each_place_says_what_else_could_stand_there_without_the_unknown_token() -> None:
    model = counted("word")
    draft = written(Draft(1, "run", "The", Settings(tokens=40), model))
    for number, stretch in enumerate(draft.stretches):
        choices = draft.possible(number)
        assert model.tokeniser.unknown not in [choice.token for choice in choices]
        [chosen] = [choice for choice in choices if choice.chosen]
        assert chosen.text == stretch.text
        assert -np.log2(chosen.share) == pytest.approx(stretch.bits)
        assert len(choices) in (OTHERS, OTHERS + 1)
        assert len(draft.possible(number, 5)) in (5, 6)


def test_a_branch_keeps_what_stands_before_puts_the_other_token_and_goes_on_as_from_a_prompt() -> None:
    model, settings = counted("character"), Settings(tokens=50, seed=3, repetition_penalty=1.1)
    draft = written(Draft(1, "run", "The ", settings, model))
    place = 17
    other = next(choice for choice in draft.possible(place) if not choice.chosen)
    branch = draft.branch(2, place, other.token, settings)
    kept = draft.text[: 4 + place]
    assert branch.text == kept + other.text
    assert branch.stretches[place].bits == pytest.approx(-np.log2(other.share))
    assert branch.origin == f"from 1: “{other.text}” at token 18"
    assert len(draft.tokens) == 50, "the draft stays as it was"
    written(branch)
    [wanted] = sample_many(model, settings.config(), 3, [kept + other.text])
    assert branch.text == kept + other.text + wanted.text
    assert branch.possible(place) == [
        type(choice)(choice.token, choice.text, choice.share, choice.token == other.token)
        for choice in draft.possible(place)
        if choice.token in {token for token, _ in draft.tokens[place].others[:OTHERS]}
    ]


def test_a_branch_may_be_branched_again() -> None:
    draft = written(Draft(1, "run", "", Settings(tokens=30), counted("word")))
    second = next(choice for choice in draft.possible(10) if not choice.chosen)
    branch = written(draft.branch(2, 10, second.token, Settings(tokens=5)))
    third = next(choice for choice in branch.possible(12) if not choice.chosen)
    leaf = branch.branch(3, 12, third.token, Settings(tokens=5))
    assert len(branch.tokens) == 16
    assert leaf.text == "".join(stretch.text for stretch in branch.stretches[:12]) + third.text


def test_the_command_says_what_differs_from_what_is_usual() -> None:
    model = counted("character")
    draft = Draft(1, "gru-world", "--odd 'prompt'", Settings(0.7, 5, tokens=9, seed=3, stop=".\n\\n"), model)
    words = shlex.split(draft.command("runs"))
    assert words[:4] == ["inkling", "sample", "runs/gru-world", "--prompt=--odd 'prompt'"]
    assert " ".join(words[4:]) == "--temperature 0.7 --top-k 5 --tokens 9 --seed 3 --stop=. --stop=\\n"


def test_settings_that_cannot_be_are_said_before_anything_is_written() -> None:
    model = counted("word")
    for wrong, words in (
        (Settings(tokens=0), "0 tokens were asked for"),
        (Settings(tokens=10**9), "1,000,000,000 tokens"),
        (Settings(seed=-1), "The seed is -1"),
        (Settings(temperature=-1.0), "temperature -1"),
        (Settings(top_p=0.0), "top-p 0"),
    ):
        with pytest.raises(UsageError, match=words):
            Pen(Draft(1, "run", "", wrong, model))


def test_how_much_is_written_at_first_depends_on_the_tokens() -> None:
    assert [usual_tokens(counted(kind)) for kind in ("word", "character", "byte")] == [100, 500, 500]
