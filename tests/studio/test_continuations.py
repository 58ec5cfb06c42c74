"""What could stand at a place agrees with what the token that does stand there was charged."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from inkling.models.contracts import LanguageModel
from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.models.gpt_model import Transformer
from inkling.models.gru import GRU, STRIDE, GRUConfig, random_parameters
from inkling.models.ngram import NGram, NGramConfig
from inkling.studio.continuations import likeliest_at, log_probs_at, piece_text
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

TEXT = grammar_text(np.random.default_rng(7), 600)
LINES = TEXT.splitlines(keepends=True)


@cache
def made(kind: str) -> LanguageModel[Any]:
    """Not trained where that takes long, but far from even; in float64."""
    if kind == "ngram":
        tokeniser = train_tokeniser("word", [LINES], 40)  # so few that there are unknown words
        return NGram.fit([tokeniser.encode(LINES)], tokeniser, NGramConfig(3))
    tokeniser = train_tokeniser("character", [LINES])
    if kind == "gru":
        config = GRUConfig(12, 16, 2, norm=True)
        drawn = random_parameters(config, tokeniser.size, np.random.default_rng(3))
        return GRU(config, {name: 2 * value.double() for name, value in drawn.items()}, tokeniser)
    sizes = GPTConfig(tokeniser.size, 16, 2, 4, mlp=20, context=13)
    weights = initial_parameters(sizes, np.random.default_rng(3))
    return Transformer(sizes, {name: 2 * value.double() for name, value in weights.items()}, tokeniser)


@pytest.mark.parametrize("kind", ["ngram", "gru", "gpt"])
def test_a_place_is_charged_what_is_said_of_it_also_deep_in_a_text(kind: str) -> None:
    model = made(kind)
    tokens = model.tokeniser.encode([TEXT])
    ids = tokens.ids.tolist()
    nats = model.score_ids(tokens.ids, tokens.offsets)  # type: ignore[attr-defined]
    assert kind == "ngram" or len(ids) > 2 * STRIDE
    for place in (0, 1, 12, 13, 14, 40, STRIDE - 1, STRIDE, STRIDE + 1, len(ids) - 1):
        if place < len(ids):
            assert -log_probs_at(model, ids, place)[ids[place]] == pytest.approx(nats[place], abs=1e-9)


@pytest.mark.parametrize("kind", ["ngram", "gru", "gpt"])
def test_the_likeliest_come_best_first_with_the_one_that_stands_there(kind: str) -> None:
    model = made(kind)
    ids = model.tokeniser.encode([TEXT]).ids.tolist()
    for place in range(0, 60, 7):
        found = likeliest_at(model, ids, place, 5)
        log_probs = log_probs_at(model, ids, place)
        shares = [choice.share for choice in found[:5]]
        assert shares == sorted(shares, reverse=True)
        if ids[place] != model.tokeniser.unknown:
            assert [choice.token for choice in found if choice.chosen] == [ids[place]]
        assert len(found) == 5 or (len(found) == 6 and found[5].chosen)
        for choice in found:
            assert choice.share == pytest.approx(float(np.exp(log_probs[choice.token])))
            assert choice.text == piece_text(model.tokeniser, choice.token)


def test_the_unknown_token_is_never_among_them() -> None:
    model = made("ngram")
    ids = model.tokeniser.encode([TEXT]).ids.tolist()
    unknown = model.tokeniser.unknown
    assert unknown is not None
    places = [place for place in range(100) if log_probs_at(model, ids, place).argmax() == unknown]
    assert places, "somewhere a word that it does not know is what the model expects"
    for place in places:
        found = likeliest_at(model, ids, place, 5)
        assert unknown not in [choice.token for choice in found]
        assert len([choice for choice in found if not choice.chosen]) >= 4


def test_after_the_last_token_nothing_stands() -> None:
    model = made("gpt")
    found = likeliest_at(model, [3, 4, 5], 3, 4)
    assert len(found) == 4
    assert not any(choice.chosen for choice in found)
