"""The speller: a proper distribution over strings that knows what unknown words look like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inkling.errors import InklingError
from inkling.models import spelling
from inkling.models.spelling import END, Speller

WORDS = {" walking": 3, " talking": 2, " Ångström": 1, " baking": 1, " walked": 1}
SPELLER = Speller.fit(WORDS)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(st.characters(), max_size=12), max_size=5))
def test_any_string_has_a_finite_positive_cost(strings: list[str]) -> None:
    nats = SPELLER.nats(strings)
    assert nats.shape == (len(strings),)
    assert np.isfinite(nats).all()
    assert (nats > 0).all()


@settings(deadline=None, max_examples=30)
@given(st.text(max_size=6))
def test_after_any_bytes_the_next_byte_or_the_end_is_certain(start: str) -> None:
    # With the cost of a string the sum over its bytes and the end, this makes all strings together sum to one.
    chances = np.exp(SPELLER.table.log_probs([END] * 5 + list(start.encode())))
    assert chances.shape == (257,)
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    assert chances.min() > 0


def test_the_cost_is_that_of_each_byte_and_the_end() -> None:
    word = " wé"
    context, expected = [END] * 5, 0.0
    for byte in [*word.encode(), END]:
        expected -= SPELLER.table.log_probs(context)[byte]
        context.append(byte)
    assert SPELLER.nats([word])[0] == pytest.approx(expected, rel=1e-12)


def test_what_looks_like_a_known_spelling_is_cheaper() -> None:
    seen, alike, noise = SPELLER.nats([" walking", " waking", " xqzjvkw"])
    assert seen < alike < noise
    assert noise > 7 * np.log(20)


def test_counts_matter() -> None:
    often, once = (Speller.fit({" ant": n, " bee": 1, " cat": 1}).nats([" ant"])[0] for n in (9, 1))
    assert often < once - 0.3


def test_a_mapping_and_a_stream_of_spellings_give_the_same_speller() -> None:
    stream = [word for word, count in reversed(WORDS.items()) for _ in range(count)]
    same = Speller.fit(stream)
    assert all(np.array_equal(same.tensors()[name], values) for name, values in SPELLER.tensors().items())


def test_counting_in_pieces_gives_the_same_speller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "CHUNK_SPELLINGS", 2)
    same = Speller.fit(WORDS)
    assert all(np.array_equal(same.tensors()[name], values) for name, values in SPELLER.tensors().items())


def test_the_arrays_alone_bring_the_speller_back() -> None:
    again = Speller.from_tensors(SPELLER.tensors())
    strings = [" walking", "", "漢字", " new"]
    assert again.nats(strings).tolist() == Speller.fit(WORDS).nats(strings).tolist()


def test_neither_repetition_nor_neighbours_nor_memory_change_a_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    strings = [" a", " bb", " a", "", " walking", " a"]
    alone = [Speller.fit(WORDS).nats([string])[0] for string in strings]
    assert Speller.fit(WORDS).nats(strings).tolist() == alone
    monkeypatch.setattr(spelling, "CACHE_SPELLINGS", 3)
    small = Speller.fit(WORDS)
    for _ in range(3):
        assert small.nats(strings).tolist() == alone
        assert [small.nats([string])[0] for string in strings] == alone
        assert len(small.known) <= 3


class Pieces:
    kind = "pieces"
    size = 3
    unknown: int | None = 0
    begin = 1

    def piece(self, token: int) -> bytes:
        return [b"", b"\n", b" walking"][token]


def test_without_unknown_pieces_the_vocabulary_stands_in() -> None:
    speller = Speller.fit([], Pieces())  # type: ignore[arg-type]  # only what fit needs of a tokeniser
    assert speller.nats([" walking"])[0] < speller.nats([" gniklaw"])[0]
    with pytest.raises(InklingError, match="no spellings"):
        Speller.fit({})
