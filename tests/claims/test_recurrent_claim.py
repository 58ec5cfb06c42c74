"""Claim B1 on a little generated text, for a second or two."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from inkling.claims.ledger import Context
from inkling.claims.recurrent import TorchModel, by_the_character, learns_and_writes
from inkling.figures import Table
from inkling.models.gru import GRUConfig, random_parameters
from inkling.recipes.stream import encode_stream
from inkling.text.tokenise import train_tokeniser


@pytest.mark.slow
def test_b1_compares_two_ways_and_measures_what_they_write() -> None:
    finding = learns_and_writes(Context(), seconds=2.0)
    figures = finding.figures
    assert figures["our_characters_per_second"] > 3 * figures["published_characters_per_second"]
    assert 0 < figures["our_held_out_nats"] < 4
    assert figures["last_third_nats"] < figures["first_third_nats"]
    (table,) = [exhibit for exhibit in finding.exhibits if isinstance(exhibit, Table)]
    shares = {str(row[0]): float(row[1] or 0) for row in table.rows}
    assert shares["the real text, unseen"] == pytest.approx(figures["real_words_known"])
    assert shares["before training"] < shares["the real text, unseen"]


def test_the_published_loop_learns_a_text_of_one_letter() -> None:
    tokeniser = train_tokeniser("character", [["aaaa\n"]])
    stream = encode_stream([["a" * 60]], tokeniser, separate=False)
    _, step = by_the_character(stream, tokeniser.size)
    losses = [step() for _ in range(8)]
    assert losses[-1] < 0.3 * losses[0]


def test_torch_and_our_layout_go_back_and_forth() -> None:
    parameters = random_parameters(GRUConfig(3, 4), 6, np.random.default_rng(0))
    model = TorchModel(6, 3, 4)
    model.load(parameters)
    for name, value in model.plain().items():
        torch.testing.assert_close(value, parameters[name])
