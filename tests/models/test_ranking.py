"""What could have stood at each place, for models that say it at once and for those that are asked step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from inkling.models.bigram import Bigram, BigramConfig
from inkling.models.bigram import random_parameters as bigram_parameters
from inkling.models.contracts import Ranker
from inkling.models.gpt import GPTConfig, initial_parameters
from inkling.models.gpt_model import Transformer
from inkling.models.gru import GRU, GRUConfig
from inkling.models.gru import random_parameters as gru_parameters
from inkling.models.ngram import NGram, NGramConfig
from inkling.models.ranking import rank_tokens
from inkling.text.grammar import grammar_text
from inkling.text.tokenise import train_tokeniser

LINES = grammar_text(np.random.default_rng(3), 1500).splitlines(keepends=True)
TOKENISER = train_tokeniser("character", [LINES])
RANDOM = np.random.default_rng(0)


def transformer() -> Any:
    config = GPTConfig(TOKENISER.size, dimension=16, layers=2, heads=2, mlp=24, context=12)
    return Transformer(config, initial_parameters(config, RANDOM), TOKENISER)


def gru() -> Any:
    sizes = GRUConfig(dimension=8, hidden=16)
    return GRU(sizes, gru_parameters(sizes, TOKENISER.size, RANDOM), TOKENISER)


def bigram() -> Any:
    sizes = BigramConfig(dimension=8, hidden=12)
    return Bigram(sizes, bigram_parameters(sizes, TOKENISER.size, RANDOM), TOKENISER)


def ngram() -> Any:
    return NGram.fit([TOKENISER.encode(LINES)], TOKENISER, NGramConfig(3))


@pytest.mark.parametrize("make", [transformer, gru, bigram, ngram])
@pytest.mark.parametrize("count", [0, 1, 4])
def test_ranks_are_those_of_steps_and_costs_those_of_scores(make: Any, count: int) -> None:
    model = make()
    texts = [LINES[0], "", "A", (LINES[1] + LINES[2])[:40]]
    ids = [TOKENISER.encode([text]).ids.tolist() for text in texts]
    for text, tokens, found in zip(texts, ids, rank_tokens(model, ids, count), strict=True):
        assert found.nats == pytest.approx(model.score([text])[0].nats, abs=1e-5)
        assert found.likeliest.shape == found.log_probs.shape == (len(tokens), count)
        state, log_probs = model.begin()
        for place, token in enumerate(tokens):
            best = torch.sort(log_probs.double(), descending=True).values[:count]
            assert found.log_probs[place] == pytest.approx(best.numpy(), abs=1e-5)
            for other, value in zip(found.likeliest[place], found.log_probs[place], strict=True):
                assert float(log_probs[other]) == pytest.approx(value, abs=1e-5)
                if other == token:  # one token has one cost, to the last digit
                    assert value == -found.nats[place]
            state, log_probs = model.step(state, token)


def test_the_transformer_ranks_all_places_at_once() -> None:
    assert isinstance(transformer(), Ranker)
    assert not isinstance(gru(), Ranker)
