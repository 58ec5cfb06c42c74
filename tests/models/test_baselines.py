"""The model that knows nothing costs exactly what nothing costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.measure.tally import tally
from inkling.models.baselines import Uniform
from inkling.models.spelling import Speller
from inkling.text.normalise import Chain
from inkling.text.tokenise import ByteTokeniser, train_tokeniser

LINES = ["The baker bakes.\n", "A cow sleeps.\n"]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@settings(deadline=None, max_examples=50)
@given(st.lists(TEXT, min_size=1).filter(any))
def test_over_bytes_it_needs_exactly_eight_bits_for_each(texts: list[str]) -> None:
    found = tally(Uniform(ByteTokeniser()).score(texts))
    assert found.bits("byte") == pytest.approx(8, rel=1e-14)
    assert found.bits("token") == pytest.approx(8, rel=1e-14)


@pytest.mark.parametrize(("kind", "size"), [("word", 6), ("character", None), ("byte", None), ("bpe", 300)])
def test_over_v_tokens_it_needs_exactly_log2_v_bits_for_each(kind: str, size: int | None) -> None:
    tokeniser = train_tokeniser(kind, [LINES], size)
    model = Uniform(tokeniser, speller=Speller.fit(["new"], tokeniser))
    scores = model.score(["The new cow sleeps.\n"])
    assert tally(scores).bits("token") == pytest.approx(math.log2(tokeniser.size), rel=1e-14)
    state, first = model.begin()
    assert first.numpy() == pytest.approx(np.full(tokeniser.size, -math.log(tokeniser.size)))
    _, after = model.step(state, 1)
    _, rows = model.step_many([state, state], [1, 2])
    assert after.tolist() == first.tolist() == rows[0].tolist() == rows[1].tolist()


def test_it_reads_behind_its_normalisation() -> None:
    [scores] = Uniform(ByteTokeniser(), Chain.parse("letters")).score(["a — b"])
    assert len(scores.ids) == 4  # the dash is gone, and the spaces around it are left
    assert scores.bytes == 7
